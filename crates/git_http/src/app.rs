//! What all requests share: the repositories, and how many programs run at a time.

use crate::problems::GitProblem;
use http::StatusCode;
use node::git::{GitFailure, GitService};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Programs that run at a time for fetches and pushes.
const PROGRAMS_MAX: usize = 64;
/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(20);

/// The part of the application that serves git.
#[derive(Debug)]
pub(crate) struct GitApp {
    pub(crate) service: Arc<GitService>,
    programs: Arc<Semaphore>,
}

impl GitApp {
    pub(crate) fn new(service: Arc<GitService>) -> GitApp {
        GitApp { service, programs: Arc::new(Semaphore::new(PROGRAMS_MAX)) }
    }

    /// Waits until one more program may run; it may as long as the answer is kept.
    pub(crate) async fn program(&self) -> Result<OwnedSemaphorePermit, GitProblem> {
        let busy = || GitProblem(StatusCode::SERVICE_UNAVAILABLE, "too many fetches and pushes; try again".to_owned());
        let turn = tokio::time::timeout(TURN, self.programs.clone().acquire_owned()).await;
        turn.map_err(|_| busy())?.map_err(|_| busy())
    }
}

/// Runs work that waits for disks and programs.
pub(crate) async fn blocking<T: Send + 'static>(
    app: &Arc<GitApp>,
    work: impl FnOnce(&GitService) -> Result<T, GitFailure> + Send + 'static,
) -> Result<T, GitProblem> {
    let service = app.service.clone();
    let done = tokio::task::spawn_blocking(move || work(&service)).await;
    let done = done.map_err(|why| GitProblem::broken("the request was cut off", why))?;
    done.map_err(|why| GitProblem::broken("the repository cannot be served", why))
}
