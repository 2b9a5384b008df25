//! Content and its states: who refers to it, whether it is here, and whether somebody deleted it.
//!
//! An event takes its reference when it is opened, and its content is processed once the event is applied and the bytes
//! are here. Deletes are looked at whenever the target becomes known and whenever a delete starts or stops counting, so
//! that neither order matters.

use crate::change::{Change, RowChange};
use crate::fetch;
use crate::policy::Policy;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::rows::{ContentLocation, EventRow, JournalKind, Meta, Origin, Task};
use model::files::WantedBytes;
use model::planted::{PlantedBug, is_planted};
use model::stage::{ContentInput, ContentState, RefChange};
use model::{Group, Seq, SpaceNo, Stamp};

/// Whether content fits its event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentCheck {
    /// Hash, length and form are right. The content may speak of bytes that are content of their own.
    Fits(Option<WantedBytes>),
    /// The bytes are those that were signed for, but not of the form that the kind asks for.
    Unfit,
}

/// An event whose row is being changed, with the changes so far. The row itself is the last of them.
#[derive(Debug)]
pub struct EventDraft {
    /// Which event.
    pub seq: Seq,
    /// Its row as it will be.
    pub row: EventRow,
    /// What else changes.
    pub changes: Vec<Change>,
    /// Whether the event is being applied: what becomes of its content then is part of that, and no entry of its own.
    pub(crate) is_being_applied: bool,
}

impl EventDraft {
    /// Begins with the row as it is.
    pub fn new(seq: Seq, row: EventRow) -> EventDraft {
        EventDraft { seq, row, changes: Vec::new(), is_being_applied: false }
    }

    /// Nothing, in place of a draft that was taken away.
    pub(crate) fn empty() -> EventDraft {
        EventDraft::new(
            Seq(0),
            EventRow {
                id: model::EventId::ZERO,
                stage: model::Stage::Expired,
                content: ContentState::Missing,
                has_inline: false,
                origin: Origin::Local,
                received_at: model::Nanos(0),
                meta: None,
            },
        )
    }

    /// All changes, the row included.
    pub fn finish(mut self) -> Vec<Change> {
        self.changes.push(Change::Row(self.seq, Box::new(self.row)));
        self.changes
    }

    pub(crate) fn meta(&self) -> StoreResult<Meta> {
        self.row.meta.clone().ok_or_else(|| StoreError::Broken(format!("{} has content but was not opened", self.seq)))
    }

    /// The content of the event is here and was judged. Says whether that changed anything.
    pub fn judged(&mut self, db: &impl Reads, policy: &Policy, check: ContentCheck) -> StoreResult<bool> {
        match check {
            ContentCheck::Fits(wanted) => {
                let has_changed = self.content(db, policy, ContentInput::Arrived)?;
                if let Some(wanted) = wanted.filter(|_| has_changed) {
                    self.want_bytes(db, wanted)?;
                }
                Ok(has_changed)
            }
            ContentCheck::Unfit => self.content(db, policy, ContentInput::Unfit),
        }
    }

    /// The content of a file event speaks of bytes, which are wanted and counted from now on.
    fn want_bytes(&mut self, db: &impl Reads, wanted: WantedBytes) -> StoreResult<()> {
        let meta = self.meta()?;
        self.changes.push(Change::Take(meta.space, wanted.hash, wanted.len));
        self.changes.push(Change::Bytes(RowChange::Put, self.seq, wanted));
        let is_here = db.content(meta.space, &wanted.hash)?.is_some_and(|row| row.place != ContentLocation::Absent);
        if !is_here {
            self.changes.push(Change::ContentWaiting(RowChange::Put, meta.space, wanted.hash, self.seq));
            let group = Group::Content(db.space_id(meta.space)?, wanted.hash);
            self.changes.push(Change::Wanted(group, fetch_origin(self.row.origin)));
        }
        self.changes.push(usage_of_bytes(RowChange::Put, &meta, &wanted, is_here));
        Ok(())
    }

    /// The content of a file event goes, and with it what it said of bytes.
    fn forget_bytes(&mut self, db: &impl Reads) -> StoreResult<()> {
        let Some(wanted) = db.wanted_bytes(self.seq)? else { return Ok(()) };
        let meta = self.meta()?;
        let waits = is_waiting_for_bytes(db, meta.space, self.seq, &wanted)?;
        if waits {
            self.changes.push(Change::ContentWaiting(RowChange::Remove, meta.space, wanted.hash, self.seq));
        }
        self.changes.push(usage_of_bytes(RowChange::Remove, &meta, &wanted, !waits));
        self.changes.push(Change::Bytes(RowChange::Remove, self.seq, wanted));
        self.changes.push(Change::GiveBack(meta.space, wanted.hash));
        Ok(())
    }

    /// Moves the content of the event, if the input changes anything. Says whether it did.
    pub fn content(&mut self, db: &impl Reads, policy: &Policy, input: ContentInput) -> StoreResult<bool> {
        let meta = self.meta()?;
        let old = self.row.content;
        let Some((new, mut references)) = old.next(input) else {
            return Ok(false);
        };
        if is_planted(PlantedBug::ForgottenGiveBack) && matches!(input, ContentInput::Delete(_)) {
            references = RefChange::Keep;
        }
        if is_planted(PlantedBug::DoubleGiveBack)
            && old == ContentState::Pruned
            && matches!(input, ContentInput::Delete(_))
        {
            references = RefChange::GiveBack;
        }
        self.row.content = new;
        if old == ContentState::Processed {
            self.forget_bytes(db)?;
        }
        self.usage(&meta, old, new);
        if meta.content_len > policy.inline_bytes_max {
            match references {
                RefChange::Keep => {}
                RefChange::Take => {
                    self.changes.push(Change::Take(meta.space, meta.content_hash, meta.content_len));
                }
                RefChange::GiveBack => self.changes.push(Change::GiveBack(meta.space, meta.content_hash)),
            }
        }
        if self.row.is_applied() && !self.is_being_applied {
            self.wait(&meta, old, new);
            if let Some(kind) = journal_kind(old, new) {
                self.changes.push(Change::Journal(meta.space, self.seq, kind));
            }
        }
        if !new.holds_reference() && self.row.has_inline {
            self.row.has_inline = false;
            self.changes.push(Change::Inline(self.seq, None));
        }
        Ok(true)
    }

    fn usage(&mut self, meta: &Meta, old: ContentState, new: ContentState) {
        let (space, author, len) = (meta.space, meta.author, meta.content_len);
        self.changes.push(Change::Usage(RowChange::Remove, space, author, old, len));
        self.changes.push(Change::Usage(RowChange::Put, space, author, new, len));
    }

    fn wait(&mut self, meta: &Meta, old: ContentState, new: ContentState) {
        let row_change = match (old, new) {
            (ContentState::Missing, _) if is_planted(PlantedBug::ContentProcessedTwice) => return,
            (ContentState::Missing, _) => RowChange::Remove,
            (_, ContentState::Missing) => RowChange::Put,
            _ => return,
        };
        self.changes.push(Change::ContentWaiting(row_change, meta.space, meta.content_hash, self.seq));
    }
}

/// Whether a file event waits for the bytes that its content speaks of.
pub fn is_waiting_for_bytes(db: &impl Reads, space: SpaceNo, seq: Seq, wanted: &WantedBytes) -> StoreResult<bool> {
    let waiting = db.waiting_for_content(space, &wanted.hash, Seq(seq.0.saturating_sub(1)), 1)?;
    Ok(waiting.first() == Some(&seq))
}

/// The bytes of files are counted as their content is: as missing, or as here.
fn usage_of_bytes(row_change: RowChange, meta: &Meta, wanted: &WantedBytes, is_here: bool) -> Change {
    let state = if is_here { ContentState::Processed } else { ContentState::Missing };
    Change::UsageOfBytes(row_change, meta.space, meta.author, state, wanted.len)
}

/// The bytes came that a file event waits for. If they are of another length than it says, no others will ever come.
pub(crate) fn bytes_arrived(db: &impl Reads, seq: Seq, meta: &Meta) -> StoreResult<Vec<Change>> {
    let Some(wanted) = db.wanted_bytes(seq)? else { return Ok(Vec::new()) };
    Ok(vec![
        Change::ContentWaiting(RowChange::Remove, meta.space, wanted.hash, seq),
        usage_of_bytes(RowChange::Remove, meta, &wanted, false),
        usage_of_bytes(RowChange::Put, meta, &wanted, true),
        Change::BytesArrived(seq),
        Change::Journal(meta.space, seq, JournalKind::BytesArrived),
    ])
}

fn journal_kind(old: ContentState, new: ContentState) -> Option<JournalKind> {
    match (old, new) {
        (ContentState::Deleted { .. }, ContentState::Deleted { .. }) => None,
        (_, ContentState::Deleted { .. }) => Some(JournalKind::Deleted),
        (ContentState::Deleted { .. }, _) => Some(JournalKind::Undeleted),
        (_, ContentState::Pruned) => Some(JournalKind::Pruned),
        (_, ContentState::Processed) => Some(JournalKind::Processed),
        (_, ContentState::Invalid | ContentState::Missing) => None,
    }
}

/// The state in which the content of a newly opened event begins. Takes the reference unless it is deleted already.
pub fn begin(policy: &Policy, draft: &mut EventDraft, deleted: Option<Stamp>) -> StoreResult<()> {
    let meta = draft.meta()?;
    let deleted = deleted.filter(|_| !is_planted(PlantedBug::DeleteBeforeTargetForgotten));
    draft.row.content = match deleted {
        Some(by) => ContentState::Deleted { by },
        None => ContentState::Missing,
    };
    draft.changes.push(Change::Usage(RowChange::Put, meta.space, meta.author, draft.row.content, meta.content_len));
    if deleted.is_none() && meta.content_len > policy.inline_bytes_max {
        draft.changes.push(Change::Take(meta.space, meta.content_hash, meta.content_len));
    }
    if deleted.is_some() && draft.row.has_inline {
        draft.row.has_inline = false;
        draft.changes.push(Change::Inline(draft.seq, None));
    }
    Ok(())
}

/// For whom the fetcher hunts.
pub fn fetch_origin(origin: Origin) -> fetch::NeedOrigin {
    match origin {
        Origin::Local | Origin::Client => fetch::NeedOrigin::LocalUser,
        Origin::Import | Origin::Relay | Origin::Peer(_) => fetch::NeedOrigin::PeerOrRelay,
    }
}

/// Moves the content of an event as the least delete that reaches it says, or its absence.
pub fn recheck(db: &impl Reads, policy: &Policy, draft: &mut EventDraft, deleted: Option<Stamp>) -> StoreResult<bool> {
    if is_planted(PlantedBug::DeleteBeforeTargetForgotten) && !matches!(draft.row.content, ContentState::Processed) {
        return Ok(false);
    }
    match (deleted, draft.row.content) {
        (Some(_), ContentState::Deleted { .. }) if is_planted(PlantedBug::FirstDeleteStays) => Ok(false),
        (Some(by), _) => draft.content(db, policy, ContentInput::Delete(by)),
        (None, ContentState::Deleted { .. }) if is_planted(PlantedBug::DeletedStaysDeleted) => Ok(false),
        (None, _) => draft.content(db, policy, ContentInput::Undelete),
    }
}

/// Content that became missing again: it may be here all the same, and if not it is hunted.
pub fn want(db: &impl Reads, draft: &mut EventDraft) -> StoreResult<()> {
    let meta = draft.meta()?;
    let space = db.space_id(meta.space)?;
    draft.changes.push(Change::Wanted(Group::Content(space, meta.content_hash), fetch_origin(draft.row.origin)));
    draft.changes.push(Change::Task(RowChange::Put, Task::Content(meta.space, meta.content_hash, Seq(0))));
    Ok(())
}

/// What a prune did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PruneResult {
    /// The content was dropped.
    Dropped,
    /// It was deleted, invalid or pruned already, empty, or is not known: nothing was done.
    Nothing(&'static str),
}

/// Drops the content of an event here, by local policy.
pub fn prune(db: &impl Reads, policy: &Policy, seq: Seq) -> StoreResult<(PruneResult, Vec<Change>)> {
    let Some(row) = db.event(seq)? else {
        return Ok((PruneResult::Nothing("not known"), Vec::new()));
    };
    let why = row.content.word();
    let mut draft = EventDraft::new(seq, row);
    match &draft.row.meta {
        Some(meta) if meta.content_len > 0 && draft.row.is_applied() => {}
        Some(meta) if meta.content_len == 0 => return Ok((PruneResult::Nothing("without content"), Vec::new())),
        Some(_) | None => return Ok((PruneResult::Nothing("not applied"), Vec::new())),
    }
    if !draft.content(db, policy, ContentInput::Prune)? {
        return Ok((PruneResult::Nothing(why), Vec::new()));
    }
    Ok((PruneResult::Dropped, draft.finish()))
}

/// Wants pruned content back.
pub fn want_back(db: &impl Reads, policy: &Policy, seq: Seq) -> StoreResult<Vec<Change>> {
    let Some(row) = db.event(seq)? else {
        return Ok(Vec::new());
    };
    let mut draft = EventDraft::new(seq, row);
    if draft.row.meta.is_none() || !draft.content(db, policy, ContentInput::Want)? {
        return Ok(Vec::new());
    }
    want(db, &mut draft)?;
    Ok(draft.finish())
}
