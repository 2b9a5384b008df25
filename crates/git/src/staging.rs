//! Where a push lands before it is known whether it is allowed: a repository of its own, which goes with everything in it.

use crate::command::{GitError, GitLimits, git, output, run, with};
use crate::folder::ObjectStore;
use model::need::Oid;
use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Where the number of objects stands in the index of a pack.
const INDEX_COUNT_AT: u64 = 8 + 255 * 4;

/// A place for one push.
#[derive(Debug)]
pub struct Staging {
    pub(crate) folder: TempDir,
    pub(crate) limits: GitLimits,
}

impl Staging {
    /// The command that takes a pack of at most so many bytes as it comes, and checks every object in it.
    pub fn index_pack(&self, bytes_max: u64) -> Command {
        let mut command = git(self.folder.path(), &self.limits);
        with(&mut command, &["index-pack", "--stdin", "--fix-thin", "--strict"]);
        command.arg(format!("--max-input-size={bytes_max}"));
        command
    }

    fn packs(&self) -> PathBuf {
        self.folder.path().join("objects/pack")
    }

    /// Objects in the packs that came.
    fn object_count(&self) -> Result<u64, GitError> {
        let mut count = 0;
        for file in files_of(&self.packs(), "idx")? {
            let mut index = std::fs::File::open(file)?;
            let mut bytes = [0; 4];
            index.seek(SeekFrom::Start(INDEX_COUNT_AT))?;
            index.read_exact(&mut bytes)?;
            count += u64::from(u32::from_be_bytes(bytes));
        }
        Ok(count)
    }
}

impl ObjectStore {
    /// Takes over what these tips bring, and nothing else of what came, so that nothing is kept that no ref reaches. Says
    /// whether everything that they reach is here; otherwise nothing is taken over. Done twice it does nothing.
    pub fn adopt(&self, staging: &Staging, tips: &BTreeSet<Oid>) -> Result<bool, GitError> {
        let known = self.tips()?;
        let tell = |oids: &BTreeSet<Oid>| oids.iter().map(|oid| hex::encode(oid) + "\n").collect::<String>();
        let wanted = format!("{}--not\n{}", tell(tips), tell(&known));
        let mut walk = git(staging.folder.path(), &staging.limits);
        with(&mut walk, &["rev-list", "--objects", "--count", "--stdin"]);
        let walked = output(&mut walk, wanted.as_bytes())?;
        let count = String::from_utf8_lossy(&walked.stdout).trim().parse::<u64>().ok();
        let Some(count) = count.filter(|_| walked.status.success()) else { return Ok(false) };
        if count == 0 {
            return Ok(true);
        }
        if count == staging.object_count()? {
            return self.take_packs(&staging.packs()).map(|()| true);
        }
        let kept = staging.folder.path().join("kept");
        std::fs::create_dir(&kept)?;
        let mut pack = git(staging.folder.path(), &staging.limits);
        let options = ["pack-objects", "--revs", "--local", "--non-empty", "--delta-base-offset", "--quiet"];
        with(&mut pack, &options).arg(kept.join("pack"));
        run("pack-objects", &mut pack, wanted.as_bytes())?;
        self.take_packs(&kept).map(|()| true)
    }

    /// Moves packs here. The index comes last: with it the pack is there.
    fn take_packs(&self, from: &Path) -> Result<(), GitError> {
        let to = self.path.join("objects/pack");
        std::fs::create_dir_all(&to)?;
        let mut files: Vec<PathBuf> = std::fs::read_dir(from)?.flatten().map(|entry| entry.path()).collect();
        files.sort_by_key(|file| file.extension().is_some_and(|extension| extension == "idx"));
        for file in files {
            if let Some(name) = file.file_name() {
                std::fs::rename(&file, to.join(name))?;
            }
        }
        crate::folder::sync_folder(&to)
    }
}

/// The files of a folder that end so.
pub(crate) fn files_of(folder: &Path, extension: &str) -> Result<Vec<PathBuf>, GitError> {
    let files = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    Ok(files.filter(|file| file.extension().is_some_and(|other| other == extension)).collect())
}
