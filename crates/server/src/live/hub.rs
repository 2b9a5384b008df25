//! Reads the journal once for everybody, and hands what it says to the topics that somebody listens to.

use crate::caller::Seen;
use crate::problem::Problem;
use crate::render::Renderer;
use crate::state::House;
use engine::access::Principal;
use engine::reads::Reads as _;
use engine::rows::JournalKind;
use model::envelope::Role;
use model::{EventId, Identity, Kind, Position, Seq, SpaceId, SpaceNo};
use node::acts::{self, Caller, Means};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use store::tables::View;
use store::{Db, Entry};
use tokio::sync::broadcast;

/// A reader that is more than so many events behind is cut off.
const BEHIND_MAX: usize = 64;
/// Journal entries that are read at a time.
pub(crate) const CHUNK: usize = 256;

/// What can be listened to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Topic {
    Space(SpaceNo),
    Thread(Seq),
}

/// A journal entry as listeners get it.
#[derive(Debug)]
pub(crate) struct Told {
    /// Its journal number; typing and presence have none.
    pub(crate) position: Option<Position>,
    /// What happened.
    pub(crate) name: &'static str,
    /// The same as JSON.
    pub(crate) data: String,
    /// The thread it happened in.
    pub(crate) thread: Option<Seq>,
    /// Who alone may know: participants of a private thread, or the owner of a read marker.
    pub(crate) only: Option<Vec<Identity>>,
    /// Who did it.
    pub(crate) by: Identity,
    /// The public spaces of those it mentions.
    pub(crate) mentions: Vec<EventId>,
    /// Whether rights may have changed.
    pub(crate) changes_rights: bool,
}

type Sender = broadcast::Sender<Arc<Told>>;

/// The topics that somebody listens to.
#[derive(Debug, Default)]
pub(crate) struct Hub(Mutex<HashMap<Topic, Sender>>);

impl Hub {
    /// Listens to a topic from now on.
    pub(crate) fn listen(&self, topic: Topic) -> broadcast::Receiver<Arc<Told>> {
        let mut topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.entry(topic).or_insert_with(|| broadcast::channel(BEHIND_MAX).0).subscribe()
    }

    /// Tells those who listen to a thread or its space.
    pub(crate) fn tell(&self, space: SpaceNo, told: &Arc<Told>) {
        let topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for topic in [Some(Topic::Space(space)), told.thread.map(Topic::Thread)].into_iter().flatten() {
            if let Some(sender) = topics.get(&topic) {
                let _ = sender.send(told.clone());
            }
        }
    }

    /// How many listen.
    pub(crate) fn listeners(&self) -> usize {
        let topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.values().map(broadcast::Sender::receiver_count).sum()
    }

    /// Forgets topics that nobody listens to. Says whether any is left.
    fn is_heard(&self) -> bool {
        let mut topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.retain(|_, sender| sender.receiver_count() > 0);
        !topics.is_empty()
    }

    fn listens(&self, space: SpaceNo, thread: Option<Seq>) -> bool {
        let topics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        topics.contains_key(&Topic::Space(space)) || thread.is_some_and(|seq| topics.contains_key(&Topic::Thread(seq)))
    }

    /// Ends every stream.
    pub(crate) fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// Follows the journal until the house is taken down.
pub(crate) async fn run(house: Weak<House>, mut position: tokio::sync::watch::Receiver<u64>) {
    let mut told_up_to = None;
    while position.changed().await.is_ok() {
        let Some(house) = house.upgrade() else { return };
        let latest = *position.borrow_and_update();
        let from = told_up_to.unwrap_or(latest.saturating_sub(1));
        told_up_to = Some(latest);
        if !house.hub.is_heard() {
            continue;
        }
        if let Err(problem) = tell_all(&house, from, latest) {
            tracing::error!(?problem, "live streams could not be told");
        }
    }
}

fn tell_all(house: &House, mut from: u64, to: u64) -> Result<(), Problem> {
    let db = house.node.snapshot()?;
    while from < to {
        let entries = db.journal(None, from, CHUNK)?;
        let Some((last, _)) = entries.last() else { return Ok(()) };
        let after = *last;
        for (number, entry) in entries.iter().filter(|(number, _)| *number <= to) {
            let thread = thread_of(&db, entry)?;
            if house.hub.listens(entry.space, thread)
                && let Some(told) = told(&db, *number, entry)?
            {
                house.hub.tell(entry.space, &Arc::new(told));
            }
        }
        from = after;
    }
    Ok(())
}

/// The thread that an entry is about.
pub(crate) fn thread_of<V: View>(db: &Db<V>, entry: &Entry) -> Result<Option<Seq>, Problem> {
    let Some(meta) = db.event(entry.seq)?.and_then(|row| row.meta) else { return Ok(None) };
    Ok(match meta.kind {
        Kind::Thread => Some(entry.seq),
        Kind::Message | Kind::ThreadUpdate | Kind::ThreadDelete | Kind::ReadMarker => Some(meta.subject),
        Kind::Edit | Kind::Reaction | Kind::ReactionRemoval => {
            db.event(meta.subject)?.and_then(|row| row.meta).map(|meta| meta.subject)
        }
        _ => None,
    })
}

/// What an entry says to those who listen, if it says anything to them.
pub(crate) fn told<V: View>(db: &Db<V>, number: u64, entry: &Entry) -> Result<Option<Told>, Problem> {
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
    let seen = nobody(space, entry.space);
    let renderer = Renderer { db, seen: &seen };
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
    let changes_rights = matches!(meta.kind, Kind::Member | Kind::Removal);
    Ok(Some(Told { position, name, data, thread, only, by, mentions, changes_rights }))
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn mentioned<V: View>(db: &Db<V>, seq: Seq) -> Result<Vec<EventId>, Problem> {
    let Some(envelope) = db.opened(seq)? else { return Ok(Vec::new()) };
    let mentions = envelope.references.iter().filter(|reference| reference.role == Role::Mention);
    Ok(mentions.map(|reference| reference.id).collect())
}

/// Those who may know of a private thread.
pub(crate) fn insiders<V: View>(db: &Db<V>, thread: Option<Seq>) -> Result<Option<Vec<Identity>>, Problem> {
    let Some(seq) = thread else { return Ok(None) };
    let Some(meta) = db.event(seq)?.and_then(|row| row.meta) else { return Ok(None) };
    if !acts::sight(db, seq, &meta, None, None)?.is_private {
        return Ok(None);
    }
    let mut insiders = acts::participants(db, seq, meta.space)?;
    insiders.push(db.identity(meta.author)?);
    Ok(Some(insiders))
}

/// What is told is told for nobody in particular.
fn nobody(space: SpaceId, no: SpaceNo) -> Seen {
    let caller = Caller { means: Means::Operator, user: None, called: String::new() };
    Seen { space, no, principal: Principal::Operator, user: None, caller }
}
