//! The folder of all object stores, and one of them.

use crate::command::{GitError, GitLimits, can_pin_addresses, git, run, with};
use crate::files::{files_of, lines, lines_beyond};
use model::NostrKey;
use model::crypto::event_id;
use model::need::Oid;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The name of an object store: a hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StoreName(pub [u8; 16]);

impl StoreName {
    /// The store that a repository begins with.
    pub fn of(owner: &NostrKey, identifier: &str) -> StoreName {
        StoreName(event_id(&[&owner.0, identifier.as_bytes()].concat()).0)
    }
}

/// The folder of all object stores.
#[derive(Clone, Debug)]
pub struct GitFolder {
    root: PathBuf,
    limits: GitLimits,
}

impl GitFolder {
    /// Opens or makes the folder. What pushes left that were cut off is deleted.
    pub fn open(root: PathBuf, limits: GitLimits) -> Result<GitFolder, GitError> {
        run("--version", Command::new("git").arg("--version").stdout(Stdio::piped()), &[])?;
        let folder = GitFolder { root, limits };
        let staging = folder.staging_folder();
        if staging.exists() {
            std::fs::remove_dir_all(&staging)?;
        }
        std::fs::create_dir_all(&staging)?;
        for name in folder.names()? {
            folder.store(name).delete_unfinished()?;
        }
        Ok(folder)
    }

    /// Whether the program can fetch from other servers, and only from addresses that were vetted.
    pub fn can_fetch(&self) -> Result<bool, GitError> {
        let version = run("--version", Command::new("git").arg("--version").stdout(Stdio::piped()), &[])?;
        Ok(can_pin_addresses(&String::from_utf8_lossy(&version)))
    }

    pub(crate) fn staging_folder(&self) -> PathBuf {
        self.root.join("staging")
    }

    /// The object stores that are there.
    pub fn names(&self) -> Result<Vec<StoreName>, GitError> {
        self.names_of("git")
    }

    /// The stores of which there is a file of that kind.
    pub(crate) fn names_of(&self, extension: &str) -> Result<Vec<StoreName>, GitError> {
        let mut names = Vec::new();
        for file in files_of(&self.root, extension)? {
            let mut name = [0; 16];
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            if hex::decode_to_slice(stem, &mut name).is_ok() {
                names.push(StoreName(name));
            }
        }
        Ok(names)
    }

    /// The stores of which there is a bundle that was not unpacked yet.
    pub fn bundled(&self) -> Result<Vec<StoreName>, GitError> {
        self.names_of("bundle")
    }

    pub(crate) fn path_of(&self, name: StoreName, extension: &str) -> PathBuf {
        self.root.join(format!("{}.{extension}", hex::encode(name.0)))
    }

    /// The folder as it is, of a node that does not run: nothing is deleted. None, if there is none.
    pub fn open_existing(root: PathBuf) -> Option<GitFolder> {
        root.is_dir().then_some(GitFolder { root, limits: GitLimits::default() })
    }

    /// A store without refs and objects, which stands for all repositories of which nothing is kept.
    pub fn empty_store(&self) -> Result<ObjectStore, GitError> {
        let path = self.root.join("empty");
        let store = ObjectStore { path, limits: self.limits, staging: self.staging_folder() };
        store.create()?;
        Ok(store)
    }

    /// An object store, which need not be there yet.
    pub fn store(&self, name: StoreName) -> ObjectStore {
        let path = self.path_of(name, "git");
        ObjectStore { path, limits: self.limits, staging: self.staging_folder() }
    }
}

/// One object store: a bare repository with a namespace for each owner.
#[derive(Clone, Debug)]
pub struct ObjectStore {
    pub(crate) path: PathBuf,
    pub(crate) limits: GitLimits,
    pub(crate) staging: PathBuf,
}

impl ObjectStore {
    /// Makes the store, if it is not there yet.
    pub fn create(&self) -> Result<(), GitError> {
        if self.path.join("HEAD").exists() {
            return Ok(());
        }
        // Made elsewhere and moved, so that nobody sees half of it.
        let made = tempfile::tempdir_in(&self.staging)?;
        write_bare(made.path(), None)?;
        match std::fs::rename(made.path(), &self.path) {
            Ok(()) => sync_folder(self.path.parent().unwrap_or(&self.path)),
            // Somebody was faster.
            Err(_) if self.path.join("HEAD").exists() => Ok(()),
            Err(why) => Err(why.into()),
        }
    }

    /// Whether it is there.
    pub fn exists(&self) -> bool {
        self.path.join("HEAD").exists()
    }

    /// A git command on this store; with an owner, on their refs.
    pub(crate) fn git(&self, owner: Option<&NostrKey>) -> Command {
        let mut command = git(&self.path);
        if let Some(owner) = owner {
            command.env("GIT_NAMESPACE", owner.to_string());
        }
        command
    }

    /// The command that tells refs, for fetching or for pushing.
    pub fn advertise(&self, owner: &NostrKey, service: &'static str, protocol: Option<&str>) -> Command {
        let mut command = self.git(Some(owner));
        with(&mut command, &[service, "--stateless-rpc", "--http-backend-info-refs"]).arg(&self.path);
        speak(&mut command, protocol);
        command
    }

    /// The command that answers a fetch.
    pub fn upload_pack(&self, owner: &NostrKey, protocol: Option<&str>) -> Command {
        let mut command = self.git(Some(owner));
        with(&mut command, &["upload-pack", "--stateless-rpc"]).arg(&self.path);
        speak(&mut command, protocol);
        command
    }

    /// Which of these objects the refs of one of these owners reach.
    pub fn reached(&self, owners: &BTreeSet<NostrKey>, oids: &BTreeSet<Oid>) -> Result<BTreeSet<Oid>, GitError> {
        if oids.is_empty() {
            return Ok(BTreeSet::new());
        }
        let mut tips = BTreeSet::new();
        for owner in owners {
            tips.extend(self.refs(owner)?.into_values());
        }
        let others: BTreeSet<Oid> = oids.difference(&tips).copied().collect();
        // Of what is not a commit nothing can be said without looking at everything.
        let commits: BTreeSet<Oid> =
            self.types(&others)?.into_iter().filter(|(_, kind)| kind == "commit").map(|(oid, _)| oid).collect();
        let mut reached: BTreeSet<Oid> = oids.intersection(&tips).copied().collect();
        if commits.is_empty() {
            return Ok(reached);
        }
        let input = lines_beyond(&commits, &self.existing(&tips)?);
        let told = run("rev-list", with(&mut self.git(None), &["rev-list", "--stdin"]), input.as_bytes())?;
        let told = String::from_utf8_lossy(&told);
        let beyond: BTreeSet<&str> = told.lines().collect();
        reached.extend(commits.into_iter().filter(|oid| !beyond.contains(hex::encode(oid).as_str())));
        Ok(reached)
    }

    /// Which of these objects are there, and what each is.
    fn types(&self, oids: &BTreeSet<Oid>) -> Result<Vec<(Oid, String)>, GitError> {
        types_of(&mut self.git(None), oids)
    }

    /// Which of these objects are there at all.
    pub fn existing(&self, oids: &BTreeSet<Oid>) -> Result<BTreeSet<Oid>, GitError> {
        Ok(self.types(oids)?.into_iter().map(|(oid, _)| oid).collect())
    }

    /// Copies an object and all it reaches from another store.
    pub fn copy_from(&self, other: &ObjectStore, oid: &Oid) -> Result<(), GitError> {
        let mut command = self.git(None);
        with(&mut command, &["fetch", "--no-tags", "--no-write-fetch-head", "--quiet", "--"]).arg(&other.path);
        run("fetch", command.arg(hex::encode(oid)), &[]).map(drop)
    }
}

/// Which of these objects a repository has, and what each is.
pub(crate) fn types_of(command: &mut Command, oids: &BTreeSet<Oid>) -> Result<Vec<(Oid, String)>, GitError> {
    // Each program costs some milliseconds.
    if oids.is_empty() {
        return Ok(Vec::new());
    }
    with(command, &["cat-file", "--batch-check=%(objecttype)"]);
    let told = run("cat-file", command, lines(oids).as_bytes())?;
    let told = String::from_utf8_lossy(&told);
    let is_there = |line: &str| matches!(line, "commit" | "tag" | "tree" | "blob");
    let types = oids.iter().zip(told.lines()).filter(|(_, line)| is_there(line));
    Ok(types.map(|(oid, line)| (*oid, line.to_owned())).collect())
}

/// Only what git knows of its protocols is passed on.
fn speak(command: &mut Command, protocol: Option<&str>) {
    if let Some(version @ ("version=1" | "version=2")) = protocol {
        command.env("GIT_PROTOCOL", version);
    }
}

/// Writes the files of a bare repository without refs.
pub(crate) fn write_bare(path: &Path, alternate: Option<&Path>) -> Result<(), GitError> {
    std::fs::create_dir_all(path.join("objects/info"))?;
    std::fs::create_dir_all(path.join("objects/pack"))?;
    std::fs::create_dir_all(path.join("refs/heads"))?;
    std::fs::write(path.join("config"), "[core]\n\trepositoryformatversion = 0\n\tbare = true\n")?;
    if let Some(objects) = alternate {
        let objects = std::path::absolute(objects)?;
        std::fs::write(path.join("objects/info/alternates"), format!("{}\n", objects.display()))?;
    }
    std::fs::write(path.join("HEAD"), "ref: refs/heads/main\n")?;
    Ok(())
}

pub(crate) fn sync_folder(path: &Path) -> Result<(), GitError> {
    let folder = std::fs::File::open(path)?;
    rustix::fs::fsync(folder).map_err(|why| GitError::Folder(why.into()))
}
