//! How many files may be on their way, and the uploads that go on later.

use crate::problem::Problem;
use model::{FileId, SpaceId};
use node::files::upload::Upload;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, Semaphore};

/// How many files may be on their way at once: each takes a thread from its beginning to its end, and other work that may
/// wait needs threads as well.
const UPLOADS_MAX: usize = 128;
const DOWNLOADS_MAX: usize = 256;
/// So many of them for one user, so that nobody has all places.
const UPLOADS_PER_USER_MAX: usize = 32;

/// Who uploads: a user of a space, or its keeper.
type Uploader = (SpaceId, Option<String>);

#[derive(Debug)]
pub(crate) struct FileTransfers {
    uploads: Arc<Semaphore>,
    by_user: Arc<Mutex<HashMap<Uploader, usize>>>,
    pub(crate) downloads: Arc<Semaphore>,
    pub(crate) kept: KeptUploads,
}

impl Default for FileTransfers {
    fn default() -> FileTransfers {
        FileTransfers {
            uploads: Arc::new(Semaphore::new(UPLOADS_MAX)),
            by_user: Arc::default(),
            downloads: Arc::new(Semaphore::new(DOWNLOADS_MAX)),
            kept: KeptUploads::default(),
        }
    }
}

/// A place among the uploads that are under way, given back on drop.
#[derive(Debug)]
pub(crate) struct UploadTurn {
    _permit: OwnedSemaphorePermit,
    by_user: Arc<Mutex<HashMap<Uploader, usize>>>,
    who: Uploader,
}

impl FileTransfers {
    /// A place for another upload of somebody.
    pub(crate) fn begin_upload(&self, who: Uploader) -> Result<UploadTurn, Problem> {
        let busy = |what: &str| Problem::overloaded(what.to_owned()).after(5);
        let permit = self.uploads.clone().try_acquire_owned();
        let permit = permit.map_err(|_| busy("too many uploads are under way"))?;
        let mut by_user = self.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        let own = by_user.entry(who.clone()).or_default();
        if *own >= UPLOADS_PER_USER_MAX {
            return Err(busy("too many uploads of this user are under way"));
        }
        *own += 1;
        drop(by_user);
        Ok(UploadTurn { _permit: permit, by_user: self.by_user.clone(), who })
    }
}

impl Drop for UploadTurn {
    fn drop(&mut self) {
        let mut by_user = self.by_user.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = by_user.get_mut(&self.who) {
            *own -= 1;
            if *own == 0 {
                by_user.remove(&self.who);
            }
        }
    }
}

/// Writers that are kept between two goes. Each has an open file and a chunk of memory.
const KEPT_MAX: usize = 256;

/// The uploads that somebody may go on with, while their writers are in memory.
#[derive(Debug, Default)]
pub(crate) struct KeptUploads(Mutex<HashMap<FileId, UploadSlot>>);

/// One writer, or none; whoever holds it has the upload.
pub(crate) type UploadSlot = Arc<AsyncMutex<Option<Upload>>>;

impl KeptUploads {
    pub(crate) fn slot(&self, file: FileId) -> UploadSlot {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT_MAX && !kept.contains_key(&file) {
            // Nobody has these now: their rows say all that is needed.
            let idle = kept.iter().find(|(_, slot)| Arc::strong_count(slot) == 1).map(|(file, _)| *file);
            idle.and_then(|idle| kept.remove(&idle));
        }
        kept.entry(file).or_default().clone()
    }

    /// Unless somebody has it.
    pub(crate) fn forget(&self, file: FileId) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.get(&file).is_some_and(|slot| Arc::strong_count(slot) == 1) {
            kept.remove(&file);
        }
    }

    /// Lets go of writers whose uploads are over: they hold files open that are gone.
    pub(crate) fn sweep(&self, is_open: impl Fn(FileId) -> bool) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|file, slot| Arc::strong_count(slot) > 1 || is_open(*file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_user_does_not_take_all_places_and_gives_back_what_they_took() {
        let transfers = FileTransfers::default();
        let who = |user: &str| (SpaceId([1; 16]), Some(user.to_owned()));
        let mut turns: Vec<UploadTurn> =
            (0..UPLOADS_PER_USER_MAX).map(|_| transfers.begin_upload(who("eve")).expect("a place")).collect();
        assert!(transfers.begin_upload(who("eve")).is_err());
        assert!(transfers.begin_upload(who("bob")).is_ok());
        turns.pop();
        assert!(transfers.begin_upload(who("eve")).is_ok());
        drop(turns);
        assert!(transfers.by_user.lock().expect("whole").is_empty());
    }
}
