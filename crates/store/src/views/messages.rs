//! What people ask: pages of messages, threads, versions, reactions, profiles, follows, files.
//!
//! Views show the winner by stamp, whatever arrived last, and say of content that is not here only that it is not.

use crate::database::batch::JOURNAL_BLOCK;
use crate::database::db::{Db, stamped};
use crate::encode::JournalEntry;
use crate::keys::*;
use crate::tables::TableReads;
use crate::views::timeline::{HINT_REACTIONS, HINT_REFERS, HINT_REPLIES, HINT_VERSIONS};
use engine::keyring::Keyring as _;
use engine::reads::{Reads, SpaceReads as _, StoreError, StoreResult};
use engine::rows::{Meta, Register, RegisterKey, ThreadField};
use model::content::{ChunkBinding, open_content};
use model::planted::{PlantedBug, is_planted};
use model::stage::ContentState;
use model::{AuthorNo, Blob, EventId, Identity, KeyId, Kind, Nanos, Position, Seq, SpaceId, SpaceNo, Stamp};

/// Content as a view shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShownContent {
    /// The plain bytes.
    Here(Vec<u8>),
    /// Not here: missing or pruned, which look the same.
    Absent,
    /// Not of the form that its kind asks for.
    Invalid,
    /// Deleted, by the event of that stamp.
    Deleted(Stamp),
    /// Here, but what is stored of it is damaged.
    Damaged,
}

impl ShownContent {
    /// How a line of a view writes it.
    pub(crate) fn line(&self) -> String {
        match self {
            ShownContent::Here(bytes) => format!("here:{}", model::crypto::content_hash(bytes)),
            ShownContent::Absent => "absent".into(),
            ShownContent::Invalid => "invalid".into(),
            ShownContent::Deleted(by) => format!("deleted:{by}"),
            ShownContent::Damaged => "damaged".into(),
        }
    }
}

/// Who wrote what cannot be read.
pub(crate) const NOBODY: Identity = Identity([0; 32]);

/// A message, post or thread with its latest version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageView {
    /// Its number here.
    pub seq: Seq,
    /// Its id and place.
    pub stamp: Stamp,
    /// Who wrote it.
    pub author: Identity,
    /// The stamp of the version that is shown.
    pub version: Stamp,
    /// What it says.
    pub content: ShownContent,
    /// Who reacted, with the event that counts.
    pub reactions: Vec<(Identity, Seq)>,
    /// How many answers it has.
    pub replies: u64,
    /// Whether it refers to more than its thread: an answer, or with attachments.
    pub refers: bool,
}

impl MessageView {
    /// A message that nobody edited, answered or reacted to.
    pub(crate) fn alone(seq: Seq, stamp: Stamp, author: Identity, content: ShownContent) -> MessageView {
        MessageView { seq, stamp, author, version: stamp, content, reactions: Vec::new(), replies: 0, refers: false }
    }
}

/// A thread and its metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadView {
    /// Its number here.
    pub seq: Seq,
    /// Its id and time.
    pub stamp: Stamp,
    /// Who opened it.
    pub author: Identity,
    /// What it was opened with.
    pub content: ShownContent,
    /// The winners of its fields.
    pub fields: Vec<(ThreadField, Stamp, ShownContent)>,
    /// Whether it was deleted softly.
    pub deleted: bool,
    /// The greatest time among its updates and messages.
    pub updated: Nanos,
}

impl<V: TableReads> Db<V> {
    pub(crate) fn message(&self, seq: Seq, stamp: Stamp, hints: u8) -> StoreResult<MessageView> {
        let latest = if hints & HINT_VERSIONS != 0 { self.shown_version(seq)? } else { None };
        // Most messages have one version, and then everything is in one row.
        let (meta, first) = self.row_and_content(seq, latest.is_none())?;
        let (space, author) = match meta {
            Some(meta) => (meta.space, self.remembered_identity(meta.author)?),
            // Its row is damaged.
            None => (SpaceNo::default(), NOBODY),
        };
        let (version, content) = match latest {
            Some((version, latest)) => (version, self.shown(latest)?),
            None => (stamp, first),
        };
        self.with_reactions_and_replies(
            space,
            hints,
            MessageView { version, ..MessageView::alone(seq, stamp, author, content) },
        )
    }

    /// A message with the reactions and answers that the hints speak of.
    pub(crate) fn with_reactions_and_replies(
        &self,
        space: SpaceNo,
        hints: u8,
        message: MessageView,
    ) -> StoreResult<MessageView> {
        let MessageView { seq, stamp, .. } = message;
        Ok(MessageView {
            reactions: if hints & HINT_REACTIONS != 0 { self.reactions(seq)? } else { Vec::new() },
            replies: if hints & HINT_REPLIES != 0 { self.replies(space, &stamp.id)? } else { 0 },
            refers: hints & HINT_REFERS != 0,
            ..message
        })
    }

    fn shown_version(&self, seq: Seq) -> StoreResult<Option<(Stamp, Seq)>> {
        if is_planted(PlantedBug::LastArrivalWins) {
            let versions = self.versions(seq, Stamp::FIRST, usize::MAX)?;
            return Ok(versions.into_iter().max_by_key(|(_, version)| *version));
        }
        self.last_version(seq)
    }

    /// A post or message by number, however it is found.
    pub fn message_by_seq(&self, seq: Seq) -> StoreResult<Option<MessageView>> {
        let Some(stamp) = self.event(seq)?.and_then(|row| row.stamp()) else {
            return Ok(None);
        };
        self.message(seq, stamp, u8::MAX).map(Some)
    }

    /// The content of an event as a view shows it.
    pub fn shown(&self, seq: Seq) -> StoreResult<ShownContent> {
        Ok(self.row_and_content(seq, true)?.1)
    }

    /// What an event's row says, and its content if that is wanted, in one reading.
    fn row_and_content(&self, seq: Seq, with_content: bool) -> StoreResult<(Option<Meta>, ShownContent)> {
        let found = self.with_event(seq, |parts| {
            let inline = if with_content { self.open_inline(&parts) } else { Ok(None) };
            (parts.row.content, parts.row.meta, inline, sealing_key(parts.blob))
        });
        let Some(found) = self.unless_damaged(found)? else { return Ok((None, ShownContent::Damaged)) };
        let Some((state, Some(meta), inline, sealed)) = found else {
            return Ok((None, ShownContent::Absent));
        };
        if !with_content {
            return Ok((Some(meta), ShownContent::Absent));
        }
        let shown = inline.and_then(|inline| self.content_of(state, &meta, inline, sealed));
        let shown = self.unless_damaged(shown)?.unwrap_or(ShownContent::Damaged);
        Ok((Some(meta), shown))
    }

    /// What was read; none if it is damaged, which is noted and concerns nothing else.
    pub(crate) fn unless_damaged<T>(&self, read: StoreResult<T>) -> StoreResult<Option<T>> {
        match read {
            Err(StoreError::Broken(what)) => {
                self.shared.damage.note(&what);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    fn content_of(
        &self,
        state: ContentState,
        meta: &Meta,
        inline: Option<Vec<u8>>,
        sealed: Option<(SpaceId, KeyId)>,
    ) -> StoreResult<ShownContent> {
        match state {
            ContentState::Missing | ContentState::Pruned => return Ok(ShownContent::Absent),
            ContentState::Invalid => return Ok(ShownContent::Invalid),
            ContentState::Deleted { by } => return Ok(ShownContent::Deleted(by)),
            ContentState::Processed => {}
        }
        let is_inline = meta.content_len <= self.policy.inline_bytes_max;
        let wire = match inline {
            Some(bytes) => Some(bytes),
            None if meta.content_len == 0 => Some(Vec::new()),
            None => self.content_bytes(meta.space, &meta.content_hash, u64::MAX)?,
        };
        let Some(wire) = wire else { return Ok(ShownContent::Absent) };
        let Some((space, key)) = sealed.filter(|_| meta.content_len > 0) else {
            return Ok(ShownContent::Here(wire));
        };
        let binding = match is_inline {
            true => ChunkBinding::Inline { author: self.remembered_identity(meta.author)?, at: meta.at },
            false => ChunkBinding::Shared,
        };
        self.opened_content(&space, &key, &wire, binding)
    }

    /// Content of a sealed space, opened.
    pub(crate) fn opened_content(
        &self,
        space: &SpaceId,
        key: &KeyId,
        wire: &[u8],
        binding: ChunkBinding,
    ) -> StoreResult<ShownContent> {
        let Some(key) = self.space_key(space, key) else { return Ok(ShownContent::Absent) };
        Ok(open_content(&key, wire, binding).map_or(ShownContent::Absent, ShownContent::Here))
    }

    /// Who reacted to a message: for each author the greatest candidate, unless it is a removal.
    pub fn reactions(&self, target: Seq) -> StoreResult<Vec<(Identity, Seq)>> {
        let mut winners: Vec<(AuthorNo, Seq)> = Vec::new();
        for row in self.tables.reactions().range(ReactionKey::of_target(target))? {
            let row = row?;
            let (author, seq) = (row.key().author(), row.value()?);
            match winners.last_mut() {
                Some(winner) if winner.0 == author => winner.1 = seq,
                _ => winners.push((author, seq)),
            }
        }
        let mut shown = Vec::new();
        for (author, seq) in winners {
            if self.kind_of(seq)? == Some(Kind::Reaction) {
                shown.push((self.identity(author)?, seq));
            }
        }
        shown.sort();
        Ok(shown)
    }

    /// The kind of a known event, if it was opened and is of the `space` protocol.
    pub fn kind_of(&self, seq: Seq) -> StoreResult<Option<Kind>> {
        Ok(self.event(seq)?.and_then(|row| row.meta).and_then(|meta| meta.kind.space()))
    }

    /// How many answers an event has in its space.
    pub fn replies(&self, space: SpaceNo, target: &EventId) -> StoreResult<u64> {
        Ok(self.tables.replies().range(ReplyKey::of_target(space, *target))?.count() as u64)
    }

    /// The answers to an event in its space, in order.
    pub fn answers(
        &self,
        space: SpaceNo,
        target: &EventId,
        after: Stamp,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>> {
        let key = |stamp| ReplyKey::new(space, *target, stamp);
        Self::after(self.tables.replies(), key(after), key(Stamp::LAST), most)
    }

    /// The messages of a space that mention somebody before a stamp, newest first.
    pub fn mentions(
        &self,
        space: SpaceNo,
        who: &SpaceId,
        before: Stamp,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>> {
        let range = MentionKey::new(space, *who, Stamp::FIRST)..MentionKey::new(space, *who, before);
        stamped(self.tables.mentions().range(range)?.rev().take(most))
    }

    /// The winner of a register.
    pub fn register(&self, space: SpaceNo, register: Register) -> StoreResult<Option<(Stamp, Seq)>> {
        self.register_winner(&RegisterKey { space, register })
    }

    /// The threads of a space, in the order of their creation, after a stamp.
    pub fn threads(&self, space: SpaceNo, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let (from, to) = (SpaceStamp::new(space, after), SpaceStamp::new(space, Stamp::LAST));
        Self::after(self.tables.threads(), from, to, most)
    }

    /// A thread and its metadata.
    pub fn thread(&self, seq: Seq) -> StoreResult<Option<ThreadView>> {
        let Some(row) = self.event(seq)? else { return Ok(None) };
        let (Some(stamp), Some(meta)) = (row.stamp(), row.meta) else {
            return Ok(None);
        };
        let mut fields = Vec::new();
        for field in ThreadField::UPDATABLE {
            let register = Register::ThreadField(seq, field.code());
            if let Some((stamp, winner)) = self.register(meta.space, register)? {
                fields.push((field, stamp, self.shown(winner)?));
            }
        }
        let deleted = self.register(meta.space, Register::ThreadField(seq, ThreadField::Deleted.code()))?;
        let updated = self.updated(seq)?.unwrap_or(stamp.at);
        let author = self.identity(meta.author)?;
        let content = self.shown(seq)?;
        Ok(Some(ThreadView { seq, stamp, author, content, fields, deleted: deleted.is_some(), updated }))
    }

    /// The message up to which an author has read a thread.
    pub fn read_position(&self, space: SpaceNo, author: AuthorNo, thread: Seq) -> StoreResult<Option<EventId>> {
        let Some((_, marker)) = self.register(space, Register::ReadMarker(author, thread))? else { return Ok(None) };
        Ok(self.opened(marker)?.and_then(|envelope| envelope.reference(model::Role::Target)))
    }

    /// Posts of a public space before a stamp, newest first.
    pub fn posts(&self, space: SpaceNo, before: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let range = SpaceStamp::new(space, Stamp::FIRST)..SpaceStamp::new(space, before);
        stamped(self.tables.posts().range(range)?.rev().take(most))
    }

    /// The thread or message behind an id that a client chose: the least that counts.
    pub fn chosen(&self, space: SpaceNo, id: &str) -> StoreResult<Option<(Stamp, Seq)>> {
        let aux = model::crypto::chosen_key(id);
        Ok(stamped(self.tables.chosen().range(ChosenKey::of_key(space, aux))?.take(1))?.pop())
    }

    /// The files of a space, after a stamp.
    pub fn files(&self, space: SpaceNo, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let (from, to) = (SpaceStamp::new(space, after), SpaceStamp::new(space, Stamp::LAST));
        Self::after(self.tables.files(), from, to, most)
    }

    /// Whether everything that happened after a position is still in the journal.
    pub fn can_resume_after(&self, last: &Position, latest: &Position) -> StoreResult<bool> {
        if last.epoch != latest.epoch || last.number > latest.number {
            return Ok(false);
        }
        // All of it may have been trimmed.
        let first = self.journal(None, 0, 1)?.first().map_or(latest.number.saturating_add(1), |(number, _)| *number);
        Ok(last.number.saturating_add(1) >= first)
    }

    /// Journal entries after a position, of one space or of all. Stops after looking at a bounded number of them.
    pub fn journal(&self, space: Option<SpaceNo>, after: u64, most: usize) -> StoreResult<Vec<(u64, JournalEntry)>> {
        let mut found = Vec::new();
        let Some(space) = space else {
            for row in self.tables.journal().range(JournalNo::new(after.saturating_add(1))..)?.take(most) {
                let row = row?;
                found.push((row.key().number(), row.value()?));
            }
            return Ok(found);
        };
        let block = |number: u64| JournalBlockKey::new(space, number);
        let blocks = block(after.saturating_add(1) / JOURNAL_BLOCK)..=block(u64::MAX);
        for row in self.tables.journal_blocks().range(blocks)? {
            let first = row?.key().block().saturating_mul(JOURNAL_BLOCK);
            let from = JournalNo::new(first.max(after.saturating_add(1)));
            for row in self.tables.journal().range(from..JournalNo::new(first.saturating_add(JOURNAL_BLOCK)))? {
                let row = row?;
                let entry = row.value()?;
                if entry.space == space {
                    found.push((row.key().number(), entry));
                    if found.len() >= most {
                        return Ok(found);
                    }
                }
            }
        }
        Ok(found)
    }

    /// The position after which nothing has happened yet.
    pub fn position(&self) -> StoreResult<Position> {
        Ok(Position { epoch: self.epoch()?, number: self.next_position.saturating_sub(1) })
    }
}

/// The space and key of a sealed blob, read from its outside.
fn sealing_key(blob: &[u8]) -> Option<(SpaceId, KeyId)> {
    Blob::form_of(blob).ok()?.sealing_key()
}
