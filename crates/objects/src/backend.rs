//! What a place that keeps objects can do.

use model::ObjectName;
use std::fmt::Debug;
use std::io;

/// Why an object could not be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// It is not there.
    #[error("the object {0} is not there")]
    NotFound(ObjectName),
    /// There is no room for it.
    #[error("there is no room for more objects")]
    Full,
    /// It was changed, cut off, or is of another key.
    #[error("the object {0} is damaged: {1}")]
    Damaged(ObjectName, &'static str),
    /// More came than the content may have.
    #[error("the content is longer than {0} bytes")]
    TooLong(u64),
    /// The place that keeps objects failed; later it may work.
    #[error("the place that keeps objects failed: {0}")]
    Failed(String),
}

impl ObjectError {
    /// What an error of the operating system about an object means.
    pub fn from_io(name: ObjectName, error: &io::Error) -> ObjectError {
        match error.kind() {
            io::ErrorKind::NotFound => ObjectError::NotFound(name),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                ObjectError::Full
            }
            _ => ObjectError::Failed(error.to_string()),
        }
    }
}

/// Keeps objects by name. Whatever it answers was durable before it answered.
pub trait Backend: Send + Sync + Debug {
    /// The word for it, as rows and people call it.
    fn word(&self) -> &'static str;
    /// Begins an object, which does not exist under its name before it was finished. A beginning of the same name that was
    /// given up is overwritten.
    fn create(&self, name: ObjectName) -> Result<Box<dyn ObjectSink>, ObjectError>;
    /// Begins an object as [`create`](Backend::create) does, which stays when it is dropped after a
    /// [sync](ObjectSink::sync), and goes on with [`resume`](Backend::resume).
    fn create_resumable(&self, name: ObjectName) -> Result<Box<dyn ObjectSink>, ObjectError>;
    /// Goes on with an unfinished object behind its first bytes, of which there must be so many.
    fn resume(&self, name: ObjectName, len: u64) -> Result<Box<dyn ObjectSink>, ObjectError>;
    /// A resumable object was finished, and a row says so: nobody goes on with it any more.
    fn settle(&self, name: ObjectName);
    /// Opens what there is of a resumable object that is not finished.
    fn open_unfinished(&self, name: ObjectName) -> Result<Box<dyn ObjectSource>, ObjectError>;
    /// Opens an object for reading.
    fn open(&self, name: ObjectName) -> Result<Box<dyn ObjectSource>, ObjectError>;
    /// Removes an object, or what there is of one that was never finished. One that is not there is removed already.
    fn remove(&self, name: ObjectName) -> Result<(), ObjectError>;
}

/// An object that is being written. One that is dropped before it was finished never gets its name.
pub trait ObjectSink: Send {
    fn write(&mut self, bytes: &[u8]) -> Result<(), ObjectError>;
    /// Makes durable what was written, so that a resumable object goes on from there whatever happens.
    fn sync(&mut self) -> Result<(), ObjectError>;
    /// Makes it durable under its name.
    fn finish(self: Box<Self>) -> Result<(), ObjectError>;
}

/// An object that is being read.
pub trait ObjectSource: Send {
    /// How many bytes it has.
    fn len(&self) -> u64;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Fills the buffer from a place in the object; fails if it ends before.
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<(), ObjectError>;
}
