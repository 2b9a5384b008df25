//! The writer's work without the loop around it: a batch of requests, one durable transaction, then the answers.

use crate::commands::accounts::{AccountError, AccountRequest};
use crate::commands::{
    self, AdminError, AdminRequest, AdminResult, CommandError, CommandFailure, CommandRequest, CommandResult,
};
use crate::fetch::retry;
use crate::jobs;
use crate::pipeline::create;
use crate::pipeline::{STEPS_PER_BATCH_MAX, STOPS_ON_BUGS, arrive, go_on, policy};
use ed25519_dalek::SigningKey;
use engine::content::{self, PruneResult};
use engine::create::NewEvent;
use engine::reads::{Reads, StoreError, StoreResult};
use engine::receive::Arrival;
use engine::rows::{Origin, Outcome};
use model::planted::{PlantedBug, is_planted};
use model::{ContentHash, EventId, Group, Identity, Nanos, Need, SpaceId};
use store::events::content::DeliverResult;
use store::shared::webhooks::{WebhookId, WebhookProgress};
use store::{Batch, Store};

/// What the writer can be asked to do.
#[derive(Debug, Clone)]
pub enum WriterRequest {
    /// Store what came through a door.
    Arrive(Box<Arrival>),
    /// Make a new event.
    Create(Box<SigningKey>, Box<NewEvent>),
    /// Store content that came, whose hash was checked.
    Deliver(SpaceId, ContentHash, Vec<u8>),
    /// Drop the content of an event here.
    Prune(EventId),
    /// Want pruned content back.
    Want(EventId),
    /// Look again at an event and hunt for what it needs now.
    RetryEvent(EventId),
    /// Hunt for a need now.
    RetryNeed(Need),
    /// A hunt of a group ended: reschedule it.
    HuntEnded {
        /// The group.
        group: Group,
        /// The time its row had when the hunt began.
        expected_next: Nanos,
        /// When the hunt began.
        started_at: Nanos,
        /// By how much the next attempt comes sooner, in thousandths.
        jitter_permille: u16,
    },
    /// Purge the content of events of a space.
    Purge(SpaceId, Vec<EventId>, String),
    /// Forget content that nobody refers to, and delete its files.
    Collect,
    /// Keep the secret of a prekey.
    AddPrekey([u8; 32], Option<SpaceId>),
    /// Keep a space key that was made here.
    AddSpaceKey(SpaceId, [u8; 32]),
    /// Keep a transit secret agreed with a peer.
    AddTransit([u8; 32], SpaceId, u32),
    /// Keep the signing key of a custodial identity.
    AddCustodian(Identity, [u8; 32]),
    /// Note that a door dropped something so many times, for that reason.
    Dropped(&'static str, u64),
    /// Do what a user of the API asks.
    Act(Box<CommandRequest>),
    /// Administer.
    Administer(Box<AdminRequest>),
    /// Come in through the pages, or change how.
    Enter(Box<AccountRequest>),
    /// Note how far a webhook has told.
    Told(SpaceId, WebhookId, Box<WebhookProgress>),
    /// Nothing: wake what the clock wakes, and go on with what waits.
    Tick,
}

/// What the writer answers, after the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriterReply {
    /// What became of an arrival.
    Outcome(EventId, Outcome),
    /// What became of a draft.
    Created(Result<EventId, CommandError>),
    /// What became of content.
    Delivered(DeliverResult),
    /// What a prune did.
    Pruned(PruneResult),
    /// What became of each event that was to be purged.
    Purged(Vec<(EventId, jobs::PurgeResult)>),
    /// How much a collection forgot, and how many files it deleted.
    Collected {
        /// Contents that were forgotten.
        forgotten: usize,
        /// Files that are gone.
        deleted: usize,
    },
    /// What came of an act.
    Acted(Result<CommandResult, CommandError>),
    /// What came of administration.
    Administered(Result<AdminResult, AdminError>),
    /// Whether somebody came in.
    Entered(Result<(), AccountError>),
    /// It was done.
    Done,
    /// The request met a broken invariant and was left alone; it is named in the log.
    Parked(String),
}

/// A store and the work of its one writer.
#[derive(Debug)]
pub struct WriterCore {
    store: Store,
}

/// What a batch came to.
#[derive(Debug)]
pub struct BatchResult {
    /// An answer for each request, in their order.
    pub replies: Vec<WriterReply>,
    /// Whether more work waits that needs no request.
    pub has_more: bool,
    /// The number of the latest journal entry.
    pub position: u64,
}

impl WriterCore {
    /// The writer of that store.
    pub fn new(store: Store) -> WriterCore {
        WriterCore { store }
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The store, for work that needs it alone.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Runs the requests in one transaction and answers after its commit. On an error nothing happened.
    pub fn run(&self, requests: Vec<WriterRequest>, now: Nanos) -> StoreResult<BatchResult> {
        let mut early = Vec::new();
        let done = self.store.write(now, |batch| {
            let mut replies = Vec::with_capacity(requests.len());
            for request in requests {
                replies.push(parked(batch, request)?);
            }
            if is_planted(PlantedBug::AnswerBeforeCommit) {
                early = replies.clone();
            }
            batch.wake_by_clock(STEPS_PER_BATCH_MAX)?;
            batch.expire_old(STEPS_PER_BATCH_MAX)?;
            tidy_up(batch)?;
            let has_more = go_on(batch, STEPS_PER_BATCH_MAX)? | jobs::step(batch)?;
            Ok(BatchResult { replies, has_more, position: batch.db().next_position()?.saturating_sub(1) })
        });
        match done {
            Err(_) if !early.is_empty() => Ok(BatchResult { replies: early, has_more: false, position: 0 }),
            other => other,
        }
    }

    /// Runs until nothing waits that could go on by itself.
    pub fn settle(&self, now: Nanos) -> StoreResult<()> {
        while self.run(vec![WriterRequest::Tick], now)?.has_more {}
        Ok(())
    }
}

/// A step that breaks an invariant on one request leaves that request alone; the others commit. Tests stop.
fn parked(batch: &mut Batch<'_>, request: WriterRequest) -> StoreResult<WriterReply> {
    match handle(batch, request) {
        Err(StoreError::Broken(what)) if !STOPS_ON_BUGS => {
            tracing::error!(what, "a request was parked");
            Ok(WriterReply::Parked(what))
        }
        other => other,
    }
}

fn handle(batch: &mut Batch<'_>, request: WriterRequest) -> StoreResult<WriterReply> {
    match request {
        WriterRequest::Arrive(arrival) => {
            let id = arrival.blob.id();
            arrive(batch, *arrival).map(|outcome| WriterReply::Outcome(id, outcome))
        }
        WriterRequest::Create(author, draft) => answer(create::make(batch, &author, *draft)).map(WriterReply::Created),
        WriterRequest::Deliver(space, hash, bytes) => batch.deliver(&space, &hash, &bytes).map(WriterReply::Delivered),
        WriterRequest::Prune(id) => prune(batch, &id),
        WriterRequest::Want(id) => {
            if let Some(seq) = batch.db().seq(&id)? {
                let changes = content::want_back(batch.db(), &policy(batch), seq)?;
                batch.apply(changes)?;
            }
            Ok(WriterReply::Done)
        }
        WriterRequest::RetryEvent(id) => retry::retry_event(batch, &id).map(|()| WriterReply::Done),
        WriterRequest::RetryNeed(need) => retry::retry_need(batch, &need).map(|()| WriterReply::Done),
        WriterRequest::HuntEnded { group, expected_next, started_at, jitter_permille } => {
            retry::hunt_ended(batch, &group, expected_next, started_at, jitter_permille).map(|()| WriterReply::Done)
        }
        WriterRequest::Purge(space, targets, who) => purge(batch, &space, &targets, &who),
        WriterRequest::Collect => collect(batch),
        WriterRequest::AddPrekey(secret, space) => batch.add_prekey(secret, space).map(|()| WriterReply::Done),
        WriterRequest::AddSpaceKey(space, secret) => batch.add_space_key(space, secret).map(|()| WriterReply::Done),
        WriterRequest::AddTransit(secret, space, peer) => {
            batch.add_transit(secret, space, peer).map(|()| WriterReply::Done)
        }
        WriterRequest::AddCustodian(identity, secret) => {
            batch.add_custodian(&identity, &secret).map(|()| WriterReply::Done)
        }
        WriterRequest::Dropped(word, times) => {
            batch.count(word, times);
            Ok(WriterReply::Done)
        }
        WriterRequest::Act(act) => answer(commands::run_command(batch, *act)).map(WriterReply::Acted),
        WriterRequest::Enter(request) => answer(commands::accounts::enter(batch, *request)).map(WriterReply::Entered),
        WriterRequest::Administer(order) => answer(commands::administer(batch, *order)).map(WriterReply::Administered),
        WriterRequest::Told(space, id, told) => {
            commands::webhooks::progress(batch, &space, &id, *told).map(|()| WriterReply::Done)
        }
        WriterRequest::Tick => Ok(WriterReply::Done),
    }
}

/// Takes the failures of the store out of what a command came to: they concern the writer. What is left is the command's
/// own answer.
fn answer<T, E: CommandFailure>(ran: Result<T, E>) -> StoreResult<Result<T, E>> {
    match ran {
        Err(why) => why.into_store_error().map_or_else(|refused| Ok(Err(refused)), Err),
        Ok(done) => Ok(Ok(done)),
    }
}

fn prune(batch: &mut Batch<'_>, id: &EventId) -> StoreResult<WriterReply> {
    let Some(seq) = batch.db().seq(id)? else {
        return Ok(WriterReply::Pruned(PruneResult::Nothing("not known")));
    };
    let (pruned, changes) = content::prune(batch.db(), &policy(batch), seq)?;
    batch.apply(changes)?;
    Ok(WriterReply::Pruned(pruned))
}

fn purge(batch: &mut Batch<'_>, space: &SpaceId, targets: &[EventId], who: &str) -> StoreResult<WriterReply> {
    let mut purged = Vec::new();
    for target in targets {
        let done = jobs::purge(batch, space, target)?;
        if !matches!(done, jobs::PurgeResult::Nothing(_)) {
            batch.audit(Some(*space), who, "purge", &target.to_string())?;
        }
        purged.push((*target, done));
    }
    Ok(WriterReply::Purged(purged))
}

/// What time alone asks for: files that an earlier commit forgot go, content whose grace is over is forgotten, and the
/// journal's oldest entries are trimmed.
fn tidy_up(batch: &mut Batch<'_>) -> StoreResult<()> {
    batch.delete_forgotten(STEPS_PER_BATCH_MAX)?;
    batch.forget_unused(STEPS_PER_BATCH_MAX)?;
    batch.trim_journal(STEPS_PER_BATCH_MAX)?;
    Ok(())
}

fn collect(batch: &mut Batch<'_>) -> StoreResult<WriterReply> {
    let deleted = batch.delete_forgotten(STEPS_PER_BATCH_MAX)? + batch.delete_strays()?;
    let forgotten = batch.forget_unused(STEPS_PER_BATCH_MAX)?;
    Ok(WriterReply::Collected { forgotten, deleted })
}

/// The word for a door.
pub fn origin_text(origin: Origin) -> String {
    match origin {
        Origin::Local => "made here".into(),
        Origin::Import => "imported".into(),
        Origin::Peer(peer) => format!("peer {peer}"),
    }
}
