//! Content and its states: who refers to it, whether it is here, and whether somebody deleted it.
//!
//! An event takes its reference when it is opened, and its content is processed once the event is applied and the bytes
//! are here. Deletes are looked at whenever the target becomes known and whenever a delete starts or stops counting, so
//! that neither order matters.

use crate::change::{Change, RowChange};
use crate::counting::delete_reaches;
use crate::fetch;
use crate::policy::Policy;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::rows::{ContentLocation, EventRow, JournalKind, Meta, Origin, Task};
use model::kind::ContentRule;
use model::limits::{BODY_BYTES_MAX, CHUNK_OVERHEAD_BYTES};
use model::planted::{PlantedBug, is_planted};
use model::stage::{ContentInput, ContentState, RefChange};
use model::{Envelope, EventId, Group, Kind, Seq, Stamp, body};

/// Whether content fits its event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentCheck {
    /// Hash, length and form are right.
    Fits,
    /// The bytes are those that were signed for, but not of the form that the kind asks for.
    Unfit,
}

/// Judges the plain bytes of an event's content.
pub fn judge(kind: Kind, plain: &[u8]) -> ContentCheck {
    let fits = match kind.content_rule() {
        ContentRule::Json => body::decode(plain).is_ok_and(|value| has_form(kind, &value)),
        ContentRule::Empty => plain.is_empty(),
        ContentRule::Any => true,
    };
    if fits { ContentCheck::Fits } else { ContentCheck::Unfit }
}

fn has_form(kind: Kind, value: &serde_json::Value) -> bool {
    let text = |name: &str| value.get(name).and_then(serde_json::Value::as_str);
    match kind {
        Kind::Reaction => text("reaction").is_some_and(|reaction| (1..=64).contains(&reaction.len())),
        Kind::File => {
            let hash = text("hash").is_some_and(|hash| hash.parse::<model::ContentHash>().is_ok());
            let size = value.get("size").is_some_and(serde_json::Value::is_u64);
            hash && size && text("name").is_some() && text("type").is_some()
        }
        _ => true,
    }
}

/// Whether content of this length can be what the kind asks for, without looking at it.
pub fn is_possible_length(kind: Kind, wire_len: u64) -> bool {
    match kind.content_rule() {
        ContentRule::Json => wire_len <= (BODY_BYTES_MAX + CHUNK_OVERHEAD_BYTES) as u64,
        ContentRule::Empty | ContentRule::Any => true,
    }
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
    is_being_applied: bool,
}

impl EventDraft {
    /// Begins with the row as it is.
    pub fn new(seq: Seq, row: EventRow) -> EventDraft {
        EventDraft { seq, row, changes: Vec::new(), is_being_applied: false }
    }

    /// All changes, the row included.
    pub fn finish(mut self) -> Vec<Change> {
        self.changes.push(Change::Row(self.seq, Box::new(self.row)));
        self.changes
    }

    fn meta(&self) -> StoreResult<Meta> {
        self.row.meta.clone().ok_or_else(|| StoreError::Broken(format!("{} has content but was not opened", self.seq)))
    }

    /// Moves the content of the event, if the input changes anything. Says whether it did.
    pub fn content(&mut self, policy: &Policy, input: ContentInput) -> StoreResult<bool> {
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

/// The least delete that reaches an event, if any does: of itself, or of what it is an edit of.
pub fn deleting(db: &impl Reads, id: &EventId, meta: &Meta) -> StoreResult<Option<Stamp>> {
    let own = least_delete(db, id, meta)?;
    if meta.kind != Kind::Edit || meta.subject == Seq(0) {
        return Ok(own);
    }
    let Some(target) = db.event(meta.subject)? else {
        return Ok(own);
    };
    let Some(target_meta) = &target.meta else {
        return Ok(own);
    };
    let covering = least_delete(db, &target.id, target_meta)?;
    Ok(match (own, covering) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    })
}

fn least_delete(db: &impl Reads, id: &EventId, meta: &Meta) -> StoreResult<Option<Stamp>> {
    for (stamp, delete) in db.tombstones(id)? {
        if delete_reaches(db, delete, stamp, meta)? {
            return Ok(Some(stamp));
        }
    }
    Ok(None)
}

/// The state in which the content of a newly opened event begins. Takes the reference unless it is deleted already.
pub fn begin(db: &impl Reads, policy: &Policy, draft: &mut EventDraft) -> StoreResult<()> {
    let meta = draft.meta()?;
    let deleted =
        if is_planted(PlantedBug::DeleteBeforeTargetForgotten) { None } else { deleting(db, &draft.row.id, &meta)? };
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

/// What becomes of the content of an event at the moment it is applied: the row is applied already, and no row says
/// yet that it waits.
pub fn settle(
    db: &impl Reads,
    policy: &Policy,
    draft: &mut EventDraft,
    envelope: &Envelope,
    inline: Option<ContentCheck>,
) -> StoreResult<()> {
    let meta = draft.meta()?;
    draft.is_being_applied = true;
    recheck(db, policy, draft)?;
    if draft.row.content != ContentState::Missing {
        return Ok(());
    }
    match find(db, policy, draft, envelope, inline)? {
        Some(ContentCheck::Fits) => draft.content(policy, ContentInput::Arrived)?,
        Some(ContentCheck::Unfit) => draft.content(policy, ContentInput::Unfit)?,
        None => {
            draft.changes.push(Change::ContentWaiting(RowChange::Put, meta.space, meta.content_hash, draft.seq));
            let group = Group::Content(envelope.space, meta.content_hash);
            draft.changes.push(Change::Wanted(group, fetch_origin(draft.row.origin)));
            true
        }
    };
    Ok(())
}

/// For whom the fetcher hunts.
pub fn fetch_origin(origin: Origin) -> fetch::NeedOrigin {
    match origin {
        Origin::Local => fetch::NeedOrigin::LocalUser,
        Origin::Import | Origin::Peer(_) => fetch::NeedOrigin::PeerOrRelay,
    }
}

fn find(
    db: &impl Reads,
    policy: &Policy,
    draft: &EventDraft,
    envelope: &Envelope,
    inline: Option<ContentCheck>,
) -> StoreResult<Option<ContentCheck>> {
    let meta = draft.meta()?;
    if meta.content_len == 0 {
        return Ok(Some(ContentCheck::Fits));
    }
    if !is_possible_length(meta.kind, meta.content_len) {
        return Ok(Some(ContentCheck::Unfit));
    }
    if meta.content_len <= policy.inline_bytes_max {
        return match inline {
            None if draft.row.has_inline => judge_inline(db, draft, envelope),
            // Bytes of that hash are here and longer than this event says: it lies about their length.
            None if db
                .content(meta.space, &meta.content_hash)?
                .is_some_and(|row| row.place != ContentLocation::Absent) =>
            {
                Ok(Some(ContentCheck::Unfit))
            }
            verdict => Ok(verdict),
        };
    }
    match db.content(meta.space, &meta.content_hash)? {
        Some(row) if row.place != ContentLocation::Absent && row.len != meta.content_len => {
            Ok(Some(ContentCheck::Unfit))
        }
        Some(row) if row.place != ContentLocation::Absent => judge_stored(db, &meta, envelope).map(Some),
        Some(_) | None => Ok(None),
    }
}

fn judge_inline(db: &impl Reads, draft: &EventDraft, envelope: &Envelope) -> StoreResult<Option<ContentCheck>> {
    let inline = db.kept(draft.seq)?.and_then(|kept| kept.inline);
    inline.map(|wire| judge_wire(db, envelope, &wire)).transpose()
}

fn judge_stored(db: &impl Reads, meta: &Meta, envelope: &Envelope) -> StoreResult<ContentCheck> {
    if meta.kind.content_rule() == ContentRule::Any {
        return Ok(ContentCheck::Fits);
    }
    match db.content_bytes(meta.space, &meta.content_hash, meta.content_len)? {
        Some(wire) => judge_wire(db, envelope, &wire),
        None => Err(StoreError::Broken(format!("content {} has a place but no bytes", meta.content_hash))),
    }
}

/// Judges content as it travels; what does not open under its key is unfit, for everybody who has the key.
pub fn judge_wire(db: &impl Reads, envelope: &Envelope, wire: &[u8]) -> StoreResult<ContentCheck> {
    Ok(match db.open_content(envelope, wire)? {
        Some(plain) => judge(envelope.kind, &plain),
        None => ContentCheck::Unfit,
    })
}

/// Looks again whether a delete reaches the event.
pub fn recheck(db: &impl Reads, policy: &Policy, draft: &mut EventDraft) -> StoreResult<bool> {
    let meta = draft.meta()?;
    if is_planted(PlantedBug::DeleteBeforeTargetForgotten) && !matches!(draft.row.content, ContentState::Processed) {
        return Ok(false);
    }
    match (deleting(db, &draft.row.id, &meta)?, draft.row.content) {
        (Some(_), ContentState::Deleted { .. }) if is_planted(PlantedBug::FirstDeleteStays) => Ok(false),
        (Some(by), _) => draft.content(policy, ContentInput::Delete(by)),
        (None, _) => draft.content(policy, ContentInput::Undelete),
    }
}

/// Looks again at a known event after a delete of it started or stopped counting.
pub fn recheck_deletion(db: &impl Reads, policy: &Policy, seq: Seq) -> StoreResult<Vec<Change>> {
    let Some(row) = db.event(seq)? else {
        return Ok(Vec::new());
    };
    let mut draft = EventDraft::new(seq, row);
    if draft.row.meta.is_none() || !recheck(db, policy, &mut draft)? {
        return Ok(Vec::new());
    }
    if draft.row.content == ContentState::Missing && draft.row.is_applied() {
        want(db, &mut draft)?;
    }
    Ok(draft.finish())
}

/// Looks again at the target and at its versions, a bounded number at a time.
pub fn recheck_versions(db: &impl Reads, policy: &Policy, target: Seq, after: Stamp) -> StoreResult<Vec<Change>> {
    let mut changes = vec![Change::Task(RowChange::Remove, Task::Versions(target, after))];
    if after == Stamp::FIRST {
        changes.extend(recheck_deletion(db, policy, target)?);
    }
    let versions = db.edits(target, after, policy.releases_max)?;
    for (_, seq) in &versions {
        changes.extend(recheck_deletion(db, policy, *seq)?);
    }
    if let (Some((last, _)), true) = (versions.last(), versions.len() == policy.releases_max) {
        changes.push(Change::Task(RowChange::Put, Task::Versions(target, *last)));
    }
    Ok(changes)
}

/// Content that became missing again: it may be here all the same, and if not it is hunted.
fn want(db: &impl Reads, draft: &mut EventDraft) -> StoreResult<()> {
    let meta = draft.meta()?;
    let space = db.space_id(meta.space)?;
    draft.changes.push(Change::Wanted(Group::Content(space, meta.content_hash), fetch_origin(draft.row.origin)));
    draft.changes.push(Change::Task(RowChange::Put, Task::Content(meta.space, meta.content_hash, Seq(0))));
    Ok(())
}

/// Processes content for those that wait for it, a bounded number at a time. Each waiting event is judged by itself.
pub fn arrived(
    db: &impl Reads,
    policy: &Policy,
    space: model::SpaceNo,
    hash: model::ContentHash,
    after: Seq,
) -> StoreResult<Vec<Change>> {
    let mut changes = vec![Change::Task(RowChange::Remove, Task::Content(space, hash, after))];
    let mut waiting = db.waiting_for_content(space, &hash, after, policy.releases_max)?;
    if is_planted(PlantedBug::ContentForFirstWaiterOnly) {
        waiting.truncate(1);
    }
    for seq in &waiting {
        let Some(row) = db.event(*seq)? else { continue };
        let mut draft = EventDraft::new(*seq, row);
        if arrive_for(db, policy, &mut draft)? {
            changes.extend(draft.finish());
        }
    }
    if let (Some(last), true) = (waiting.last(), waiting.len() == policy.releases_max) {
        changes.push(Change::Task(RowChange::Put, Task::Content(space, hash, *last)));
    }
    Ok(changes)
}

fn arrive_for(db: &impl Reads, policy: &Policy, draft: &mut EventDraft) -> StoreResult<bool> {
    let Some(envelope) = db.opened(draft.seq)? else {
        return Ok(false);
    };
    match find(db, policy, draft, &envelope, None)? {
        Some(ContentCheck::Fits) => draft.content(policy, ContentInput::Arrived),
        Some(ContentCheck::Unfit) => draft.content(policy, ContentInput::Unfit),
        None => Ok(false),
    }
}

/// Inline bytes that came for an event whose content was missing. The hash was compared with the envelope's.
pub fn inline_arrived(
    db: &impl Reads,
    policy: &Policy,
    seq: Seq,
    row: EventRow,
    wire: &[u8],
) -> StoreResult<Vec<Change>> {
    let Some(meta) = row.meta.clone() else {
        return Ok(Vec::new());
    };
    let wanted = row.content == ContentState::Missing && !row.has_inline;
    if !wanted || meta.content_len > policy.inline_bytes_max || meta.content_len != wire.len() as u64 {
        return Ok(Vec::new());
    }
    if model::crypto::content_hash(wire) != meta.content_hash {
        return Ok(Vec::new());
    }
    let mut draft = EventDraft::new(seq, row);
    draft.row.has_inline = true;
    draft.changes.push(Change::Inline(seq, Some(wire.to_vec())));
    if draft.row.is_applied() {
        let Some(envelope) = db.opened(seq)? else {
            return Ok(Vec::new());
        };
        match judge_wire(db, &envelope, wire)? {
            ContentCheck::Fits => draft.content(policy, ContentInput::Arrived)?,
            ContentCheck::Unfit => draft.content(policy, ContentInput::Unfit)?,
        };
    }
    Ok(draft.finish())
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
    if !draft.content(policy, ContentInput::Prune)? {
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
    if draft.row.meta.is_none() || !draft.content(policy, ContentInput::Want)? {
        return Ok(Vec::new());
    }
    want(db, &mut draft)?;
    Ok(draft.finish())
}
