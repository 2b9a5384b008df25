//! Groups, domains and requests at random, under one clock.
//!
//! Needs come and are met, rows fall due, requests take their time, fail or succeed, and are sometimes reported twice.
//! After a while nothing new happens, and everything must come to rest by itself.

use super::super::{
    BackoffPolicy, DomainLimits, FetchReads, HuntDelays, HuntInput, HuntMark, HuntOutput, Hunts, Nanoseconds,
    NeedOrigin, RequestId, Requester, ScheduleRow, Source, on_hunt_ended, on_new_need,
};
use super::backoffs::{ORIGINS, RHYTHMS};
use super::ensure;
use super::random::DriverRandom;
use super::referee::{Referee, RefereeGroup, RefereeRequest};
use std::collections::{BTreeMap, BTreeSet};

const SECOND: Nanoseconds = 1_000_000_000;

/// No need comes and no row falls due after this.
const LAST_DUE: Nanoseconds = 400 * SECOND;

/// A world that has not come to rest by then never will.
const MOMENTS_MAX: u32 = 20_000;

pub(super) fn check(random: &mut DriverRandom) -> Result<(), String> {
    let mut world = World::new(random);
    for _ in 0..MOMENTS_MAX {
        let Some((at, wake)) = world.next_moment() else {
            return world.check_rest();
        };
        world.now = world.now.max(at);
        world.live(wake)?;
    }
    Err("the world never comes to rest".to_owned())
}

struct World<'a> {
    random: &'a mut DriverRandom,
    now: Nanoseconds,
    town: Town,
    rhythm: BackoffPolicy,
    rows: BTreeMap<RefereeGroup, ScheduleRow>,
    /// What will happen, by time and then by the order in which it was decided.
    agenda: BTreeMap<(Nanoseconds, u64), Happening>,
    agreed: u64,
    hunts: Hunts<RefereeGroup>,
    referee: Referee,
}

/// Who needs what, and where it may be had.
struct Town {
    pending: BTreeSet<RefereeGroup>,
    sources: BTreeMap<RefereeGroup, Vec<Source>>,
}

impl FetchReads<RefereeGroup> for Town {
    fn pending(&self, group: &RefereeGroup) -> bool {
        self.pending.contains(group)
    }

    fn sources(&self, group: &RefereeGroup) -> Vec<Source> {
        self.sources.get(group).cloned().unwrap_or_default()
    }
}

#[derive(Clone, Copy)]
enum Happening {
    Need(RefereeGroup, NeedOrigin),
    /// The bytes came by another way.
    Met(RefereeGroup),
    Ended(RequestId, Outcome),
}

#[derive(Clone, Copy)]
enum Outcome {
    MetAll,
    MetNothing,
}

/// What makes the world move.
#[derive(Clone, Copy)]
enum Wake {
    Agenda,
    Due(RefereeGroup, HuntMark),
    Window,
}

impl<'a> World<'a> {
    fn new(random: &'a mut DriverRandom) -> Self {
        let limits = DomainLimits {
            in_flight_max: random.between(1, 3) as u32,
            starts_per_window_max: random.between(1, 5) as u32,
            window: random.between(5, 60) * SECOND,
        };
        let town = Town { pending: BTreeSet::new(), sources: random_sources(random) };
        let rhythm = random.pick(RHYTHMS);
        let mut world = World {
            random,
            now: 0,
            town,
            rhythm,
            rows: BTreeMap::new(),
            agenda: BTreeMap::new(),
            agreed: 0,
            hunts: Hunts::new(limits),
            referee: Referee::new(limits),
        };
        world.plan_life();
        world
    }

    fn plan_life(&mut self) {
        let groups: Vec<RefereeGroup> = self.town.sources.keys().copied().collect();
        for group in groups {
            for _ in 0..self.random.between(1, 3) {
                let (at, origin) = (self.random.between(0, LAST_DUE / 2), self.random.pick(ORIGINS));
                self.agree(at, Happening::Need(group, origin));
            }
            if self.random.one_in(3) {
                let at = self.random.between(0, LAST_DUE);
                self.agree(at, Happening::Met(group));
            }
        }
    }

    fn agree(&mut self, at: Nanoseconds, happening: Happening) {
        self.agreed += 1;
        self.agenda.insert((at, self.agreed), happening);
    }

    /// The earliest thing that moves the world, if anything still does.
    fn next_moment(&self) -> Option<(Nanoseconds, Wake)> {
        let agenda = self.agenda.keys().next().map(|(at, _)| (*at, Wake::Agenda));
        let idle = self.rows.iter().filter(|(group, row)| row.next <= LAST_DUE && !self.hunts.is_hunting(group));
        let due = idle.map(|(group, row)| (row.next, Wake::Due(*group, row.mark()))).min_by_key(|(at, _)| *at);
        let window = self.hunts.wake_at(self.now).map(|at| (at, Wake::Window));
        [agenda, due, window].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    fn live(&mut self, wake: Wake) -> Result<(), String> {
        match wake {
            Wake::Agenda => match self.agenda.pop_first() {
                Some((_, happening)) => self.happen(happening),
                None => Ok(()),
            },
            Wake::Due(group, mark) => {
                self.referee.see_hunt_begin(group, &self.hunts, &self.town)?;
                self.hear(HuntInput::Due { group, mark })
            }
            Wake::Window => self.hear(HuntInput::Tick),
        }
    }

    fn happen(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::Need(group, origin) => {
                self.town.pending.insert(group);
                let row =
                    on_new_need(self.rows.get(&group).copied(), self.rhythm, origin, HuntDelays::default(), self.now);
                self.rows.insert(group, row);
                Ok(())
            }
            Happening::Met(group) => {
                self.meet(group);
                Ok(())
            }
            Happening::Ended(ticket, outcome) => self.end_request(ticket, outcome),
        }
    }

    fn end_request(&mut self, ticket: RequestId, outcome: Outcome) -> Result<(), String> {
        if let Some(request) = self.referee.see_end(ticket) {
            match outcome {
                Outcome::MetAll => self.meet(request.group),
                Outcome::MetNothing => {}
            }
        }
        self.hear(HuntInput::Ended { ticket })
    }

    fn meet(&mut self, group: RefereeGroup) {
        self.town.pending.remove(&group);
        self.referee.see_met(group);
    }

    fn hear(&mut self, input: HuntInput<RefereeGroup>) -> Result<(), String> {
        self.hunts.hear(&self.town, input, self.now);
        while let Some(output) = self.hunts.take(true, self.now) {
            match output {
                HuntOutput::Start { ticket, group, url, domain } => {
                    self.start(ticket, group, Source { url, domain })?
                }
                HuntOutput::HuntEnded { group, mark, started_at } => {
                    self.end_hunt(group, mark, started_at)?;
                }
            }
        }
        self.referee.see_pause(&self.hunts, self.now)
    }

    fn start(&mut self, ticket: RequestId, group: RefereeGroup, source: Source) -> Result<(), String> {
        let asker = self.hunts.requests().find(|(other, _)| *other == ticket).map(|(_, request)| request.asker);
        let request = RefereeRequest { group, source, asker: asker.unwrap_or(Requester::Hunt) };
        self.referee.see_start(ticket, request, &self.town, self.now)?;
        let ends_at = self.now + self.random.between(0, 20) * SECOND;
        let outcome = if self.random.one_in(8) { Outcome::MetAll } else { Outcome::MetNothing };
        self.agree(ends_at, Happening::Ended(ticket, outcome));
        if self.random.one_in(4) {
            let repeated_at = ends_at + self.random.between(0, SECOND);
            self.agree(repeated_at, Happening::Ended(ticket, outcome));
        }
        if self.random.one_in(8) && self.hunts.is_hunting(&group) {
            self.hunts.hear(
                &self.town,
                HuntInput::Due { group, mark: HuntMark { next: self.now, joined: 0 } },
                self.now,
            );
        }
        Ok(())
    }

    fn end_hunt(&mut self, group: RefereeGroup, mark: HuntMark, started_at: Nanoseconds) -> Result<(), String> {
        self.referee.see_hunt_end(group)?;
        let Some(row) = self.rows.remove(&group) else {
            return Err(format!("{group} was hunted without a row"));
        };
        let pending = self.town.pending(&group);
        let row = on_hunt_ended(&row, mark, pending, self.rhythm, started_at, self.now, 0);
        if let Some(row) = row {
            ensure(row.next >= self.now, || format!("{group} is to be hunted in the past"))?;
            self.rows.insert(group, row);
        }
        Ok(())
    }

    /// At rest nothing is left over, and whatever is pending has been asked for everywhere.
    fn check_rest(&self) -> Result<(), String> {
        ensure(self.hunts.is_quiet(), || format!("at rest something is left: {:?}", self.hunts))?;
        for group in self.town.sources.keys() {
            self.referee.check_all_asked(*group, &self.town)?;
            let scheduled = self.rows.contains_key(group);
            ensure(scheduled || !self.town.pending(group), || format!("{group} is pending but not scheduled"))?;
        }
        Ok(())
    }
}

fn random_sources(random: &mut DriverRandom) -> BTreeMap<RefereeGroup, Vec<Source>> {
    let domains = random.between(1, 4);
    let groups = random.between(1, 5) as u8;
    (0..groups).map(|group| (char::from(b'a' + group), random_urls(random, domains))).collect()
}

fn random_urls(random: &mut DriverRandom, domains: u64) -> Vec<Source> {
    let urls = random.between(0, 7);
    (0..urls)
        .map(|_| {
            let domain = format!("{}.org", random.between(1, domains));
            Source { url: format!("https://{domain}/{}", random.between(1, 5)), domain }
        })
        .collect()
}
