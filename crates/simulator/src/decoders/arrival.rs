//! A node to which anything may be sent: the bytes are a script of what arrives, honest, bent and made up.
//!
//! Each step is a byte that says what happens and a few that say to what. The node must keep its invariants whatever
//! the script; a step that makes no sense does nothing.

use super::TRANSIT_SECRET;
use crate::disk::SimDisk;
use crate::protocol::space::cast::{Author, MadeEvent};
use crate::protocol::space::world::World;
use crate::random::SeededRandom;
use crate::requests::SimRequest;
use crate::staging::stage;
use engine::chains;
use engine::policy::Policy;
use engine::receive::{Arrival, DropReason};
use engine::rows::Origin;
use model::crypto::{SpaceKey, TransitSecret, content_hash, prekey_public};
use model::envelope::{Reference, Role};
use model::packet::{PacketContent, wrap, wrap_first};
use model::payload::Payload;
use model::reader::ByteReader;
use model::{Blob, Envelope, EventId, Kind, Nanos, Need, Verified};
use node::WriterCore;
use node::node_commands::{Collect, EndHunt, Tick};
use std::sync::{Arc, OnceLock};
use store::{MasterKey, Store, StoreOptions};

/// Steps of one script: enough for a story, few enough to be quick.
const STEPS_MAX: usize = 32;
const AUTHORS: u64 = 5;

/// What every script begins with: a world, and a node that knows nothing of it yet.
struct Setup {
    events: Vec<MadeEvent>,
    keys: Vec<SpaceKey>,
    prekey: [u8; 32],
    policy: Policy,
    disk: SimDisk,
    begin: u64,
}

/// Usual limits, and such that everything overflows at once.
fn setup(number: usize) -> &'static Setup {
    static SETUPS: [OnceLock<Setup>; 2] = [const { OnceLock::new() }; 2];
    let tight = Policy {
        inline_bytes_max: 0,
        row_content_bytes_max: 2000,
        held_per_author_max: 4,
        held_per_peer_max: 3,
        held_max: 6,
        carried_per_space_max: 3,
        refused_max: 2,
        expired_max: 2,
        releases_max: 2,
        grace_nanos: 1,
        ..Policy::default()
    };
    let policy = [Policy::default(), tight][number % 2];
    SETUPS[number % 2].get_or_init(|| Setup::new(policy))
}

impl Setup {
    fn new(policy: Policy) -> Setup {
        let fits = |world: &World| world.inline_max == policy.inline_bytes_max && !world.key_events[0].is_empty();
        let world =
            (1..).map(|seed| World::new(&mut SeededRandom::new(seed), 1)).find(fits).expect("a world with a secret");
        let keys = world.key_events[0].iter().filter_map(|made| match made.envelope.payload {
            Payload::Key(secret) => Some(SpaceKey::new(&made.envelope.space, secret)),
            _ => None,
        });
        let (keys, prekey, begin, disk) = (keys.collect(), world.prekeys[0], world.end, SimDisk::new());
        let space = world.events[0].envelope.space;
        let secrets = vec![SimRequest::add_prekey(prekey), SimRequest::add_transit(TRANSIT_SECRET, space, 1)];
        WriterCore::new(open(&disk, policy)).run(secrets, Nanos(begin)).expect("a healthy disk");
        let events = world.key_events.into_iter().flatten().chain(world.events).collect();
        Setup { events, keys, prekey, policy, disk, begin }
    }
}

fn open(disk: &SimDisk, policy: Policy) -> Store {
    let options = StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, random: store::KeySource::Seed(1) };
    Store::open(Arc::new(disk.clone()), MasterKey::new(&[1; 32]), options).expect("a healthy disk")
}

/// Whatever arrives, every invariant of the data folder holds afterwards.
pub fn arrival(bytes: &[u8]) {
    let mut script = Script { reader: ByteReader::new(bytes) };
    let setup = setup(script.number());
    let mut run = Run { core: WriterCore::new(open(&setup.disk.fork(), setup.policy)), now: setup.begin, setup };
    for _ in 0..STEPS_MAX {
        if script.reader.rest().is_empty() {
            break;
        }
        run.step(&mut script);
    }
    run.core.settle(Nanos(run.now)).expect("a healthy disk");
    let report = run.core.store().verify(Nanos(run.now)).expect("a healthy disk");
    assert_eq!(report.problems, Vec::<String>::new());
}

/// What is left of the script; after its end it says zero.
struct Script<'a> {
    reader: ByteReader<'a>,
}

impl<'a> Script<'a> {
    fn number(&mut self) -> usize {
        self.reader.u8().map_or(0, usize::from)
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        let number = self.number();
        &from[number % from.len()]
    }

    /// The next bytes, up to a bound, in number as the script says.
    fn bytes(&mut self) -> &'a [u8] {
        let most = self.number() * 4;
        let rest = self.reader.rest();
        self.reader.bytes(most.min(rest.len())).unwrap_or_default()
    }

    /// A copy in which a few bytes are others.
    fn patched(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..self.number() % 4 {
            let at = self.number() << 8 | self.number();
            let change = self.number() as u8;
            let length = bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at % length) {
                *byte ^= change;
            }
        }
        bytes
    }
}

struct Run {
    core: WriterCore,
    now: u64,
    setup: &'static Setup,
}

impl Run {
    fn step(&mut self, script: &mut Script<'_>) {
        let made = script.pick(&self.setup.events);
        match script.number() % 11 {
            0 => self.send(script, &made.blob, self.inline(made)),
            1 => self.send_in_a_row(script),
            2 => {
                let blob = script.patched(&made.blob);
                self.send(script, &blob, self.inline(made));
            }
            3 => {
                let inline = script.patched(&made.wire);
                self.send(script, &made.blob, Some(inline));
            }
            4 => {
                if let Some(blob) = self.bent(script, made) {
                    self.send(script, &blob, self.inline(made));
                }
            }
            5 => {
                let (blob, inline) = (script.bytes(), script.bytes());
                self.send(script, blob, Some(inline.to_vec()));
            }
            6 => self.ask(vec![SimRequest::deliver(made.envelope.space, made.hash(), made.wire.clone())]),
            7 => {
                let (wire, space) = (script.patched(&made.wire), script.pick(&self.setup.events).envelope.space);
                self.ask(vec![SimRequest::deliver(space, content_hash(&wire), wire)]);
            }
            8 => self.send_packet(script, made),
            9 => self.wait(script),
            _ => self.look_after(script, made),
        }
    }

    fn ask(&self, requests: Vec<SimRequest>) {
        let now = Nanos(self.now);
        let staged = requests.into_iter().map(|request| stage(&self.core, request, now).expect("a healthy disk"));
        self.core.run(staged.collect(), now).expect("no invariant breaks");
    }

    fn inline(&self, made: &MadeEvent) -> Option<Vec<u8>> {
        made.inline(self.setup.policy.inline_bytes_max)
    }

    fn receive(&self, blob: &[u8], inline: Option<Vec<u8>>, origin: Origin) -> Option<SimRequest> {
        let keys = self.core.store().keys().clone();
        let arrival = chains::receive_blob(&*keys, &self.setup.policy, blob.to_vec(), inline, origin);
        told(arrival)
    }

    fn send(&self, script: &mut Script<'_>, blob: &[u8], inline: Option<Vec<u8>>) {
        let origin = *script.pick(&[Origin::Import, Origin::Peer(1), Origin::Peer(2)]);
        self.ask(Vec::from_iter(self.receive(blob, inline, origin)));
    }

    fn send_in_a_row(&self, script: &mut Script<'_>) {
        let (from, count) = (script.number(), script.number() % 64);
        let events = self.setup.events.iter().cycle().skip(from % self.setup.events.len()).take(count);
        self.ask(events.filter_map(|made| self.receive(&made.blob, self.inline(made), Origin::Import)).collect());
    }

    fn send_packet(&self, script: &mut Script<'_>, made: &MadeEvent) {
        let carried = PacketContent { blob: script.patched(&made.blob), inline: self.inline(made).unwrap_or_default() };
        let packet = match script.number() % 2 {
            0 => wrap(&TransitSecret::new(TRANSIT_SECRET), [5; 24], &carried),
            _ => wrap_first([6; 32], &prekey_public(&self.setup.prekey), &carried),
        };
        let packet = script.patched(&packet.expect("a packet"));
        let keys = self.core.store().keys().clone();
        self.ask(Vec::from_iter(told(chains::receive_packet(&*keys, &self.setup.policy, &packet))));
    }

    /// Another statement than was made, signed and wrapped as it should be.
    fn bent(&self, script: &mut Script<'_>, made: &MadeEvent) -> Option<Vec<u8>> {
        let mut envelope = made.envelope.envelope().clone();
        for _ in 0..script.number() % 5 {
            let other = script.pick(&self.setup.events);
            bend(&mut envelope, script, &other.envelope, other.id);
        }
        let author = match script.number() as u64 {
            other @ 0..AUTHORS => Author::new(other),
            _ => (0..AUTHORS).map(Author::new).find(|author| author.identity == made.envelope.author)?,
        };
        let signed = envelope.sign(&author.key).ok()?;
        let key = self.setup.keys.iter().find(|key| key.id() == signed.key);
        let blob = match key {
            _ if signed.key.is_zero() => Blob::plain(&signed),
            // Also what no honest author would seal under a space key.
            Some(key) => Blob::seal_with_nonce(&signed, key, key.blob_nonce(signed.bytes())),
            None => Blob::address(&signed, &prekey_public(&self.setup.prekey)),
        };
        blob.ok().map(|blob| blob.bytes().to_vec())
    }

    /// Time passes in steps of any size, up to some months; or the clock is put back by an hour.
    fn wait(&mut self, script: &mut Script<'_>) {
        match script.number() {
            number @ 0..200 => self.now += 1 << (number % 53),
            _ => self.now -= 3600 * Nanos::SECOND,
        }
        self.ask(vec![SimRequest::Tick(Tick)]);
    }

    fn look_after(&self, script: &mut Script<'_>, made: &MadeEvent) {
        self.ask(vec![match script.number() % 8 {
            0 => SimRequest::prune(made.id),
            1 => SimRequest::want_back(made.id),
            2 => SimRequest::retry_event(made.id),
            3 => SimRequest::retry_need(Need::Event(made.id)),
            4 => SimRequest::retry_need(Need::Content(made.envelope.space, made.hash())),
            5 => SimRequest::retry_need(Need::Key(made.envelope.key)),
            6 => self.hunt(script),
            _ => SimRequest::Collect(Collect),
        }]);
    }

    fn hunt(&self, script: &mut Script<'_>) -> SimRequest {
        let schedule = self.core.store().snapshot().and_then(|db| db.schedule()).expect("a healthy disk");
        let number = script.number();
        let Some((group, row)) = schedule.get(number % schedule.len().max(1)) else {
            return SimRequest::Tick(Tick);
        };
        SimRequest::EndHunt(EndHunt {
            group: group.clone(),
            mark: row.mark(),
            started_at: Nanos(self.now),
            jitter_permille: number as u16,
        })
    }
}

fn told(arrival: Result<Arrival, DropReason>) -> Option<SimRequest> {
    match arrival {
        Ok(arrival) => Some(SimRequest::arrive(arrival)),
        Err(why) => {
            assert!(!why.to_string().is_empty() && !why.word().is_empty());
            None
        }
    }
}

/// Changes one thing of an envelope, mostly to what another one says.
fn bend(envelope: &mut Envelope, script: &mut Script<'_>, other: &Verified, id: EventId) {
    match script.number() % 10 {
        0 => envelope.kind = *script.pick(Kind::ALL),
        1 => envelope.created_at = Nanos(other.created_at.0 + script.number() as u64),
        2 => {
            let role = *script.pick(&[Role::Authority, Role::Thread, Role::Target, Role::Attachment, Role::ReplyTo]);
            envelope.references.push(Reference { role, id });
        }
        3 => drop(envelope.references.pop()),
        4 => (envelope.content_len, envelope.content_hash) = (other.content_len, other.content_hash),
        5 => envelope.content_len = script.number() as u64,
        6 => envelope.aux = other.aux,
        7 => envelope.parents = [id, other.parents[0]],
        8 => envelope.key = other.key,
        _ => {
            (envelope.kind, envelope.payload) = (other.kind, other.payload.clone());
            (envelope.space, envelope.key) = (other.space, other.key);
        }
    }
}
