//! Git repositories on this node: which there are, what a push brings, and refs that follow events.
//!
//! Events decide, and rows say what has to be done: [`GitService`] only does it. A push is decided from what is known
//! ([`GitService::decide`]), lands in a staging, and its arrival ([`GitService::receive`]) is one function for every way in
//! which git data may come. [`refs`] says which refs a repository should have; a thread of its own makes them so whenever
//! a row asks for it, also for what was left when the node was killed.

mod access;
mod align;
mod arrival;
mod backup;
mod bans;
mod check;
mod decisions;
mod hunt;
mod pull_requests;
mod refs;
mod room;
mod service;
mod upkeep;
mod visit;

pub use access::GitAccess;
pub use arrival::{ArrivalCounts, ArrivedData};
pub use backup::RepositoryFiles;
pub use check::{check_repositories, check_repository, check_store, salvage_repositories};
pub use git::GitFolder;
pub use hunt::{GitSources, HuntCounts};
pub use refs::{WantedRefs, wanted_pull_request, wanted_refs};
pub use service::{GitFailure, GitService, HostedRepository, Received};
