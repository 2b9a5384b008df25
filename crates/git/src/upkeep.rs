//! What keeps object stores small: one pack instead of many, and nothing that no ref reaches.

use crate::command::{GitError, run, with};
use crate::files::files_of;
use crate::folder::ObjectStore;

impl ObjectStore {
    /// Packs in the store.
    pub fn pack_count(&self) -> Result<usize, GitError> {
        Ok(files_of(&self.path.join("objects/pack"), "pack")?.len())
    }

    /// Bytes of the packs in the store; none if it is not there.
    pub fn bytes(&self) -> Result<u64, GitError> {
        if !self.exists() {
            return Ok(0);
        }
        let mut bytes = 0;
        for file in files_of(&self.path.join("objects/pack"), "pack")? {
            bytes += std::fs::metadata(file)?.len();
        }
        Ok(bytes)
    }

    /// Makes one pack of what refs reach; everything else goes. Nobody may push meanwhile.
    pub fn repack(&self) -> Result<(), GitError> {
        let mut command = self.git(None);
        run("pack-refs", with(&mut command, &["pack-refs", "--all"]), &[])?;
        let mut command = self.git(None);
        let options = ["-c", "pack.threads=1", "repack", "-a", "-d", "-q"];
        run("repack", with(&mut command, &options), &[]).map(drop)
    }

    /// Deletes the store with everything in it.
    pub fn delete(&self) -> Result<(), GitError> {
        if !self.path.exists() {
            return Ok(());
        }
        // Moved first, so that nobody sees half of it; the rest goes at the next start at the latest.
        let gone = tempfile::tempdir_in(&self.staging)?;
        std::fs::rename(&self.path, gone.path().join("store"))?;
        Ok(gone.close()?)
    }

    /// Deletes packs that were begun when the node was killed.
    pub(crate) fn delete_unfinished(&self) -> Result<(), GitError> {
        let Ok(packs) = std::fs::read_dir(self.path.join("objects/pack")) else { return Ok(()) };
        for file in packs.flatten().filter(|file| file.file_name().to_string_lossy().starts_with("tmp_")) {
            std::fs::remove_file(file.path())?;
        }
        Ok(())
    }
}
