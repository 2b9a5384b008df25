//! Hunting: the fetcher's session over the schedule of a store, and what may be asked.
//!
//! [`Hunter`] has no sockets. It looks at the schedule, says whom to ask for what, and hears how it went; the node's
//! loop asks real [`SourceClient`]s on threads, and the simulator asks other simulated nodes.

use super::reports::DomainState;
use engine::fetch::{self, Domain, DomainLimits, HuntInput, HuntMark, HuntOutput, Hunts, RequestId};
use engine::reads::StoreResult;
use model::{ContentHash, Group, Nanos, Need, SpaceId};
use std::collections::{BTreeMap, BTreeSet};
use store::Db;
use store::tables::Snapshot;

/// How many needs one request asks for.
pub const NEEDS_PER_REQUEST_MAX: usize = 500;
/// How many due groups are looked at in one go.
const GROUPS_PER_LOOK_MAX: usize = 256;

/// Who knows where the needs of a group may be asked for.
pub trait SourceDirectory {
    /// The places, in order of preference, as of that snapshot.
    fn places(&self, db: &Db<Snapshot>, group: &Group) -> Vec<fetch::Source>;
}

/// Somewhere needs may be fetched from: a peer, a clone URL, a relay, an object store.
pub trait SourceClient: SourceDirectory + Send + Sync + std::fmt::Debug + 'static {
    /// Asks for needs of a group. Each thing that comes is handed over at once, so that what it releases need not wait for
    /// the rest. Says how much came that it has stored itself.
    fn fetch(
        &self,
        group: &Group,
        url: &str,
        needs: &[Need],
        deliver: &mut dyn FnMut(Fetched),
    ) -> Result<usize, FetchError>;
}

/// Something that a source brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// A blob with its inline content.
    Event { blob: Vec<u8>, inline: Option<Vec<u8>> },
    Content {
        /// Of which space.
        space: SpaceId,
        /// Its hash, which is compared with the bytes before they are believed.
        hash: ContentHash,
        /// The bytes as they travel.
        bytes: Vec<u8>,
    },
}

/// Why a source brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FetchError(pub String);

/// What the hunter wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchOrder {
    /// Ask that place for these needs, deliver what comes, then say that it ended.
    Fetch {
        /// The name of the request.
        ticket: RequestId,
        group: Group,
        url: String,
        domain: String,
        needs: Vec<Need>,
    },
    /// Reschedule the group.
    Ended {
        group: Group,
        /// What its row said when the hunt began.
        mark: HuntMark,
        /// When the hunt began.
        started_at: Nanos,
    },
    /// Nobody can be asked for the group: let it rest.
    Rest {
        group: Group,
        /// What its row said.
        mark: HuntMark,
    },
    /// Somebody can be asked for these groups, which rest: hunt for them.
    Wake { groups: Vec<Group> },
}

/// The fetcher's session over the schedule of one store.
#[derive(Debug)]
pub struct Hunter {
    limits: DomainLimits,
    hunts: Hunts<Group>,
    ending: BTreeSet<Group>,
    /// Groups whose end could not be written, and until when they are left alone.
    resting: BTreeMap<Group, Nanos>,
    /// The look at groups that rest for want of a source, while it goes on.
    sourceless: Option<SourcelessLook>,
    /// Groups that are being let rest: they are not among those that rest yet.
    going_to_rest: BTreeSet<Group>,
    /// When groups that rest are looked at again, because a source appeared meanwhile or they could not be woken.
    look_again_at: Option<Nanos>,
}

/// Where the look at groups that rest for want of a source goes on.
#[derive(Debug)]
struct SourcelessLook {
    after: Option<Group>,
}

/// How long a group is left alone whose end could not be written: its row still says that it is due.
const REST_NANOS: u64 = 10 * Nanos::SECOND;

struct Plan<'a> {
    db: &'a Db<Snapshot>,
    source: &'a dyn SourceDirectory,
}

impl fetch::FetchReads<Group> for Plan<'_> {
    fn pending(&self, group: &Group) -> bool {
        // A fault here shows on the next write as well; a hunt without needs just ends.
        self.db.needs_of(group, 1).is_ok_and(|needs| !needs.is_empty())
    }

    fn sources(&self, group: &Group) -> Vec<fetch::Source> {
        self.source.places(self.db, group)
    }
}

impl Hunter {
    /// A session that keeps to those limits. Whoever can be asked now is asked for what rested before.
    pub fn new(limits: DomainLimits) -> Hunter {
        Hunter {
            limits,
            hunts: Hunts::new(limits),
            ending: BTreeSet::new(),
            resting: BTreeMap::new(),
            sourceless: Some(SourcelessLook { after: None }),
            going_to_rest: BTreeSet::new(),
            look_again_at: None,
        }
    }

    /// Somebody may have appeared who can be asked for groups that rest.
    pub fn sources_changed(&mut self) {
        self.sourceless = Some(SourcelessLook { after: None });
        if !self.going_to_rest.is_empty() {
            self.look_again_at = Some(Nanos(0));
        }
    }

    /// Groups could not be woken: they are looked at again after a while.
    pub fn waking_failed(&mut self, now: Nanos) {
        self.sourceless = None;
        self.look_again_at = Some(now.plus(REST_NANOS));
    }

    /// What is to be asked of whom now, by the schedule and the clock: at most so many requests, all of which begin now.
    /// If something cannot be read, nothing is taken and nothing is lost.
    pub fn take_orders(
        &mut self,
        db: &Db<Snapshot>,
        source: &dyn SourceDirectory,
        now: Nanos,
        requests_max: usize,
    ) -> StoreResult<Vec<FetchOrder>> {
        let due = db.due_groups(now, GROUPS_PER_LOOK_MAX)?;
        if self.going_to_rest.is_empty() && self.look_again_at.take_if(|at| *at <= now).is_some() {
            self.sources_changed();
        }
        let mut orders = self.look_at_sourceless(db, source)?;
        let plan = Plan { db, source };
        // A group whose hunt has just ended still looks due.
        let mut room = requests_max;
        self.take_outputs(&plan, now, &mut room, &mut orders);
        self.resting.retain(|_, until| *until > now);
        for (group, row) in due {
            let is_left_alone = self.ending.contains(&group) || self.resting.contains_key(&group);
            if is_left_alone || self.hunts.is_hunting(&group) {
                continue;
            }
            let mark = row.mark();
            if source.places(db, &group).is_empty() {
                self.ending.insert(group.clone());
                self.going_to_rest.insert(group.clone());
                orders.push(FetchOrder::Rest { group, mark });
            } else {
                self.hunts.hear(&plan, HuntInput::Due { group, mark }, now.0);
            }
        }
        self.hunts.hear(&plan, HuntInput::Tick, now.0);
        self.take_outputs(&plan, now, &mut room, &mut orders);
        Ok(orders)
    }

    /// A request ended; what it brought was delivered. What comes of it is among the next orders.
    pub fn ended(&mut self, db: &Db<Snapshot>, source: &dyn SourceDirectory, ticket: RequestId, now: Nanos) {
        self.hunts.hear(&Plan { db, source }, HuntInput::Ended { ticket }, now.0);
    }

    fn take_outputs(&mut self, plan: &Plan<'_>, now: Nanos, room: &mut usize, orders: &mut Vec<FetchOrder>) {
        while let Some(output) = self.hunts.take(*room > 0, now.0) {
            match output {
                HuntOutput::Start { ticket, group, url, domain } => {
                    let needs = plan.db.needs_of(&group, NEEDS_PER_REQUEST_MAX).unwrap_or_default();
                    if needs.is_empty() {
                        // They were met while it waited, or cannot be read.
                        self.hunts.hear(plan, HuntInput::Ended { ticket }, now.0);
                        continue;
                    }
                    *room -= 1;
                    orders.push(FetchOrder::Fetch { ticket, group, url, domain, needs });
                }
                HuntOutput::HuntEnded { group, mark, started_at } => {
                    self.ending.insert(group.clone());
                    orders.push(FetchOrder::Ended { group, mark, started_at: Nanos(started_at) });
                }
            }
        }
    }

    /// Looks at some of the groups that rest, after a source may have appeared.
    fn look_at_sourceless(&mut self, db: &Db<Snapshot>, source: &dyn SourceDirectory) -> StoreResult<Vec<FetchOrder>> {
        let Some(look) = &mut self.sourceless else { return Ok(Vec::new()) };
        let mut groups = db.sourceless_groups(look.after.as_ref(), GROUPS_PER_LOOK_MAX)?;
        match groups.last() {
            Some(last) if groups.len() == GROUPS_PER_LOOK_MAX => look.after = Some(last.clone()),
            Some(_) | None => self.sourceless = None,
        }
        groups.retain(|group| !source.places(db, group).is_empty());
        Ok(if groups.is_empty() { Vec::new() } else { vec![FetchOrder::Wake { groups }] })
    }

    /// The end of a hunt was written into the schedule, or could not be. Until then its old row would look due; and where
    /// it could not be written, the group rests, so that a full disk or queue does not make it hunt without a pause.
    pub fn settled(&mut self, group: &Group, is_written: bool, now: Nanos) {
        self.ending.remove(group);
        self.going_to_rest.remove(group);
        if !is_written {
            self.resting.insert(group.clone(), now.plus(REST_NANOS));
        }
    }

    /// The domains that are being asked, or were of late.
    pub fn domain_states(&self, now: Nanos) -> Vec<DomainState> {
        let state = |(name, domain): (&str, &Domain<Group>)| {
            DomainState::new(name, domain.usage(), domain.queued().count(), domain.capacity(&self.limits, now.0))
        };
        self.hunts.domains().map(state).collect()
    }

    /// When to look again if nothing happens before: a row comes due, or a domain's window frees a slot.
    pub fn wake_at(&self, db: &Db<Snapshot>, now: Nanos) -> StoreResult<Option<Nanos>> {
        if self.sourceless.is_some() {
            return Ok(Some(now));
        }
        let due = db.next_due(now)?;
        let window = self.hunts.wake_at(now.0).map(Nanos);
        let again = self.look_again_at.filter(|_| self.going_to_rest.is_empty()).map(|at| at.max(now));
        Ok(due.into_iter().chain(window).chain(self.resting.values().copied()).chain(again).min())
    }
}

/// Nowhere to ask: what waits is brought, not fetched.
#[derive(Debug)]
pub struct NoSources;

impl SourceDirectory for NoSources {
    fn places(&self, _db: &Db<Snapshot>, _group: &Group) -> Vec<fetch::Source> {
        Vec::new()
    }
}

impl SourceClient for NoSources {
    fn fetch(
        &self,
        _group: &Group,
        _url: &str,
        _needs: &[Need],
        _deliver: &mut dyn FnMut(Fetched),
    ) -> Result<usize, FetchError> {
        Err(FetchError("there is nobody to ask".into()))
    }
}
