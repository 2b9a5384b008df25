//! The writer's work without the loop around it: a batch of requests, one durable transaction, then the answers.

use crate::acts::entering::{CannotEnter, Entrance};
use crate::acts::{self, Act, Acted, Administered, CannotAct, CannotAdminister, Order};
use crate::asking;
use crate::creating;
use crate::jobs;
use ed25519_dalek::SigningKey;
use engine::chains::{self, Passage, Setting, Stored};
use engine::content::{self, Pruned, Work};
use engine::create::{CannotCreate, Draft};
use engine::reads::{Answer, Fault, Reads};
use engine::receive::{self, Arrival, Opening};
use engine::release;
use engine::rows::{Origin, Outcome, Task};
use model::planted::{Bug, is_planted};
use model::{ContentHash, EventId, Group, Identity, Nanos, Need, SpaceId};
use store::content::Delivered;
use store::webhooks::{Progress, WebhookId};
use store::{Batch, Store};

/// How much waiting work one transaction does beside its requests.
const STEPS_PER_BATCH_MAX: usize = 1000;
const _: () = assert!(STEPS_PER_BATCH_MAX <= model::limits::RELEASES_PER_TRANSACTION_MAX);

/// A broken invariant stops a test run; a release leaves the one event alone and goes on.
const STOPS_ON_BUGS: bool = cfg!(any(debug_assertions, feature = "planted"));

/// What the writer can be asked to do.
#[derive(Debug, Clone)]
pub enum Request {
    /// Store what came through a door.
    Arrive(Box<Arrival>),
    /// Make a new event.
    Create(Box<SigningKey>, Box<Draft>),
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
    Act(Box<Act>),
    /// Administer.
    Administer(Box<Order>),
    /// Come in through the pages, or change how.
    Enter(Box<Entrance>),
    /// Note how far a webhook has told.
    Told(SpaceId, WebhookId, Box<Progress>),
    /// Nothing: wake what the clock wakes, and go on with what waits.
    Tick,
}

/// What the writer answers, after the commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// What became of an arrival.
    Outcome(EventId, Outcome),
    /// What became of a draft.
    Created(Result<EventId, CannotCreate>),
    /// What became of content.
    Delivered(Delivered),
    /// What a prune did.
    Pruned(Pruned),
    /// What became of each event that was to be purged.
    Purged(Vec<(EventId, jobs::Purged)>),
    /// How much a collection forgot, and how many files it deleted.
    Collected {
        /// Contents that were forgotten.
        forgotten: usize,
        /// Files that are gone.
        deleted: usize,
    },
    /// What came of an act.
    Acted(Result<Acted, CannotAct>),
    /// What came of administration.
    Administered(Result<Administered, CannotAdminister>),
    /// Whether somebody came in.
    Entered(Result<(), CannotEnter>),
    /// It was done.
    Done,
    /// The request met a broken invariant and was left alone; it is named in the log.
    Parked(String),
}

/// A store and the work of its one writer.
#[derive(Debug)]
pub struct Core {
    store: Store,
}

/// What a batch came to.
#[derive(Debug)]
pub struct Done {
    /// An answer for each request, in their order.
    pub replies: Vec<Reply>,
    /// Whether more work waits that needs no request.
    pub has_more: bool,
    /// The number of the latest journal entry.
    pub position: u64,
}

impl Core {
    /// The writer of that store.
    pub fn new(store: Store) -> Core {
        Core { store }
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
    pub fn run(&self, requests: Vec<Request>, now: Nanos) -> Answer<Done> {
        let mut early = Vec::new();
        let done = self.store.write(now, |batch| {
            let mut replies = Vec::with_capacity(requests.len());
            for request in requests {
                replies.push(parked(batch, request)?);
            }
            if is_planted(Bug::AnswerBeforeCommit) {
                early = replies.clone();
            }
            batch.wake_by_clock(STEPS_PER_BATCH_MAX)?;
            batch.expire_old(STEPS_PER_BATCH_MAX)?;
            tidy_up(batch)?;
            let has_more = go_on(batch, STEPS_PER_BATCH_MAX)? | jobs::step(batch)?;
            Ok(Done { replies, has_more, position: batch.db().next_position()?.saturating_sub(1) })
        });
        match done {
            Err(_) if !early.is_empty() => Ok(Done { replies: early, has_more: false, position: 0 }),
            other => other,
        }
    }

    /// Runs until nothing waits that could go on by itself.
    pub fn settle(&self, now: Nanos) -> Answer<()> {
        while self.run(vec![Request::Tick], now)?.has_more {}
        Ok(())
    }
}

/// A step that breaks an invariant on one request leaves that request alone; the others commit. Tests stop.
fn parked(batch: &mut Batch<'_>, request: Request) -> Answer<Reply> {
    match handle(batch, request) {
        Err(Fault::Broken(what)) if !STOPS_ON_BUGS => {
            tracing::error!(what, "a request was parked");
            Ok(Reply::Parked(what))
        }
        other => other,
    }
}

fn handle(batch: &mut Batch<'_>, request: Request) -> Answer<Reply> {
    match request {
        Request::Arrive(arrival) => {
            let id = arrival.blob.id();
            arrive(batch, *arrival).map(|outcome| Reply::Outcome(id, outcome))
        }
        Request::Create(author, draft) => creating::make(batch, &author, *draft).map(Reply::Created),
        Request::Deliver(space, hash, bytes) => batch.deliver(&space, &hash, &bytes).map(Reply::Delivered),
        Request::Prune(id) => prune(batch, &id),
        Request::Want(id) => {
            if let Some(seq) = batch.db().seq(&id)? {
                let changes = content::want_back(batch.db(), &policy(batch), seq)?;
                batch.apply(changes)?;
            }
            Ok(Reply::Done)
        }
        Request::RetryEvent(id) => asking::retry_event(batch, &id),
        Request::RetryNeed(need) => asking::retry_need(batch, &need),
        Request::HuntEnded { group, expected_next, started_at, jitter_permille } => {
            asking::hunt_ended(batch, &group, expected_next, started_at, jitter_permille)
        }
        Request::Purge(space, targets, who) => purge(batch, &space, &targets, &who),
        Request::Collect => collect(batch),
        Request::AddPrekey(secret, space) => batch.add_prekey(secret, space).map(|()| Reply::Done),
        Request::AddSpaceKey(space, secret) => batch.add_space_key(space, secret).map(|()| Reply::Done),
        Request::AddTransit(secret, space, peer) => batch.add_transit(secret, space, peer).map(|()| Reply::Done),
        Request::AddCustodian(identity, secret) => batch.add_custodian(&identity, &secret).map(|()| Reply::Done),
        Request::Dropped(word, times) => {
            batch.count(word, times);
            Ok(Reply::Done)
        }
        Request::Act(act) => acts::act(batch, *act).map(Reply::Acted),
        Request::Enter(entrance) => acts::entering::enter(batch, *entrance).map(Reply::Entered),
        Request::Administer(order) => acts::administer(batch, *order).map(Reply::Administered),
        Request::Told(space, id, told) => acts::webhooks::progress(batch, &space, &id, *told).map(|()| Reply::Done),
        Request::Tick => Ok(Reply::Done),
    }
}

pub(crate) fn policy(batch: &Batch<'_>) -> engine::Policy {
    *batch.db().policy()
}

pub(crate) fn setting(batch: &Batch<'_>) -> Setting {
    Setting { now: batch.now(), policy: policy(batch) }
}

/// STORE, then POST.
pub(crate) fn arrive(batch: &mut Batch<'_>, arrival: Arrival) -> Answer<Outcome> {
    let setting = setting(batch);
    match chains::store(batch.db(), &setting, &arrival)? {
        Stored::Away(outcome) => Ok(outcome),
        Stored::Known(seq, changes) => {
            batch.note_received_again(seq, arrival.origin);
            batch.apply(changes)?;
            Ok(Outcome::Known(seq))
        }
        Stored::New => {
            let arrival = open_again(batch, arrival);
            let row = chains::new_row(&arrival, setting.now);
            let (opening, verdict) = (arrival.opening.clone(), arrival.verdict);
            let seq = batch.store(arrival, row.clone())?;
            post(batch, Work::new(seq, row), opening, false, verdict)
        }
    }
}

/// The key may have come since the door looked: only what this transaction sees decides whether to wait for it.
fn open_again(batch: &Batch<'_>, mut arrival: Arrival) -> Arrival {
    if !matches!(arrival.opening, Opening::NoKey(..) | Opening::NotOurs(_)) {
        return arrival;
    }
    arrival.opening = receive::open(batch.db(), &arrival.blob);
    receive::complete(batch.db(), &policy(batch), arrival)
}

fn post(
    batch: &mut Batch<'_>,
    work: Work,
    opening: Opening,
    was_opened: bool,
    verdict: Option<content::Verdict>,
) -> Answer<Outcome> {
    let (mut new_space, mut new_author) = (None, None);
    let numbers = match &opening {
        Opening::Opened(envelope) => {
            new_space = batch.db().space_no(&envelope.space)?.is_none().then_some(envelope.space);
            new_author = batch.db().author_no(&envelope.author)?.is_none().then_some(envelope.author);
            (batch.number_space(&envelope.space)?, batch.number_author(&envelope.author)?)
        }
        Opening::NoKey(..) | Opening::NotOurs(_) | Opening::Bad(_) => Default::default(),
    };
    let setting = setting(batch);
    let passage = Passage { setting, work, opening, was_opened, verdict, numbers, found: Vec::new() };
    let (outcome, changes) = chains::post(batch.db(), passage)?;
    batch.apply(changes)?;
    if matches!(outcome, Outcome::Refused(_) | Outcome::TurnedAway(_)) {
        batch.take_back_numbers(new_space, new_author)?;
    }
    Ok(outcome)
}

/// Goes on with what waits, tasks and released events in turn, until nothing is left or the transaction has woken or
/// applied enough of them. Says whether anything is left. A released event re-enters POST at its first step.
fn go_on(batch: &mut Batch<'_>, most: usize) -> Answer<bool> {
    let mut woken = 0;
    for step in 0..2 * most {
        let done = match (batch.next_task()?, batch.has_ready()?) {
            (Some(_), _) if woken >= most => break,
            (Some(task), ready) if !ready || step % 2 == 0 => run_task(batch, task).map(|rows| woken += rows),
            (_, true) => post_again(batch),
            (_, false) => return Ok(false),
        };
        match done {
            Err(Fault::Broken(what)) if !STOPS_ON_BUGS => tracing::error!(what, "a waiting event was parked"),
            other => other?,
        }
    }
    Ok(true)
}

/// Does a part of a task. Says how many events it changed, at least one.
fn run_task(batch: &mut Batch<'_>, task: Task) -> Answer<usize> {
    match release::run(batch.db(), &policy(batch), task.clone()) {
        Ok(changes) => {
            let rows = changes.iter().filter(|change| matches!(change, engine::Change::Row(..))).count();
            batch.apply(changes)?;
            Ok(rows.max(1))
        }
        Err(fault) => {
            batch.apply(vec![engine::Change::Task(engine::change::Turn::Remove, task)])?;
            Err(fault)
        }
    }
}

fn post_again(batch: &mut Batch<'_>) -> Answer<()> {
    let Some(seq) = batch.next_ready()? else { return Ok(()) };
    let (Some(row), Some(kept)) = (batch.db().event(seq)?, batch.db().kept(seq)?) else {
        return Err(Fault::Broken(format!("{seq} is ready but has no row")));
    };
    let was_opened = row.meta.is_some();
    let opening = if was_opened {
        match batch.db().opened(seq)? {
            Some(envelope) => Opening::Opened(envelope),
            None => {
                return Err(Fault::Broken(format!("{seq} was opened once and cannot be opened again")));
            }
        }
    } else {
        receive::open(batch.db(), &kept.blob)
    };
    let mut work = Work::new(seq, row);
    drop_foreign_inline(&mut work, &opening, kept.inline.as_deref(), was_opened);
    post(batch, work, opening, was_opened, None).map(drop)
}

/// Inline bytes that came with a blob nobody could open may turn out not to be those that were signed for.
fn drop_foreign_inline(work: &mut Work, opening: &Opening, inline: Option<&[u8]>, was_opened: bool) {
    let (Opening::Opened(envelope), Some(wire), false) = (opening, inline, was_opened) else {
        return;
    };
    if !receive::is_content_of(envelope, wire) {
        work.row.has_inline = false;
        work.changes.push(engine::Change::Inline(work.seq, None));
    }
}

fn prune(batch: &mut Batch<'_>, id: &EventId) -> Answer<Reply> {
    let Some(seq) = batch.db().seq(id)? else {
        return Ok(Reply::Pruned(Pruned::Nothing("not known")));
    };
    let (pruned, changes) = content::prune(batch.db(), &policy(batch), seq)?;
    batch.apply(changes)?;
    Ok(Reply::Pruned(pruned))
}

fn purge(batch: &mut Batch<'_>, space: &SpaceId, targets: &[EventId], who: &str) -> Answer<Reply> {
    let mut purged = Vec::new();
    for target in targets {
        let done = jobs::purge(batch, space, target)?;
        if !matches!(done, jobs::Purged::Nothing(_)) {
            batch.audit(Some(*space), who, "purge", &target.to_string())?;
        }
        purged.push((*target, done));
    }
    Ok(Reply::Purged(purged))
}

/// What time alone asks for: files that an earlier commit forgot go, content whose grace is over is forgotten, and the
/// journal's oldest entries are trimmed.
fn tidy_up(batch: &mut Batch<'_>) -> Answer<()> {
    batch.delete_forgotten(STEPS_PER_BATCH_MAX)?;
    batch.forget_unused(STEPS_PER_BATCH_MAX)?;
    batch.trim_journal(STEPS_PER_BATCH_MAX)?;
    Ok(())
}

fn collect(batch: &mut Batch<'_>) -> Answer<Reply> {
    let deleted = batch.delete_forgotten(STEPS_PER_BATCH_MAX)? + batch.delete_strays()?;
    let forgotten = batch.forget_unused(STEPS_PER_BATCH_MAX)?;
    Ok(Reply::Collected { forgotten, deleted })
}

/// The word for a door.
pub fn origin_text(origin: Origin) -> String {
    match origin {
        Origin::Local => "made here".into(),
        Origin::Import => "imported".into(),
        Origin::Peer(peer) => format!("peer {peer}"),
    }
}
