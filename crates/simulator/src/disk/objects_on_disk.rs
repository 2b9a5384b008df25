//! Objects as files of the simulated disk.

use super::{Change, FileOp, SimDisk};
use model::ObjectName;
use model::planted::{PlantedBug, is_planted};
use objects::{Backend, ObjectError, ObjectSink, ObjectSource};
use store::disk::TEMPORARY;

impl SimDisk {
    /// The names of all objects, temporary ones included.
    pub fn object_names(&self) -> Vec<String> {
        self.lock().files.keys().cloned().collect()
    }

    fn file_change(&self, name: ObjectName, op: FileOp) -> Result<(), ObjectError> {
        let mut state = self.lock();
        SimDisk::change(&mut state).map_err(|why| ObjectError::from_io(name, &why))?;
        SimDisk::perform(&mut state, Change::File(op));
        Ok(())
    }
}

/// Objects are files of the disk, written in the steps of the product's folder: each is a place to crash at.
impl Backend for SimDisk {
    fn word(&self) -> &'static str {
        "simulated"
    }

    fn create(&self, name: ObjectName) -> Result<Box<dyn ObjectSink>, ObjectError> {
        Ok(Box::new(SimSink { disk: self.clone(), name, bytes: Vec::new() }))
    }

    fn create_resumable(&self, name: ObjectName) -> Result<Box<dyn ObjectSink>, ObjectError> {
        self.create(name)
    }

    fn resume(&self, name: ObjectName, len: u64) -> Result<Box<dyn ObjectSink>, ObjectError> {
        let mut bytes = self.file(name, &format!("{name}{TEMPORARY}"))?;
        bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        match bytes.len() as u64 == len {
            true => Ok(Box::new(SimSink { disk: self.clone(), name, bytes })),
            false => Err(ObjectError::Damaged(name, "it is cut off")),
        }
    }

    fn settle(&self, _: ObjectName) {}

    fn open_unfinished(&self, name: ObjectName) -> Result<Box<dyn ObjectSource>, ObjectError> {
        Ok(Box::new(SimSource { name, bytes: self.file(name, &format!("{name}{TEMPORARY}"))? }))
    }

    fn open(&self, name: ObjectName) -> Result<Box<dyn ObjectSource>, ObjectError> {
        Ok(Box::new(SimSource { name, bytes: self.file(name, &name.to_string())? }))
    }

    fn remove(&self, name: ObjectName) -> Result<(), ObjectError> {
        self.file_change(name, FileOp::Remove(name.to_string()))?;
        self.file_change(name, FileOp::Remove(format!("{name}{TEMPORARY}")))?;
        self.sync_files(name)
    }
}

impl SimDisk {
    fn file(&self, name: ObjectName, path: &str) -> Result<Vec<u8>, ObjectError> {
        self.lock().files.get(path).cloned().ok_or(ObjectError::NotFound(name))
    }

    fn sync_files(&self, name: ObjectName) -> Result<(), ObjectError> {
        let mut state = self.lock();
        SimDisk::sync(&mut state).map_err(|why| ObjectError::from_io(name, &why))?;
        SimDisk::perform(&mut state, Change::SyncFolder);
        Ok(())
    }
}

struct SimSink {
    disk: SimDisk,
    name: ObjectName,
    bytes: Vec<u8>,
}

impl ObjectSink for SimSink {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), ObjectError> {
        self.disk.file_change(self.name, FileOp::Put(format!("{}{TEMPORARY}", self.name), self.bytes.clone()))?;
        self.disk.sync_files(self.name)
    }

    fn finish(self: Box<Self>) -> Result<(), ObjectError> {
        let SimSink { disk, name, bytes } = *self;
        let temporary = format!("{name}{TEMPORARY}");
        disk.file_change(name, FileOp::Put(temporary.clone(), bytes))?;
        disk.file_change(name, FileOp::Rename(temporary, name.to_string()))?;
        // Whether the simulator would notice a folder that is not synced.
        if is_planted(PlantedBug::MissingDirectorySync) { Ok(()) } else { disk.sync_files(name) }
    }
}

struct SimSource {
    name: ObjectName,
    bytes: Vec<u8>,
}

impl ObjectSource for SimSource {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<(), ObjectError> {
        let cut = || ObjectError::Damaged(self.name, "it is cut off");
        let from = usize::try_from(offset).map_err(|_| cut())?;
        let bytes = self.bytes.get(from..from + into.len()).ok_or_else(cut)?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}
