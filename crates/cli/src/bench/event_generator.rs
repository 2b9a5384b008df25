//! A supply of signed events: a space with many members and threads, and as many messages as are wanted.

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

/// When the first event was made.
const BEGINNING: u64 = 1_700_000_000_000_000_000;
/// How many events are signed, checked and written at a time: as many as the node takes into one transaction.
pub(crate) const CHUNK: u64 = 4096;
const AUTHORS: u64 = 1000;
const THREADS: u64 = 100;

/// A blob and its inline content.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) blob: Vec<u8>,
    pub(crate) inline: Option<Vec<u8>>,
}

/// A space, its members and its threads.
#[derive(Debug)]
pub(crate) struct Supply {
    pub(crate) space: SpaceId,
    pub(crate) key: Option<Arc<SpaceKey>>,
    authors: Vec<(SigningKey, EventId)>,
    pub(crate) threads: Vec<EventId>,
    /// The events that the others stand on, in order.
    pub(crate) foundation: Vec<Raw>,
}

fn signing_key(number: u64) -> SigningKey {
    let mut secret = [3; 32];
    secret[..8].copy_from_slice(&number.to_be_bytes());
    SigningKey::from_bytes(&secret)
}

impl Supply {
    /// A space, sealed under this secret or open.
    pub(crate) fn new(sealed: Option<[u8; 32]>) -> Result<Supply> {
        let owner = signing_key(0);
        let identity = Identity(owner.verifying_key().to_bytes());
        let aux = AuxKey([9; 16]);
        let space = space_id(&identity, &aux, sealed.is_some());
        let key = sealed.map(|secret| Arc::new(SpaceKey::new(&space, secret)));
        let mut supply = Supply { space, key, authors: Vec::new(), threads: Vec::new(), foundation: Vec::new() };
        let mut founding = Envelope::new(Kind::Space, Nanos(BEGINNING), space, identity);
        founding.aux = aux;
        founding.payload = Payload::Space { sealed: supply.key.is_some() };
        let root = supply.lay(&owner, founding, b"{\"name\":\"bench\"}")?;
        for number in 0..AUTHORS {
            let author = signing_key(number + 1);
            let member = Identity(author.verifying_key().to_bytes());
            let mut grant = Envelope::new(Kind::Member, Nanos(BEGINNING + 1 + number), space, identity);
            grant.payload = Payload::Member { member, role: MemberRole::Member };
            grant.references = vec![Reference { role: Role::Authority, id: root }];
            let membership = supply.lay(&owner, grant, b"")?;
            supply.authors.push((author, membership));
        }
        for number in 0..THREADS {
            let mut thread = Envelope::new(Kind::Thread, Nanos(BEGINNING + 5000 + number), space, identity);
            thread.references = vec![Reference { role: Role::Authority, id: root }];
            let thread = supply.lay(&owner, thread, b"{\"title\":\"thread\"}")?;
            supply.threads.push(thread);
        }
        Ok(supply)
    }

    fn lay(&mut self, author: &SigningKey, envelope: Envelope, content: &[u8]) -> Result<EventId> {
        let (id, raw) = self.wrap(author, envelope, content)?;
        self.foundation.push(raw);
        Ok(id)
    }

    fn wrap(&self, author: &SigningKey, mut envelope: Envelope, content: &[u8]) -> Result<(EventId, Raw)> {
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
        Ok((blob.id(), Raw { blob: blob.bytes().to_vec(), inline: Some(wire).filter(|wire| !wire.is_empty()) }))
    }

    /// The message of that number; it needs its author's membership and its thread, and perhaps one more event.
    pub(crate) fn message(&self, number: u64) -> Result<Raw> {
        let (author, membership) = &self.authors[(number.wrapping_mul(2_654_435_761) % AUTHORS) as usize];
        let thread = self.threads[(number % THREADS) as usize];
        let at = Nanos(BEGINNING + 1_000_000 + number * 1000);
        let identity = Identity(author.verifying_key().to_bytes());
        let mut envelope = Envelope::new(Kind::Message, at, self.space, identity);
        envelope.references =
            vec![Reference { role: Role::Authority, id: *membership }, Reference { role: Role::Thread, id: thread }];
        let text = format!("{{\"text\":\"message number {number} says something of an ordinary length to everyone\"}}");
        Ok(self.wrap(author, envelope, text.as_bytes())?.1)
    }

    /// Messages of a range of numbers, signed on all cores.
    pub(crate) fn messages(&self, from: u64, count: u64) -> Result<Vec<Raw>> {
        in_parallel(count, |number| self.message(from + number))
    }
}

/// Makes so many things on all cores, in order.
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

/// A clock after all events of the supply.
#[derive(Debug)]
pub(crate) struct LateClock;

impl Clock for LateClock {
    fn now(&self) -> Nanos {
        Nanos(BEGINNING + 400 * 24 * 3600 * Nanos::SECOND)
    }
}

/// Opens a store in a folder.
pub(crate) fn open(folder: &Path) -> Result<Store> {
    let disk = Arc::new(FolderDisk::new(folder)?);
    Ok(Store::open(disk, MasterKey::new(&[1; 32]), StoreOptions::default())?)
}

/// Checks raw events on all cores, as the doors do.
pub(crate) fn check(store: &Store, raw: Vec<Raw>) -> Result<Vec<Arrive>> {
    in_parallel(raw.len() as u64, |number| {
        let raw = raw[number as usize].clone();
        let (keys, policy) = (&**store.keys(), store.policy());
        let arrival = engine::chains::receive_blob(keys, policy, raw.blob, raw.inline, Origin::Import)?;
        Ok(Arrive(Box::new(arrival)))
    })
}

/// A folder that is removed at the end.
pub(crate) fn folder(dir: Option<&Path>) -> Result<tempfile::TempDir> {
    let dir = dir.map_or_else(std::env::temp_dir, Path::to_owned);
    tempfile::Builder::new().prefix("anteroom-bench").tempdir_in(dir).context("no folder for the benchmark's store")
}

/// Puts the foundation of a supply into a store.
pub(crate) fn found(core: &WriterCore, supply: &Supply) -> Result<()> {
    if let Some(key) = &supply.key {
        core.ask(AddSpaceKey(supply.space, *key.secret()), LateClock.now())?;
    }
    let requests = check(core.store(), supply.foundation.clone())?;
    core.run(requests, LateClock.now())?;
    core.settle(LateClock.now())?;
    Ok(())
}

/// Fills a store with messages, a chunk at a time: the next is signed and checked while one is written.
pub(crate) fn fill(core: &WriterCore, supply: &Supply, from: u64, count: u64, mut tell: impl FnMut(u64)) -> Result<()> {
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Result<Vec<Arrive>>>(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut at = from;
            while at < from + count {
                let part = CHUNK.min(from + count - at);
                let made = supply.messages(at, part).and_then(|raw| check(core.store(), raw));
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
            tell(done);
        }
        Ok(())
    })
}
