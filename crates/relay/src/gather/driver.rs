//! Connects to other relays and keeps at it: a task for each that the plan names.

use super::plan::{GatherPlan, gather_plan};
use super::session::{GatherOutput, GatherSession, LocalEvents};
use engine::reads::{Reads as _, StoreResult};
use engine::rows::Outcome;
use futures_util::{SinkExt as _, StreamExt as _};
use model::Nanos;
use model::nostr::{NostrFilter, NostrId, VerifiedNostr};
use node::git::GitAccess;
use node::nostr::{GatherNostr, NostrSubmission};
use outbound::{OutboundClient, OutboundSocket};
use queries::nostr::list_ids;
use server::ServerState;
use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use store::Db;
use store::tables::Snapshot;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};
use tokio_tungstenite::tungstenite::Message;

/// The longest message of another relay.
const MESSAGE_BYTES_MAX: usize = 512 * 1024;
/// After a commit, the plan is looked at again after this long.
const PLAN_DELAY: Duration = Duration::from_secs(2);
/// It is not looked at again before so many times as long as that took have passed.
const PLAN_SHARE: u32 = 50;
/// How long a relay that owes an answer may say nothing.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Events of one relay that the writer has not answered yet.
const EVENTS_UNDER_WAY_MAX: usize = 256;
/// After so long without a word a relay is asked whether it lives.
const QUIET_TIME: Duration = Duration::from_secs(120);
/// How long a connection is listened to before both sides are compared again.
const RECONCILE_EVERY: Duration = Duration::from_secs(24 * 3600);
/// A connection that was good for so long makes up for earlier failures.
const GOOD_NANOS: u64 = 60 * Nanos::SECOND;
/// The wait after the first failure, and the longest.
const RETRY_FIRST: Duration = Duration::from_secs(1);
const RETRY_LONGEST: Duration = Duration::from_secs(3600);

/// What all tasks share.
pub(crate) struct Gathering {
    pub(crate) server: Arc<ServerState>,
    pub(crate) access: Arc<GitAccess>,
    pub(crate) outbound: OutboundClient,
}

/// The wait after so many failures in a row.
fn retry_after(failures: u32) -> Duration {
    RETRY_FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(RETRY_LONGEST)
}

/// Follows the plan until nothing is committed any more.
pub(crate) async fn gather(shared: Arc<Gathering>, mut commits: watch::Receiver<u64>) {
    let mut relays: BTreeMap<String, watch::Sender<Vec<NostrFilter>>> = BTreeMap::new();
    let (mut tasks, mut planned_at) = (JoinSet::new(), None);
    loop {
        commits.borrow_and_update();
        let planning = shared.clone();
        let plan = tokio::task::spawn_blocking(move || plan_again(&planning, planned_at));
        let mut took = Duration::ZERO;
        match plan.await {
            Ok(Ok(Some(new))) => {
                (planned_at, took) = (Some(new.at), new.took);
                follow_plan(&shared, new.plan, &mut relays, &mut tasks);
            }
            Ok(Ok(None)) => {}
            Ok(Err(why)) => tracing::warn!(%why, "it could not be read which relays to gather from"),
            Err(why) => tracing::error!(%why, "the plan of gathering was cut off"),
        }
        if commits.changed().await.is_err() {
            return;
        }
        sleep(PLAN_DELAY.max(took.saturating_mul(PLAN_SHARE))).await;
    }
}

/// What decides about the plan, as far as it is seen at once: events that are applied, and those that wait.
type PlannedAt = (u64, u64);

struct NewPlan {
    plan: GatherPlan,
    at: PlannedAt,
    took: Duration,
}

/// The plan, unless nothing has changed since it was made. Most commits are about something else.
fn plan_again(shared: &Gathering, planned_at: Option<PlannedAt>) -> StoreResult<Option<NewPlan>> {
    let node = &shared.server.node;
    let (db, began) = (node.snapshot()?, node.uptime());
    let at = (db.nostr_event_count()?, db.held_total()?);
    if planned_at == Some(at) {
        return Ok(None);
    }
    let plan = gather_plan(&db, &shared.access, &shared.outbound)?;
    let took = node.uptime().zip(began).map_or(0, |(end, began)| end.0.saturating_sub(began.0));
    Ok(Some(NewPlan { plan, at, took: Duration::from_nanos(took) }))
}

fn follow_plan(
    shared: &Arc<Gathering>,
    plan: GatherPlan,
    relays: &mut BTreeMap<String, watch::Sender<Vec<NostrFilter>>>,
    tasks: &mut JoinSet<()>,
) {
    // A task ends when nobody tells it what to ask for any more.
    relays.retain(|relay, _| plan.contains_key(relay));
    for (relay, filters) in plan {
        if let Some(known) = relays.get(&relay) {
            known.send_if_modified(|old| std::mem::replace(old, filters.clone()) != filters);
            continue;
        }
        let (sender, receiver) = watch::channel(filters);
        tasks.spawn(follow_relay(shared.clone(), relay.clone(), receiver));
        relays.insert(relay, sender);
    }
    while tasks.try_join_next().is_some() {}
}

/// Why a connection is over.
enum GatherEnd {
    /// Nothing is asked of it any more.
    NotWanted,
    Failed(String),
    /// It is left alone for the longest time.
    Misbehaved(String),
}

async fn follow_relay(shared: Arc<Gathering>, relay: String, mut filters: watch::Receiver<Vec<NostrFilter>>) {
    let mut failures = 0_u32;
    loop {
        let mut live_since = None;
        let end = visit(&shared, &relay, &mut filters, &mut live_since).await;
        let now = shared.server.node.uptime().unwrap_or_default();
        let lasted = live_since.map_or(0, |since: Nanos| now.0.saturating_sub(since.0));
        failures = if lasted >= GOOD_NANOS { 1 } else { failures.saturating_add(1) };
        let (why, wait) = match end {
            GatherEnd::NotWanted => break,
            GatherEnd::Failed(why) => (why, retry_after(failures)),
            GatherEnd::Misbehaved(why) => (why, RETRY_LONGEST),
        };
        let next = shared.server.node.now().plus(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        tracing::warn!(
            relay,
            why,
            seconds = wait.as_secs(),
            "events could not be gathered from a relay; it is asked again"
        );
        shared.server.gather_reports.failed(&relay, why, next);
        tokio::select! {
            () = sleep(wait) => {}
            () = until_not_wanted(filters.clone()) => break,
        }
    }
    shared.server.gather_reports.forget(&relay);
}

async fn until_not_wanted(mut filters: watch::Receiver<Vec<NostrFilter>>) {
    while filters.changed().await.is_ok() {}
}

/// One connection, until it fails or is not wanted any more.
async fn visit(
    shared: &Arc<Gathering>,
    relay: &str,
    filters: &mut watch::Receiver<Vec<NostrFilter>>,
    live_since: &mut Option<Nanos>,
) -> GatherEnd {
    let socket = match shared.outbound.connect_websocket(relay, MESSAGE_BYTES_MAX).await {
        Ok(socket) => socket,
        Err(why) => return GatherEnd::Failed(why.to_string()),
    };
    let mut connection = RelayConnection { socket, compare_again: Box::pin(sleep(RECONCILE_EVERY)), live_since };
    let mut done = Vec::new();
    loop {
        let asked = filters.borrow_and_update().clone();
        let mut session = GatherSession::new(asked.clone(), done);
        let first = match shared.server.node.snapshot() {
            Ok(db) => session.begin(&Kept { db: &db, shared }),
            Err(why) => return GatherEnd::Failed(why.to_string()),
        };
        match talk(shared, relay, &mut connection, (session, first), filters).await {
            Ok(Again::Filters) => done = asked,
            Ok(Again::Everything) => {
                done = Vec::new();
                connection.compare_again = Box::pin(sleep(RECONCILE_EVERY));
            }
            Err(end) => return end,
        }
    }
}

/// A connection to a relay.
struct RelayConnection<'a> {
    socket: OutboundSocket,
    /// When both sides are compared again.
    compare_again: Pin<Box<Sleep>>,
    /// Since when nothing is missing that the relay has.
    live_since: &'a mut Option<Nanos>,
}

/// Why a connection begins again.
enum Again {
    /// There is something else to ask for.
    Filters,
    /// Both sides are to be compared again.
    Everything,
}

/// Gathers with one list of filters. Comes back when there is another, or when both sides are to be compared again.
async fn talk(
    shared: &Arc<Gathering>,
    relay: &str,
    connection: &mut RelayConnection<'_>,
    (mut session, first): (GatherSession, Vec<GatherOutput>),
    filters: &mut watch::Receiver<Vec<NostrFilter>>,
) -> Result<Again, GatherEnd> {
    let RelayConnection { socket, compare_again, live_since } = connection;
    let failed = |why: &dyn std::fmt::Display| GatherEnd::Failed(why.to_string());
    let (mut outputs, under_way) = (first, Arc::new(Semaphore::new(EVENTS_UNDER_WAY_MAX)));
    let (mut is_pinged, mut has_new_filters) = (false, false);
    let mut patience = Box::pin(sleep(ANSWER_TIME));
    loop {
        for output in outputs {
            match output {
                GatherOutput::Send(text) => say(socket, Message::text(text)).await?,
                GatherOutput::Take(event) => take(shared, relay, event, &under_way).await.map_err(GatherEnd::Failed)?,
                GatherOutput::Live => {
                    live_since.get_or_insert(shared.server.node.uptime().unwrap_or_default());
                    shared.server.gather_reports.change(relay, |report| {
                        (report.is_live, report.failed, report.next) = (true, None, None);
                    });
                }
            }
        }
        if session.is_live() && has_new_filters {
            return Ok(Again::Filters);
        }
        let heard = tokio::select! {
            heard = socket.next() => Some(heard),
            () = &mut patience => None,
            () = &mut *compare_again, if session.is_live() => return Ok(Again::Everything),
            changed = filters.changed() => {
                changed.map_err(|_| GatherEnd::NotWanted)?;
                has_new_filters = true;
                outputs = Vec::new();
                continue;
            }
        };
        let was_pinged = std::mem::take(&mut is_pinged);
        outputs = match heard {
            Some(Some(Ok(Message::Text(text)))) => {
                let db = shared.server.node.snapshot().map_err(|why| failed(&why))?;
                let heard = session.hear(&text, &Kept { db: &db, shared });
                heard.map_err(|why| GatherEnd::Misbehaved(why.to_string()))?
            }
            Some(Some(Ok(Message::Close(_))) | None) => return Err(failed(&"it has closed the connection")),
            Some(Some(Ok(_))) => Vec::new(),
            Some(Some(Err(why))) => return Err(failed(&why)),
            // Nothing was said for long: a connection may end without a word.
            None if session.is_live() && !was_pinged => {
                is_pinged = true;
                say(socket, Message::Ping(Vec::new().into())).await?;
                Vec::new()
            }
            None => session.on_silence().ok_or_else(|| failed(&"it does not answer"))?,
        };
        // Whoever owes an answer does not gain time by saying something else.
        if session.is_live() || !outputs.is_empty() {
            patience = Box::pin(sleep(if session.is_live() { QUIET_TIME } else { ANSWER_TIME }));
        }
    }
}

/// Sends a message to a relay that takes it in time.
async fn say(socket: &mut OutboundSocket, message: Message) -> Result<(), GatherEnd> {
    match timeout(ANSWER_TIME, socket.send(message)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(why)) => Err(GatherEnd::Failed(why.to_string())),
        Err(_) => Err(GatherEnd::Failed("it takes nothing".to_owned())),
    }
}

/// Hands an event to the writer. It waits while too many are on their way, so that nobody floods the queue.
async fn take(
    shared: &Arc<Gathering>,
    relay: &str,
    event: Box<VerifiedNostr>,
    under_way: &Arc<Semaphore>,
) -> Result<(), String> {
    let writers = &shared.access.writers;
    let is_welcome = writers.is_empty() || writers.contains(&event.author);
    if !is_welcome || shared.access.why_not(&event).is_some() {
        return Ok(());
    }
    let permit = under_way.clone().acquire_owned().await.map_err(|why| why.to_string())?;
    let (reports, relay) = (shared.server.gather_reports.clone(), relay.to_owned());
    let on_answer = move |answer| {
        drop(permit);
        match answer {
            Ok(NostrSubmission::Admitted(Outcome::Applied(_) | Outcome::Held(..))) => {
                reports.change(&relay, |report| report.gathered += 1);
            }
            Ok(_) => {}
            // It is asked for again, tomorrow at the latest.
            Err(why) => tracing::warn!(%why, relay, "an event that was gathered could not be stored"),
        }
    };
    shared.server.node.submit(GatherNostr(event), on_answer).map_err(|why| why.to_string())
}

/// What is here, as of a snapshot.
struct Kept<'a> {
    db: &'a Db<Snapshot>,
    shared: &'a Gathering,
}

impl LocalEvents for Kept<'_> {
    fn ids(&self, filter: &NostrFilter) -> Option<Vec<(u64, NostrId)>> {
        let now = self.shared.server.node.now();
        list_ids(self.db, filter, &BTreeSet::new(), now).ok().flatten()
    }

    fn is_settled(&self, id: &NostrId) -> bool {
        let (is_here, is_over) = (self.db.seq(&id.short()), self.db.is_refused_or_expired(&id.short()));
        is_here.is_ok_and(|seq| seq.is_some()) || is_over.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relays_that_fail_are_asked_ever_more_rarely_up_to_an_hour() {
        let seconds: Vec<u64> = [0, 1, 2, 3, 9, 10, u32::MAX].map(|count| retry_after(count).as_secs()).to_vec();
        assert_eq!(seconds, [1, 1, 2, 4, 256, 512, 3600]);
    }
}
