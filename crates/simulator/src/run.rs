//! One seed: a world is delivered to nodes in any order, with everything that can go wrong, and then compared.

mod administration;
mod ending;
mod hunting;
mod others;
mod probes;
mod repositories;
mod sim_node;

use self::others::Others;
use self::repositories::SimRepositories;
use crate::coverage::Coverage;
use crate::disk::{CrashLoss, SimDisk};
use crate::protocol::nostr::URL;
use crate::protocol::nostr::world::NostrWorld;
use crate::protocol::probe::world::ProbeWorld;
use crate::protocol::probe::{self, MadeProbe};
use crate::protocol::space::world::{BEGINNING, World};
use crate::random::SeededRandom;
use crate::requests::{SimReply, SimRequest};
use engine::chains;
use engine::fetch::{self, DomainLimits};
use engine::policy::Policy;
use engine::rows::{Origin, Outcome};
use model::crypto::{TransitSecret, content_hash};
use model::nostr::ServiceName;
use model::packet::{self, PacketContent};
use model::{EventId, Group, Nanos, Need, SpaceId};
use node::WriterCore;
use node::fetch::hunter::{FetchOrder, Fetched, Hunter};
use node::large_content::Deliver;
use node::node_commands::{EndHunt, Prune, RestGroup, WakeGroups};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What is left out of a run, to see whether it still fails.
#[derive(Clone, Debug, Default)]
pub struct Cut {
    /// Events of the world, by number: they exist nowhere.
    pub events: BTreeSet<usize>,
    /// Steps, by number: nothing happens in them.
    pub steps: BTreeSet<u64>,
    /// No more steps than this are made; none for as many as there are.
    pub steps_max: Option<u64>,
}

/// A run that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    pub what: String,
    /// How many events the world has.
    pub events: usize,
    /// How many steps were made.
    pub steps: u64,
}

/// How a run is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunLog {
    /// Print a line per step.
    pub verbose: bool,
}

const NODES: usize = 2;
/// More steps than any run takes that leaves none out.
const STEPS_MAX: u64 = 20_000;
const DAY: u64 = 24 * 3600 * 1_000_000_000;
const MASTER: [u8; 32] = [42; 32];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Item {
    Event(usize),
    Content(usize),
    Lie(usize),
    Key(usize),
    WrongContent(usize),
    File(usize),
    Probe(usize),
    ProbeContent(usize),
    ProbeClash(usize),
    Nostr(usize),
    GitData(usize),
}

struct SimNode {
    index: usize,
    disk: SimDisk,
    core: Option<WriterCore>,
    hunter: Hunter,
    queue: Vec<Item>,
    acknowledged: BTreeSet<EventId>,
    ever_pruned: BTreeSet<EventId>,
    gets_keys: bool,
    cut_off: usize,
    repositories: SimRepositories,
    now: u64,
    /// The master key that the folder is opened with.
    master: [u8; 32],
}

struct Run<'w> {
    world: &'w World,
    probes: &'w ProbeWorld,
    nostr: &'w NostrWorld,
    random: SeededRandom,
    nodes: Vec<SimNode>,
    policy: Policy,
    log: RunLog,
    reached: Coverage,
    cut: &'w Cut,
    seed: u64,
    step: u64,
}

/// Runs one seed and tells what it has reached. An error says what was wrong.
pub fn run(seed: u64, log: RunLog) -> Result<Coverage, String> {
    run_without(seed, log, &Cut::default()).map_err(|failure| failure.what)
}

/// Runs one seed without some of what happens in it.
pub fn run_without(seed: u64, log: RunLog, cut: &Cut) -> Result<Coverage, Failure> {
    let mut random = SeededRandom::new(seed);
    let mut world = World::new(&mut random, NODES);
    world.lose(&cut.events);
    let policy = Policy {
        inline_bytes_max: world.inline_max,
        row_content_bytes_max: 3000,
        releases_max: 1 + random.below(3),
        service: ServiceName::of_url(URL),
        ..Policy::default()
    };
    let probes = ProbeWorld::new(&mut SeededRandom::new(seed ^ 0x0070_726f_6265));
    let nostr = NostrWorld::new(&mut SeededRandom::new(seed ^ 0x006e_6f73_7472));
    let (nodes, reached) = (Vec::new(), Coverage::default());
    let mut run =
        Run { seed, world: &world, probes: &probes, nostr: &nostr, random, nodes, policy, log, reached, cut, step: 0 };
    run.tell_world();
    let outcome = fetch::driver::run(seed).and_then(|()| run.play());
    let (events, steps) = (world.events.len(), run.step);
    match outcome {
        Ok(()) => Ok(run.reached),
        Err(what) => Err(Failure { what, events, steps }),
    }
}

impl Run<'_> {
    fn play(&mut self) -> Result<(), String> {
        self.begin()?;
        self.live()?;
        self.heal()?;
        self.compare()?;
        self.collect()?;
        self.restore()
    }
}

impl Run<'_> {
    fn say(&self, line: impl FnOnce() -> String) {
        if self.log.verbose {
            println!("{}", line());
        }
    }

    /// What exists: a line per event.
    fn tell_world(&self) {
        let number = |id: EventId| self.world.events.iter().position(|made| made.id == id);
        for (index, made) in
            self.world.events.iter().enumerate().filter(|(_, made)| !self.world.lost.contains(&made.id))
        {
            let references =
                made.envelope.references.iter().filter_map(|reference| {
                    number(reference.id).map(|number| format!(" {:?} {number}", reference.role))
                });
            let (at, references) =
                (made.envelope.created_at.0.saturating_sub(BEGINNING), references.collect::<String>());
            let (kind, id, space) = (made.envelope.kind, made.id, made.envelope.space);
            self.say(|| format!("{index:3} {id} {kind} in {space} at {at}:{references}"));
        }
    }

    fn begin(&mut self) -> Result<(), String> {
        for index in 0..NODES {
            let disk = SimDisk::new();
            let gets_keys = self.random.percent(85);
            let mut node = SimNode {
                index,
                disk,
                core: None,
                hunter: Hunter::new(DomainLimits::default()),
                queue: Vec::new(),
                acknowledged: BTreeSet::new(),
                ever_pruned: BTreeSet::new(),
                gets_keys,
                cut_off: 0,
                repositories: SimRepositories::default(),
                now: BEGINNING,
                master: MASTER,
            };
            node.open(self.policy)?;
            let mut requests = vec![SimRequest::add_prekey(self.world.prekeys[index])];
            for (number, space) in self.spaces().into_iter().enumerate() {
                requests.push(SimRequest::add_transit(transit_secret(number), space, 9));
            }
            node.request(requests)?;
            node.queue = self.order(index);
            self.nodes.push(node);
        }
        Ok(())
    }

    fn spaces(&self) -> Vec<SpaceId> {
        self.world.events.iter().map(|made| made.envelope.space).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// In which order a node gets things: random, reversed or needs last; some twice, some not at all for now.
    fn order(&mut self, node: usize) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        for (index, made) in self.world.events.iter().enumerate() {
            if self.world.lost.contains(&made.id) {
                continue;
            }
            items.push(Item::Event(index));
            if !made.wire.is_empty() {
                items.push(Item::Content(index));
            }
        }
        items.extend((0..self.world.lies.len()).map(Item::Lie));
        items.extend((0..self.world.files.len()).map(Item::File));
        items.extend((0..self.world.key_events[node].len()).map(Item::Key));
        items.extend(self.probe_items());
        items.extend(self.nostr_items());
        if self.random.percent(30) {
            items.push(Item::WrongContent(self.random.below(self.world.events.len())));
        }
        match self.random.below(4) {
            0 => items.reverse(),
            1 => {}
            _ => self.random.shuffle(&mut items),
        }
        items.retain(|_| !self.random.percent(8));
        let again: Vec<Item> = items.iter().copied().filter(|_| self.random.percent(15)).collect();
        for item in again {
            let at = self.random.below(items.len() + 1);
            items.insert(at, item);
        }
        items
    }

    fn live(&mut self) -> Result<(), String> {
        let steps_max = self.cut.steps_max.unwrap_or(STEPS_MAX);
        while self.nodes.iter().any(|node| !node.queue.is_empty()) && self.step < steps_max {
            // Each step has a chance of its own, so that the others stay as they are when one is left out.
            self.random = SeededRandom::of_step(self.seed, self.step);
            self.step += 1;
            if self.cut.steps.contains(&(self.step - 1)) {
                continue;
            }
            let at = self.random.below(NODES);
            // A node that is cut off hears nothing and reaches nobody for a while.
            if self.nodes[at].cut_off > 0 {
                self.nodes[at].cut_off -= 1;
                continue;
            }
            match self.random.below(23) {
                22 => {
                    let most = 1 + self.random.below(4);
                    self.align(at, most)?;
                }
                21 => self.administer(at)?,
                20 => self.nodes[at].cut_off = self.random.below(20),
                0 => self.plan_crash(at),
                1 => self.jump(at),
                2 => self.prune(at)?,
                3 => self.collect_on(at)?,
                4 => self.retry(at)?,
                5 | 6 => self.hunt(at)?,
                _ => self.deliver(at)?,
            }
        }
        self.random = SeededRandom::new(!self.seed);
        Ok(())
    }

    fn plan_crash(&mut self, at: usize) {
        let node = &self.nodes[at];
        let operation = node.disk.operations() + 1 + self.random.below(60) as u64;
        node.disk.crash_at(Some(operation));
    }

    fn jump(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        node.now = match self.random.below(6) {
            0 => node.now + 31 * DAY,
            1 => node.now + 2 * DAY,
            2 => node.now.saturating_sub(DAY / 24),
            _ => node.now + self.random.next_u64() % (DAY / 100),
        };
    }

    fn prune(&mut self, at: usize) -> Result<(), String> {
        let id = if self.random.percent(15) && !self.probes.events.is_empty() {
            self.random.pick(&self.probes.events).id
        } else {
            self.random.pick(&self.world.events).id
        };
        let request = if self.random.percent(80) { SimRequest::prune(id) } else { SimRequest::want_back(id) };
        self.ask(at, vec![request])
    }

    fn retry(&mut self, at: usize) -> Result<(), String> {
        let id = self.random.pick(&self.world.events).id;
        let request =
            if self.random.percent(50) { SimRequest::retry_event(id) } else { SimRequest::retry_need(Need::Event(id)) };
        self.ask(at, vec![request])
    }

    fn deliver(&mut self, at: usize) -> Result<(), String> {
        let count = (1 + self.random.below(8)).min(self.nodes[at].queue.len());
        let items: Vec<Item> = self.nodes[at].queue.drain(..count).collect();
        let mut requests = Vec::new();
        for item in &items {
            if let Item::ProbeClash(index) = item {
                self.clash(at, *index)?;
            }
            requests.extend(self.request_of(at, *item));
        }
        self.nodes[at].now += self.random.next_u64() % 1_000_000_000;
        let crashed = self.ask_or_crash(at, requests)?;
        if crashed {
            // Whoever sent it got no answer and sends it again.
            self.nodes[at].queue.extend(items);
        }
        Ok(())
    }

    /// What a door makes of an item; nothing if it drops it.
    fn request_of(&mut self, at: usize, item: Item) -> Option<SimRequest> {
        let by_packet = self.random.percent(30);
        let node = &self.nodes[at];
        let keys = node.core.as_ref()?.store().keys().clone();
        let (blob, inline, space) = match item {
            Item::Event(index) => {
                let made = &self.world.events[index];
                (made.blob.clone(), made.inline(self.world.inline_max), Some(made.envelope.space))
            }
            Item::Key(index) => {
                let made = &self.world.key_events[at][index];
                return node.gets_keys.then(|| arrive(&keys, &self.policy, made.blob.clone(), None))?;
            }
            Item::Lie(index) => {
                let lie = &self.world.lies[index];
                (lie.blob.clone(), lie.inline.clone(), None)
            }
            Item::Content(index) => {
                let made = &self.world.events[index];
                return checked_content(made.envelope.space, made.hash(), made.wire.clone());
            }
            Item::File(index) => {
                let file = &self.world.files[index];
                return checked_content(file.space, file.hash, file.wire.clone()?);
            }
            Item::WrongContent(index) => {
                let made = &self.world.events[index];
                return checked_content(made.envelope.space, made.hash(), vec![1; made.wire.len()]);
            }
            Item::Probe(index) => return self.probe_request(at, index),
            Item::ProbeContent(index) => {
                let made: &MadeProbe = &self.probes.events[index];
                return checked_content(SpaceId::COMMONS, made.hash(), made.wire.clone());
            }
            Item::ProbeClash(_) => return None,
            Item::Nostr(index) => return self.nostr_request(index),
            Item::GitData(index) => return self.git_request(at, index),
        };
        let number = space.and_then(|space| self.spaces().iter().position(|other| *other == space));
        match (by_packet, number) {
            (true, Some(number)) => {
                let secret = TransitSecret::new(transit_secret(number));
                let carried = PacketContent { blob, inline: inline.unwrap_or_default() };
                let packet = packet::wrap(&secret, [number as u8; 24], &carried).ok()?;
                let arrival = chains::receive_packet(&*keys, &self.policy, &packet).ok()?;
                Some(SimRequest::arrive(arrival))
            }
            _ => arrive(&keys, &self.policy, blob, inline),
        }
    }

    fn ask(&mut self, at: usize, requests: Vec<SimRequest>) -> Result<(), String> {
        self.ask_or_crash(at, requests).map(drop)
    }

    /// Runs requests on a node; after a crash it is opened again. Says whether it crashed.
    fn ask_or_crash(&mut self, at: usize, requests: Vec<SimRequest>) -> Result<bool, String> {
        self.say(|| format!("node {at} {:?}", requests.iter().map(request_word).collect::<Vec<_>>()));
        let pruned: Vec<EventId> = requests
            .iter()
            .filter_map(|request| match request {
                SimRequest::Prune(Prune(id)) => Some(*id),
                _ => None,
            })
            .collect();
        self.nodes[at].ever_pruned.extend(pruned);
        let word = requests.first().map(request_word).unwrap_or_default();
        let replies = self.nodes[at].request(requests)?;
        self.check_times(at, &replies)?;
        for reply in &replies {
            if let SimReply::Arrived(_, outcome) = reply {
                self.reached.reach_outcome(outcome);
            }
        }
        if !self.nodes[at].disk.is_dead() {
            return Ok(false);
        }
        let word = word.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
        self.reached.reach(format!("crash during {}", word.to_ascii_lowercase()));
        self.restart(at)?;
        Ok(true)
    }

    /// Nothing is applied before its time, unless it comes right after something that was, under a clock that was set back.
    fn check_times(&self, at: usize, replies: &[SimReply]) -> Result<(), String> {
        let node = &self.nodes[at];
        for reply in replies {
            let SimReply::Arrived(id, Outcome::Applied(_)) = reply else {
                continue;
            };
            let Some(made) = self.world.events.iter().find(|made| made.id == *id) else { continue };
            let bound = node.now + self.policy.future_nanos;
            if made.envelope.created_at.0 > bound && !node.follows_what_is_ahead(self.world, made, bound) {
                return Err(format!("node {at} applied {id} before its time"));
            }
        }
        Ok(())
    }

    fn restart(&mut self, at: usize) -> Result<(), String> {
        let loss = *self.random.pick(&[CrashLoss::Kept, CrashLoss::Dropped, CrashLoss::Torn]);
        self.say(|| format!("node {at} crashes, unsynced writes {loss:?}"));
        self.reached.reach(format!("crash {loss:?}"));
        let node = &mut self.nodes[at];
        node.core = None;
        node.disk = node.disk.recover(loss, &mut self.random);
        node.hunter = Hunter::new(DomainLimits::default());
        node.open(self.policy)?;
        node.check_acknowledged()?;
        node.survey(&mut self.reached)
    }
}

fn transit_secret(number: usize) -> [u8; 32] {
    [number as u8 + 1; 32]
}

fn request_word(request: &SimRequest) -> String {
    match request {
        SimRequest::Arrive(arrive) => format!("arrive {}", arrive.0.blob.id()),
        SimRequest::Deliver(Deliver { hash, .. }) => format!("content {}", &hash.to_string()[..8]),
        other => format!("{other:?}").chars().take(60).collect(),
    }
}

fn arrive(
    keys: &Arc<store::KeyringSecrets>,
    policy: &Policy,
    blob: Vec<u8>,
    inline: Option<Vec<u8>>,
) -> Option<SimRequest> {
    let arrival = match probe::is_probe(&blob) {
        true => probe::receive(keys, policy, blob, inline).ok()?,
        false => chains::receive_blob(&**keys, policy, blob, inline, Origin::Import).ok()?,
    };
    Some(SimRequest::arrive(arrival))
}

/// The door compares the hash before content goes any further.
fn checked_content(space: SpaceId, hash: model::ContentHash, bytes: Vec<u8>) -> Option<SimRequest> {
    (content_hash(&bytes) == hash).then_some(SimRequest::deliver(space, hash, bytes))
}
