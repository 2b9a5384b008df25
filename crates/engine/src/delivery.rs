//! Content that arrives: whether it is here, whether it fits, and processing it for those that wait for it.

use crate::change::{Change, RowChange};
use crate::content::{self, ContentCheck, EventDraft, fetch_origin};
use crate::opened::Opened;
use crate::policy::Policy;
use crate::protocol::{self, Protocol as _, of_kind};
use crate::reads::{Reads, StoreError, StoreResult};
use crate::rows::{ContentLocation, Meta, Task};
use model::planted::{PlantedBug, is_planted};
use model::stage::{ContentInput, ContentState};
use model::{Group, Seq};

/// What becomes of the content of an event at the moment it is applied: the row is applied already, and no row says
/// yet that it waits.
pub fn settle(
    db: &impl Reads,
    policy: &Policy,
    draft: &mut EventDraft,
    opened: &Opened,
    inline: Option<ContentCheck>,
) -> StoreResult<()> {
    let meta = draft.meta()?;
    draft.is_being_applied = true;
    let deleted = protocol::deleted_by(db, &draft.row.id, &meta, opened)?;
    content::recheck(db, policy, draft, deleted)?;
    if draft.row.content != ContentState::Missing {
        return Ok(());
    }
    match find(db, policy, draft, opened, inline)? {
        Some(check) => draft.judged(db, policy, check)?,
        None => {
            draft.changes.push(Change::ContentWaiting(RowChange::Put, meta.space, meta.content_hash, draft.seq));
            let group = Group::Content(opened.space(), meta.content_hash);
            draft.changes.push(Change::Wanted(group, fetch_origin(draft.row.origin)));
            true
        }
    };
    Ok(())
}

fn find(
    db: &impl Reads,
    policy: &Policy,
    draft: &EventDraft,
    opened: &Opened,
    inline: Option<ContentCheck>,
) -> StoreResult<Option<ContentCheck>> {
    let meta = draft.meta()?;
    if meta.content_len == 0 {
        return Ok(Some(ContentCheck::Fits(None)));
    }
    if of_kind!(meta.kind => P::judge_length(&meta)) == Some(false) {
        return Ok(Some(ContentCheck::Unfit));
    }
    if meta.content_len <= policy.inline_bytes_max {
        return match inline {
            None if draft.row.has_inline => judge_inline(db, policy, draft, opened),
            // Bytes of that hash are here and are not as long as this event says: it lies about their length.
            None if db
                .content(meta.space, &meta.content_hash)?
                .is_some_and(|row| row.place != ContentLocation::Absent && row.len != meta.content_len) =>
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
        Some(row) if row.place != ContentLocation::Absent => judge_stored(db, policy, &meta, opened).map(Some),
        Some(_) | None => Ok(None),
    }
}

fn judge_inline(
    db: &impl Reads,
    policy: &Policy,
    draft: &EventDraft,
    opened: &Opened,
) -> StoreResult<Option<ContentCheck>> {
    let inline = db.kept(draft.seq)?.and_then(|kept| kept.inline);
    Ok(inline.map(|wire| protocol::judge_content(db, policy, opened, &wire)))
}

fn judge_stored(db: &impl Reads, policy: &Policy, meta: &Meta, opened: &Opened) -> StoreResult<ContentCheck> {
    if of_kind!(meta.kind => P::judge_length(meta)).is_none() {
        return Ok(ContentCheck::Fits(None));
    }
    match db.content_bytes(meta.space, &meta.content_hash, meta.content_len)? {
        Some(wire) => Ok(protocol::judge_content(db, policy, opened, &wire)),
        None => Err(StoreError::Broken(format!("content {} has a place but no bytes", meta.content_hash))),
    }
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
        if let Some(meta) = row.meta.as_ref().filter(|meta| meta.content_hash != hash) {
            changes.extend(content::bytes_arrived(db, *seq, meta)?);
            continue;
        }
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
    let Some(opened) = db.open_event(draft.seq)? else {
        return Ok(false);
    };
    match find(db, policy, draft, &opened, None)? {
        Some(check) => draft.judged(db, policy, check),
        None => Ok(false),
    }
}

/// Inline bytes that came for an event whose content was missing. Says whether they were those, and changed anything.
pub fn inline_arrived(db: &impl Reads, policy: &Policy, draft: &mut EventDraft, wire: &[u8]) -> StoreResult<bool> {
    let Some(meta) = draft.row.meta.clone() else { return Ok(false) };
    let is_wanted = draft.row.content == ContentState::Missing && !draft.row.has_inline;
    if !is_wanted || model::crypto::content_hash(wire) != meta.content_hash {
        return Ok(false);
    }
    if meta.content_len != wire.len() as u64 {
        // These are the bytes that it names, and they are of another length than it says: no others will ever come.
        return if draft.row.is_applied() { draft.content(db, policy, ContentInput::Unfit) } else { Ok(false) };
    }
    if draft.row.is_applied() {
        let Some(opened) = db.open_event(draft.seq)? else { return Ok(false) };
        draft.row.has_inline = true;
        draft.changes.push(Change::Inline(draft.seq, Some(wire.to_vec())));
        draft.judged(db, policy, protocol::judge_content(db, policy, &opened, wire))?;
        return Ok(true);
    }
    draft.row.has_inline = true;
    draft.changes.push(Change::Inline(draft.seq, Some(wire.to_vec())));
    Ok(true)
}
