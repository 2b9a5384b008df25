//! Waking what waited, and ending what waited too long.

use crate::change::{Change, RowChange};
use crate::content::EventDraft;
use crate::policy::Policy;
use crate::protocol;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::rows::{EventRow, Owner, Task};
use model::planted::{PlantedBug, is_planted};
use model::stage::{ContentState, RefusalReason, Stage, StageInput};
use model::{Group, Nanos, Need, Seq, SpaceId};
use std::collections::BTreeSet;

/// Up to this many are woken in the very step that met their need; more are a task of their own.
const WOKEN_AT_ONCE_MAX: usize = 64;

/// What follows when several needs are met at once: as [`met`], but who waits for two of them is woken once.
pub fn met_together(db: &impl Reads, policy: &Policy, needs: Vec<Need>) -> StoreResult<Vec<Change>> {
    let mut woken = BTreeSet::new();
    let mut changes = Vec::new();
    for need in needs {
        let at_once = WOKEN_AT_ONCE_MAX.min(policy.releases_max);
        let mut waiting = db.waiting(&need, Seq(0), at_once + 1)?;
        if waiting.len() > at_once || waiting.iter().any(|seq| woken.contains(seq)) && !rechecks_all(db, &waiting)? {
            changes.push(Change::Task(RowChange::Put, Task::Release(need)));
            continue;
        }
        waiting.retain(|seq| woken.insert(*seq));
        changes.extend(wake_all(db, &need, &waiting)?);
    }
    Ok(changes)
}

/// Whether all of these are woken by any of their needs.
fn rechecks_all(db: &impl Reads, seqs: &[Seq]) -> StoreResult<bool> {
    for seq in seqs {
        let kind = db.event(*seq)?.and_then(|row| row.meta).map(|meta| meta.kind);
        if !protocol::rechecks_on_each(kind) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What follows when a need is met: those that wait for it are woken, now or as a task.
pub fn met(db: &impl Reads, policy: &Policy, need: Need) -> StoreResult<Vec<Change>> {
    let at_once = WOKEN_AT_ONCE_MAX.min(policy.releases_max);
    let waiting = db.waiting(&need, Seq(0), at_once + 1)?;
    if waiting.len() > at_once {
        return Ok(vec![Change::Task(RowChange::Put, Task::Release(need))]);
    }
    wake_all(db, &need, &waiting)
}

fn wake_all(db: &impl Reads, need: &Need, waiting: &[Seq]) -> StoreResult<Vec<Change>> {
    let mut changes = Vec::with_capacity(waiting.len() * 4);
    for seq in waiting {
        match wake(db, need, *seq) {
            // One that cannot be read stands in nobody's way.
            Err(StoreError::Broken(why)) => {
                changes.push(Change::Waiting(RowChange::Remove, need.clone(), *seq, None));
                changes.extend(park(db, *seq, why)?);
            }
            woken => changes.extend(woken?),
        }
    }
    Ok(changes)
}

/// Leaves an event alone on which a step broke an invariant: it waits for nothing, and is looked at again when somebody
/// asks. If its row can be read, it says why; otherwise only the list of what is parked does.
pub fn park(db: &impl Reads, seq: Seq, why: String) -> StoreResult<Vec<Change>> {
    let mut changes = vec![Change::Ready(RowChange::Remove, seq), Change::Parked(RowChange::Put, seq, why.clone())];
    if let Ok(Some(row)) = db.event(seq) {
        if let Stage::Held { unmet, until, .. } = &row.stage {
            let space = space_of(db, seq, &row).unwrap_or_default();
            changes.extend(unmet.iter().map(|need| Change::Waiting(RowChange::Remove, need.clone(), seq, space)));
            changes.push(Change::Held(RowChange::Remove, owner_of(&row), seq, *until));
        }
        if let Ok(stage) = row.stage.clone().next(StageInput::Park(why)) {
            changes.push(Change::Row(seq, Box::new(EventRow { stage, ..row })));
        }
    }
    changes.push(Change::Count("parked"));
    Ok(changes)
}

fn wake(db: &impl Reads, need: &Need, seq: Seq) -> StoreResult<Vec<Change>> {
    let Some(mut row) = db.event(seq)? else { return Err(no_row(seq)) };
    let space = space_of(db, seq, &row)?;
    if protocol::rechecks_on_each(row.meta.as_ref().map(|meta| meta.kind)) {
        return wake_to_recheck(seq, row, space);
    }
    let mut changes = vec![Change::Waiting(RowChange::Remove, need.clone(), seq, space)];
    let (owner, until) = (owner_of(&row), held_until(&row));
    row.stage = row.stage.next(StageInput::Met(need.clone())).map_err(|edge| StoreError::Broken(edge.to_string()))?;
    if row.stage == Stage::Ready {
        changes.push(Change::Held(RowChange::Remove, owner, seq, until));
        changes.push(Change::Ready(RowChange::Put, seq));
    }
    changes.push(Change::Row(seq, Box::new(row)));
    Ok(changes)
}

/// Wakes an event for which one of its needs may be enough: POST looks at all of them again.
fn wake_to_recheck(seq: Seq, mut row: EventRow, space: Option<SpaceId>) -> StoreResult<Vec<Change>> {
    let Stage::Held { unmet, until, .. } = row.stage.clone() else { return Ok(Vec::new()) };
    let owner = owner_of(&row);
    row.stage = row.stage.next(StageInput::Wake).map_err(|edge| StoreError::Broken(edge.to_string()))?;
    let mut changes: Vec<Change> =
        unmet.into_iter().map(|need| Change::Waiting(RowChange::Remove, need, seq, space)).collect();
    changes.push(Change::Held(RowChange::Remove, owner, seq, until));
    changes.push(Change::Ready(RowChange::Put, seq));
    changes.push(Change::Row(seq, Box::new(row)));
    Ok(changes)
}

/// What a request to look again at an event comes to.
#[derive(Default, Debug)]
pub struct Retry {
    /// The groups to hunt for now.
    pub hunts: Vec<Group>,
    /// What changes in the event.
    pub changes: Vec<Change>,
}

/// Looks again at an event, and says what to hunt for now. Every commit that meets a need wakes who waits for it, so
/// looking again finds nothing new unless a row is wrong; an event that really waits keeps its deadline.
pub fn retry(db: &impl Reads, seq: Seq, now: Nanos) -> StoreResult<Retry> {
    let Some(row) = db.event(seq)? else { return Ok(Retry::default()) };
    if let Stage::Parked { .. } = &row.stage {
        let mut draft = EventDraft::new(seq, row);
        draft.row.stage =
            draft.row.stage.next(StageInput::Wake).map_err(|edge| StoreError::Broken(edge.to_string()))?;
        draft.changes.push(Change::Parked(RowChange::Remove, seq, String::new()));
        draft.changes.push(Change::Ready(RowChange::Put, seq));
        return Ok(Retry { hunts: Vec::new(), changes: draft.finish() });
    }
    let Some(space) = space_of(db, seq, &row)? else { return Ok(Retry::default()) };
    let Stage::Held { unmet, until, .. } = row.stage.clone() else {
        let is_missing = row.content == ContentState::Missing;
        let missing = row.meta.filter(|_| is_missing).map(|meta| Group::Content(space, meta.content_hash));
        return Ok(Retry { hunts: missing.into_iter().collect(), changes: Vec::new() });
    };
    let hunts = unmet.iter().filter_map(|need| Group::of(need, space)).collect();
    if !is_any_met(db, &unmet, &space, now)? {
        return Ok(Retry { hunts, changes: Vec::new() });
    }
    let owner = owner_of(&row);
    let mut draft = EventDraft::new(seq, row);
    draft.row.stage = draft.row.stage.next(StageInput::Wake).map_err(|edge| StoreError::Broken(edge.to_string()))?;
    draft.changes.extend(unmet.into_iter().map(|need| Change::Waiting(RowChange::Remove, need, seq, Some(space))));
    draft.changes.push(Change::Held(RowChange::Remove, owner, seq, until));
    draft.changes.push(Change::Ready(RowChange::Put, seq));
    Ok(Retry { hunts, changes: draft.finish() })
}

fn is_any_met(db: &impl Reads, unmet: &[Need], space: &SpaceId, now: Nanos) -> StoreResult<bool> {
    for need in unmet {
        if is_met(db, need, Some(space), now)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an event of that space need not wait for this any more: it is here, or will never come.
pub fn is_met(db: &impl Reads, need: &Need, space: Option<&SpaceId>, now: Nanos) -> StoreResult<bool> {
    Ok(match need {
        Need::Event(id) => match db.seq(id)? {
            Some(other) => db.event(other)?.is_some_and(|row| row.is_applied()),
            None => db.refused(id)?.is_some(),
        },
        Need::Key(key) => space.is_some_and(|space| db.space_key(space, key).is_some()),
        Need::Time(at) => *at <= now,
        Need::Address { .. } | Need::GitObject { .. } | Need::GitData { .. } => protocol::nostr::is_met(db, need)?,
        Need::Content(..) => false,
        #[cfg(feature = "simulation")]
        Need::Probe { .. } => crate::protocol::probe::is_met(db, need)?,
    })
}

fn no_row(seq: Seq) -> StoreError {
    StoreError::Broken(format!("{seq} waits for something but has no row"))
}

/// Who answers for a held event.
pub fn owner_of(row: &EventRow) -> Owner {
    match &row.meta {
        Some(meta) => Owner::Author(meta.author),
        None => Owner::Door(row.origin),
    }
}

/// Until when an event is held.
fn held_until(row: &EventRow) -> Nanos {
    match &row.stage {
        Stage::Held { until, .. } => *until,
        Stage::Ready | Stage::Applied { .. } | Stage::Carried | Stage::Refused { .. } => Nanos(0),
        Stage::Expired | Stage::Parked { .. } => Nanos(0),
    }
}

/// The space of a known event: from its envelope if it was opened, otherwise from the outside of its blob.
pub fn space_of(db: &impl Reads, seq: Seq, row: &EventRow) -> StoreResult<Option<SpaceId>> {
    if let Some(meta) = &row.meta {
        return db.space_id(meta.space).map(Some);
    }
    Ok(db.kept(seq)?.and_then(|kept| kept.blob.form().named_space()))
}

/// Takes an event out of everything that says it waits, and gives back what it holds.
pub(crate) fn withdraw(db: &impl Reads, policy: &Policy, seq: Seq, row: &EventRow) -> StoreResult<Vec<Change>> {
    let mut changes = Vec::new();
    if let Stage::Held { unmet, until, .. } = &row.stage {
        let space = space_of(db, seq, row)?;
        changes.extend(unmet.iter().map(|need| Change::Waiting(RowChange::Remove, need.clone(), seq, space)));
        changes.push(Change::Held(RowChange::Remove, owner_of(row), seq, *until));
    }
    if let Some(meta) = &row.meta {
        changes.push(Change::Usage(RowChange::Remove, meta.space, meta.author, row.content, meta.content_len));
        if row.content.holds_reference() && meta.content_len > policy.inline_bytes_max {
            changes.push(Change::GiveBack(meta.space, meta.content_hash));
        }
    }
    Ok(changes)
}

/// Prolongs the wait of a held event, and never shortens it; any other is left as it is. Says whether it did.
pub fn renew(draft: &mut EventDraft, until: Nanos) -> StoreResult<bool> {
    let Stage::Held { until: before, .. } = draft.row.stage else { return Ok(false) };
    if until <= before {
        return Ok(false);
    }
    let (owner, seq) = (owner_of(&draft.row), draft.seq);
    let stage = draft.row.stage.clone().next(StageInput::Renew(until));
    draft.row.stage = stage.map_err(|edge| StoreError::Broken(edge.to_string()))?;
    draft.changes.push(Change::Held(RowChange::Remove, owner, seq, before));
    draft.changes.push(Change::Held(RowChange::Put, owner, seq, until));
    Ok(true)
}

/// Ends the wait of an event: nothing of it is kept, and it may come again.
pub fn expire(db: &impl Reads, policy: &Policy, seq: Seq, now: Nanos) -> StoreResult<Vec<Change>> {
    let Some(row) = db.event(seq)? else {
        return Err(no_row(seq));
    };
    row.stage.clone().next(StageInput::Expire).map_err(|edge| StoreError::Broken(edge.to_string()))?;
    let mut changes = withdraw(db, policy, seq, &row)?;
    changes.extend(protocol::end_of_wait(db, seq, &row)?);
    if is_planted(PlantedBug::ExpiredStillKnown) {
        changes.push(Change::Refused(row.id, RefusalReason::NeedsRefused));
    }
    changes.push(Change::Forget(seq, row.id));
    changes.push(Change::Expired(row.id, now));
    changes.push(Change::Count("expired"));
    Ok(changes)
}

/// Ends the carrying of an event, by quota.
pub fn drop_carried(db: &impl Reads, space: &SpaceId, seq: Seq, now: Nanos) -> StoreResult<Vec<Change>> {
    let Some(row) = db.event(seq)? else {
        return Err(no_row(seq));
    };
    Ok(vec![
        Change::Carried(RowChange::Remove, *space, seq),
        Change::Forget(seq, row.id),
        Change::Expired(row.id, now),
        Change::Count("carried-dropped"),
    ])
}

/// Refuses an event for ever; what needs it is woken, to be refused in turn.
pub fn refuse(
    db: &impl Reads,
    policy: &Policy,
    draft: EventDraft,
    opened: bool,
    why: RefusalReason,
) -> StoreResult<Vec<Change>> {
    let id = draft.row.id;
    let mut changes = draft.changes;
    // As a parent it is found, if not of any use: nobody asks for it again.
    if let Some(meta) = &draft.row.meta
        && db.is_gap(meta.space, meta.author, &id)?
    {
        changes.push(Change::Gap(RowChange::Remove, meta.space, meta.author, id));
    }
    if opened {
        changes.extend(withdraw(db, policy, draft.seq, &draft.row)?);
    }
    changes.push(Change::Forget(draft.seq, id));
    changes.push(Change::Refused(id, why));
    changes.push(Change::Count("refused"));
    if !is_planted(PlantedBug::RefusalDoesNotSpread) {
        changes.extend(met(db, policy, Need::Event(id))?);
    }
    Ok(changes)
}

/// Wakes a bounded part of those that wait for these needs, which are met: the first to have come, whichever of the needs
/// they wait for. Events that came together lie together, so that a page of their rows is written once for all of them.
pub(crate) fn release(db: &impl Reads, policy: &Policy, needs: &[Need]) -> StoreResult<Vec<Change>> {
    let most = policy.releases_max;
    let sleepers = sleepers_of(db, needs, most)?;
    let cut = first_cut(&sleepers).map(|(_, last)| last);
    let mut waking: Vec<(Seq, usize)> = Vec::new();
    for (number, of_need) in sleepers.iter().enumerate() {
        waking.extend(of_need.seqs_until(cut).map(|seq| (seq, number)));
    }
    waking.sort_unstable();
    // One that waits for two of them is woken by the second next time: the first changes the row that it reads.
    waking.dedup_by_key(|(seq, _)| *seq);
    waking.truncate(most);
    let mut woken = vec![Vec::new(); needs.len()];
    waking.iter().for_each(|(seq, number)| woken[*number].push(*seq));
    let mut changes = Vec::with_capacity(waking.len() * 4);
    for ((need, sleepers), woken) in needs.iter().zip(&sleepers).zip(&woken) {
        changes.extend(wake_all(db, need, woken)?);
        let is_last = !sleepers.has_more && woken.len() == sleepers.seqs.len();
        if is_last || is_planted(PlantedBug::ReleaseRestForgotten) {
            changes.push(Change::Task(RowChange::Remove, Task::Release(need.clone())));
        }
    }
    Ok(changes)
}

/// The first of those that wait for a need, in the order in which they came.
struct Sleepers {
    seqs: Vec<Seq>,
    /// Whether there may be more of them.
    has_more: bool,
}

impl Sleepers {
    fn seqs_until(&self, cut: Option<Seq>) -> impl Iterator<Item = Seq> {
        self.seqs.iter().copied().take_while(move |seq| cut.is_none_or(|cut| *seq <= cut))
    }
}

/// The list that ends first of those that go on, and its end: beyond it, others are not known to come before its own.
fn first_cut(lists: &[Sleepers]) -> Option<(usize, Seq)> {
    let cuts = lists.iter().enumerate().filter(|(_, list)| list.has_more);
    cuts.filter_map(|(number, list)| list.seqs.last().map(|last| (number, *last))).min_by_key(|(_, last)| *last)
}

/// Those that wait for each of the needs, as many as are necessary to know the first so many of all. A list that ends too
/// early is read on, each time for as long as it is.
fn sleepers_of(db: &impl Reads, needs: &[Need], most: usize) -> StoreResult<Vec<Sleepers>> {
    let part = (most * 2 / needs.len().max(1)).clamp(1, most);
    let mut lists = Vec::with_capacity(needs.len());
    for need in needs {
        let seqs = db.waiting(need, Seq(0), part)?;
        lists.push(Sleepers { has_more: seqs.len() == part, seqs });
    }
    while let Some((number, cut)) = first_cut(&lists) {
        if lists.iter().map(|list| list.seqs_until(Some(cut)).count()).sum::<usize>() >= most {
            break;
        }
        let more = lists[number].seqs.len();
        let seqs = db.waiting(&needs[number], cut, more)?;
        lists[number].has_more = seqs.len() == more;
        lists[number].seqs.extend(seqs);
    }
    Ok(lists)
}

/// Wakes a bounded part of what was carried of a space that was joined.
pub(crate) fn join(db: &impl Reads, policy: &Policy, space: SpaceId, after: Seq) -> StoreResult<Vec<Change>> {
    let carried = db.carried(&space, after, policy.releases_max)?;
    let mut changes = vec![Change::Task(RowChange::Remove, Task::Join(space, after))];
    for seq in &carried {
        let mut row = match db.event(*seq) {
            Ok(Some(row)) => row,
            Err(fault @ (StoreError::Store(_) | StoreError::Full)) => return Err(fault),
            unreadable => {
                changes.push(Change::Carried(RowChange::Remove, space, *seq));
                changes.extend(park(db, *seq, unreadable.err().unwrap_or_else(|| no_row(*seq)).to_string())?);
                continue;
            }
        };
        row.stage = row.stage.next(StageInput::Wake).map_err(|edge| StoreError::Broken(edge.to_string()))?;
        changes.push(Change::Carried(RowChange::Remove, space, *seq));
        changes.push(Change::Ready(RowChange::Put, *seq));
        changes.push(Change::Row(*seq, Box::new(row)));
    }
    if let (Some(last), true) = (carried.last(), carried.len() == policy.releases_max) {
        changes.push(Change::Task(RowChange::Put, Task::Join(space, *last)));
    }
    Ok(changes)
}
