//! A disk that forgets what was not synced, tears what was half written, and fails when told to.

mod objects_on_disk;

use crate::random::SeededRandom;
use objects::Backend;
use redb::{Builder, Database, DatabaseError, StorageBackend};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use store::disk::Disk;
use store::overlay::MemoryOverlay;

/// What becomes of unsynced writes in a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrashLoss {
    /// All of them reached the disk.
    Kept,
    /// None of them did.
    Dropped,
    /// Each did, did not, or did in part.
    Torn,
}

/// A fault that lasts until it is taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskFault {
    /// None.
    None,
    /// There is no room for anything new.
    Full,
    /// Nothing can be written.
    ReadOnly,
    /// Syncing fails.
    SyncFails,
}

#[derive(Clone, Debug)]
enum WriteOp {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Clone, Debug)]
enum FileOp {
    Put(String, Vec<u8>),
    Rename(String, String),
    Remove(String),
}

/// One operation that changed a disk, as it was recorded.
#[derive(Clone, Debug)]
pub struct Recorded(Change);

#[derive(Clone, Debug)]
enum Change {
    /// A database made under another name got its own: it is there wholly or not at all.
    Adopt(Vec<u8>),
    Write(WriteOp),
    Sync,
    File(FileOp),
    SyncFolder,
}

#[derive(Debug, Default)]
struct State {
    record: Option<Vec<Recorded>>,
    image: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<WriteOp>,
    files: BTreeMap<String, Vec<u8>>,
    durable_files: BTreeMap<String, Vec<u8>>,
    unsynced_files: Vec<FileOp>,
    operations: u64,
    crash_at: Option<u64>,
    is_dead: bool,
    trouble: Option<DiskFault>,
    generation: u64,
}

/// A disk in memory.
#[derive(Clone, Debug, Default)]
pub struct SimDisk {
    state: Arc<Mutex<State>>,
}

fn apply(bytes: &mut Vec<u8>, op: &WriteOp) {
    match op {
        WriteOp::Write(offset, data) => {
            let (from, to) = (*offset as usize, *offset as usize + data.len());
            if bytes.len() < to {
                bytes.resize(to, 0);
            }
            bytes[from..to].copy_from_slice(data);
        }
        WriteOp::Length(length) => bytes.resize(*length as usize, 0),
    }
}

fn apply_file(files: &mut BTreeMap<String, Vec<u8>>, op: &FileOp) {
    match op {
        FileOp::Put(name, bytes) => {
            files.insert(name.clone(), bytes.clone());
        }
        FileOp::Rename(from, to) => {
            if let Some(bytes) = files.remove(from) {
                files.insert(to.clone(), bytes);
            }
        }
        FileOp::Remove(name) => {
            files.remove(name);
        }
    }
}

impl SimDisk {
    /// An empty disk.
    pub fn new() -> SimDisk {
        SimDisk::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// How many operations there were.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Dies at that operation, counted from the beginning.
    pub fn crash_at(&self, operation: Option<u64>) {
        self.lock().crash_at = operation;
    }

    /// Whether it died.
    pub fn is_dead(&self) -> bool {
        self.lock().is_dead
    }

    /// Begins or ends a fault.
    pub fn trouble(&self, trouble: DiskFault) {
        self.lock().trouble = (trouble != DiskFault::None).then_some(trouble);
    }

    /// What a machine finds after the crash. Whoever still has the old disk in hand cannot use it any more.
    pub fn recover(&self, loss: CrashLoss, random: &mut SeededRandom) -> SimDisk {
        let state = self.lock();
        let mut durable = state.durable.clone();
        for op in &state.unsynced {
            if let Some(op) = survive(op, loss, random) {
                apply(&mut durable, &op);
            }
        }
        let mut files = state.durable_files.clone();
        // A folder's entries reach the disk in order: a part from the beginning of what was not synced.
        let kept = match loss {
            CrashLoss::Kept => state.unsynced_files.len(),
            CrashLoss::Dropped => 0,
            CrashLoss::Torn => random.below(state.unsynced_files.len() + 1),
        };
        state.unsynced_files[..kept].iter().for_each(|op| apply_file(&mut files, op));
        let state = State {
            image: durable.clone(),
            durable,
            files: files.clone(),
            durable_files: files,
            generation: state.generation + 1,
            ..State::default()
        };
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// A copy as of now, unsynced writes included as such.
    pub fn fork(&self) -> SimDisk {
        let state = self.lock();
        let copy = State {
            image: state.image.clone(),
            durable: state.durable.clone(),
            unsynced: state.unsynced.clone(),
            files: state.files.clone(),
            durable_files: state.durable_files.clone(),
            unsynced_files: state.unsynced_files.clone(),
            generation: state.generation,
            ..State::default()
        };
        SimDisk { state: Arc::new(Mutex::new(copy)) }
    }

    /// Records every change from now on.
    pub fn record(&self) {
        self.lock().record = Some(Vec::new());
    }

    /// How many changes were recorded so far.
    pub fn recorded(&self) -> usize {
        self.lock().record.as_ref().map_or(0, Vec::len)
    }

    /// What was recorded.
    pub fn take_record(&self) -> Vec<Recorded> {
        self.lock().record.take().unwrap_or_default()
    }

    /// Does again what was recorded on another disk.
    pub fn replay(&self, recorded: &Recorded) {
        SimDisk::perform(&mut self.lock(), recorded.0.clone());
    }

    fn perform(state: &mut State, change: Change) {
        if let Some(record) = &mut state.record {
            record.push(Recorded(change.clone()));
        }
        match change {
            Change::Adopt(image) => {
                state.durable = image.clone();
                state.image = image;
                state.unsynced.clear();
            }
            Change::Write(op) => {
                apply(&mut state.image, &op);
                state.unsynced.push(op);
            }
            Change::Sync => {
                let unsynced = std::mem::take(&mut state.unsynced);
                unsynced.iter().for_each(|op| apply(&mut state.durable, op));
            }
            Change::File(op) => {
                apply_file(&mut state.files, &op);
                state.unsynced_files.push(op);
            }
            Change::SyncFolder => {
                let unsynced = std::mem::take(&mut state.unsynced_files);
                unsynced.iter().for_each(|op| apply_file(&mut state.durable_files, op));
            }
        }
    }

    fn step(state: &mut State) -> io::Result<()> {
        if state.is_dead {
            return Err(io::Error::other("the machine has crashed"));
        }
        state.operations += 1;
        if state.crash_at == Some(state.operations) {
            state.is_dead = true;
            return Err(io::Error::other("the machine crashes"));
        }
        Ok(())
    }

    fn change(state: &mut State) -> io::Result<()> {
        SimDisk::step(state)?;
        match state.trouble {
            Some(DiskFault::Full) => Err(io::Error::from(io::ErrorKind::StorageFull)),
            Some(DiskFault::ReadOnly) => Err(io::Error::from(io::ErrorKind::ReadOnlyFilesystem)),
            Some(DiskFault::SyncFails | DiskFault::None) | None => Ok(()),
        }
    }

    fn sync(state: &mut State) -> io::Result<()> {
        SimDisk::step(state)?;
        match state.trouble {
            Some(DiskFault::SyncFails) => Err(io::Error::other("the disk does not sync")),
            _ => Ok(()),
        }
    }
}

fn survive(op: &WriteOp, loss: CrashLoss, random: &mut SeededRandom) -> Option<WriteOp> {
    match (loss, op) {
        (CrashLoss::Kept, op) => Some(op.clone()),
        (CrashLoss::Dropped, _) => None,
        (CrashLoss::Torn, WriteOp::Write(offset, data)) => match random.below(3) {
            0 => Some(op.clone()),
            1 => None,
            // A torn write stops at a sector.
            _ => Some(WriteOp::Write(*offset, data[..(random.below(data.len() + 1) / 512) * 512].to_vec())),
        },
        (CrashLoss::Torn, WriteOp::Length(_)) => random.percent(50).then(|| op.clone()),
    }
}

impl StorageBackend for SimDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().image.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.lock();
        if state.is_dead {
            return Err(io::Error::other("the machine has crashed"));
        }
        let from = offset as usize;
        match state.image.get(from..from + out.len()) {
            Some(bytes) => {
                out.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.lock();
        SimDisk::change(&mut state)?;
        SimDisk::perform(&mut state, Change::Write(WriteOp::Length(len)));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.lock();
        SimDisk::sync(&mut state)?;
        SimDisk::perform(&mut state, Change::Sync);
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        SimDisk::change(&mut state)?;
        SimDisk::perform(&mut state, Change::Write(WriteOp::Write(offset, data.to_vec())));
        Ok(())
    }
}

impl Disk for SimDisk {
    fn open_database(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        if self.lock().image.is_empty() {
            let scratch = SimDisk::new();
            drop(builder.create_with_backend(scratch.clone())?);
            let image = scratch.lock().image.clone();
            let mut state = self.lock();
            SimDisk::change(&mut state)?;
            SimDisk::perform(&mut state, Change::Adopt(image));
        }
        builder.create_with_backend(self.clone())
    }

    fn open_for_reading(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        builder.create_with_backend(MemoryOverlay::new(self.clone())?)
    }

    fn objects(&self) -> Arc<dyn Backend> {
        Arc::new(self.clone())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        Ok(match self.lock().trouble {
            Some(DiskFault::Full) => 0,
            _ => u64::MAX,
        })
    }
}
