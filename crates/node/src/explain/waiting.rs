//! What is waited for, need by need.

use super::text;
use engine::fetch::NEVER;
use engine::reads::{Reads as _, StoreResult};
use model::stage::Stage;
use model::{EventId, Group, Need, Seq, SpaceId};
use serde::Serialize;
use store::Db;
use store::tables::Snapshot;

/// How many that wait for one need are counted.
const COUNTED_MAX: usize = 100_000;
/// How many of those that wait for a need are named.
const NAMED_MAX: usize = 3;
/// How many of those that wait for a need are asked for their space.
const SPACES_LOOKED_AT_MAX: usize = 8;

/// When a group is hunted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HuntState {
    /// What is hunted together.
    #[serde(serialize_with = "text")]
    pub group: Group,
    /// How many hunts in a row left something unmet.
    pub attempts: u32,
    /// When the latest of them began.
    pub last: Option<u64>,
    /// When the next one is due; none while nobody is known who could be asked.
    pub next: Option<u64>,
}

/// The schedule of the group that brings a need; none for what nobody hunts.
pub(super) fn hunted(db: &Db<Snapshot>, need: &Need, space: Option<SpaceId>) -> StoreResult<Option<HuntState>> {
    let group = match (need, space) {
        (Need::Content(space, hash), _) => Some(Group::Content(*space, *hash)),
        (_, Some(space)) => Group::of(need, space),
        (_, None) => None,
    };
    let Some(group) = group else { return Ok(None) };
    let row = db.schedule_row(&group)?;
    Ok(row.map(|row| HuntState {
        group,
        attempts: row.attempts,
        last: row.last,
        next: Some(row.next).filter(|next| *next != NEVER),
    }))
}

/// A need and those that wait for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HeldNeed {
    /// What is waited for.
    #[serde(serialize_with = "text")]
    pub need: Need,
    /// How many events wait for it.
    pub waiting: u64,
    /// Whether there may be more than were counted.
    pub and_more: bool,
    /// Since when the first of them waits.
    pub since: u64,
    /// When it is hunted; none for what only time or a person brings.
    pub hunted: Option<HuntState>,
    /// The first of those that wait.
    pub first: Vec<WaitingItem>,
}

/// Something that waits.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WaitingItem {
    #[serde(serialize_with = "text")]
    pub id: EventId,
    /// What it is; none while nobody here can open it.
    pub kind: Option<String>,
}

/// Which needs are wanted.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HeldFilter {
    /// Needs of this word only, such as `event` or `content`.
    pub word: Option<String>,
    /// Needs of events of this space only.
    pub space: Option<SpaceId>,
}

/// What is waited for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct HeldList {
    /// How many events are held in total.
    pub held: u64,
    /// The needs, in the order of their text.
    pub needs: Vec<HeldNeed>,
    /// Whether there are more needs than were listed.
    pub and_more: bool,
}

/// Lists what is waited for: what holds events first, then content that applied events miss.
pub fn held(db: &Db<Snapshot>, most: usize, filter: &HeldFilter) -> StoreResult<HeldList> {
    let mut list = HeldList { held: db.held_total()?, ..HeldList::default() };
    let mut last = None;
    while let Some(need) = db.next_need(last.as_ref())? {
        let waiting = db.waiting(&need, Seq(0), COUNTED_MAX)?;
        if !add(db, &mut list, most, filter, &need, &waiting)? {
            return Ok(list);
        }
        last = Some(need);
    }
    let mut last = None;
    while let Some((space, hash)) = db.next_missing(last)? {
        let waiting = db.waiting_for_content(space, &hash, Seq(0), COUNTED_MAX)?;
        let need = Need::Content(db.space_id(space)?, hash);
        if !add(db, &mut list, most, filter, &need, &waiting)? {
            return Ok(list);
        }
        last = Some((space, hash));
    }
    Ok(list)
}

/// Adds a need if it fits the filter. Says whether there is room for more.
fn add(
    db: &Db<Snapshot>,
    list: &mut HeldList,
    most: usize,
    filter: &HeldFilter,
    need: &Need,
    waiting: &[Seq],
) -> StoreResult<bool> {
    if filter.word.as_ref().is_some_and(|word| word != need.word()) {
        return Ok(true);
    }
    let mut space = None;
    for seq in waiting.iter().take(SPACES_LOOKED_AT_MAX) {
        space = db.space_of(*seq)?;
        if filter.space.is_some() && space == filter.space {
            break;
        }
    }
    if filter.space.is_some() && space != filter.space {
        return Ok(true);
    }
    if list.needs.len() >= most {
        list.and_more = true;
        return Ok(false);
    }
    list.needs.push(HeldNeed {
        need: need.clone(),
        waiting: waiting.len() as u64,
        and_more: waiting.len() == COUNTED_MAX,
        since: oldest(db, waiting)?,
        hunted: hunted(db, need, space)?,
        first: waiting.iter().take(NAMED_MAX).map(|seq| named(db, *seq)).collect::<StoreResult<_>>()?,
    });
    Ok(true)
}

fn named(db: &Db<Snapshot>, seq: Seq) -> StoreResult<WaitingItem> {
    let kind = db.opened(seq)?.map(|envelope| envelope.kind.to_string());
    Ok(WaitingItem { id: db.id_of(seq)?, kind })
}

/// Since when the first of them waits: numbers are given in order of arrival.
pub(super) fn oldest(db: &Db<Snapshot>, waiting: &[Seq]) -> StoreResult<u64> {
    let Some(first) = waiting.first() else { return Ok(0) };
    Ok(db.event(*first)?.map_or(0, |row| match row.stage {
        Stage::Held { since, .. } => since.0,
        Stage::Ready | Stage::Applied { .. } | Stage::Refused { .. } => row.received_at.0,
        Stage::Expired | Stage::Carried | Stage::Parked { .. } => row.received_at.0,
    }))
}
