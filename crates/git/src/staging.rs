//! Where a push lands before it is known whether it is allowed: a repository of its own, which goes with everything in it.

use crate::command::{GitError, GitLimits, as_input, bound_time, git, run, with};
use crate::files::{files_of, lines_beyond};
use crate::folder::{ObjectStore, sync_folder, types_of, write_bare};
use model::need::Oid;
use std::collections::BTreeSet;
use std::fs::File;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Where the number of objects stands in the index of a pack; their names follow.
const INDEX_COUNT_AT: u64 = 8 + 255 * 4;
/// What git needs for each object of a pack that it reads.
pub(crate) const OBJECT_ENTRY_BYTES: u64 = 72;

/// A place for one push.
#[derive(Debug)]
pub struct Staging {
    pub(crate) folder: TempDir,
    pub(crate) limits: GitLimits,
}

impl Staging {
    /// The command that takes a pack of at most so many bytes and so many objects as it comes, and checks every object.
    pub fn index_pack(&self, bytes_max: u64, objects: u32) -> Command {
        let mut command = self.git();
        // An object has to fit into memory, and so has a list of all of them.
        let most = self.limits.object_bytes_max.max(u64::from(objects) * OBJECT_ENTRY_BYTES);
        command.env("GIT_ALLOC_LIMIT", most.to_string());
        with(&mut command, &["index-pack", "--stdin", "--fix-thin", "--strict"]);
        command.arg(format!("--max-input-size={bytes_max}"));
        command
    }

    /// A git command on this staging.
    pub(crate) fn git(&self) -> Command {
        git(self.folder.path())
    }

    fn packs(&self) -> PathBuf {
        self.folder.path().join("objects/pack")
    }

    /// Bytes of the packs that came.
    pub fn bytes(&self) -> Result<u64, GitError> {
        let files = files_of(&self.packs(), "pack")?;
        files.into_iter().map(|file| Ok(std::fs::metadata(file)?.len())).sum()
    }

    /// Which of these objects, as far as they are here, are no commits.
    pub fn not_commits(&self, oids: &BTreeSet<Oid>) -> Result<BTreeSet<Oid>, GitError> {
        let types = types_of(&mut self.git(), oids)?;
        Ok(types.into_iter().filter(|(_, kind)| kind != "commit").map(|(oid, _)| oid).collect())
    }

    /// The objects in the packs that came.
    pub(crate) fn oids(&self) -> Result<Vec<Oid>, GitError> {
        let mut oids = Vec::new();
        self.each_object(|oid| oids.push(*oid))?;
        Ok(oids)
    }

    /// How many objects the packs have that came.
    pub(crate) fn object_count(&self) -> Result<u64, GitError> {
        let mut count = 0;
        for file in files_of(&self.packs(), "idx")? {
            count += u64::from(objects_in(&mut File::open(file)?)?);
        }
        Ok(count)
    }

    fn each_object(&self, mut each: impl FnMut(&Oid)) -> Result<(), GitError> {
        for file in files_of(&self.packs(), "idx")? {
            let mut index = BufReader::new(File::open(file)?);
            for _ in 0..objects_in(&mut index)? {
                let mut oid = [0; 20];
                index.read_exact(&mut oid)?;
                each(&oid);
            }
        }
        Ok(())
    }
}

/// How many objects the index of a pack says there are; their names are read next.
fn objects_in(index: &mut (impl Read + Seek)) -> Result<u32, GitError> {
    let mut count = [0; 4];
    index.seek(SeekFrom::Start(INDEX_COUNT_AT))?;
    index.read_exact(&mut count)?;
    Ok(u32::from_be_bytes(count))
}

/// A set of objects, as far as two of them have to be compared: sums of hashes under keys that nobody knows.
#[derive(Clone, Default)]
struct ObjectSet {
    keys: [RandomState; 2],
    count: u64,
    sums: [u64; 2],
}

impl ObjectSet {
    fn add(&mut self, oid: &Oid) {
        self.count += 1;
        for (sum, key) in self.sums.iter_mut().zip(&self.keys) {
            *sum = sum.wrapping_add(key.hash_one(oid));
        }
    }

    /// None of them, to be compared with this one.
    fn empty(&self) -> ObjectSet {
        ObjectSet { keys: self.keys.clone(), ..ObjectSet::default() }
    }

    fn is_same(&self, other: &ObjectSet) -> bool {
        (self.count, self.sums) == (other.count, other.sums)
    }
}

impl ObjectStore {
    /// A place for a push, which sees all objects.
    pub fn stage(&self) -> Result<Staging, GitError> {
        let made = tempfile::tempdir_in(&self.staging)?;
        write_bare(made.path(), Some(&self.path.join("objects")))?;
        Ok(Staging { folder: made, limits: self.limits })
    }

    /// Begins to look at everything that these tips bring. The program goes on while other things are found out.
    pub fn walk(&self, staging: &Staging, tips: &BTreeSet<Oid>) -> Result<Walk, GitError> {
        let known = if self.exists() { self.existing(&self.tips()?)? } else { BTreeSet::new() };
        let wanted = lines_beyond(tips, &known);
        // A file, because nobody reads while the program goes on.
        let reached = tempfile::tempfile_in(staging.folder.path())?;
        let mut command = staging.git();
        with(&mut command, &["rev-list", "--objects", "--no-object-names", "--stdin"]);
        command.stdin(as_input(wanted.as_bytes())?).stdout(reached.try_clone()?).stderr(Stdio::null());
        let child = command.spawn().map_err(GitError::Missing)?;
        bound_time(child.id());
        Ok(Walk { child, reached, wanted })
    }

    /// Takes over what the tips of a walk bring, and nothing else of what came, so that nothing is kept that no ref reaches.
    /// Says whether everything that they reach is here; otherwise nothing is taken over. Done twice it does nothing.
    pub fn adopt(&self, staging: &Staging, mut walk: Walk) -> Result<bool, GitError> {
        let Some(reached) = walk.finish()? else { return Ok(false) };
        let mut came = reached.empty();
        staging.each_object(|oid| came.add(oid))?;
        if came.is_same(&reached) {
            return self.take_packs(&staging.packs()).map(|()| true);
        }
        let kept = staging.folder.path().join("kept");
        std::fs::create_dir(&kept)?;
        let mut pack = staging.git();
        let options = ["pack-objects", "--revs", "--local", "--non-empty", "--delta-base-offset", "--quiet"];
        with(&mut pack, &options).arg(kept.join("pack"));
        run("pack-objects", &mut pack, walk.wanted.as_bytes())?;
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
        sync_folder(&to)
    }
}

/// A program that walks over what tips bring. It ends with this value.
#[derive(Debug)]
pub struct Walk {
    child: Child,
    /// The objects that it has met.
    reached: File,
    wanted: String,
}

impl Walk {
    /// Waits for its end. Which objects it met, if everything that it looked for is there.
    fn finish(&mut self) -> Result<Option<ObjectSet>, GitError> {
        if !self.child.wait()?.success() {
            return Ok(None);
        }
        self.reached.seek(SeekFrom::Start(0))?;
        let mut set = ObjectSet::default();
        for line in BufReader::new(&self.reached).lines() {
            let mut oid = [0; 20];
            if hex::decode_to_slice(line?, &mut oid).is_err() {
                return Ok(None);
            }
            set.add(&oid);
        }
        Ok(Some(set))
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        // One that has ended cannot be killed any more, which is no matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
