//! Opening a data folder, and the two ways in: one writer's transaction at a time, and snapshots that never wait.

use crate::at_rest::{self, KeySource, StorageKey};
use crate::database::batch::{Batch, Committing};
use crate::database::damage::DamageLog;
use crate::database::db::{Db, Pending};
use crate::disk::Disk;
use crate::errors::{fault, guarded, guarded_write};

use crate::at_rest::master::{MasterKey, WrongKey};
use crate::database::keyring::KeyringSecrets;
use crate::database::quota::SpaceUse;
use crate::encode::ReceivedAgain;
use crate::errors::broken;
use crate::keys::*;
use crate::tables::{Snapshot, Tables};
use engine::keyring::Transit;
use engine::policy::Policy;
use engine::reads::{StoreError, StoreResult};
use model::crypto::{SpaceKey, TransitSecret};
use model::reader::ByteReader;
use model::{KeyId, Nanos, Seq, SpaceId};
use redb::{Builder, Database, ReadableDatabase as _, WriteTransaction};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// The version of the data folder that this release writes. Numbered migrations lead to it.
pub const FORMAT: u64 = 1;

/// Why a data folder cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A later release wrote it.
    #[error("the data folder has format {0}, and this release knows formats up to {FORMAT}; use a newer release")]
    Newer(u64),
    /// Another process has it.
    #[error("another process is using this data folder; stop it first")]
    Busy,
    /// It rests under another master key.
    #[error(transparent)]
    WrongKey(#[from] WrongKey),
    /// The database is damaged.
    #[error("the database cannot be opened: {0}; restore a backup, or ask for help before changing anything")]
    Damaged(String),
    /// The disk failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What a data folder is opened with.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// The limits of this node.
    pub policy: Policy,
    /// How much memory the database may use for its pages.
    pub cache_bytes: usize,
    /// Below this much free disk the node only reads.
    pub reserve_bytes: u64,
    /// Where storage keys, epochs and the node id come from.
    pub random: KeySource,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            policy: Policy::default(),
            cache_bytes: 128 << 20,
            reserve_bytes: 64 << 20,
            random: KeySource::Machine,
        }
    }
}

/// What the writer and all readers share.
pub(crate) struct StoreShared {
    pub(crate) keys: Arc<KeyringSecrets>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) master: MasterKey,
    pub(crate) policy: Policy,
    pub(crate) random: KeySource,
    pub(crate) damage: DamageLog,
    pub(crate) used: SpaceUse,
    received_again: Mutex<BTreeMap<Seq, ReceivedAgain>>,
}

/// More repetitions than this are not noted until something commits.
const RECEIVED_AGAIN_MAX: usize = 10_000;

impl StoreShared {
    /// What was noted without a commit of its own.
    pub(crate) fn take_received_again(&self) -> BTreeMap<Seq, ReceivedAgain> {
        std::mem::take(&mut *self.received_again.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn keep_received_again(&self, mut noted: BTreeMap<Seq, ReceivedAgain>) {
        while noted.len() > RECEIVED_AGAIN_MAX {
            noted.pop_first();
        }
        *self.received_again.lock().unwrap_or_else(PoisonError::into_inner) = noted;
    }
}

impl std::fmt::Debug for StoreShared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shared({:?})", self.keys)
    }
}

/// An open data folder.
pub struct Store {
    database: RwLock<Arc<Database>>,
    latest: RwLock<Option<Arc<Db<Snapshot>>>>,
    pub(crate) shared: Arc<StoreShared>,
    options: StoreOptions,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({:?})", self.shared)
    }
}

impl Store {
    /// Opens what is on the disk, or begins there.
    pub fn open(disk: Arc<dyn Disk>, master: MasterKey, options: StoreOptions) -> Result<Store, OpenError> {
        let database = open_database(&options, |builder| disk.open_database(builder))?;
        let keys = Arc::new(KeyringSecrets::default());
        let (policy, random) = (options.policy, options.random);
        let (damage, used, received_again) = (DamageLog::default(), SpaceUse::default(), Mutex::default());
        let shared = StoreShared { keys, disk, master, policy, random, damage, used, received_again };
        let mut store = Store {
            database: RwLock::new(Arc::new(database)),
            latest: RwLock::new(None),
            shared: Arc::new(shared),
            options,
        };
        let is_older = store.migrate()?;
        store.adopt_keys()?;
        store.load_keys()?;
        if is_older {
            store.rebuild_views(Nanos(0), &mut |_| ())?;
        }
        Ok(store)
    }

    /// The secrets at hand.
    pub fn keys(&self) -> &Arc<KeyringSecrets> {
        &self.shared.keys
    }

    /// A secret that can be derived again from its salt.
    pub fn secret_from(&self, salt: &[u8; 16]) -> [u8; 32] {
        self.shared.master.secret_from(salt)
    }

    /// The key under which the search index of a space rests.
    pub fn search_key(&self, space: &SpaceId) -> [u8; 32] {
        self.shared.master.search_key(space)
    }

    /// The local limits.
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    /// How it was opened.
    pub fn options(&self) -> &StoreOptions {
        &self.options
    }

    /// The disk below.
    pub fn disk(&self) -> &Arc<dyn Disk> {
        &self.shared.disk
    }

    pub(crate) fn database(&self) -> Arc<Database> {
        self.database.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Opens the database again after a write failed for want of room; older snapshots may fail. If there is no room even
    /// for that, what is there can be read, until this is tried again.
    pub fn reopen(&self) -> Result<(), OpenError> {
        self.forget_snapshot();
        let mut slot = self.database.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The old one must let go of the file before the new one can have it; readers that still use it keep it busy.
        let empty = redb::backends::InMemoryBackend::new();
        *slot = Arc::new(Builder::new().create_with_backend(empty).map_err(opening_fault)?);
        let disk = self.shared.disk.as_ref();
        let (database, opened) = match open_database(&self.options, |builder| disk.open_database(builder)) {
            Ok(database) => (database, Ok(())),
            Err(why) => (open_database(&self.options, |builder| disk.open_for_reading(builder))?, Err(why)),
        };
        *slot = Arc::new(database);
        opened
    }

    /// Reads as of the latest commit, without waiting for the writer. All readers between two commits share one.
    pub fn snapshot(&self) -> StoreResult<Arc<Db<Snapshot>>> {
        if let Some(latest) = &*self.latest.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(latest.clone());
        }
        let mut slot = self.latest.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(latest) = &*slot {
            return Ok(latest.clone());
        }
        let opened = Arc::new(self.open_snapshot()?);
        *slot = Some(opened.clone());
        Ok(opened)
    }

    /// What readers share is of before a commit: the next one opens anew.
    fn forget_snapshot(&self) {
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn open_snapshot(&self) -> StoreResult<Db<Snapshot>> {
        let transaction = guarded(|| self.database().begin_read())?;
        let mut db = Db {
            tables: Snapshot::open(&transaction)?,
            keys: self.shared.keys.clone(),
            disk: self.shared.disk.clone(),
            policy: self.shared.policy,
            is_settled: true,
            shared: self.shared.clone(),
            pending: Pending::default(),
            held_total: 0,
            next_position: 0,
        };
        db.held_total = db.tables.held.len()?;
        db.next_position = db.about_number("next position")?.max(1);
        Ok(db)
    }

    /// Runs one batch: everything it changes is committed together, durably, before this returns.
    pub fn write<T>(&self, now: Nanos, work: impl FnOnce(&mut Batch<'_>) -> StoreResult<T>) -> StoreResult<T> {
        match self.write_unless(now, |batch| work(batch).map(ControlFlow::<Infallible, T>::Continue))? {
            ControlFlow::Continue(answer) => Ok(answer),
            ControlFlow::Break(never) => match never {},
        }
    }

    /// As [`Store::write`], but the work may break off: then nothing of it happened.
    pub fn write_unless<T, U>(
        &self,
        now: Nanos,
        work: impl FnOnce(&mut Batch<'_>) -> StoreResult<ControlFlow<U, T>>,
    ) -> StoreResult<ControlFlow<U, T>> {
        let transaction = self.begin()?;
        let mut batch = Batch::begin(self.shared.clone(), &transaction, now)?;
        let ended = work(&mut batch)?;
        if ended.is_break() || !batch.is_changed() {
            batch.set_aside();
            guarded_write(|| transaction.abort())?;
            return Ok(ended);
        }
        let Committing { keys, used } = batch.finish()?;
        self.shared.used.forget_unless(guarded_write(|| transaction.commit()))?;
        self.shared.used.add(used);
        self.shared.keys.absorb(keys);
        self.forget_snapshot();
        Ok(ended)
    }

    /// Runs work on the tables and throws away what it did.
    pub(crate) fn try_out<T>(&self, work: impl FnOnce(&WriteTransaction) -> StoreResult<T>) -> StoreResult<T> {
        let transaction = self.begin()?;
        let answer = work(&transaction);
        guarded_write(|| transaction.abort())?;
        answer
    }

    /// Runs work on the tables and commits it.
    pub(crate) fn write_raw<T>(&self, work: impl FnOnce(&WriteTransaction) -> StoreResult<T>) -> StoreResult<T> {
        let transaction = self.begin()?;
        let answer = work(&transaction)?;
        guarded_write(|| transaction.commit())?;
        self.forget_snapshot();
        Ok(answer)
    }

    fn begin(&self) -> StoreResult<WriteTransaction> {
        let mut transaction = guarded_write(|| self.database().begin_write())?;
        transaction.set_quick_repair(true);
        Ok(transaction)
    }

    /// The database, if nobody else uses it.
    pub(crate) fn database_mut(&mut self) -> Result<&mut Database, OpenError> {
        self.forget_snapshot();
        let slot = self.database.get_mut().unwrap_or_else(PoisonError::into_inner);
        Arc::get_mut(slot).ok_or(OpenError::Busy)
    }

    /// Checks every page of the database against its checksums.
    pub fn check_pages(&mut self) -> Result<bool, OpenError> {
        self.database_mut()?.check_integrity().map_err(opening_fault)
    }

    /// While secrets are wrapped anew, those of the earlier master key open too; names are found as ever.
    fn adopt_keys(&mut self) -> Result<(), OpenError> {
        let (previous, index) = self.try_out(|transaction| {
            let tables = Tables::open(transaction)?;
            Ok((read_about(&tables, at_rest::PREVIOUS)?, read_about(&tables, at_rest::INDEX)?))
        })?;
        // Nobody shares it yet.
        let Some(shared) = Arc::get_mut(&mut self.shared) else { return Err(OpenError::Busy) };
        if let Some(wrapped) = previous {
            let bytes = zeroize::Zeroizing::new(shared.master.unwrap(at_rest::PREVIOUS.as_bytes(), &wrapped)?);
            shared.master.set_previous(&bytes)?;
        }
        if let Some(wrapped) = index {
            let index = shared.master.unwrap32(at_rest::INDEX.as_bytes(), &wrapped)?;
            shared.master.set_index_key(index);
        }
        Ok(())
    }

    /// A key whose row is damaged is missed by what needs it, and by nothing else.
    fn load_keys(&self) -> Result<(), OpenError> {
        let db = self.snapshot()?;
        let master = &self.shared.master;
        for entry in db.tables.keys.iter()? {
            let row = entry?;
            let Some(wrapped) = db.unless_damaged(row.value())? else { continue };
            let secret = master.unwrap32(row.key().as_bytes(), wrapped)?;
            let space = row.key().space();
            self.shared.keys.add_space_key(space, SpaceKey::new(&space, secret));
        }
        for entry in db.tables.storage_keys.iter()? {
            let row = entry?;
            let name = row.key();
            let Some(wrapped) = db.unless_damaged(row.value())? else { continue };
            let secret = zeroize::Zeroizing::new(master.unwrap32(name.as_bytes(), wrapped)?);
            self.shared.keys.add_storage_key(name.space(), StorageKey::new(name.number(), &secret));
        }
        for entry in db.tables.prekeys.iter()? {
            let row = entry?;
            let id = row.key().id();
            let Some(wrapped) = db.unless_damaged(row.value())? else { continue };
            self.shared.keys.add_prekey(id, master.unwrap32(&id.0, wrapped)?);
        }
        for entry in db.tables.transits.iter()? {
            let row = entry?;
            let Some(wrapped) = db.unless_damaged(row.value())? else { continue };
            let bytes = zeroize::Zeroizing::new(master.unwrap(row.key().as_bytes(), wrapped)?);
            self.shared.keys.add_transit(read_transit(&bytes).ok_or_else(|| broken("a transit secret"))?);
        }
        Ok(())
    }

    /// The key that new events of a sealed space are sealed under.
    pub fn current_key(&self, space: &SpaceId) -> StoreResult<Option<KeyId>> {
        let db = self.snapshot()?;
        db.tables.current_keys.get(SpaceIdKey::new(*space))
    }
}

/// A row that describes the data folder.
pub(crate) fn read_about(tables: &Tables<'_>, name: &str) -> StoreResult<Option<Vec<u8>>> {
    match tables.about.get_row(name)? {
        Some(row) => Ok(Some(row.value()?.to_vec())),
        None => Ok(None),
    }
}

/// A transit secret as it was wrapped: the secret, the space, the number of the peer.
fn read_transit(bytes: &[u8]) -> Option<Transit> {
    let mut reader = ByteReader::new(bytes);
    let secret = Arc::new(TransitSecret::new(reader.array().ok()?));
    let space = SpaceId(reader.array().ok()?);
    let peer = reader.u32().ok()?;
    reader.rest().is_empty().then_some(Transit { secret, space, peer })
}

fn opening_fault(error: redb::DatabaseError) -> OpenError {
    match error {
        redb::DatabaseError::DatabaseAlreadyOpen => OpenError::Busy,
        redb::DatabaseError::Storage(redb::StorageError::Io(io)) if io.kind() == std::io::ErrorKind::InvalidData => {
            OpenError::Damaged(io.to_string())
        }
        redb::DatabaseError::Storage(redb::StorageError::Io(io)) => OpenError::Store(fault(redb::StorageError::Io(io))),
        other => OpenError::Damaged(other.to_string()),
    }
}

/// Opens the database file; a damaged one may make the engine panic, which is caught and named.
fn open_database(
    options: &StoreOptions,
    open: impl Fn(&Builder) -> Result<Database, redb::DatabaseError>,
) -> Result<Database, OpenError> {
    let mut builder = Builder::new();
    builder.set_cache_size(options.cache_bytes);
    let attempt = std::panic::AssertUnwindSafe(|| open(&builder));
    match std::panic::catch_unwind(attempt) {
        Ok(opened) => opened.map_err(opening_fault),
        Err(_) => Err(OpenError::Damaged("the database engine gave up on it".into())),
    }
}
