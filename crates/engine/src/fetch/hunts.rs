//! All hunts of a node as a session without sockets.
//!
//! The caller tells it what happened ([`Hunts::hear`]), performs what it answers ([`Hunts::take`]), and sleeps no
//! longer than it says ([`Hunts::wake_at`]). A hunt asks the sources of its group one after the other, each once, those
//! of free domains first. Before every request it looks again at what is unmet, so it stops as soon as nothing is. When
//! only busy domains are left it puts the group into their queues and ends. The queues then go on without it: whenever
//! a domain can take a request, the next group in turn gets it.
//!
//! What keeps the two from asking twice: while a group is queued at a domain, only that queue asks there for it; and a
//! hunt that queues its group hands over the URLs it has tried there.

use super::Nanoseconds;
use super::domain::{Capacity, Domain, DomainLimits};
use super::messages::{FetchReads, FetchRequest, HuntInput, HuntOutput, RequestId, Requester, Source};
use super::schedule::HuntMark;
use model::planted::{PlantedBug, is_planted};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Debug;

/// More sources than this are not considered for one group: whoever lists them may be a stranger, and every one costs
/// a request to somebody.
pub const SOURCES_PER_GROUP_MAX: usize = 64;

/// All hunts under way, all domains that are busy or were asked of late, and what the caller has yet to do.
#[derive(Clone, Debug)]
pub struct Hunts<G> {
    limits: DomainLimits,
    hunts: BTreeMap<G, Hunt>,
    domains: BTreeMap<String, Domain<G>>,
    requests: BTreeMap<RequestId, FetchRequest<G>>,
    tickets_given: u64,
    outputs: VecDeque<HuntOutput<G>>,
}

/// One hunt of one group.
#[derive(Clone, Debug)]
struct Hunt {
    mark: HuntMark,
    started_at: Nanoseconds,
    tried: BTreeSet<Source>,
}

/// What a hunt does next.
enum Step {
    Ask(Source),
    /// Nothing can be asked now; the group waits at these domains, if any.
    End {
        busy: BTreeSet<String>,
    },
}

impl<G: Ord + Clone + Debug> Hunts<G> {
    /// A session in which nothing is under way.
    pub fn new(limits: DomainLimits) -> Self {
        Hunts {
            limits,
            hunts: BTreeMap::new(),
            domains: BTreeMap::new(),
            requests: BTreeMap::new(),
            tickets_given: 0,
            outputs: VecDeque::new(),
        }
    }

    /// Takes in what happened. A group that is being hunted is not hunted twice, and the end of a request that is not
    /// in flight changes nothing: late and repeated input is normal.
    pub fn hear(&mut self, plan: &impl FetchReads<G>, input: HuntInput<G>, now: Nanoseconds) {
        self.pass_time(plan, now);
        match input {
            HuntInput::Due { group, mark } => self.begin(plan, group, mark, now),
            HuntInput::Ended { ticket } => self.end_request(plan, ticket, now),
            HuntInput::Tick => {}
        }
    }

    /// The next thing to do, if any. Requests are handed out only if the caller can perform them now: the window of their
    /// domain counts them from then on, and their place in it is kept until then.
    pub fn take(&mut self, may_start: bool, now: Nanoseconds) -> Option<HuntOutput<G>> {
        let is_wanted = |output: &HuntOutput<G>| may_start || matches!(output, HuntOutput::HuntEnded { .. });
        let output = self.outputs.remove(self.outputs.iter().position(is_wanted)?)?;
        if let HuntOutput::Start { domain, .. } = &output {
            self.domain(domain).start(now);
        }
        Some(output)
    }

    /// When to hear [`HuntInput::Tick`] if nothing else is heard before: the earliest moment at which the window of a
    /// domain has room for a queued group. `None` while only the end of a request can change anything.
    pub fn wake_at(&self, now: Nanoseconds) -> Option<Nanoseconds> {
        if is_planted(PlantedBug::WindowWakesNobody) {
            return None;
        }
        self.domains.values().filter_map(|domain| domain.wake_at(&self.limits, now)).min()
    }

    /// Whether the group is being hunted. A group that merely waits in the queues of domains is not.
    pub fn is_hunting(&self, group: &G) -> bool {
        self.hunts.contains_key(group)
    }

    /// The requests in flight.
    pub fn requests(&self) -> impl Iterator<Item = (RequestId, &FetchRequest<G>)> {
        self.requests.iter().map(|(ticket, request)| (*ticket, request))
    }

    /// The domains that are remembered: those in use, and those whose window has not emptied yet.
    pub fn domains(&self) -> impl Iterator<Item = (&str, &Domain<G>)> {
        self.domains.iter().map(|(name, domain)| (name.as_str(), domain))
    }

    /// Which groups are in the queue of which domain.
    pub fn queued(&self) -> impl Iterator<Item = (&str, &G)> {
        self.domains().flat_map(|(name, domain)| domain.queued().map(move |group| (name, group)))
    }

    /// Whether nothing is hunted, queued, in flight or to be taken.
    pub fn is_quiet(&self) -> bool {
        self.hunts.is_empty() && self.requests.is_empty() && self.outputs.is_empty() && self.queued().next().is_none()
    }

    /// Lets the queues go on whose window has room by now, and forgets the domains of which nothing is left.
    ///
    /// This comes before every input, so that a hunt finds free only what no queued group was waiting for.
    fn pass_time(&mut self, plan: &impl FetchReads<G>, now: Nanoseconds) {
        let limits = self.limits;
        self.domains.retain(|_, domain| {
            domain.forget_starts(&limits, now);
            !domain.is_forgettable()
        });
        let freed = |domain: &Domain<G>| domain.wake_at(&limits, now).is_some_and(|at| at <= now);
        let names: Vec<String> =
            self.domains.iter().filter(|(_, domain)| freed(domain)).map(|(name, _)| name.clone()).collect();
        for name in names {
            self.run_queue(plan, &name, now);
        }
    }

    fn begin(&mut self, plan: &impl FetchReads<G>, group: G, mark: HuntMark, now: Nanoseconds) {
        if self.is_hunting(&group) {
            return;
        }
        let hunt = Hunt { mark, started_at: now, tried: BTreeSet::new() };
        self.hunts.insert(group.clone(), hunt);
        self.advance(plan, &group, now);
    }

    fn end_request(&mut self, plan: &impl FetchReads<G>, ticket: RequestId, now: Nanoseconds) {
        let Some(FetchRequest { group, source, asker }) = self.requests.remove(&ticket) else {
            return;
        };
        self.domain(&source.domain).complete();
        match asker {
            Requester::Queue if is_planted(PlantedBug::CompletionFindsGroupBusy) => {
                self.run_queue(plan, &source.domain, now);
                self.domain(&source.domain).mark_free(&group);
            }
            Requester::Queue => {
                self.domain(&source.domain).mark_free(&group);
                self.run_queue(plan, &source.domain, now);
            }
            Requester::Hunt => {
                // The groups that were waiting come first; the hunt may find the domain busy again.
                self.run_queue(plan, &source.domain, now);
                self.advance(plan, &group, now);
            }
        }
    }

    /// Makes the hunt's next request or ends it.
    fn advance(&mut self, plan: &impl FetchReads<G>, group: &G, now: Nanoseconds) {
        match self.next_step(plan, group, now) {
            Step::Ask(source) => {
                if let Some(hunt) = self.hunts.get_mut(group) {
                    hunt.tried.insert(source.clone());
                }
                self.domain(&source.domain).reserve();
                self.issue(FetchRequest { group: group.clone(), source, asker: Requester::Hunt });
            }
            Step::End { busy } => self.end_hunt(plan, group, busy, now),
        }
    }

    fn next_step(&self, plan: &impl FetchReads<G>, group: &G, now: Nanoseconds) -> Step {
        let mut busy = BTreeSet::new();
        for source in unmet_sources(plan, group) {
            if self.hunts.get(group).is_some_and(|hunt| hunt.tried.contains(&source)) {
                continue;
            }
            if self.is_free(&source.domain, group, now) {
                return Step::Ask(source);
            }
            busy.insert(source.domain);
        }
        Step::End { busy }
    }

    /// Whether the group's hunt may ask at the domain: it has room, and its queue does not ask for the group already.
    fn is_free(&self, domain: &str, group: &G, now: Nanoseconds) -> bool {
        self.domains
            .get(domain)
            .is_none_or(|domain| domain.capacity(&self.limits, now) == Capacity::Now && !domain.is_queued(group))
    }

    /// Ends the hunt. It does not wait for busy domains: their queues take over where it has not asked.
    fn end_hunt(&mut self, plan: &impl FetchReads<G>, group: &G, busy: BTreeSet<String>, now: Nanoseconds) {
        let Some(hunt) = self.hunts.remove(group) else { return };
        for name in busy {
            self.domain(&name).enqueue(group.clone(), hunt.tried_at(&name));
            self.run_queue(plan, &name, now);
        }
        let Hunt { mark, started_at, tried: _ } = hunt;
        self.outputs.push_back(HuntOutput::HuntEnded { group: group.clone(), mark, started_at });
    }

    /// Starts what the domain can take, in turn, until it is busy or nobody waits.
    fn run_queue(&mut self, plan: &impl FetchReads<G>, name: &str, now: Nanoseconds) {
        let limits = self.limits;
        let choose = |group: &G, tried: &BTreeSet<String>| {
            let here = |source: &Source| source.domain == name && !tried.contains(&source.url);
            unmet_sources(plan, group).into_iter().find(here).map(|source| source.url)
        };
        while let Some((group, url)) = self.domain(name).start_next(&limits, now, choose) {
            let source = Source { url, domain: name.to_owned() };
            self.issue(FetchRequest { group, source, asker: Requester::Queue });
        }
    }

    /// Gives the request its ticket and asks the caller to perform it.
    fn issue(&mut self, request: FetchRequest<G>) {
        self.tickets_given += 1;
        let ticket = RequestId::new(self.tickets_given);
        let Source { url, domain } = request.source.clone();
        self.outputs.push_back(HuntOutput::Start { ticket, group: request.group.clone(), url, domain });
        self.requests.insert(ticket, request);
    }

    fn domain(&mut self, name: &str) -> &mut Domain<G> {
        self.domains.entry(name.to_owned()).or_default()
    }
}

impl Hunt {
    /// The URLs that this hunt has tried at one domain.
    fn tried_at(&self, domain: &str) -> BTreeSet<String> {
        if is_planted(PlantedBug::TriedUrlForgotten) {
            return BTreeSet::new();
        }
        self.tried.iter().filter(|source| source.domain == domain).map(|source| source.url.clone()).collect()
    }
}

/// Where the group is to be asked for now: nowhere if nothing is unmet.
fn unmet_sources<G>(plan: &impl FetchReads<G>, group: &G) -> Vec<Source> {
    if !plan.pending(group) {
        return Vec::new();
    }
    let mut sources = plan.sources(group);
    sources.truncate(SOURCES_PER_GROUP_MAX);
    sources
}
