//! Watches what goes into the hunts and what comes out, and knows the rules.

use super::super::{DomainLimits, FetchReads, Hunts, Nanoseconds, RequestId, Requester, Source, messages};
use super::ensure;
use std::collections::{BTreeMap, BTreeSet};

pub(super) type RefereeGroup = char;
pub(super) type RefereeRequest = messages::FetchRequest<RefereeGroup>;

/// What was seen so far.
pub(super) struct Referee {
    limits: DomainLimits,
    in_flight: BTreeMap<RequestId, RefereeRequest>,
    starts: BTreeMap<String, Vec<Nanoseconds>>,
    /// The sources that each hunt under way has asked.
    hunting: BTreeMap<RefereeGroup, BTreeSet<Source>>,
    hunts_begun: BTreeMap<RefereeGroup, u32>,
    times_asked: BTreeMap<(RefereeGroup, Source), u32>,
    /// What was asked for a group since it was last hunted with a clean slate and had needs ever since.
    asked_since: BTreeMap<RefereeGroup, BTreeSet<Source>>,
    /// Who went ahead of a group that waits at a domain, and how often, since it began to wait.
    went_ahead: BTreeMap<(String, RefereeGroup), BTreeMap<RefereeGroup, u32>>,
}

impl Referee {
    pub(super) fn new(limits: DomainLimits) -> Self {
        Referee {
            limits,
            in_flight: BTreeMap::new(),
            starts: BTreeMap::new(),
            hunting: BTreeMap::new(),
            hunts_begun: BTreeMap::new(),
            times_asked: BTreeMap::new(),
            asked_since: BTreeMap::new(),
            went_ahead: BTreeMap::new(),
        }
    }

    /// A hunt is about to begin. If no queue is still busy with the group, the hunt before must have been thorough.
    pub(super) fn see_hunt_begin(
        &mut self,
        group: RefereeGroup,
        hunts: &Hunts<RefereeGroup>,
        plan: &impl FetchReads<RefereeGroup>,
    ) -> Result<(), String> {
        self.hunting.insert(group, BTreeSet::new());
        *self.hunts_begun.entry(group).or_default() += 1;
        let queued = hunts.queued().any(|(_, other)| *other == group);
        if !queued {
            self.check_all_asked(group, plan)?;
        }
        if !queued && plan.pending(&group) {
            self.asked_since.insert(group, BTreeSet::new());
        }
        Ok(())
    }

    pub(super) fn see_hunt_end(&mut self, group: RefereeGroup) -> Result<(), String> {
        let busy = self.in_flight.values().any(|request| request.group == group && request.asker == Requester::Hunt);
        ensure(!busy, || format!("the hunt for {group} ends during its own request"))?;
        // The group may have left a queue just before and joined it anew, behind others.
        self.went_ahead.retain(|(_, waiting), _| *waiting != group);
        let began = self.hunting.remove(&group).is_some();
        ensure(began, || format!("a hunt for {group} ends that never began"))
    }

    /// A request has ended; `None` if that was known already.
    pub(super) fn see_end(&mut self, ticket: RequestId) -> Option<RefereeRequest> {
        self.in_flight.remove(&ticket)
    }

    /// All needs of the group are met, and nobody need ask further.
    pub(super) fn see_met(&mut self, group: RefereeGroup) {
        self.asked_since.remove(&group);
    }

    pub(super) fn see_start(
        &mut self,
        ticket: RequestId,
        request: RefereeRequest,
        plan: &impl FetchReads<RefereeGroup>,
        now: Nanoseconds,
    ) -> Result<(), String> {
        let RefereeRequest { group, source, asker } = &request;
        ensure(plan.pending(group), || format!("{group} is asked for without a need"))?;
        ensure(plan.sources(group).contains(source), || format!("{source:?} is not a source of {group}"))?;
        self.check_one_at_a_time(&request)?;
        self.check_not_asked_before(&request)?;
        match asker {
            Requester::Hunt => {}
            Requester::Queue => self.note_turn(*group, &source.domain),
        }
        self.starts.entry(source.domain.clone()).or_default().push(now);
        let domain = source.domain.clone();
        self.in_flight.insert(ticket, request);
        self.check_limits(&domain, now)
    }

    /// After every input: whoever still waits at a domain waits for a limit, and will be woken.
    pub(super) fn see_pause(&mut self, hunts: &Hunts<RefereeGroup>, now: Nanoseconds) -> Result<(), String> {
        let waiting: BTreeSet<(String, RefereeGroup)> = hunts
            .queued()
            .filter(|(domain, group)| !self.is_asking(**group, domain))
            .map(|(domain, group)| (domain.to_owned(), *group))
            .collect();
        for (domain, group) in &waiting {
            if self.in_flight_at(domain) >= self.limits.in_flight_max as usize {
                continue;
            }
            let room_at = self.window_has_room_at(domain);
            ensure(room_at > now, || format!("{group} waits at {domain}, which is free"))?;
            let woken = hunts.wake_at(now).is_some_and(|at| at <= room_at);
            ensure(woken, || format!("nobody wakes {group} when {domain} has room at {room_at}"))?;
        }
        self.check_turns(waiting)
    }

    /// Everything that a clean hunt and its queues had to ask has been asked, unless the needs were met meanwhile.
    pub(super) fn check_all_asked(
        &self,
        group: RefereeGroup,
        plan: &impl FetchReads<RefereeGroup>,
    ) -> Result<(), String> {
        let Some(asked) = self.asked_since.get(&group) else {
            return Ok(());
        };
        if !plan.pending(&group) {
            return Ok(());
        }
        let forgotten = plan.sources(&group).into_iter().find(|source| !asked.contains(source));
        ensure(forgotten.is_none(), || format!("{group} was never asked for at {forgotten:?}"))
    }

    /// A group has one request in flight per domain, and its hunt has one at all.
    fn check_one_at_a_time(&self, request: &RefereeRequest) -> Result<(), String> {
        let group = request.group;
        ensure(!self.is_asking(group, &request.source.domain), || format!("{request:?} is the second at its domain"))?;
        match request.asker {
            Requester::Queue => Ok(()),
            Requester::Hunt => {
                let other =
                    self.in_flight.values().find(|other| other.group == group && other.asker == Requester::Hunt);
                ensure(other.is_none(), || format!("the hunt for {group} makes two requests at once"))
            }
        }
    }

    /// A hunt and the queues it leads to ask each URL once.
    fn check_not_asked_before(&mut self, request: &RefereeRequest) -> Result<(), String> {
        let RefereeRequest { group, source, asker } = request;
        match asker {
            Requester::Queue => {}
            Requester::Hunt => {
                let fresh = self.hunting.get_mut(group).is_some_and(|asked| asked.insert(source.clone()));
                ensure(fresh, || format!("the hunt for {group} asks {source:?} twice, or after its end"))?;
            }
        }
        if let Some(asked) = self.asked_since.get_mut(group) {
            asked.insert(source.clone());
        }
        let asked = self.times_asked.entry((*group, source.clone())).or_default();
        *asked += 1;
        let begun = self.hunts_begun.get(group).copied().unwrap_or_default();
        ensure(*asked <= begun, || format!("{begun} hunts for {group} asked {source:?} {asked} times"))
    }

    /// Counts the turn against everybody who goes on waiting at the domain.
    fn note_turn(&mut self, group: RefereeGroup, domain: &str) {
        self.went_ahead.remove(&(domain.to_owned(), group));
        for ((place, _), ahead) in &mut self.went_ahead {
            if place == domain {
                *ahead.entry(group).or_default() += 1;
            }
        }
    }

    /// Nobody gets a second turn while another waits for a first. Those who have left the queue meanwhile do not count.
    fn check_turns(&mut self, waiting: BTreeSet<(String, RefereeGroup)>) -> Result<(), String> {
        self.went_ahead.retain(|place, _| waiting.contains(place));
        for ((domain, group), ahead) in &self.went_ahead {
            let unfair = ahead.iter().find(|(_, turns)| **turns > 1);
            ensure(unfair.is_none(), || format!("{unfair:?} turns at {domain} go ahead of {group}"))?;
        }
        for place in waiting {
            self.went_ahead.entry(place).or_default();
        }
        Ok(())
    }

    fn check_limits(&self, domain: &str, now: Nanoseconds) -> Result<(), String> {
        let in_flight = self.in_flight_at(domain);
        ensure(in_flight <= self.limits.in_flight_max as usize, || format!("{in_flight} in flight at {domain}"))?;
        let starts = self.starts.get(domain).into_iter().flatten();
        let recent = starts.filter(|start| *start + self.limits.window > now).count();
        let recent_max = self.limits.starts_per_window_max as usize;
        ensure(recent <= recent_max, || format!("{recent} starts in one window of {domain}"))
    }

    fn is_asking(&self, group: RefereeGroup, domain: &str) -> bool {
        self.in_flight.values().any(|request| request.group == group && request.source.domain == domain)
    }

    fn in_flight_at(&self, domain: &str) -> usize {
        self.in_flight.values().filter(|request| request.source.domain == domain).count()
    }

    /// When the start that is as many places from the latest as the window has slots leaves the window.
    fn window_has_room_at(&self, domain: &str) -> Nanoseconds {
        let starts = self.starts.get(domain).map(Vec::as_slice).unwrap_or_default();
        let blocking = starts.len().checked_sub(self.limits.starts_per_window_max as usize);
        blocking.and_then(|index| starts.get(index)).map_or(0, |start| start + self.limits.window)
    }
}
