//! What all requests share: the repositories, and how many programs run at a time.

use crate::problems::GitProblem;
use http::StatusCode;
use node::git::{GitFailure, GitService};
use queries::sync::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Programs that run at a time for fetches and pushes.
const PROGRAMS_MAX: usize = 64;
/// Of these, so many for one address.
const PROGRAMS_PER_NETWORK_MAX: usize = 16;
/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(20);

/// The part of the application that serves git.
#[derive(Debug)]
pub(crate) struct GitApp {
    pub(crate) service: Arc<GitService>,
    programs: Arc<Semaphore>,
    /// Programs that run or wait, by address.
    networks: Arc<Mutex<HashMap<u64, usize>>>,
}

/// The right to run a program, as long as it is kept.
#[derive(Debug)]
pub(crate) struct ProgramPermit {
    _permit: OwnedSemaphorePermit,
    _network: NetworkPermit,
}

/// One of the programs of an address.
#[derive(Debug)]
struct NetworkPermit {
    network: u64,
    networks: Arc<Mutex<HashMap<u64, usize>>>,
}

impl Drop for NetworkPermit {
    fn drop(&mut self) {
        let mut networks = lock(&self.networks);
        if let Some(count) = networks.get_mut(&self.network) {
            *count -= 1;
            if *count == 0 {
                networks.remove(&self.network);
            }
        }
    }
}

impl GitApp {
    pub(crate) fn new(service: Arc<GitService>) -> GitApp {
        GitApp { service, programs: Arc::new(Semaphore::new(PROGRAMS_MAX)), networks: Arc::default() }
    }

    /// Waits until one more program may run for somebody at that address; it may as long as the answer is kept.
    pub(crate) async fn program(&self, network: u64) -> Result<ProgramPermit, GitProblem> {
        let of_network = self.count_program(network)?;
        let busy = || GitProblem(StatusCode::SERVICE_UNAVAILABLE, "too many fetches and pushes; try again".to_owned());
        let turn = tokio::time::timeout(TURN, self.programs.clone().acquire_owned()).await;
        let permit = turn.map_err(|_| busy())?.map_err(|_| busy())?;
        Ok(ProgramPermit { _permit: permit, _network: of_network })
    }

    fn count_program(&self, network: u64) -> Result<NetworkPermit, GitProblem> {
        let mut networks = lock(&self.networks);
        let count = networks.entry(network).or_default();
        if *count >= PROGRAMS_PER_NETWORK_MAX {
            let why =
                format!("at most {PROGRAMS_PER_NETWORK_MAX} fetches and pushes of one address at a time; try again");
            return Err(GitProblem(StatusCode::TOO_MANY_REQUESTS, why));
        }
        *count += 1;
        Ok(NetworkPermit { network, networks: self.networks.clone() })
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
