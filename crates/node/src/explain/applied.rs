//! What there is to say of an applied event: whether it counts, and what became of its content.

use super::space::{self, NotCounting};
use super::waiting::{HuntState, hunted};
use engine::reads::{Reads as _, StoreResult};
use engine::rows::{ContentLocation, EventKind, EventRow, Meta};
use model::stage::ContentState;
use model::{EventId, Need, Position, Stamp};
use serde::Serialize;
use store::Db;
use store::tables::Snapshot;

/// An applied event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Applied {
    /// Its place in the journal.
    pub position: String,
    /// When it was applied; none if its journal entry was trimmed.
    pub at: Option<u64>,
    /// Whether it counts.
    pub counts: bool,
    /// Why it does not.
    pub not_counting: Option<NotCounting>,
    pub content: ContentNote,
}

/// The content of an applied event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ContentNote {
    /// Its state, in one word.
    pub state: &'static str,
    /// How many bytes travel.
    pub bytes: u64,
    pub hash: String,
    /// Where the bytes are: `empty`, `inline`, `database`, `file` or `absent`.
    pub place: &'static str,
    /// The delete that deleted it.
    pub deleted_by: Option<String>,
    /// Since when it is missing.
    pub missing_since: Option<u64>,
    /// When it is hunted, if it is missing.
    pub hunted: Option<HuntState>,
}

pub(super) fn applied(db: &Db<Snapshot>, row: &EventRow, position: u64) -> StoreResult<Applied> {
    let entry = db.journal(None, position.saturating_sub(1), 1)?;
    let at = entry.first().filter(|(number, _)| *number == position).map(|(_, entry)| entry.at.0);
    let counts = row.meta.as_ref().is_some_and(|meta| meta.counts);
    let not_counting = match (&row.meta, row.stamp()) {
        (Some(meta), Some(stamp)) if !counts => why_not(db, meta, stamp)?,
        _ => None,
    };
    let position = Position { epoch: db.epoch()?, number: position }.to_string();
    let content = content_note(db, row, at)?;
    Ok(Applied { position, at, counts, not_counting, content })
}

/// Why an event does not count, by the rules of its protocol.
fn why_not(db: &Db<Snapshot>, meta: &Meta, stamp: Stamp) -> StoreResult<Option<NotCounting>> {
    match meta.kind {
        EventKind::Space(_) => space::why_not(db, meta, stamp).map(Some),
        EventKind::Nostr(_) => Ok(None),
        #[cfg(feature = "simulation")]
        EventKind::Probe(_) => Ok(None),
    }
}

fn content_note(db: &Db<Snapshot>, row: &EventRow, applied_at: Option<u64>) -> StoreResult<ContentNote> {
    let (bytes, hash) =
        row.meta.as_ref().map_or((0, String::new()), |meta| (meta.content_len, meta.content_hash.to_string()));
    let is_missing = row.content == ContentState::Missing;
    let need = match &row.meta {
        Some(meta) if is_missing => Some(Need::Content(db.space_id(meta.space)?, meta.content_hash)),
        Some(_) | None => None,
    };
    Ok(ContentNote {
        state: row.content.word(),
        bytes,
        hash,
        place: place(db, row)?,
        deleted_by: match row.content {
            ContentState::Deleted { by } => Some(EventId::to_string(&by.id)),
            ContentState::Missing | ContentState::Processed | ContentState::Invalid | ContentState::Pruned => None,
        },
        missing_since: is_missing.then(|| applied_at.unwrap_or(row.received_at.0)),
        hunted: need.map(|need| hunted(db, &need, None)).transpose()?.flatten(),
    })
}

fn place(db: &Db<Snapshot>, row: &EventRow) -> StoreResult<&'static str> {
    let Some(meta) = &row.meta else { return Ok("absent") };
    if meta.content_len == 0 {
        return Ok("empty");
    }
    if meta.content_len <= db.policy().inline_bytes_max {
        return Ok(if row.has_inline { "inline" } else { "absent" });
    }
    Ok(match db.content(meta.space, &meta.content_hash)?.map(|content| content.place) {
        Some(ContentLocation::Row) => "database",
        Some(ContentLocation::Object(_)) => "object",
        Some(ContentLocation::Absent) | None => "absent",
    })
}
