//! The thread that removes objects which nobody speaks of any more, after the commits that said so.

use crate::commands::files::jobs::{ReleaseLeases, WorkError};
use crate::commands::files::{FailExpired, FailInterrupted, FileError};
use crate::large_content::{interrupted_objects, remove_forgotten};
use crate::running::NodeInner;
use crate::writer::WriterCore;
use crate::writer_command::AskError;
use crossbeam_channel::Receiver;
use engine::reads::StoreResult;
use model::{Nanos, ObjectName};
use std::sync::atomic::Ordering;
use std::time::Duration;
use store::Store;

/// How many unfinished objects one commit forgets at the start.
const FORGOTTEN_PER_COMMIT: usize = 1000;
/// After so long it tries again to remove what could not be removed.
const TRY_AGAIN: Duration = Duration::from_secs(60);

/// How often it looks for uploads that nobody goes on with.
const LOOK_AT_UPLOADS_NANOS: u64 = 60 * Nanos::SECOND;

/// What wakes this thread.
pub(crate) enum ObjectWake {
    /// A commit after which something is to be removed.
    Forgotten,
    /// The node stops.
    Stop,
}

/// Removes what is forgotten until the node stops.
pub(super) fn remove_objects(inner: &NodeInner, woken: &Receiver<ObjectWake>) {
    let mut looked_at = Nanos(0);
    loop {
        if let Err(why) = remove_forgotten(inner.core.store(), |removed| inner.ask(removed)) {
            tracing::warn!(%why, "rows of removed objects stay for now");
        }
        let now = inner.clock.now();
        if now.0.saturating_sub(looked_at.0) >= LOOK_AT_UPLOADS_NANOS {
            looked_at = now;
            fail_expired(inner);
        }
        match woken.recv_timeout(TRY_AGAIN) {
            Ok(ObjectWake::Forgotten) | Err(crossbeam_channel::RecvTimeoutError::Timeout) => {}
            Ok(ObjectWake::Stop) | Err(crossbeam_channel::RecvTimeoutError::Disconnected) => return,
        }
        if inner.is_stopping.load(Ordering::Acquire) {
            return;
        }
    }
}

/// Objects that were being written when the node stopped, and whether uploads were; those that go on are left out.
fn interrupted(store: &Store) -> StoreResult<(Vec<ObjectName>, bool)> {
    let mut names = interrupted_objects(store)?;
    names.truncate(FORGOTTEN_PER_COMMIT);
    let has_uploads = store.snapshot()?.open_uploads()?.iter().any(|(_, _, upload)| upload.pause.is_none());
    Ok((names, has_uploads))
}

/// Fails uploads that nobody goes on with, if there are any.
fn fail_expired(inner: &NodeInner) {
    let now = inner.clock.now();
    let uploads = inner.core.store().snapshot().and_then(|db| db.open_uploads()).unwrap_or_default();
    if uploads.iter().any(|(_, _, upload)| upload.until <= now)
        && let Err(why) = inner.ask(FailExpired)
    {
        tracing::warn!(%why, "uploads that nobody goes on with stay for now");
    }
}

/// Before anything is served: what this node's own workers had when it stopped is taken by others at once.
pub(super) fn release_leases(core: &WriterCore, now: Nanos) -> Result<(), AskError<WorkError>> {
    let db = core.store().snapshot().map_err(|fault| AskError::NotRun(fault.into()))?;
    let leased = db.leased_file_jobs().map_err(|fault| AskError::NotRun(fault.into()))?;
    if leased.is_empty() {
        return Ok(());
    }
    let node = db.node_id().map_err(|fault| AskError::NotRun(fault.into()))?.to_string();
    core.ask(ReleaseLeases { node }, now)
}

/// Before anything is served: what was being written when the node stopped will not be finished.
pub(super) fn forget_interrupted(core: &WriterCore, now: Nanos) -> Result<(), AskError<FileError>> {
    loop {
        let (names, has_uploads) = interrupted(core.store()).map_err(|fault| AskError::NotRun(fault.into()))?;
        if names.is_empty() && !has_uploads {
            return Ok(());
        }
        core.ask(FailInterrupted(names), now)?;
    }
}
