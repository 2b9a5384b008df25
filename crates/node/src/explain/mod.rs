//! Explaining: where an event stands and why, and what everything that waits is waiting for.
//!
//! [`explain()`] tells the story of one event from what is kept: nothing is asked of anybody, and nothing changes.
//! [`held()`] lists what is waited for, need by need. Times are Unix nanoseconds.

mod applied;
mod chain;
mod space;
mod waiting;

pub use applied::{Applied, ContentNote};
pub use chain::{NeedState, Unmet};
pub use space::NotCounting;
pub use waiting::{HeldFilter, HeldList, HeldNeed, HuntState, WaitingItem, held};

use engine::reads::{Reads as _, StoreResult};
use engine::rows::{EventRow, Origin};
use model::stage::Stage;
use model::{EventId, Seq};
use serde::{Serialize, Serializer};
use std::fmt;
use store::Db;
use store::tables::Snapshot;

/// How many of those that wait for an event are named.
const WAITERS_NAMED_MAX: usize = 10;
/// How many of them are counted.
const WAITERS_COUNTED_MAX: usize = 100_000;

/// Where an event stands, and why.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Explanation {
    #[serde(serialize_with = "text")]
    pub id: EventId,
    /// Where it stands.
    #[serde(flatten)]
    pub standing: StageExplanation,
    /// How it came, if it is kept.
    pub arrival: Option<ArrivalNote>,
    /// Who waits for it.
    pub waiters: Waiters,
}

/// The stage of an event with everything that can be said about it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "stage", rename_all = "lowercase")]
pub enum StageExplanation {
    /// It never came here, or nothing of it was kept.
    Unknown,
    /// It will never be valid.
    Refused { why: String },
    /// Its wait ended without what it needed. It may come again.
    Expired { at: u64 },
    /// Its last need was met; POST will look at it again.
    Ready,
    /// A step broke an invariant on it; it is left alone until somebody asks for another look.
    Parked { why: String },
    /// It is kept for others: nobody here can open it.
    Carried {
        /// The space it belongs to, as far as its outside tells.
        space: Option<String>,
    },
    /// It waits.
    Held {
        since: u64,
        /// When the wait ends if nothing comes.
        until: u64,
        needs: Vec<Unmet>,
        /// Events that wait for each other in a circle, so that none will ever be applied.
        cycles: Vec<Vec<String>>,
    },
    /// Its effects are in the views.
    Applied(Box<Applied>),
}

impl StageExplanation {
    /// The stage in one word.
    pub fn word(&self) -> &'static str {
        match self {
            StageExplanation::Unknown => "unknown",
            StageExplanation::Refused { .. } => "refused",
            StageExplanation::Expired { .. } => "expired",
            StageExplanation::Ready => "ready",
            StageExplanation::Carried { .. } => "carried",
            StageExplanation::Parked { .. } => "parked",
            StageExplanation::Held { .. } => "held",
            StageExplanation::Applied(_) => "applied",
        }
    }
}

/// How an event came.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ArrivalNote {
    /// Its number here.
    pub number: u64,
    /// When it came first.
    pub at: u64,
    /// Through which door.
    pub through: String,
    /// Its kind, once opened.
    pub kind: Option<String>,
}

/// Who waits for an event.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Waiters {
    pub count: u64,
    /// Whether there may be more than were counted.
    pub and_more: bool,
    pub first: Vec<String>,
}

/// Says where an event stands, and why.
pub fn explain(db: &Db<Snapshot>, id: &EventId) -> StoreResult<Explanation> {
    let waiters = waiters(db, id)?;
    let Some((seq, row)) = find(db, id)? else {
        return Ok(Explanation { id: *id, standing: absent(db, id)?, arrival: None, waiters });
    };
    let standing = match &row.stage {
        Stage::Held { unmet, since, until } => {
            let (needs, cycles) = chain::follow(db, id, seq, unmet)?;
            StageExplanation::Held { since: since.0, until: until.0, needs, cycles }
        }
        Stage::Ready => StageExplanation::Ready,
        Stage::Carried => StageExplanation::Carried { space: db.space_of(seq)?.map(|space| space.to_string()) },
        Stage::Applied { position } => StageExplanation::Applied(Box::new(applied::applied(db, &row, *position)?)),
        // Neither is kept; if a row says so all the same, so do we.
        Stage::Refused { why } => StageExplanation::Refused { why: why.to_string() },
        Stage::Expired => StageExplanation::Expired { at: 0 },
        Stage::Parked { why } => StageExplanation::Parked { why: why.clone() },
    };
    Ok(Explanation { id: *id, standing, arrival: Some(arrival(seq, &row)), waiters })
}

fn find(db: &Db<Snapshot>, id: &EventId) -> StoreResult<Option<(Seq, EventRow)>> {
    let Some(seq) = db.seq(id)? else { return Ok(None) };
    Ok(db.event(seq)?.map(|row| (seq, row)))
}

fn absent(db: &Db<Snapshot>, id: &EventId) -> StoreResult<StageExplanation> {
    if let Some(why) = db.refused(id)? {
        return Ok(StageExplanation::Refused { why: why.to_string() });
    }
    Ok(match db.expired_at(id)? {
        Some(at) => StageExplanation::Expired { at: at.0 },
        None => StageExplanation::Unknown,
    })
}

fn arrival(seq: Seq, row: &EventRow) -> ArrivalNote {
    ArrivalNote {
        number: seq.0,
        at: row.received_at.0,
        through: origin_text(row.origin),
        kind: row.meta.as_ref().map(|meta| meta.kind.to_string()),
    }
}

fn waiters(db: &Db<Snapshot>, id: &EventId) -> StoreResult<Waiters> {
    let waiting = db.waiting(&model::Need::Event(*id), Seq(0), WAITERS_COUNTED_MAX)?;
    let first = waiting.iter().take(WAITERS_NAMED_MAX).map(|seq| db.id_of(*seq).map(|id| id.to_string()));
    Ok(Waiters {
        count: waiting.len() as u64,
        and_more: waiting.len() == WAITERS_COUNTED_MAX,
        first: first.collect::<StoreResult<_>>()?,
    })
}

/// Serialises something as its text.
pub(crate) fn text<S: Serializer>(value: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// The word for how an event came in.
fn origin_text(origin: Origin) -> String {
    match origin {
        Origin::Local => "made here".into(),
        Origin::Import => "imported".into(),
        Origin::Client => "sent by a Nostr client".into(),
        Origin::Relay => "gathered from a Nostr relay".into(),
        Origin::Peer(peer) => format!("peer {peer}"),
    }
}
