//! What a node does beside its writer: large content is written into objects before it is delivered, and objects that
//! nobody speaks of are removed.

use crate::requests::SimRequest;
use engine::reads::{StoreError, StoreResult};
use model::Nanos;
use node::large_content::{self, Deliver, ForgetUnfinished, StagedContent};
use node::{AskError, RequestError, WriterCore};

/// The same request, with its content in an object if it is too large for the database.
pub fn stage(core: &WriterCore, request: SimRequest, now: Nanos) -> StoreResult<SimRequest> {
    match request {
        SimRequest::Deliver(Deliver { space, hash, content: StagedContent::Bytes(bytes) }) => {
            let staged = large_content::stage(core.store(), space, hash, bytes, |begin| core.ask(begin, now));
            staged.map(SimRequest::Deliver).map_err(as_fault)
        }
        other => Ok(other),
    }
}

/// Forgets what was being written before a crash, and removes what nobody speaks of.
pub fn remove_objects(core: &WriterCore, now: Nanos) -> StoreResult<()> {
    let unfinished = core.store().snapshot()?.unfinished_objects(usize::MAX)?;
    core.ask(ForgetUnfinished(unfinished), now).map_err(as_fault)?;
    large_content::remove_forgotten(core.store(), |removed| core.ask(removed, now)).map(drop).map_err(as_fault)
}

fn as_fault(why: AskError<StoreError>) -> StoreError {
    match why {
        AskError::Refused(fault) => fault,
        AskError::NotRun(RequestError::Full) => StoreError::Full,
        AskError::NotRun(why) => StoreError::Store(why.to_string()),
    }
}
