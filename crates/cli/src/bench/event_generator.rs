//! Generates signed events: a space with 1,000 members and 100 threads, and any number of messages.

use anyhow::{Context as _, Result};
use ed25519_dalek::SigningKey;
use engine::rows::Origin;
use model::content::seal_content;
use model::crypto::{SpaceKey, content_hash, space_id};
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::{AuxKey, Blob, Envelope, EventId, Identity, Kind, Nanos, SpaceId};
use node::node_commands::{AddSpaceKey, Arrive};
use node::{Clock, WriterCore};
use std::path::Path;
use std::sync::Arc;
use store::{FolderDisk, MasterKey, Store, StoreOptions};

/// The time of the first event.
const FIRST_EVENT_NANOS: u64 = 1_700_000_000_000_000_000;
/// How many events are signed, verified and written at a time: as many as the node puts into one transaction.
pub(crate) const CHUNK: u64 = 4096;
const AUTHORS: u64 = 1000;
const THREADS: u64 = 100;

/// A blob and its inline content.
#[derive(Clone, Debug)]
pub(crate) struct RawEvent {
    pub(crate) blob: Vec<u8>,
    pub(crate) inline: Option<Vec<u8>>,
}

/// A space, its members and its threads.
#[derive(Debug)]
pub(crate) struct EventGenerator {
    pub(crate) space: SpaceId,
    pub(crate) key: Option<Arc<SpaceKey>>,
    authors: Vec<(SigningKey, EventId)>,
    pub(crate) threads: Vec<EventId>,
    /// The events that messages need (space, memberships, threads), in order.
    pub(crate) foundation: Vec<RawEvent>,
}

fn signing_key(number: u64) -> SigningKey {
    let mut secret = [3; 32];
    secret[..8].copy_from_slice(&number.to_be_bytes());
    SigningKey::from_bytes(&secret)
}

impl EventGenerator {
    /// The space is sealed if there is a secret, else open.
    pub(crate) fn new(sealed: Option<[u8; 32]>) -> Result<EventGenerator> {
        let owner = signing_key(0);
        let identity = Identity(owner.verifying_key().to_bytes());
        let aux = AuxKey([9; 16]);
        let space = space_id(&identity, &aux, sealed.is_some());
        let key = sealed.map(|secret| Arc::new(SpaceKey::new(&space, secret)));
        let mut generator =
            EventGenerator { space, key, authors: Vec::new(), threads: Vec::new(), foundation: Vec::new() };
        let mut founding = Envelope::new(Kind::Space, Nanos(FIRST_EVENT_NANOS), space, identity);
        founding.aux = aux;
        founding.payload = Payload::Space { sealed: generator.key.is_some() };
        let root = generator.add_foundation(&owner, founding, b"{\"name\":\"bench\"}")?;
        for number in 0..AUTHORS {
            let author = signing_key(number + 1);
            let member = Identity(author.verifying_key().to_bytes());
            let mut grant = Envelope::new(Kind::Member, Nanos(FIRST_EVENT_NANOS + 1 + number), space, identity);
            grant.payload = Payload::Member { member, role: MemberRole::Member };
            grant.references = vec![Reference { role: Role::Authority, id: root }];
            let membership = generator.add_foundation(&owner, grant, b"")?;
            generator.authors.push((author, membership));
        }
        for number in 0..THREADS {
            let mut thread = Envelope::new(Kind::Thread, Nanos(FIRST_EVENT_NANOS + 5000 + number), space, identity);
            thread.references = vec![Reference { role: Role::Authority, id: root }];
            let thread = generator.add_foundation(&owner, thread, b"{\"title\":\"thread\"}")?;
            generator.threads.push(thread);
        }
        Ok(generator)
    }

    fn add_foundation(&mut self, author: &SigningKey, envelope: Envelope, content: &[u8]) -> Result<EventId> {
        let (id, raw) = self.sign(author, envelope, content)?;
        self.foundation.push(raw);
        Ok(id)
    }

    fn sign(&self, author: &SigningKey, mut envelope: Envelope, content: &[u8]) -> Result<(EventId, RawEvent)> {
        let identity = Identity(author.verifying_key().to_bytes());
        let wire = match &self.key {
            Some(key) => {
                envelope.key = key.id();
                seal_content(key, content, model::limits::INLINE_BYTES_MAX, identity, envelope.created_at)
            }
            None => content.to_vec(),
        };
        envelope.content_len = wire.len() as u64;
        envelope.content_hash = content_hash(&wire);
        let signed = envelope.sign(author)?;
        let blob = match &self.key {
            Some(key) => Blob::seal(&signed, key)?,
            None => Blob::plain(&signed)?,
        };
        Ok((blob.id(), RawEvent { blob: blob.bytes().to_vec(), inline: Some(wire).filter(|wire| !wire.is_empty()) }))
    }

    /// A message needs its author's membership and its thread.
    pub(crate) fn message(&self, number: u64) -> Result<RawEvent> {
        let (author, membership) = &self.authors[(number.wrapping_mul(2_654_435_761) % AUTHORS) as usize];
        let thread = self.threads[(number % THREADS) as usize];
        let at = Nanos(FIRST_EVENT_NANOS + 1_000_000 + number * 1000);
        let identity = Identity(author.verifying_key().to_bytes());
        let mut envelope = Envelope::new(Kind::Message, at, self.space, identity);
        envelope.references =
            vec![Reference { role: Role::Authority, id: *membership }, Reference { role: Role::Thread, id: thread }];
        let text = format!("{{\"text\":\"message number {number} says something of an ordinary length to everyone\"}}");
        Ok(self.sign(author, envelope, text.as_bytes())?.1)
    }

    /// Signs on all cores.
    pub(crate) fn messages(&self, from: u64, count: u64) -> Result<Vec<RawEvent>> {
        in_parallel(count, |number| self.message(from + number))
    }
}

/// Calls the function for each number on all cores; the results are in order.
pub(crate) fn in_parallel<T: Send>(count: u64, make: impl Fn(u64) -> Result<T> + Sync) -> Result<Vec<T>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = count.div_ceil(cores).max(1);
    std::thread::scope(|scope| {
        let make = &make;
        let parts: Vec<_> = (0..cores)
            .map(|core| scope.spawn(move || (core * share..((core + 1) * share).min(count)).map(make).collect()))
            .collect();
        let mut all = Vec::with_capacity(count as usize);
        for part in parts {
            let part: Result<Vec<T>> = part.join().map_err(|_| anyhow::anyhow!("a thread failed"))?;
            all.extend(part?);
        }
        Ok(all)
    })
}

/// A clock that is later than all generated events.
#[derive(Debug)]
pub(crate) struct LateClock;

impl Clock for LateClock {
    fn now(&self) -> Nanos {
        Nanos(FIRST_EVENT_NANOS + 400 * 24 * 3600 * Nanos::SECOND)
    }
}

pub(crate) fn open_store(folder: &Path) -> Result<Store> {
    let disk = Arc::new(FolderDisk::new(folder)?);
    Ok(Store::open(disk, MasterKey::new(&[1; 32]), StoreOptions::default())?)
}

/// Verifies events on all cores, as the node does when it receives them.
pub(crate) fn verify_all(store: &Store, raw: Vec<RawEvent>) -> Result<Vec<Arrive>> {
    in_parallel(raw.len() as u64, |number| {
        let raw = raw[number as usize].clone();
        let (keys, policy) = (&**store.keys(), store.policy());
        let arrival = engine::chains::receive_blob(keys, policy, raw.blob, raw.inline, Origin::Import)?;
        Ok(Arrive(Box::new(arrival)))
    })
}

pub(crate) fn create_temp_folder(dir: Option<&Path>) -> Result<tempfile::TempDir> {
    let dir = dir.map_or_else(std::env::temp_dir, Path::to_owned);
    tempfile::Builder::new()
        .prefix("anteroom-bench")
        .tempdir_in(dir)
        .context("cannot create a folder for the benchmark")
}

pub(crate) fn store_foundation(core: &WriterCore, generator: &EventGenerator) -> Result<()> {
    if let Some(key) = &generator.key {
        core.ask(AddSpaceKey(generator.space, *key.secret()), LateClock.now())?;
    }
    let requests = verify_all(core.store(), generator.foundation.clone())?;
    core.run(requests, LateClock.now())?;
    core.settle(LateClock.now())?;
    Ok(())
}

/// Writes messages chunk by chunk; the next chunk is signed and verified while one is written.
pub(crate) fn store_messages(
    core: &WriterCore,
    generator: &EventGenerator,
    from: u64,
    count: u64,
    mut report: impl FnMut(u64),
) -> Result<()> {
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Result<Vec<Arrive>>>(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut at = from;
            while at < from + count {
                let part = CHUNK.min(from + count - at);
                let made = generator.messages(at, part).and_then(|raw| verify_all(core.store(), raw));
                if sender.send(made).is_err() {
                    return;
                }
                at += part;
            }
        });
        let mut done = 0;
        for requests in receiver {
            let requests = requests?;
            done += requests.len() as u64;
            core.run(requests, LateClock.now())?;
            report(done);
        }
        Ok(())
    })
}
