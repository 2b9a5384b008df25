//! What there is to say of an applied event: whether it counts, and what became of its content.

use super::waiting::{HuntState, hunted};
use engine::protocol::space::counting::{membership, permission};
use engine::reads::{Reads as _, SpaceReads as _, StoreResult};
use engine::rows::{ContentLocation, EventRow, Meta};
use model::stage::ContentState;
use model::{EventId, Need, Position, Stamp};
use serde::Serialize;
use store::Db;
use store::tables::Snapshot;

/// How many authorities that stand on each other are followed.
const AUTHORITIES_MAX: usize = 32;

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

/// Why an applied event does not count.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum NotCounting {
    /// The membership it stands on had ended.
    Ended {
        authority: String,
        /// What ended it.
        by: String,
        /// From when on.
        from: u64,
    },
    /// The membership it stands on had been lessened too far.
    Lessened {
        authority: String,
        /// What lessened it.
        by: String,
        /// To which role.
        to: String,
    },
    /// The membership it stands on does not count itself.
    Authority {
        authority: String,
        /// Why that does not count.
        because: Option<Box<NotCounting>>,
    },
    /// What it stands on is being looked at again.
    Pending,
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
        (Some(meta), Some(stamp)) if !counts => Some(why_not(db, meta, stamp, AUTHORITIES_MAX)?),
        _ => None,
    };
    let position = Position { epoch: db.epoch()?, number: position }.to_string();
    let content = content_note(db, row, at)?;
    Ok(Applied { position, at, counts, not_counting, content })
}

fn why_not(db: &Db<Snapshot>, meta: &Meta, stamp: Stamp, depth: usize) -> StoreResult<NotCounting> {
    let found = match meta.authority {
        Some(authority) => db.event(authority)?.map(|row| (authority, row)),
        None => None,
    };
    let Some((standing_on, row)) = found else {
        return Ok(NotCounting::Pending);
    };
    let authority = row.id.to_string();
    if let (Some(above), Some(at)) = (&row.meta, row.stamp())
        && !above.counts
    {
        let because = if depth == 0 { None } else { Some(Box::new(why_not(db, above, at, depth - 1)?)) };
        return Ok(NotCounting::Authority { authority, because });
    }
    let act = permission(db, meta)?;
    let mut role = membership(db, standing_on)?.role;
    for limit in db.limits(standing_on, stamp)? {
        let by = limit.from.id.to_string();
        match limit.cap {
            None => return Ok(NotCounting::Ended { authority, by, from: limit.from.at.0 }),
            Some(cap) => role = role.min(cap),
        }
        if !act.is_permitted(role) {
            return Ok(NotCounting::Lessened { authority, by, to: role.to_string() });
        }
    }
    // A change of rights is a task of its own; until it has run, rows and rights may differ.
    Ok(NotCounting::Pending)
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
        Some(ContentLocation::File) => "file",
        Some(ContentLocation::Absent) | None => "absent",
    })
}
