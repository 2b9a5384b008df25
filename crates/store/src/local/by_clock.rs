//! This node's own: secrets that were made or agreed here, and upkeep that time asks for.

use crate::database::batch::Batch;
use crate::database::db::{Db, fault};
use crate::encode;
use crate::tables::TableReads;
use engine::change::RowChange;
use engine::reads::{Reads, StoreResult};
use engine::rows::Task;
use engine::{Change, release};
use model::crypto::{TransitSecret, prekey_id, prekey_public};
use model::{ContentHash, Identity, Nanos, Need, Seq, SpaceId, SpaceNo};
use redb::ReadableTable as _;

impl Batch<'_> {
    pub(crate) fn touch(&mut self) {
        self.is_changed = true;
    }

    /// Adds the secret of a prekey, and looks again at what was carried of that space.
    pub fn add_prekey(&mut self, secret: [u8; 32], space: Option<SpaceId>) -> StoreResult<()> {
        self.touch();
        let id = prekey_id(&prekey_public(&secret));
        let wrapped = self.shared.master.wrap(&id.0, &secret);
        self.db.tables.prekeys.insert(id.0, wrapped.as_slice()).map_err(fault)?;
        self.db.pending.keys.add_prekey(id, secret);
        match space {
            Some(space) => self.apply(vec![Change::Task(RowChange::Put, Task::Join(space, Seq(0)))]),
            None => Ok(()),
        }
    }

    /// Keeps a space key, wherever it came from.
    pub(crate) fn add_key(&mut self, space: SpaceId, secret: [u8; 32]) -> StoreResult<()> {
        let key = model::crypto::SpaceKey::new(&space, secret);
        let name = [space.0.as_slice(), &key.id().0].concat();
        let wrapped = self.shared.master.wrap(&name, &secret);
        let row: [u8; 32] = crate::keys::key(&[&name]);
        self.db.tables.keys.insert(row, wrapped.as_slice()).map_err(fault)?;
        self.db.pending.keys.add_space_key(space, key);
        Ok(())
    }

    /// Adds a space key that was made here.
    pub fn add_space_key(&mut self, space: SpaceId, secret: [u8; 32]) -> StoreResult<()> {
        let key = model::crypto::SpaceKey::new(&space, secret).id();
        // Only a key that was made here is written under: a received one merely opens.
        self.db.tables.current_keys.insert(space.0, key.0).map_err(fault)?;
        self.apply(vec![
            Change::Key(space, secret),
            Change::Joined(space),
            Change::Task(RowChange::Put, Task::Join(space, Seq(0))),
            Change::Task(RowChange::Put, Task::Release(Need::Key(key))),
        ])
    }

    /// Adds a transit secret agreed with a peer for a space.
    pub fn add_transit(&mut self, secret: [u8; 32], space: SpaceId, peer: u32) -> StoreResult<()> {
        self.touch();
        let transit = TransitSecret::new(secret);
        let bytes = [secret.as_slice(), &space.0, &u64::from(peer).to_be_bytes()].concat();
        let wrapped = self.shared.master.wrap(&transit.id().0, &bytes);
        self.db.tables.transits.insert(transit.id().0, wrapped.as_slice()).map_err(fault)?;
        let secret = std::sync::Arc::new(transit);
        self.db.pending.keys.add_transit(engine::receive::Transit { secret, space, peer });
        Ok(())
    }

    /// Keeps the signing key of a custodial identity.
    pub fn add_custodian(&mut self, identity: &Identity, secret: &[u8; 32]) -> StoreResult<()> {
        self.touch();
        let name = [b"custodian".as_slice(), &identity.0].concat();
        let wrapped = self.shared.master.wrap(&name, secret);
        self.db.tables.custodians.insert(identity.0, wrapped.as_slice()).map_err(fault)?;
        Ok(())
    }

    /// Wakes what waited for a moment that has passed.
    pub fn wake_by_clock(&mut self, most: usize) -> StoreResult<usize> {
        let mut due = Vec::new();
        for entry in self.db.tables.waiting.range([Need::TIME_TAG].as_slice()..).map_err(fault)?.take(most) {
            let (key, _) = entry.map_err(fault)?;
            let mut reader = model::reader::ByteReader::new(key.value());
            match Need::read_key(&mut reader) {
                Ok(Need::Time(at)) if at <= self.now => due.push(Need::Time(at)),
                _ => break,
            }
        }
        due.dedup();
        for need in &due {
            let policy = self.db.policy;
            let changes = release::met(&self.db, &policy, need.clone())?;
            self.apply(changes)?;
        }
        Ok(due.len())
    }

    /// Ends the wait of what has waited too long.
    pub fn expire_old(&mut self, most: usize) -> StoreResult<usize> {
        let mut old = Vec::new();
        for entry in self.db.tables.held.iter().map_err(fault)?.take(most) {
            let key = entry.map_err(fault)?.0.value();
            if key[..8] >= self.now.0.to_be_bytes()[..] {
                break;
            }
            old.push(crate::database::db::seq_at_end(&key));
        }
        let policy = self.db.policy;
        for seq in &old {
            let changes = release::expire(&self.db, &policy, *seq, self.now)?;
            self.apply(changes)?;
        }
        Ok(old.len())
    }

    /// Drops journal entries that are too old.
    pub fn trim_journal(&mut self, most: usize) -> StoreResult<usize> {
        let before = self.now.minus(self.db.policy.journal_nanos);
        let mut old = Vec::new();
        for entry in self.db.tables.journal.iter().map_err(fault)?.take(most) {
            let (number, value) = entry.map_err(fault)?;
            let entry = encode::decode_entry(&value.value())?;
            if entry.at >= before {
                break;
            }
            old.push((number.value(), entry.space));
        }
        for (number, _) in &old {
            self.db.tables.journal.remove(number).map_err(fault)?;
        }
        if !old.is_empty() {
            self.touch();
            self.trim_blocks(&old)?;
        }
        Ok(old.len())
    }

    /// A block of the journal's index goes when the last of its numbers has gone.
    fn trim_blocks(&mut self, trimmed: &[(u64, model::SpaceNo)]) -> StoreResult<()> {
        let first = self.db.tables.journal.first().map_err(fault)?.map_or(u64::MAX, |(number, _)| number.value());
        for (number, space) in trimmed {
            let block = number / crate::database::batch::JOURNAL_BLOCK;
            if block < first / crate::database::batch::JOURNAL_BLOCK {
                let key: [u8; 12] = crate::keys::key(&[&space.0.to_be_bytes(), &block.to_be_bytes()]);
                self.db.tables.journal_blocks.remove(key).map_err(fault)?;
            }
        }
        Ok(())
    }
}

impl Batch<'_> {
    /// Claims storage for a space, if it then keeps no more than so much. Counted anew with each batch.
    pub fn claim_bytes(&mut self, space: SpaceNo, bytes: u64, most: u64) -> StoreResult<bool> {
        let used = match self.claimed.get(&space) {
            Some(used) => *used,
            None => {
                let bound = |author: u32| crate::keys::key::<8>(&[&space.0.to_be_bytes(), &author.to_be_bytes()]);
                let mut used = 0;
                for entry in self.db.tables.usage.range(bound(0)..=bound(u32::MAX)).map_err(fault)? {
                    let usage = encode::decode_usage(entry.map_err(fault)?.1.value())?;
                    // What somebody only promises takes nothing from the others.
                    used += usage.by_state[encode::usage_index(model::stage::ContentState::Processed)].1;
                }
                used
            }
        };
        let fits = used.saturating_add(bytes) <= most;
        self.claimed.insert(space, if fits { used.saturating_add(bytes) } else { used });
        Ok(fits)
    }
}

/// The bytes of content that is here or wanted.
fn kept(usage: &encode::Usage) -> u64 {
    let of = |state| usage.by_state[encode::usage_index(state)].1;
    of(model::stage::ContentState::Missing).saturating_add(of(model::stage::ContentState::Processed))
}

impl<V: TableReads> Db<V> {
    /// When something next happens by the clock alone: a time need is met, a wait ends, or content is collected.
    pub fn next_by_clock(&self) -> StoreResult<Option<Nanos>> {
        let mut next: Option<Nanos> = None;
        let mut sooner = |at: Nanos| next = Some(next.map_or(at, |other| other.min(at)));
        if let Some(entry) = self.tables.waiting().range([Need::TIME_TAG].as_slice()..).map_err(fault)?.next() {
            let (key, _) = entry.map_err(fault)?;
            if let Ok(Need::Time(at)) = Need::read_key(&mut model::reader::ByteReader::new(key.value())) {
                sooner(at);
            }
        }
        if let Some((key, ())) = self.tables.held().first().map_err(fault)?.map(|(key, _)| (key.value(), ())) {
            let until = key.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            sooner(Nanos(until).plus(1));
        }
        if let Some(key) = self.tables.unused().first().map_err(fault)?.map(|(key, _)| key.value()) {
            let since = key.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes));
            sooner(Nanos(since).plus(self.policy.grace_nanos));
        }
        if let Some(at) = self.next_retention()? {
            sooner(at);
        }
        if self.tables.forgotten_files().first().map_err(fault)?.is_some() {
            sooner(Nanos(0));
        }
        Ok(next)
    }

    /// Whether anything is ready or under way.
    pub fn is_at_rest(&self) -> StoreResult<bool> {
        use redb::ReadableTableMetadata as _;
        Ok(self.tables.ready().is_empty().map_err(fault)? && self.tables.tasks().is_empty().map_err(fault)?)
    }

    /// Whether an id expired recently: sync does not ask for it again.
    pub fn expired_recently(&self, id: &model::EventId) -> StoreResult<bool> {
        Ok(self.tables.expired().get(id.0).map_err(fault)?.is_some())
    }

    /// The journal's epoch.
    pub fn epoch(&self) -> StoreResult<u32> {
        Ok(self.about_number("epoch")? as u32)
    }

    /// The numbers of all known events.
    pub fn all_events(&self) -> StoreResult<Vec<Seq>> {
        let mut numbers = Vec::new();
        for entry in self.tables.events().iter().map_err(fault)? {
            numbers.push(Seq(entry.map_err(fault)?.0.value()));
        }
        Ok(numbers)
    }

    /// How many contents nobody refers to, and the names of the files that rows speak of.
    pub fn unused_and_files(&self) -> StoreResult<(u64, Vec<String>)> {
        let mut unused = 0;
        let mut files = Vec::new();
        for entry in self.tables.contents().iter().map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let row = encode::decode_content(value.value())?;
            unused += u64::from(row.count == 0);
            if row.place == engine::rows::ContentLocation::File {
                let (space, hash) = crate::events::content::split_content_key(&key.value());
                files.push(crate::encode::file_name(&self.space_id(space)?, &hash));
            }
        }
        files.sort();
        Ok((unused, files))
    }

    /// Every content with its count of references and whether its bytes are here, in no order that means anything.
    pub fn contents(&self) -> StoreResult<Vec<(u64, bool)>> {
        let mut rows = Vec::new();
        for entry in self.tables.contents().iter().map_err(fault)? {
            let row = encode::decode_content(entry.map_err(fault)?.1.value())?;
            rows.push((row.count, row.place != engine::rows::ContentLocation::Absent));
        }
        rows.sort();
        Ok(rows)
    }

    /// The numbers of known events after one, in order, at most so many.
    pub fn events_after(&self, after: Seq, most: usize) -> StoreResult<Vec<Seq>> {
        let mut numbers = Vec::new();
        for entry in self.tables.events().range(after.0.saturating_add(1)..).map_err(fault)?.take(most) {
            numbers.push(Seq(entry.map_err(fault)?.0.value()));
        }
        Ok(numbers)
    }

    /// When an id expired, if that is remembered.
    pub fn expired_at(&self, id: &model::EventId) -> StoreResult<Option<Nanos>> {
        let found = self.tables.expired().get(id.0).map_err(fault)?.map(|guard| guard.value());
        Ok(found.and_then(|value| value.first_chunk::<8>().map(|at| Nanos(u64::from_be_bytes(*at)))))
    }

    /// The first need after this one that held events wait for, however many do.
    pub fn next_need(&self, after: Option<&Need>) -> StoreResult<Option<Need>> {
        let from = after.map_or(Vec::new(), |need| [need.to_key().as_slice(), &[0xff; 9]].concat());
        let Some(entry) = self.tables.waiting().range(from.as_slice()..).map_err(fault)?.next() else {
            return Ok(None);
        };
        let (key, _) = entry.map_err(fault)?;
        let need = Need::read_key(&mut model::reader::ByteReader::new(key.value()));
        need.map(Some).map_err(|_| encode::broken("a waiting key"))
    }

    /// The first content after this one that applied events miss, however many do.
    pub fn next_missing(&self, after: Option<(SpaceNo, ContentHash)>) -> StoreResult<Option<(SpaceNo, ContentHash)>> {
        let from: [u8; 44] =
            after.map_or([0; 44], |(space, hash)| crate::keys::key(&[&encode::content_key(space, &hash), &[0xff; 8]]));
        let Some(entry) = self.tables.content_waiting().range(from..).map_err(fault)?.next() else {
            return Ok(None);
        };
        let key = entry.map_err(fault)?.0.value();
        Ok(Some(crate::events::content::split_content_key(&crate::keys::key(&[&key[..36]]))))
    }

    /// Every space that has a number here, with how many opened events it has and how many bytes of content they name.
    pub fn spaces(&self) -> StoreResult<Vec<(SpaceId, u64, u64)>> {
        let mut spaces = Vec::new();
        for entry in self.tables.space_ids().iter().map_err(fault)? {
            let (no, id) = entry.map_err(fault)?;
            let (events, bytes) = self.usage_of(SpaceNo(no.value()))?;
            spaces.push((SpaceId(id.value()), events, bytes));
        }
        Ok(spaces)
    }

    /// How many bytes of content an author keeps in a space, here or wanted.
    pub fn kept_bytes(&self, space: SpaceNo, author: model::AuthorNo) -> StoreResult<u64> {
        let key = crate::keys::key(&[&space.0.to_be_bytes(), &author.0.to_be_bytes()]);
        Ok(kept(&self.usage_row(&key)?))
    }

    /// How many opened events a space has, and how many bytes of content they name.
    pub fn usage_of(&self, space: SpaceNo) -> StoreResult<(u64, u64)> {
        let bound = |author: u32| crate::keys::key::<8>(&[&space.0.to_be_bytes(), &author.to_be_bytes()]);
        let (mut events, mut bytes) = (0, 0);
        for entry in self.tables.usage().range(bound(0)..=bound(u32::MAX)).map_err(fault)? {
            let usage = encode::decode_usage(entry.map_err(fault)?.1.value())?;
            events += usage.by_state.iter().map(|(events, _)| events).sum::<u64>();
            bytes += usage.by_state.iter().map(|(_, bytes)| bytes).sum::<u64>();
        }
        Ok((events, bytes))
    }

    /// How often each counted thing happened.
    pub fn counts(&self) -> StoreResult<Vec<(String, u64)>> {
        let mut counts = Vec::new();
        for entry in self.tables.counts().iter().map_err(fault)? {
            let (word, count) = entry.map_err(fault)?;
            counts.push((word.value().to_owned(), count.value()));
        }
        Ok(counts)
    }

    /// Whether an event is known, in any stage.
    pub fn is_known(&self, id: &model::EventId) -> StoreResult<bool> {
        Ok(self.seq(id)?.is_some())
    }
}
