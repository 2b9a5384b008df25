//! Reads the journal once for everybody, and hands what it says to the topics that somebody listens to.
//!
//! What one look at the journal finds goes to each topic as one batch; who lost a right hears of it first.

use super::hub::{ChangedRights, LiveBatch, LiveEvent, LiveHub, Topic};
use crate::caller::Viewer;
use crate::problem::Problem;
use crate::render::Renderer;
use crate::state::ServerState;
use engine::access::Principal;
use engine::reads::Reads as _;
use engine::rows::{JournalKind, Meta};
use model::envelope::Role;
use model::{EventId, Identity, Kind, Nanos, Position, Seq, SpaceId, SpaceNo};
use node::commands::{self, Caller, CallerKind};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use store::tables::TableReads;
use store::{Db, JournalEntry};
use tokio::sync::watch;

/// A batch that has reached this size is handed over, so that a reader who is stuck holds little.
pub(super) const BATCH_BYTES_MAX: usize = 128 * 1024;
/// Journal entries that are read at a time.
pub(super) const CHUNK: usize = 256;
/// How often it is looked whether a key has ended by itself.
const LOOK_AT_KEYS: Duration = Duration::from_secs(15);

/// What wakes the hub.
enum Wake {
    Committed,
    LookAtKeys,
    Over,
}

/// Follows the journal until the house is taken down.
pub(crate) async fn run(state: Weak<ServerState>, mut position: watch::Receiver<u64>, begin: HubStart) {
    let HubStart { mut told_up_to, mut looked_at } = begin;
    let mut look = tokio::time::interval(LOOK_AT_KEYS);
    loop {
        let wake = tokio::select! {
            changed = position.changed() => if changed.is_ok() { Wake::Committed } else { Wake::Over },
            _ = look.tick() => Wake::LookAtKeys,
        };
        let Some(state) = state.upgrade() else { return };
        let done = match wake {
            Wake::Over => return,
            Wake::LookAtKeys => look_at_keys(&state, &mut looked_at),
            Wake::Committed => {
                let (from, to) = (told_up_to, *position.borrow_and_update());
                told_up_to = to.max(from);
                if state.hub.is_heard() { tell_all(&state, from, to) } else { Ok(()) }
            }
        };
        if let Err(problem) = done {
            tracing::error!(?problem, "live streams could not be told");
        }
    }
}

/// Where the hub begins: nobody listened to what came before.
#[derive(Debug)]
pub(crate) struct HubStart {
    told_up_to: u64,
    looked_at: Nanos,
}

impl HubStart {
    /// Now.
    pub(crate) fn now(state: &ServerState) -> HubStart {
        let told_up_to = state.node.snapshot().ok().and_then(|db| db.position().ok()).map_or(0, |at| at.number);
        HubStart { told_up_to, looked_at: state.node.now() }
    }
}

/// Keys that ended since the last look end their streams.
pub(crate) fn look_at_keys(state: &ServerState, looked_at: &mut Nanos) -> Result<(), Problem> {
    let (db, now) = (state.node.snapshot()?, state.node.now());
    let before = std::mem::replace(looked_at, now);
    for (_, key) in db.api_keys()? {
        if key.is_accepted(before)
            && !key.is_accepted(now)
            && let Some(space) = db.space_no(&key.space)?
        {
            state.hub.change_rights(space, ChangedRights::Everyone);
        }
    }
    Ok(())
}

/// What was found for each topic and not sent yet, with its size.
#[derive(Default)]
struct Outgoing(HashMap<Topic, (Vec<Arc<LiveEvent>>, usize)>);

impl Outgoing {
    fn add(&mut self, hub: &LiveHub, topic: Topic, live_event: Arc<LiveEvent>) {
        let (batch, bytes) = self.0.entry(topic).or_default();
        *bytes += live_event.data.len();
        batch.push(live_event);
        if *bytes >= BATCH_BYTES_MAX {
            hub.send(topic, Arc::new(LiveBatch::Told(std::mem::take(batch))));
            *bytes = 0;
        }
    }

    fn flush(self, hub: &LiveHub) {
        for (topic, (batch, _)) in self.0.into_iter().filter(|(_, (batch, _))| !batch.is_empty()) {
            hub.send(topic, Arc::new(LiveBatch::Told(batch)));
        }
    }
}

fn tell_all(state: &ServerState, mut from: u64, to: u64) -> Result<(), Problem> {
    let db = state.node.snapshot()?;
    while from < to {
        let mut entries = db.journal(None, from, CHUNK)?;
        let Some((last, _)) = entries.last() else { return Ok(()) };
        from = *last;
        entries.retain(|(number, _)| *number <= to);
        tell_some(&db, &state.hub, &entries)?;
    }
    Ok(())
}

fn tell_some<V: TableReads>(db: &Db<V>, hub: &LiveHub, entries: &[(u64, JournalEntry)]) -> Result<(), Problem> {
    let spaces = hub.spaces();
    let mut heard = Vec::new();
    let mut changed: HashMap<SpaceNo, ChangedRights> = HashMap::new();
    for (number, entry) in entries.iter().filter(|(_, entry)| spaces.contains(&entry.space)) {
        let Some(meta) = db.event(entry.seq)?.and_then(|row| row.meta) else { continue };
        let rights = changed.entry(entry.space).or_default();
        *rights = std::mem::take(rights).and(rights_of(db, entry.seq, &meta)?);
        heard.push((*number, entry, meta));
    }
    // First who may not listen any more, then what there is to hear.
    for (space, rights) in changed {
        match rights {
            ChangedRights::Same => {}
            rights => hub.change_rights(space, rights),
        }
    }
    let mut outgoing = Outgoing::default();
    for (number, entry, meta) in heard {
        let topics = hub.topics(entry.space, thread_around(db, entry.seq, &meta)?);
        if !topics.is_empty()
            && let Some(live_event) = live_event(db, number, entry)?.map(Arc::new)
        {
            topics.into_iter().for_each(|topic| outgoing.add(hub, topic, live_event.clone()));
        }
    }
    outgoing.flush(hub);
    Ok(())
}

/// The thread that an entry is about.
pub(super) fn thread_of<V: TableReads>(db: &Db<V>, entry: &JournalEntry) -> Result<Option<Seq>, Problem> {
    let Some(meta) = db.event(entry.seq)?.and_then(|row| row.meta) else { return Ok(None) };
    thread_around(db, entry.seq, &meta)
}

fn thread_around<V: TableReads>(db: &Db<V>, seq: Seq, meta: &Meta) -> Result<Option<Seq>, Problem> {
    Ok(match meta.kind {
        Kind::Thread => Some(seq),
        Kind::Message | Kind::ThreadUpdate | Kind::ThreadDelete | Kind::ReadMarker => Some(meta.subject),
        Kind::Edit | Kind::Reaction | Kind::ReactionRemoval => {
            db.event(meta.subject)?.and_then(|row| row.meta).map(|meta| meta.subject)
        }
        _ => None,
    })
}

/// Whose rights an event may have changed.
fn rights_of<V: TableReads>(db: &Db<V>, seq: Seq, meta: &Meta) -> Result<ChangedRights, Problem> {
    Ok(match meta.kind {
        Kind::Member => match db.membership(seq)? {
            Some(membership) => ChangedRights::Of(vec![membership.member]),
            None => ChangedRights::Everyone,
        },
        // Those whom the removed one had admitted may be gone as well.
        Kind::Removal => ChangedRights::Everyone,
        _ => ChangedRights::Same,
    })
}

/// What an entry says to those who listen, if it says anything to them.
pub(crate) fn live_event<V: TableReads>(
    db: &Db<V>,
    number: u64,
    entry: &JournalEntry,
) -> Result<Option<LiveEvent>, Problem> {
    let Some(meta) = db.event(entry.seq)?.and_then(|row| row.meta) else { return Ok(None) };
    let (name, message) = match (meta.kind, entry.kind) {
        (Kind::Message, JournalKind::Applied) => ("message.created", Some(entry.seq)),
        (Kind::Message, _) => ("message.changed", Some(entry.seq)),
        (Kind::Edit, _) => ("message.changed", Some(meta.subject)),
        (Kind::Reaction | Kind::ReactionRemoval, _) => ("message.reacted", Some(meta.subject)),
        (Kind::Thread, JournalKind::Applied) => ("thread.created", None),
        (Kind::ThreadDelete, _) => ("thread.deleted", None),
        (Kind::Thread | Kind::ThreadUpdate, _) => ("thread.changed", None),
        (Kind::ReadMarker, _) => ("thread.read", None),
        (Kind::Member | Kind::Removal, _) => ("members.changed", None),
        _ => return Ok(None),
    };
    let by = db.identity(meta.author)?;
    let space = db.space_id(entry.space)?;
    let viewer = nobody(space, entry.space);
    let renderer = Renderer { db, viewer: &viewer };
    let thread = thread_of(db, entry)?;
    let data = match (message, thread) {
        (Some(message), _) => json(&renderer.message_at(message)?),
        (None, Some(thread)) if name == "thread.read" => {
            serde_json::json!({ "thread": renderer.name(thread)?, "user": renderer.author(&by)? }).to_string()
        }
        (None, Some(thread)) => match db.thread(thread)? {
            Some(found) => json(&renderer.thread(&found)?),
            None => return Ok(None),
        },
        (None, None) => serde_json::json!({}).to_string(),
    };
    let mentions = match meta.kind {
        Kind::Message => mentioned(db, entry.seq)?,
        _ => Vec::new(),
    };
    let only = if name == "thread.read" { Some(vec![by]) } else { insiders(db, thread)? };
    let position = Some(Position { epoch: db.epoch()?, number });
    let shown = match (message, thread) {
        (None, Some(thread)) => db.timeline(thread, model::Stamp::LAST, 1)?.first().map(|message| message.author),
        (Some(message), _) => match db.event(message)?.and_then(|row| row.meta) {
            Some(meta) => Some(db.identity(meta.author)?),
            None => None,
        },
        (None, None) => None,
    };
    Ok(Some(LiveEvent { position, name, data, thread, only, by, shows: shown, mentions, frame: OnceLock::new() }))
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn mentioned<V: TableReads>(db: &Db<V>, seq: Seq) -> Result<Vec<EventId>, Problem> {
    let Some(envelope) = db.opened(seq)? else { return Ok(Vec::new()) };
    let mentions = envelope.references.iter().filter(|reference| reference.role == Role::Mention);
    Ok(mentions.map(|reference| reference.id).collect())
}

/// Those who may know of a private thread.
pub(crate) fn insiders<V: TableReads>(db: &Db<V>, thread: Option<Seq>) -> Result<Option<Vec<Identity>>, Problem> {
    let Some(seq) = thread else { return Ok(None) };
    let Some(meta) = db.event(seq)?.and_then(|row| row.meta) else { return Ok(None) };
    if !commands::thread_visibility(db, seq, &meta, None, None)?.is_private {
        return Ok(None);
    }
    let mut insiders = commands::participants(db, seq, meta.space)?;
    insiders.push(db.identity(meta.author)?);
    Ok(Some(insiders))
}

/// What is told is told for nobody in particular.
fn nobody(space: SpaceId, no: SpaceNo) -> Viewer {
    let caller = Caller { kind: CallerKind::Operator, user: None, audit_name: String::new() };
    Viewer { space, no, principal: Principal::Operator, user: None, blocked: Vec::new(), caller }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the batches that come of so many entries of this length.
    fn batches(entries: usize, length: usize) -> Vec<usize> {
        let (hub, topic) = (LiveHub::default(), Topic::Space(SpaceNo(1)));
        let (mut receiver, mut outgoing) = (hub.listen(topic), Outgoing::default());
        for _ in 0..entries {
            let (data, by) = ("x".repeat(length), Identity([1; 32]));
            let (only, mentions, frame) = (None, Vec::new(), OnceLock::new());
            let live_event = LiveEvent {
                position: None,
                name: "typing",
                data,
                thread: None,
                only,
                by,
                shows: None,
                mentions,
                frame,
            };
            outgoing.add(&hub, topic, Arc::new(live_event));
        }
        outgoing.flush(&hub);
        std::iter::from_fn(|| receiver.try_recv().ok())
            .map(|batch| match &*batch {
                LiveBatch::Told(live_event) => live_event.len(),
                LiveBatch::Changed(_) => 0,
            })
            .collect()
    }

    #[test]
    fn a_burst_is_one_batch_unless_it_is_large() {
        assert_eq!(batches(CHUNK, 100), [CHUNK]);
        assert_eq!(batches(5, BATCH_BYTES_MAX / 2), [2, 2, 1]);
        assert_eq!(batches(2, BATCH_BYTES_MAX), [1, 1]);
        assert_eq!(batches(0, 1), [0; 0]);
    }
}
