//! Purging content: by a delete event where this node has the right, otherwise by dropping it here only.

use super::{JobStep, PURGES_PER_PART, ROWS_PER_PART, stamp_at};
use crate::commands::{self, CommandError, by_keeper, by_keeper_saying, is_purgeable};
use crate::pipeline::policy;
use engine::content::{self, PruneResult};
use engine::reads::{Reads as _, SpaceReads as _, StoreResult};
use engine::rows::{Register, ThreadField};
use model::envelope::{Reference, Role};
use model::payload::Payload;
use model::stage::ContentState;
use model::{AuthorNo, EventId, Kind, Seq, SpaceId, Stamp};
use serde_json::json;
use std::ops::RangeInclusive;
use store::Batch;
use store::shared::jobs::{Job, JobReceipt};

/// What became of content that was to be purged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PurgeResult {
    /// A delete event was made; it travels to whoever has the event.
    Deleted,
    /// It was dropped on this node.
    Pruned,
    /// There was nothing to purge.
    Nothing(&'static str),
}

impl PurgeResult {
    /// Notes it in a receipt.
    pub(crate) fn note(self, receipt: &mut JobReceipt) {
        match self {
            PurgeResult::Deleted => receipt.deleted += 1,
            PurgeResult::Pruned => receipt.pruned += 1,
            PurgeResult::Nothing(_) => {}
        }
    }
}

/// Purges the content of an event of a space.
pub fn purge(batch: &mut Batch<'_>, space: &SpaceId, target: &EventId) -> StoreResult<PurgeResult> {
    let Some(seq) = batch.db().seq(target)? else { return Ok(PurgeResult::Nothing("it is not here")) };
    let Some(row) = batch.db().event(seq)? else { return Ok(PurgeResult::Nothing("it is not here")) };
    let is_in_space = match &row.meta {
        Some(meta) => batch.db().space_id(meta.space)? == *space,
        None => false,
    };
    if !is_in_space {
        return Ok(PurgeResult::Nothing("it is not here"));
    }
    match row.content {
        // Whoever repeats a request hears what came of the first.
        ContentState::Deleted { .. } => return Ok(PurgeResult::Deleted),
        ContentState::Pruned => return Ok(PurgeResult::Pruned),
        ContentState::Missing | ContentState::Processed | ContentState::Invalid => {}
    }
    if !row.meta.as_ref().is_some_and(is_purgeable) {
        return Ok(PurgeResult::Nothing("it has no content that could be purged"));
    }
    restate(batch, space, seq)?;
    // What was made of a file goes with it.
    if let Some(file) = batch.db().file_of_event(target)? {
        batch.forget_file_of_event(space, file, target)?;
    }
    let reference = Reference { role: Role::Target, id: *target };
    match by_keeper(batch, space, Kind::Delete, Payload::None, Some(reference)) {
        Ok(_) => Ok(PurgeResult::Deleted),
        Err(CommandError::Store(fault)) => Err(fault),
        // Whoever does not keep the space cannot speak for it.
        Err(_) => Ok(match prune_all(batch, seq)? {
            PruneResult::Dropped => PurgeResult::Pruned,
            PruneResult::Nothing(why) => PurgeResult::Nothing(why),
        }),
    }
}

/// Who takes part in a thread and who sees it must outlive whoever said so: before that content goes, the keeper of the
/// space says it again.
fn restate(batch: &mut Batch<'_>, space: &SpaceId, seq: Seq) -> StoreResult<()> {
    let db = batch.db();
    let Some(meta) = db.event(seq)?.and_then(|row| row.meta) else { return Ok(()) };
    let thread = match meta.kind.space() {
        Some(Kind::Thread) => Some(seq),
        Some(Kind::ThreadUpdate) => meta.subject,
        _ => None,
    };
    let Some(thread) = thread else { return Ok(()) };
    let register = Register::ThreadField(thread, ThreadField::Participants.code());
    let winner = db.register(meta.space, register)?.map(|(_, winner)| winner);
    if meta.kind == Kind::ThreadUpdate && winner != Some(seq) {
        return Ok(());
    }
    let participants: Vec<String> =
        commands::participants(db, thread, meta.space)?.iter().map(ToString::to_string).collect();
    let content = json!({ "participants": participants, "private": commands::is_private(db, thread, meta.space)? });
    let reference = Reference { role: Role::Thread, id: db.id_of(thread)? };
    let Ok(content) = model::body::encode(&content) else { return Ok(()) };
    let kind = (Kind::ThreadUpdate, ThreadField::Participants.aux());
    // Without the right to say it, it is only pruned here, and nobody sees the thread any more.
    match by_keeper_saying(batch, space, kind, Payload::None, Some(reference), content) {
        Err(CommandError::Store(fault)) => Err(fault),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Drops the content of an event and of its versions on this node.
fn prune_all(batch: &mut Batch<'_>, seq: Seq) -> StoreResult<PruneResult> {
    let mut after = Stamp::FIRST;
    loop {
        let versions = batch.db().versions(seq, after, ROWS_PER_PART)?;
        let Some((last, _)) = versions.last() else { break };
        after = *last;
        for (_, version) in &versions {
            prune(batch, *version)?;
        }
    }
    prune(batch, seq)
}

/// Drops content on this node.
fn prune(batch: &mut Batch<'_>, seq: Seq) -> StoreResult<PruneResult> {
    let (pruned, changes) = content::prune(batch.db(), &policy(batch), seq)?;
    batch.apply(changes)?;
    Ok(pruned)
}

/// Purges the content of an event for a job, unless that was done before. Says whether it did anything.
pub(super) fn purge_once(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    (seq, id): (Seq, EventId),
    receipt: &mut JobReceipt,
) -> StoreResult<bool> {
    let has_content = batch.db().event(seq)?.is_some_and(|row| {
        row.meta.as_ref().is_some_and(is_purgeable)
            && matches!(row.content, ContentState::Processed | ContentState::Missing)
    });
    if has_content {
        purge(batch, space, &id)?.note(receipt);
    }
    Ok(has_content)
}

/// Purges what these authors wrote in a space, some of it.
pub(super) fn part(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    authors: RangeInclusive<AuthorNo>,
    job: &mut Job,
) -> StoreResult<JobStep> {
    let Some(no) = batch.db().space_no(space)? else { return Ok(JobStep::Done) };
    let from = job.cursor.first_chunk::<4>().map_or(*authors.start(), |bytes| AuthorNo(u32::from_be_bytes(*bytes)));
    let after = (from, stamp_at(&job.cursor, 4));
    let found = batch.db().written_after(no, after, *authors.end(), ROWS_PER_PART)?;
    let mut purged = 0;
    for (author, stamp, seq) in &found {
        job.receipt.seen += 1;
        job.cursor = [author.0.to_be_bytes().as_slice(), &stamp.to_bytes()].concat();
        purged += usize::from(purge_once(batch, space, (*seq, stamp.id), &mut job.receipt)?);
        if purged >= PURGES_PER_PART {
            return Ok(JobStep::More);
        }
    }
    Ok(if found.len() < ROWS_PER_PART { JobStep::Done } else { JobStep::More })
}
