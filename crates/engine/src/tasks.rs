//! Work that goes on from transaction to transaction: a bounded part at a time.

use crate::change::Change;
use crate::policy::Policy;
use crate::protocol::{nostr, space};
use crate::reads::{Reads, StoreResult};
use crate::rows::Task;
use crate::{delivery, release};
use model::Need;

/// Does a bounded part of a task; what is left is a task again. What waits for a need is woken together with what waits
/// for other needs that are met as well.
pub fn run_task(db: &impl Reads, policy: &Policy, task: Task, also_met: Vec<Need>) -> StoreResult<Vec<Change>> {
    match task {
        Task::Release(need) => {
            let mut needs = also_met;
            needs.retain(|other| *other != need);
            needs.push(need);
            release::release(db, policy, &needs)
        }
        Task::Content(space, hash, after) => delivery::arrived(db, policy, space, hash, after),
        Task::Join(space, after) => release::join(db, policy, space, after),
        Task::Space(task) => space::run_task(db, policy, task),
        Task::Nostr(task) => nostr::run_task(db, policy, task),
        #[cfg(feature = "simulation")]
        Task::Probe(task) => crate::protocol::probe::run_task(db, policy, task),
    }
}
