//! Bringing what can be read of a damaged folder into a new one. Its events pass STORE and POST anew, so that what comes
//! out is in order whatever is missing: an event whose need was lost waits for it, and is fetched like any other.

use crate::large_content::{BeginObject, Deliver, StagedContent};
use crate::writer::WriterCore;
use crate::writer::node_commands::{Arrive, Prune, SaveWebhookProgress};
use crate::writer_command::{AskError, RequestError};
use engine::chains;
use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::rows::{ContentLocation, Outcome};
use model::crypto::content_hash;
use model::limits::CONTENT_BYTES_MAX;
use model::{ContentHash, EventId, Nanos, Seq, SpaceId, SpaceNo};
use objects::{ContentWriter, ObjectError, WriteForm, WrittenContent};
use std::ops::RangeInclusive;
use store::Db;
use store::events::content::DeliverResult;
use store::maintenance::salvage::KeptEvent;
use store::shared::webhooks::WebhookProgress;
use store::tables::Snapshot;

/// How many events one transaction takes.
const EVENTS_PER_BATCH: u64 = 1000;

/// What was brought into the new folder.
#[derive(Clone, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct Salvaged {
    pub events: u64,
    pub contents: u64,
    /// Events that are here but wait for something, which may have been lost.
    pub held: u64,
    /// What could not be read.
    pub damaged: Vec<String>,
}

/// Brings events and content of one folder into another, which has its keys already.
pub fn salvage(
    from: &Db<Snapshot>,
    into: &WriterCore,
    now: Nanos,
    progress: &mut dyn FnMut(&Salvaged),
) -> StoreResult<Salvaged> {
    let mut done = Salvaged::default();
    let (numbers, mut dropped) = (from.event_numbers(), Vec::new());
    let mut first = *numbers.start();
    // One by one: where a page of the database is damaged, going through them in order ends.
    while first <= *numbers.end() {
        let last = first.saturating_add(EVENTS_PER_BATCH - 1).min(*numbers.end());
        bring_events(from, into, first..=last, now, &mut done, &mut dropped)?;
        progress(&done);
        first = last + 1;
    }
    into.settle(now)?;
    // Before content comes: what files refer to is wanted then.
    into.store().write(now, |batch| batch.rebuild_file_lists())?;
    for (space, number, hash) in from.kept_contents()? {
        match bring_content(from, into, (space, number), hash, now) {
            Ok(delivered) => {
                done.contents += u64::from(delivered == Some(DeliverResult::Stored));
                progress(&done);
            }
            Err(StoreError::Broken(_)) => done.damaged.push(format!("the content {hash} of space {space}")),
            Err(fault) => return Err(fault),
        }
    }
    for id in dropped {
        into.ask(Prune(id), now).map_err(as_fault)?;
    }
    into.settle(now)?;
    go_on_with_webhooks(from, into, now)?;
    into.store().write(now, |batch| batch.restart_jobs())?;
    done.held = into.store().snapshot()?.held_total()?;
    Ok(done)
}

/// Brings one content, whatever its size. None if its key was destroyed.
fn bring_content(
    from: &Db<Snapshot>,
    into: &WriterCore,
    (space, number): (SpaceId, SpaceNo),
    hash: ContentHash,
    now: Nanos,
) -> StoreResult<Option<DeliverResult>> {
    let changed = || StoreError::Broken(format!("the content {hash} has other bytes"));
    let content = match from.content(number, &hash)?.map(|row| row.place) {
        Some(ContentLocation::Object(name)) => {
            let Some(mut reader) = from.object_reader(number, &hash, name)? else { return Ok(None) };
            let object = into.ask(BeginObject { space, hash }, now).map_err(as_fault)?;
            let form = object.key.map_or(WriteForm::AsItTravels, WriteForm::Encrypted);
            let backend = into.store().disk().objects();
            let copy = || -> Result<WrittenContent, ObjectError> {
                let mut writer = ContentWriter::new(backend.as_ref(), object.name, form, CONTENT_BYTES_MAX)?;
                reader.read::<ObjectError>(0..u64::MAX, &mut |piece| writer.write(piece))?;
                writer.finish()
            };
            match copy() {
                Ok(written) if written.hash == hash => StagedContent::Object(object.name, written.len),
                Ok(_) => return Err(changed()),
                Err(ObjectError::Full) => return Err(StoreError::Full),
                Err(why) => return Err(StoreError::Broken(why.to_string())),
            }
        }
        Some(ContentLocation::Row) => match from.content_bytes(number, &hash, u64::MAX)? {
            Some(bytes) if content_hash(&bytes) == hash => StagedContent::Bytes(bytes),
            Some(_) => return Err(changed()),
            None => return Ok(None),
        },
        Some(ContentLocation::Absent) | None => return Ok(None),
    };
    into.ask(Deliver { space, hash, content }, now).map(Some).map_err(as_fault)
}

/// Positions of the journal are others now: webhooks tell what comes from now on.
fn go_on_with_webhooks(from: &Db<Snapshot>, into: &WriterCore, now: Nanos) -> StoreResult<()> {
    let db = into.store().snapshot()?;
    let position = db.position()?;
    for (space, webhook, _) in db.webhooks(None)? {
        let before = from.webhook(&space, &webhook).ok().flatten();
        let disabled = before.and_then(|before| before.progress.disabled);
        let progress = WebhookProgress { disabled, ..WebhookProgress::told_up_to(position) };
        into.ask(SaveWebhookProgress { space, webhook, progress }, now).map_err(as_fault)?;
    }
    Ok(())
}

fn bring_events(
    from: &Db<Snapshot>,
    into: &WriterCore,
    numbers: RangeInclusive<u64>,
    now: Nanos,
    done: &mut Salvaged,
    dropped: &mut Vec<EventId>,
) -> StoreResult<()> {
    let store = into.store();
    let mut arrivals = Vec::new();
    for seq in numbers.map(Seq) {
        // A row that is damaged was named when all rows were looked at.
        let Ok(Some(KeptEvent { id, blob, inline, origin, is_dropped })) = from.kept_event(seq) else { continue };
        match chains::receive_blob(&**store.keys(), store.policy(), blob, inline, origin) {
            Ok(arrival) => arrivals.push(Arrive(Box::new(arrival))),
            Err(why) => done.damaged.push(format!("the event {id}: {why}")),
        }
        if is_dropped {
            dropped.push(id);
        }
    }
    for answer in into.run(arrivals, now)?.answers {
        let (id, outcome) = answer.map_err(as_fault)?;
        match outcome {
            Outcome::Applied(_) | Outcome::Held(..) | Outcome::Carried(_) | Outcome::Known(_) => done.events += 1,
            Outcome::Refused(why) => done.damaged.push(format!("the event {id}: {why}")),
            Outcome::TurnedAway(_) => {
                done.damaged.push(format!("the event {id}: there is no room for more that waits"))
            }
        }
    }
    Ok(())
}

fn as_fault(why: AskError<StoreError>) -> StoreError {
    match why {
        AskError::Refused(fault) => fault,
        AskError::NotRun(RequestError::Full) => StoreError::Full,
        AskError::NotRun(why) => StoreError::Store(why.to_string()),
    }
}
