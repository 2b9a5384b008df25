//! This node's own: secrets that were made or agreed here, and upkeep that time asks for.

use crate::database::batch::{Batch, JOURNAL_BLOCK};
use crate::database::db::Db;
use crate::encode;
use crate::keys::*;
use crate::tables::TableReads;
use engine::change::RowChange;
use engine::reads::{Reads, StoreError, StoreResult};
use engine::rows::{ContentLocation, Task};
use engine::{Change, release};
use model::crypto::{TransitSecret, prekey_id, prekey_public};
use model::{ContentHash, Identity, Nanos, Need, ObjectName, Seq, SpaceId, SpaceNo};
use std::collections::BTreeSet;

impl Batch<'_> {
    pub(crate) fn touch(&mut self) {
        self.is_changed = true;
    }

    /// Adds the secret of a prekey, and looks again at what was carried of that space.
    pub fn add_prekey(&mut self, secret: [u8; 32], space: Option<SpaceId>) -> StoreResult<()> {
        self.touch();
        let id = prekey_id(&prekey_public(&secret));
        let wrapped = self.shared.master.wrap(&id.0, &secret);
        self.db.tables.prekeys.insert(PrekeyName::new(id), &wrapped)?;
        self.db.pending.keys.add_prekey(id, secret);
        match space {
            Some(space) => self.apply(vec![Change::Task(RowChange::Put, Task::Join(space, Seq(0)))]),
            None => Ok(()),
        }
    }

    /// Keeps a space key, wherever it came from.
    pub(crate) fn add_key(&mut self, space: SpaceId, secret: [u8; 32]) -> StoreResult<()> {
        let key = model::crypto::SpaceKey::new(&space, secret);
        let name = SpaceKeyName::new(space, key.id());
        let wrapped = self.shared.master.wrap(name.as_bytes(), &secret);
        self.db.tables.keys.insert(name, &wrapped)?;
        self.db.pending.keys.add_space_key(space, key);
        Ok(())
    }

    /// Adds a space key that was made here, or came with the right to write in the space.
    pub fn add_space_key(&mut self, space: SpaceId, secret: [u8; 32]) -> StoreResult<()> {
        let key = model::crypto::SpaceKey::new(&space, secret).id();
        // Only a key that was made here is written under: a received one merely opens.
        self.db.tables.current_keys.insert(SpaceIdKey::new(space), key)?;
        self.learn_space_key(space, secret)
    }

    /// Adds a space key that came from elsewhere: it opens what is sealed under it.
    pub fn learn_space_key(&mut self, space: SpaceId, secret: [u8; 32]) -> StoreResult<()> {
        let key = model::crypto::SpaceKey::new(&space, secret).id();
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
        let bytes = [secret.as_slice(), &space.0, &peer.to_be_bytes()].concat();
        let wrapped = self.shared.master.wrap(&transit.id().0, &bytes);
        self.db.tables.transits.insert(TransitName::new(transit.id()), &wrapped)?;
        let secret = std::sync::Arc::new(transit);
        self.db.pending.keys.add_transit(engine::keyring::Transit { secret, space, peer });
        Ok(())
    }

    /// Keeps the signing key of a custodial identity.
    pub fn add_custodian(&mut self, identity: &Identity, secret: &[u8; 32]) -> StoreResult<()> {
        self.set_shared::<crate::shared::Custodians>(&IdentityKey::new(*identity), secret)
    }

    /// Wakes what waited for a moment that has passed.
    pub fn wake_by_clock(&mut self, most: usize) -> StoreResult<usize> {
        let mut due = Vec::new();
        for row in self.db.tables.waiting.range(WaitingKey::from_first_time())?.take(most) {
            match row?.key().parts()?.0 {
                Need::Time(at) if at <= self.now => due.push(Need::Time(at)),
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

    /// Ends the wait of what was to wait until before then.
    pub fn expire_old(&mut self, before: Nanos, most: usize) -> StoreResult<usize> {
        self.held_time = before.0;
        let mut old = Vec::new();
        for row in self.db.tables.held.iter()?.take(most) {
            let key = row?.key();
            if key.until() >= before {
                break;
            }
            old.push((key.until(), key.seq()));
        }
        let policy = self.db.policy;
        for (until, seq) in &old {
            let changes = match release::expire(&self.db, &policy, *seq, self.now) {
                // A wait that cannot be ended in order is ended without what cannot be read.
                Err(StoreError::Broken(why)) => {
                    self.db.tables.held.remove(HeldKey::new(*until, *seq))?;
                    self.db.held_total = self.db.held_total.saturating_sub(1);
                    release::park(&self.db, *seq, why)?
                }
                changes => changes?,
            };
            self.apply(changes)?;
        }
        Ok(old.len())
    }

    /// Drops journal entries that are too old.
    pub fn trim_journal(&mut self, most: usize) -> StoreResult<usize> {
        let before = self.now.minus(self.db.policy.journal_nanos);
        let mut old = Vec::new();
        for row in self.db.tables.journal.iter()?.take(most) {
            let row = row?;
            let entry = row.value()?;
            if entry.at >= before {
                break;
            }
            old.push((row.key().number(), entry.space));
        }
        for (number, _) in &old {
            self.db.tables.journal.remove(JournalNo::new(*number))?;
        }
        if !old.is_empty() {
            self.touch();
            self.write_journal_entries()?;
            self.trim_blocks(&old)?;
        }
        Ok(old.len())
    }

    /// A row of the journal's index goes with the last entry of its space in its block, others of the block may stay.
    fn trim_blocks(&mut self, trimmed: &[(u64, model::SpaceNo)]) -> StoreResult<()> {
        let first = self.db.tables.journal.first()?.map_or(u64::MAX, |row| row.key().number());
        let first_block = first / JOURNAL_BLOCK;
        let mut left = BTreeSet::new();
        let rest_of_block =
            JournalNo::new(first)..JournalNo::new(first_block.saturating_add(1).saturating_mul(JOURNAL_BLOCK));
        for row in self.db.tables.journal.range(rest_of_block)? {
            left.insert(row?.value()?.space);
        }
        for (number, space) in trimmed {
            let block = number / JOURNAL_BLOCK;
            if block < first_block || (block == first_block && !left.contains(space)) {
                self.db.tables.journal_blocks.remove(JournalBlockKey::new(*space, block))?;
            }
        }
        Ok(())
    }
}

/// The bytes of content that is here or wanted.
fn kept(usage: &encode::Usage) -> u64 {
    let of = |state| usage.by_state[encode::usage_index(state)].1;
    of(model::stage::ContentState::Missing).saturating_add(of(model::stage::ContentState::Processed))
}

impl<V: TableReads> Db<V> {
    /// When something next happens by the clock alone: a time need is met, a wait ends (of which so much time does not
    /// count), or content is collected.
    pub fn next_by_clock(&self, idle_nanos: u64) -> StoreResult<Option<Nanos>> {
        let mut next: Option<Nanos> = None;
        let mut sooner = |at: Nanos| next = Some(next.map_or(at, |other| other.min(at)));
        if let Some(row) = self.tables.waiting().range(WaitingKey::from_first_time())?.next()
            && let Need::Time(at) = row?.key().parts()?.0
        {
            sooner(at);
        }
        if let Some(row) = self.tables.held().first()? {
            sooner(row.key().until().plus(idle_nanos.saturating_add(1)));
        }
        if let Some(row) = self.tables.unused().first()? {
            sooner(row.key().since().plus(self.policy.grace_nanos));
        }
        if let Some(at) = self.next_retention()? {
            sooner(at);
        }
        if let Some(row) = self.tables.unfinished_objects().first()? {
            sooner(row.key().at());
        }
        Ok(next)
    }

    /// Whether anything is ready or under way.
    pub fn is_at_rest(&self) -> StoreResult<bool> {
        Ok(self.tables.ready().is_empty()? && self.tables.tasks().is_empty()?)
    }

    /// Whether an id expired recently: sync does not ask for it again.
    pub fn expired_recently(&self, id: &model::EventId) -> StoreResult<bool> {
        self.tables.expired().contains(EventIdKey::new(*id))
    }

    /// The journal's epoch.
    pub fn epoch(&self) -> StoreResult<u64> {
        self.about_number(crate::database::identity::EPOCH)
    }

    /// The numbers of all known events.
    pub fn all_events(&self) -> StoreResult<Vec<Seq>> {
        self.tables.events().iter()?.map(|row| Ok(row?.key().seq())).collect()
    }

    /// How many contents nobody refers to, and the objects that rows of content speak of.
    pub fn unused_and_objects(&self) -> StoreResult<(u64, Vec<ObjectName>)> {
        let (mut unused, mut objects) = (0, Vec::new());
        for entry in self.tables.contents().iter()? {
            let row = entry?.value()?;
            unused += u64::from(row.count == 0);
            if let ContentLocation::Object(name) = row.place {
                objects.push(name);
            }
        }
        objects.sort();
        Ok((unused, objects))
    }

    /// Every content with its count of references and whether its bytes are here, in no order that means anything.
    pub fn contents(&self) -> StoreResult<Vec<(u64, bool)>> {
        let mut rows = Vec::new();
        for entry in self.tables.contents().iter()? {
            let row = entry?.value()?;
            rows.push((row.count, row.place != ContentLocation::Absent));
        }
        rows.sort();
        Ok(rows)
    }

    /// The numbers of known events after one, in order, at most so many.
    pub fn events_after(&self, after: Seq, most: usize) -> StoreResult<Vec<Seq>> {
        let from = EventNo::new(Seq(after.0.saturating_add(1)));
        self.tables.events().range(from..)?.take(most).map(|row| Ok(row?.key().seq())).collect()
    }

    /// When an id expired, if that is remembered.
    pub fn expired_at(&self, id: &model::EventId) -> StoreResult<Option<Nanos>> {
        Ok(self.tables.expired().get(EventIdKey::new(*id))?.map(|row| row.at))
    }

    /// The first need after this one that held events wait for, however many do.
    pub fn next_need(&self, after: Option<&Need>) -> StoreResult<Option<Need>> {
        let first = match after {
            Some(need) => self.tables.waiting().range(WaitingKey::after(need)..)?.next().transpose()?,
            None => self.tables.waiting().first()?,
        };
        first.map(|row| Ok(row.key().parts()?.0)).transpose()
    }

    /// The first content after this one that applied events miss, however many do.
    pub fn next_missing(&self, after: Option<(SpaceNo, ContentHash)>) -> StoreResult<Option<(SpaceNo, ContentHash)>> {
        let first = match after {
            Some((space, hash)) => {
                let from = ContentWaitingKey::new(space, hash, Seq(u64::MAX));
                self.tables.content_waiting().range(from..)?.next().transpose()?
            }
            None => self.tables.content_waiting().first()?,
        };
        Ok(first.map(|row| (row.key().space(), row.key().hash())))
    }

    /// Every space that has a number here, with how many opened events it has and how many bytes of content they name.
    pub fn spaces(&self) -> StoreResult<Vec<(SpaceId, u64, u64)>> {
        let mut spaces = Vec::new();
        for entry in self.tables.space_ids().iter()? {
            let row = entry?;
            let (events, bytes) = self.usage_of(row.key().number())?;
            spaces.push((row.value()?, events, bytes));
        }
        Ok(spaces)
    }

    /// How many bytes of content an author keeps in a space, here or wanted.
    pub fn kept_bytes(&self, space: SpaceNo, author: model::AuthorNo) -> StoreResult<u64> {
        Ok(kept(&self.usage(space, author)?))
    }

    /// How many opened events a space has, and how many bytes of content they name.
    pub fn usage_of(&self, space: SpaceNo) -> StoreResult<(u64, u64)> {
        let (mut events, mut bytes) = (0, 0);
        for row in self.tables.usage().range(UsageKey::of_space(space))? {
            let usage = row?.value()?;
            events += usage.by_state.iter().map(|(events, _)| events).sum::<u64>();
            bytes += usage.by_state.iter().map(|(_, bytes)| bytes).sum::<u64>();
        }
        Ok((events, bytes))
    }

    /// How often each counted thing happened.
    pub fn counts(&self) -> StoreResult<Vec<(String, u64)>> {
        let mut counts = Vec::new();
        for entry in self.tables.counts().iter()? {
            let row = entry?;
            counts.push((row.key().to_owned(), row.value()?));
        }
        Ok(counts)
    }

    /// Whether an event is known, in any stage.
    pub fn is_known(&self, id: &model::EventId) -> StoreResult<bool> {
        Ok(self.seq(id)?.is_some())
    }
}
