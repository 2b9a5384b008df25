//! Backups while the node serves: one at a time, requested by the operator or scheduled.
//!
//! A backup is read from a snapshot, so the writer goes on meanwhile. [`Backups::make`] writes one; [`scheduled`] knows
//! when one is due, what it is called, and which old ones may go.

mod scheduled;

pub use scheduled::BackupPlan;

use crate::problem::Problem;
use model::Nanos;
use node::Node;
use node::git::{GitFolder, GitService, RepositoryFiles};
use queries::sync::lock;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use store::maintenance::backup::{BackupError, BackupSummary, ExtraFiles, NoExtraFiles};

/// How often a backup begins anew because the collector was faster.
const ATTEMPTS_MAX: u32 = 3;

/// A backup that was made.
#[derive(Clone, Debug)]
pub struct FinishedBackup {
    pub file: PathBuf,
    pub at: Nanos,
    pub done: BackupSummary,
}

/// What is known of backups since the start.
#[derive(Clone, Debug, Default)]
pub struct BackupState {
    /// The file that is being written, and how many bytes of it are.
    pub running: Option<(PathBuf, u64)>,
    /// The last that was made.
    pub last: Option<FinishedBackup>,
    /// When the newest that is known was made, and how large it is: also one from before the start.
    pub newest: Option<(Nanos, u64)>,
    /// How many failed.
    pub failures: u64,
    /// When the last failure was, and why.
    pub last_failure: Option<(Nanos, String)>,
    /// When the clock last asked for one.
    begun_at: Option<Nanos>,
}

/// Git repositories that backups take along.
#[derive(Debug)]
pub enum GitToBackUp {
    /// They are served, and may change.
    Served(Arc<GitService>),
    /// They are there and not served.
    Kept(GitFolder),
}

impl GitToBackUp {
    fn files(&self) -> RepositoryFiles<'_> {
        match self {
            GitToBackUp::Served(service) => service.files_to_back_up(),
            GitToBackUp::Kept(folder) => RepositoryFiles::of_folder(folder),
        }
    }
}

/// The backups of a node.
#[derive(Debug)]
pub struct Backups {
    node: Node,
    /// The git repositories, if there are any.
    git: OnceLock<GitToBackUp>,
    plan: Option<BackupPlan>,
    state: Mutex<BackupState>,
    is_stopping: AtomicBool,
}

/// The permit of the one backup that may be written, until it is dropped.
#[derive(Debug)]
pub struct BackupPermit<'a>(&'a Backups);

impl Drop for BackupPermit<'_> {
    fn drop(&mut self) {
        self.0.locked().running = None;
    }
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupTaskError {
    /// Another one is being written.
    #[error("another backup is being written")]
    Busy,
    /// It failed.
    #[error(transparent)]
    Failed(#[from] BackupError),
}

impl Backups {
    pub(crate) fn new(node: Node, plan: Option<BackupPlan>) -> Backups {
        Backups { node, git: OnceLock::new(), plan, state: Mutex::default(), is_stopping: AtomicBool::new(false) }
    }

    /// Takes these git repositories along, from now on.
    pub fn take_along(&self, git: GitToBackUp) {
        let _ = self.git.set(git);
    }

    /// Whatever is being written is given up: the node stops.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::Release);
    }

    /// What is known now.
    pub fn state(&self) -> BackupState {
        self.locked().clone()
    }

    fn locked(&self) -> MutexGuard<'_, BackupState> {
        lock(&self.state)
    }

    /// Takes the permit of the one backup that may be written.
    pub fn begin(&self, file: &Path) -> Result<BackupPermit<'_>, BackupTaskError> {
        let mut state = self.locked();
        if state.running.is_some() {
            return Err(BackupTaskError::Busy);
        }
        state.running = Some((file.to_owned(), 0));
        Ok(BackupPermit(self))
    }

    /// How far it is. Says whether to go on.
    fn at(&self, bytes: u64) -> ControlFlow<()> {
        if self.is_stopping.load(Ordering::Acquire) {
            return ControlFlow::Break(());
        }
        if let Some((_, written)) = &mut self.locked().running {
            *written = bytes;
        }
        ControlFlow::Continue(())
    }

    /// Notes that there is a backup.
    fn succeeded(&self, made: FinishedBackup) {
        tracing::info!(file = %made.file.display(), rows = made.done.rows, bytes = made.done.bytes, "a backup was made");
        let mut state = self.locked();
        state.newest = Some((made.at, made.done.bytes));
        state.last = Some(made);
    }

    /// Notes that there is one that lacks what could not be read. It counts as none.
    fn incomplete(&self, made: FinishedBackup) {
        let (damaged, first) = (made.done.damaged, made.done.first_damaged.first().cloned().unwrap_or_default());
        tracing::error!(
            file = %made.file.display(),
            damaged,
            first,
            "a backup lacks what could not be read; run `anteroom verify`"
        );
        let mut state = self.locked();
        state.failures += 1;
        let why = format!("the backup lacks {damaged} of what is stored: {first}");
        state.last_failure = Some((made.at, why));
        state.last = Some(made);
    }

    /// Notes that there is none.
    fn failed(&self, why: &BackupError, now: Nanos) {
        tracing::warn!(%why, what_to_do = why.what_to_do(), "a backup failed");
        let mut state = self.locked();
        state.failures += 1;
        state.last_failure = Some((now, why.to_string()));
    }

    /// Writes a backup to a new file. It takes its time: not for a thread that serves.
    pub fn make(&self, file: &Path) -> Result<FinishedBackup, BackupTaskError> {
        let permit = self.begin(file)?;
        let at = self.node.now();
        let made = self.attempt(file, at).map(|done| FinishedBackup { file: file.to_owned(), at, done });
        drop(permit);
        match &made {
            Ok(made) if made.done.damaged > 0 => self.incomplete(made.clone()),
            Ok(made) => self.succeeded(made.clone()),
            Err(why) => self.failed(why, self.node.now()),
        }
        Ok(made?)
    }

    fn attempt(&self, file: &Path, at: Nanos) -> Result<BackupSummary, BackupError> {
        let mut attempts = 1;
        loop {
            let git = self.git.get().map(GitToBackUp::files);
            let extra_files: &dyn ExtraFiles = git.as_ref().map_or(&NoExtraFiles, |files| files);
            match self.node.store().backup_with(file, at, extra_files, &mut |bytes| self.at(bytes)) {
                // An object was removed after the snapshot was taken; the next snapshot does not name it.
                Err(BackupError::ObjectGone(_)) if attempts < ATTEMPTS_MAX => attempts += 1,
                other => return other,
            }
        }
    }
}

impl From<BackupTaskError> for Problem {
    fn from(why: BackupTaskError) -> Problem {
        let detail = why.to_string();
        let BackupTaskError::Failed(why) = why else { return Problem::overloaded(detail).after(10) };
        let action = why.what_to_do();
        let problem = match why {
            BackupError::Exists(_) => Problem::conflict(detail),
            BackupError::Write { why, .. } if why.kind() == std::io::ErrorKind::StorageFull => {
                Problem::overloaded(detail).after(60)
            }
            BackupError::Write { .. } => Problem::unprocessable(detail),
            BackupError::Stopped => Problem::overloaded(detail).after(5),
            BackupError::ObjectGone(_)
            | BackupError::ExtraFiles(_)
            | BackupError::Row(_)
            | BackupError::ReadBack(_) => Problem::broken(detail),
            BackupError::Store(fault) => fault.into(),
        };
        Problem { action, ..problem }
    }
}
