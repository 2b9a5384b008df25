//! What all requests share: the repositories, and how many programs run at a time.

use crate::problems::GitProblem;
use http::StatusCode;
use node::git::{GitFailure, GitService};
use server::ServerState;
use server::git_programs::{ProgramPermit, TooManyPrograms};
use std::sync::Arc;

/// The part of the application that serves git.
#[derive(Debug)]
pub(crate) struct GitApp {
    pub(crate) service: Arc<GitService>,
    server: Arc<ServerState>,
}

impl GitApp {
    pub(crate) fn new(service: Arc<GitService>, server: Arc<ServerState>) -> GitApp {
        GitApp { service, server }
    }

    /// Waits until one more program may run for somebody at that address; it may as long as the answer is kept.
    pub(crate) async fn program(&self, network: u64) -> Result<ProgramPermit, GitProblem> {
        self.server.git_programs.permit(network).await.map_err(|why| match why {
            TooManyPrograms::OfNetwork => GitProblem(StatusCode::TOO_MANY_REQUESTS, why.to_string()),
            TooManyPrograms::Together => GitProblem(StatusCode::SERVICE_UNAVAILABLE, why.to_string()),
        })
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
