//! Mixed batches: the commands that simulated nodes ask of their writers, as one type.

use engine::content::PruneResult;
use engine::reads::{StoreError, StoreResult};
use engine::receive::Arrival;
use engine::rows::Outcome;
use model::{ContentHash, EventId, Need, SpaceId};
use node::WriterCommand;
use node::large_content::{Deliver, ForgetUnfinished, NoteRemoved, StagedContent};
use node::node_commands::{
    AddPrekey, AddTransit, Arrive, Collect, EndHunt, HuntNow, Prune, RestGroup, Tick, WakeGroups, WantBack,
};
use node::nostr::{GitArrived, NoteAligned};
use store::Batch;
use store::events::content::DeliverResult;

/// A command that a simulated node may be asked.
#[derive(Clone, Debug)]
pub enum SimRequest {
    /// Store what arrived.
    Arrive(Arrive),
    /// Store content.
    Deliver(Deliver),
    /// Drop content.
    Prune(Prune),
    /// Want pruned content back.
    WantBack(WantBack),
    /// Hunt without waiting for the schedule.
    HuntNow(HuntNow),
    /// Schedule the next hunt.
    EndHunt(EndHunt),
    RestGroup(RestGroup),
    WakeGroups(WakeGroups),
    /// Forget unused content.
    Collect(Collect),
    /// Forget objects that were being written.
    ForgetUnfinished(ForgetUnfinished),
    /// Forget the rows of objects that were removed.
    NoteRemoved(NoteRemoved),
    /// Keep the secret of a prekey.
    AddPrekey(AddPrekey),
    /// Keep a transit secret.
    AddTransit(AddTransit),
    /// Go on with what waits.
    Tick(Tick),
    /// Move a space to a new storage key, looking at so many rows.
    Rotate(SpaceId, usize),
    /// Wrap so many secrets anew under the master key.
    Rewrap(usize),
    /// Release what waits for git data.
    GitArrived(GitArrived),
    /// Forget that refs had to be looked at.
    NoteAligned(NoteAligned),
}

/// What a simulated node answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SimReply {
    /// What became of an arrival.
    Arrived(EventId, Outcome),
    /// What became of content.
    Delivered(DeliverResult),
    /// What became of content that was to be dropped.
    Pruned(PruneResult),
    /// Whether a walk over rows has come to its end.
    Swept(bool),
    /// It was done.
    Done,
}

impl WriterCommand for SimRequest {
    type Answer = SimReply;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<SimReply> {
        match self {
            SimRequest::Arrive(command) => command.run(batch).map(|(id, outcome)| SimReply::Arrived(id, outcome)),
            SimRequest::Deliver(command) => command.run(batch).map(SimReply::Delivered),
            SimRequest::Prune(command) => command.run(batch).map(SimReply::Pruned),
            SimRequest::WantBack(command) => done(command, batch),
            SimRequest::HuntNow(command) => done(command, batch),
            SimRequest::EndHunt(command) => done(command, batch),
            SimRequest::RestGroup(command) => done(command, batch),
            SimRequest::WakeGroups(command) => done(command, batch),
            SimRequest::Collect(command) => done(command, batch),
            SimRequest::ForgetUnfinished(command) => done(command, batch),
            SimRequest::NoteRemoved(command) => done(command, batch),
            SimRequest::AddPrekey(command) => done(command, batch),
            SimRequest::AddTransit(command) => done(command, batch),
            SimRequest::Tick(command) => done(command, batch),
            SimRequest::GitArrived(command) => done(command, batch),
            SimRequest::NoteAligned(command) => done(command, batch),
            SimRequest::Rotate(space, most) => batch.rotate(space, *most).map(|done| SimReply::Swept(done.is_done)),
            SimRequest::Rewrap(most) => batch.rewrap(*most).map(|done| SimReply::Swept(done.is_done)),
        }
    }
}

fn done(command: &impl WriterCommand<Error = StoreError>, batch: &mut Batch<'_>) -> StoreResult<SimReply> {
    command.run(batch).map(|_| SimReply::Done)
}

impl SimRequest {
    /// Store what arrived.
    pub fn arrive(arrival: Arrival) -> SimRequest {
        SimRequest::Arrive(Arrive(Box::new(arrival)))
    }

    /// Store content whose hash was checked. What is too large for the database is written into an object first, by
    /// [`stage`](crate::staging::stage).
    pub fn deliver(space: SpaceId, hash: ContentHash, bytes: Vec<u8>) -> SimRequest {
        SimRequest::Deliver(Deliver { space, hash, content: StagedContent::Bytes(bytes) })
    }

    /// Keep the secret of a prekey, for any space.
    pub fn add_prekey(secret: [u8; 32]) -> SimRequest {
        SimRequest::AddPrekey(AddPrekey(secret, None))
    }

    /// Keep a transit secret.
    pub fn add_transit(secret: [u8; 32], space: SpaceId, peer: u32) -> SimRequest {
        SimRequest::AddTransit(AddTransit { secret, space, peer })
    }

    /// Drop the content of an event.
    pub fn prune(id: EventId) -> SimRequest {
        SimRequest::Prune(Prune(id))
    }

    /// Want the content of an event back.
    pub fn want_back(id: EventId) -> SimRequest {
        SimRequest::WantBack(WantBack(id))
    }

    /// Look again at an event.
    pub fn retry_event(id: EventId) -> SimRequest {
        SimRequest::HuntNow(HuntNow::ForEvent(id))
    }

    /// Hunt for a need now.
    pub fn retry_need(need: Need) -> SimRequest {
        SimRequest::HuntNow(HuntNow::ForNeed(need))
    }
}
