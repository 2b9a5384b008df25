//! Jobs: what goes on in the background, a bounded part with each commit. A stop or a crash loses nothing: the row of a
//! job tells where it goes on, and is written in the transaction that did the part.

mod ahead;
mod purging;
pub mod retention;

pub use ahead::{AheadEvent, SettleAhead, Settled, Settlement, TrustClock, events_ahead};
pub use purging::{PurgeResult, purge};

use engine::reads::{Reads as _, StoreError, StoreResult};
use model::{AuthorNo, FileId, Identity, SpaceId, Stamp};
use store::Batch;
use store::maintenance::sweep::SweepProgress;
use store::shared::jobs::{Job, JobKind, JobReceipt};

/// Rows that one part looks at.
const ROWS_PER_PART: usize = 500;
/// Contents that one part purges, each of them with an event of its own.
const PURGES_PER_PART: usize = 50;

/// What a part came to.
pub(crate) enum JobStep {
    /// There is more to do.
    More,
    /// It is done.
    Done,
}

/// Begins what the clock asks for, and does a part of the oldest job. Says whether it did anything.
pub(crate) fn step(batch: &mut Batch<'_>) -> StoreResult<bool> {
    if batch.db().next_retention()?.is_some_and(|at| at <= batch.now()) {
        batch.schedule_retention()?;
        // One that takes longer than the time between two goes on, and does not begin again without pause.
        if !batch.db().is_job_open(&JobKind::Retain(None))? {
            batch.begin_job(JobKind::Retain(None), "schedule")?;
        }
    }
    let Some((number, mut job)) = batch.db().next_job()? else { return Ok(false) };
    batch.write_timeline()?;
    job.started_at.get_or_insert(batch.now());
    match part(batch, &mut job) {
        Ok(JobStep::More) => {}
        Ok(JobStep::Done) => {
            job.ended_at = Some(batch.now());
            let JobReceipt { seen, rewritten, deleted, pruned } = job.receipt;
            tracing::info!(number, job = job.work.word(), seen, rewritten, deleted, pruned, "a job is done");
        }
        // What cannot be done is not tried for ever.
        Err(StoreError::Broken(why)) => {
            tracing::warn!(number, job = job.work.word(), why, "a job failed");
            job.ended_at = Some(batch.now());
            job.failed = Some(why);
        }
        Err(fault) => return Err(fault),
    }
    batch.keep_job(number, &job)?;
    // Even the last part may have left tasks behind.
    Ok(true)
}

fn part(batch: &mut Batch<'_>, job: &mut Job) -> StoreResult<JobStep> {
    match &job.work {
        JobKind::Retain(space) => retention::part(batch, *space, job),
        JobKind::Erase(space, identity) => {
            let (space, identity) = (*space, *identity);
            match batch.db().author_no(&identity)? {
                Some(author) if !job.cursor.starts_with(ERASING_FILES) => {
                    match purging::part(batch, &space, author..=author, job)? {
                        JobStep::More => {}
                        JobStep::Done => job.cursor = ERASING_FILES.to_vec(),
                    }
                    Ok(JobStep::More)
                }
                Some(_) | None => erase_files(batch, &space, &identity, job),
            }
        }
        JobKind::EndSpace(space) => {
            let space = *space;
            let forgotten = batch.forget_some(&space, ROWS_PER_PART)?;
            if forgotten > 0 {
                job.receipt.seen += forgotten as u64;
                return Ok(JobStep::More);
            }
            purging::part(batch, &space, AuthorNo(0)..=AuthorNo(u32::MAX), job)
        }
        JobKind::Encrypt => batch.encrypt_existing(ROWS_PER_PART).map(|progress| swept(job, progress)),
        JobKind::Rotate(space) => {
            let space = *space;
            batch.rotate(&space, ROWS_PER_PART).map(|progress| swept(job, progress))
        }
        JobKind::Rewrap => batch.rewrap(ROWS_PER_PART).map(|progress| swept(job, progress)),
    }
}

/// What the cursor of an erasure begins with when it has come to files; behind it is the last one that was looked at.
const ERASING_FILES: &[u8] = b"the files of an erased user:";

/// Forgets the files of somebody, those that no event speaks of as well: some of them.
fn erase_files(batch: &mut Batch<'_>, space: &SpaceId, owner: &Identity, job: &mut Job) -> StoreResult<JobStep> {
    let last = job.cursor.strip_prefix(ERASING_FILES).and_then(|last| last.first_chunk::<16>());
    let after = last.map_or(FileId::ZERO, |last| FileId(*last));
    let files = batch.db().files_after(Some((*space, after)), ROWS_PER_PART)?;
    let own = files.iter().take_while(|(other, ..)| other == space);
    let mut looked_at = 0;
    for (_, file, record) in own {
        looked_at += 1;
        job.cursor = [ERASING_FILES, &file.0].concat();
        if record.owner == *owner && !record.is_purged {
            batch.forget_file(space, *file)?;
        }
    }
    job.receipt.seen += looked_at;
    Ok(if looked_at < ROWS_PER_PART as u64 { JobStep::Done } else { JobStep::More })
}

fn swept(job: &mut Job, progress: SweepProgress) -> JobStep {
    job.receipt.seen = progress.seen;
    job.receipt.rewritten = progress.changed;
    if progress.is_done { JobStep::Done } else { JobStep::More }
}

/// A stamp in the cursor of a job.
fn stamp_at(cursor: &[u8], at: usize) -> Stamp {
    let bytes = cursor.get(at..).and_then(<[u8]>::first_chunk::<{ Stamp::LEN }>);
    bytes.map_or(Stamp::FIRST, |bytes| Stamp::from_bytes(*bytes))
}
