//! Reads the journal once for everybody, and hands what it says to the topics that somebody subscribes to.
//!
//! What one look at the journal finds goes to each topic as one batch; whoever lost a right hears of it first.

use super::hub::{ChangedRights, LiveBatch, LiveEvent, LiveHub, Topic};
use crate::error::QueryError;
use crate::files::show_file;
use crate::renderer::Renderer;
use crate::viewer::Viewer;
use crate::visibility::{Audience, private_to};
use engine::reads::{Reads as _, SpaceReads as _};
use engine::rows::{JournalKind, Meta};
use model::envelope::Role;
use model::{EventId, Kind, Nanos, Position, Seq, SpaceNo};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use store::tables::TableReads;
use store::{Db, JournalEntry};

/// A batch that has reached this size is handed over, so that a reader who is stuck holds little.
pub(super) const BATCH_BYTES_MAX: usize = 128 * 1024;
/// Journal entries that are read at a time.
pub(super) const CHUNK: usize = 256;

/// Has the streams checked again that were opened with a key which ended by itself between two moments.
pub fn end_streams_of_ended_keys<V: TableReads>(
    db: &Db<V>,
    hub: &LiveHub,
    before: Nanos,
    now: Nanos,
) -> Result<(), QueryError> {
    for (_, key) in db.api_keys()? {
        if key.is_accepted(before)
            && !key.is_accepted(now)
            && let Some(space) = db.space_no(&key.space)?
        {
            hub.change_rights(space, ChangedRights::Everyone);
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
            hub.send(topic, Arc::new(LiveBatch::Events(std::mem::take(batch))));
            *bytes = 0;
        }
    }

    fn flush(self, hub: &LiveHub) {
        for (topic, (batch, _)) in self.0.into_iter().filter(|(_, (batch, _))| !batch.is_empty()) {
            hub.send(topic, Arc::new(LiveBatch::Events(batch)));
        }
    }
}

/// Publishes the journal entries after one number, up to another.
pub fn publish_journal<V: TableReads>(db: &Db<V>, hub: &LiveHub, mut from: u64, to: u64) -> Result<(), QueryError> {
    while from < to {
        let mut entries = db.journal(None, from, CHUNK)?;
        let Some((last, _)) = entries.last() else { return Ok(()) };
        from = *last;
        entries.retain(|(number, _)| *number <= to);
        publish_entries(db, hub, &entries)?;
    }
    Ok(())
}

fn publish_entries<V: TableReads>(
    db: &Db<V>,
    hub: &LiveHub,
    entries: &[(u64, JournalEntry)],
) -> Result<(), QueryError> {
    let spaces = hub.spaces();
    let mut heard = Vec::new();
    let mut changed: HashMap<SpaceNo, ChangedRights> = HashMap::new();
    for (number, entry) in joined_entries(entries).into_iter().filter(|(_, entry)| spaces.contains(&entry.space)) {
        let Some(meta) = db.event(entry.seq)?.and_then(|row| row.meta) else { continue };
        let rights = changed.entry(entry.space).or_default();
        *rights = std::mem::take(rights).and(rights_of(db, entry.seq, &meta)?);
        heard.push((number, entry, meta));
    }
    // First who may not read any more, then what there is to read.
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
            && let Some(live_event) = live_event(db, number, &entry)?.map(Arc::new)
        {
            topics.into_iter().for_each(|topic| outgoing.add(hub, topic, live_event.clone()));
        }
    }
    outgoing.flush(hub);
    Ok(())
}

/// The thread that an entry is about.
pub(super) fn thread_of<V: TableReads>(db: &Db<V>, entry: &JournalEntry) -> Result<Option<Seq>, QueryError> {
    let Some(meta) = db.event(entry.seq)?.and_then(|row| row.meta) else { return Ok(None) };
    thread_around(db, entry.seq, &meta)
}

fn thread_around<V: TableReads>(db: &Db<V>, seq: Seq, meta: &Meta) -> Result<Option<Seq>, QueryError> {
    let Some(kind) = meta.kind.space() else { return Ok(None) };
    Ok(match (kind, meta.subject) {
        (Kind::Thread, _) => Some(seq),
        (Kind::Message | Kind::ThreadUpdate | Kind::ThreadDelete | Kind::ReadMarker, thread) => thread,
        (Kind::Edit | Kind::Reaction | Kind::ReactionRemoval, Some(message)) => {
            db.event(message)?.and_then(|row| row.meta).and_then(|meta| meta.subject)
        }
        _ => None,
    })
}

/// Whose rights an event may have changed.
fn rights_of<V: TableReads>(db: &Db<V>, seq: Seq, meta: &Meta) -> Result<ChangedRights, QueryError> {
    Ok(match meta.kind.space() {
        Some(Kind::Member) => match db.membership(seq)? {
            Some(membership) => ChangedRights::Of(vec![membership.member]),
            None => ChangedRights::Everyone,
        },
        // Those whom the removed one had admitted may be gone as well.
        Some(Kind::Removal) => ChangedRights::Everyone,
        _ => ChangedRights::Same,
    })
}

/// The entries as they are told: that an event was applied and that its content came are one, at the latter place. Whoever
/// has heard of that place has heard of both, and whoever came in between hears of both.
pub fn joined_entries(entries: &[(u64, JournalEntry)]) -> Vec<(u64, JournalEntry)> {
    let of_kind = |kind| entries.iter().filter(move |(_, entry)| entry.kind == kind).map(|(_, entry)| entry.seq);
    let applied: HashSet<Seq> = of_kind(JournalKind::Applied).collect();
    let processed: HashSet<Seq> = of_kind(JournalKind::Processed).collect();
    let both = |seq: &Seq| applied.contains(seq) && processed.contains(seq);
    let told = entries.iter().filter_map(|(number, entry)| match entry.kind {
        JournalKind::Applied if both(&entry.seq) => None,
        JournalKind::Processed if both(&entry.seq) => {
            Some((*number, JournalEntry { kind: JournalKind::Applied, ..*entry }))
        }
        _ => Some((*number, *entry)),
    });
    told.collect()
}

/// What an entry says to subscribers, if it says anything to them.
pub fn live_event<V: TableReads>(
    db: &Db<V>,
    number: u64,
    entry: &JournalEntry,
) -> Result<Option<LiveEvent>, QueryError> {
    let Some(meta) = db.event(entry.seq)?.and_then(|row| row.meta) else { return Ok(None) };
    let Some(kind) = meta.kind.space() else { return Ok(None) };
    if kind == Kind::File {
        return file_event(db, number, entry);
    }
    let (name, message) = match (kind, entry.kind) {
        (Kind::Message, JournalKind::Applied) => ("message.created", Some(entry.seq)),
        (Kind::Message, _) => ("message.changed", Some(entry.seq)),
        (Kind::Edit, _) => ("message.changed", meta.subject),
        (Kind::Reaction | Kind::ReactionRemoval, _) => ("message.reacted", meta.subject),
        (Kind::Thread, JournalKind::Applied) => ("thread.created", None),
        (Kind::ThreadDelete, _) => ("thread.deleted", None),
        (Kind::Thread | Kind::ThreadUpdate, _) => ("thread.changed", None),
        (Kind::ReadMarker, _) => ("thread.read", None),
        (Kind::Member | Kind::Removal, _) => ("members.changed", None),
        _ => return Ok(None),
    };
    let by = db.identity(meta.author)?;
    let space = db.space_id(entry.space)?;
    let viewer = Viewer::unrestricted(space, entry.space);
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
    let mentions = match kind {
        Kind::Message => mentioned(db, entry.seq)?,
        _ => Vec::new(),
    };
    let only = if name == "thread.read" { Some(vec![by]) } else { private_to(db, thread)? };
    let position = Some(Position { epoch: db.epoch()?, number });
    let shows = match (message, thread) {
        (None, Some(thread)) => db.timeline(thread, model::Stamp::LAST, 1)?.first().map(|message| message.author),
        (Some(message), _) => match db.event(message)?.and_then(|row| row.meta) {
            Some(meta) => Some(db.identity(meta.author)?),
            None => None,
        },
        (None, None) => None,
    };
    Ok(Some(LiveEvent::new(position, name, data, thread, Audience { only, by, shows, mentions })))
}

/// What became of a file: its owner and administration hear it, since whoever knows the id of a file may read it.
fn file_event<V: TableReads>(db: &Db<V>, number: u64, entry: &JournalEntry) -> Result<Option<LiveEvent>, QueryError> {
    let space = db.space_id(entry.space)?;
    let file = match db.event(entry.seq)? {
        Some(row) => db.file_of_event(&row.id)?,
        None => None,
    };
    let record = file.map(|file| db.file(&space, file)).transpose()?.flatten();
    let (Some(file), Some(record)) = (file, record) else { return Ok(None) };
    let name = if entry.kind == JournalKind::Applied { "file.created" } else { "file.changed" };
    let owner = record.owner;
    let viewer = Viewer::unrestricted(space, entry.space);
    let data = json(&show_file(db, &viewer, file, record)?);
    let position = Some(Position { epoch: db.epoch()?, number });
    let audience = Audience { only: Some(vec![owner]), by: owner, shows: None, mentions: Vec::new() };
    Ok(Some(LiveEvent::new(position, name, data, None, audience)))
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn mentioned<V: TableReads>(db: &Db<V>, seq: Seq) -> Result<Vec<EventId>, QueryError> {
    let Some(envelope) = db.opened(seq)? else { return Ok(Vec::new()) };
    let mentions = envelope.references.iter().filter(|reference| reference.role == Role::Mention);
    Ok(mentions.map(|reference| reference.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Identity;

    /// The sizes of the batches that come of so many entries of this length.
    fn batches(entries: usize, length: usize) -> Vec<usize> {
        let (hub, topic) = (LiveHub::default(), Topic::Space(SpaceNo(1)));
        let (mut receiver, mut outgoing) = (hub.subscribe(topic), Outgoing::default());
        for _ in 0..entries {
            let (data, by) = ("x".repeat(length), Identity([1; 32]));
            let audience = Audience { only: None, by, shows: None, mentions: Vec::new() };
            let live_event = LiveEvent::new(None, "typing", data, None, audience);
            outgoing.add(&hub, topic, Arc::new(live_event));
        }
        outgoing.flush(&hub);
        std::iter::from_fn(|| receiver.try_recv().ok())
            .map(|batch| match &*batch {
                LiveBatch::Events(events) => events.len(),
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
