//! Writing a backup: temporary name, sync, read back, and only then its name.

use crate::Store;
use crate::database::db::Db;
use crate::database::open::FORMAT;
use crate::disk::sync_dir;
use crate::maintenance::backup::extra_files::{ExtraFiles, NoExtraFiles};
use crate::maintenance::backup::read::{BackupFile, BadBackup};
use crate::maintenance::backup::{
    DAMAGED_ROW, END, EXTRA_FILE, FILE_END, HEADER_BYTES, MAGIC, OBJECT, PIECE, PIECE_BYTES, RECORD_BYTES_MAX, ROW,
    TABLE, VERSION,
};
use crate::maintenance::verify_rows::name_row;
use crate::tables::{Snapshot, export_rows};
use engine::reads::StoreError;
use model::planted::{PlantedBug, is_planted};
use model::{Nanos, ObjectName};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// What a backup came to.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BackupSummary {
    /// Rows of all tables.
    pub rows: u64,
    /// How many objects: large contents.
    pub objects: u64,
    /// How many files beside them: object stores of git.
    pub extra_files: u64,
    /// Bytes of the whole file.
    pub bytes: u64,
    /// How much could not be read, and is not in it.
    pub damaged: u64,
    /// The first of that.
    pub first_damaged: Vec<String>,
}

/// How much of what could not be read is named.
const NAMED_MAX: usize = 100;

/// Why there is no backup. Nothing stands under its name, and nothing is left under a temporary one.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// Something stands there already.
    #[error("cannot write the backup: {} is there already", .0.display())]
    Exists(PathBuf),
    /// The file could not be written.
    #[error("cannot write the backup {}: {why}", path.display())]
    Write {
        /// The file that was to be written.
        path: PathBuf,
        /// What the operating system said.
        why: io::Error,
    },
    /// An object was removed after the backup had begun.
    #[error("the object {0} was removed while the backup was written")]
    ObjectGone(ObjectName),
    /// The files beside the database could not be listed.
    #[error("the files beside the database cannot be listed: {0}")]
    ExtraFiles(io::Error),
    /// A row that no record can hold.
    #[error("a row of {0} is too large for a backup")]
    Row(&'static str),
    /// What was written does not read back.
    #[error("what was written does not read back: {0}")]
    ReadBack(#[from] BadBackup),
    /// It was asked to stop.
    #[error("the backup was stopped before it was whole")]
    Stopped,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BackupError {
    /// What whoever asked for it can do.
    pub fn what_to_do(&self) -> &'static str {
        match self {
            BackupError::Exists(_) => "choose another name, or move the old backup away first",
            BackupError::Write { .. } => "check that the folder exists, is writable and has room, then try again",
            BackupError::ObjectGone(_) => "run the backup again",
            BackupError::ExtraFiles(_) => "check the folder `git` of the data folder",
            BackupError::Row(_) => "run `anteroom verify` and report what it says",
            BackupError::ReadBack(_) => "write the backup to another disk: this one does not keep what it is given",
            BackupError::Stopped => "start it again when the node runs",
            BackupError::Store(_) => "run `anteroom verify`",
        }
    }
}

impl Store {
    /// Writes everything there is to one new file, as of now. The writer goes on meanwhile; it is never waited for.
    pub fn backup(
        &self,
        to: &Path,
        created_at: Nanos,
        progress: &mut dyn FnMut(u64),
    ) -> Result<BackupSummary, BackupError> {
        self.backup_with(to, created_at, &NoExtraFiles, &mut |bytes| {
            progress(bytes);
            ControlFlow::Continue(())
        })
    }

    /// As [`Store::backup`], with files beside the database, until whoever looks at the progress has it stopped.
    pub fn backup_with(
        &self,
        to: &Path,
        created_at: Nanos,
        extra_files: &dyn ExtraFiles,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<BackupSummary, BackupError> {
        if fs::symlink_metadata(to).is_ok() {
            return Err(BackupError::Exists(to.to_owned()));
        }
        let part = temporary_name(to);
        let file = open_part(&part)?;
        // Locked until it has its name.
        let _locked = file.try_clone().map_err(|why| BackupError::Write { path: part.clone(), why })?;
        let attempt = self.backup_to(file, &part, created_at, extra_files, progress).and_then(|done| {
            let named = fs::rename(&part, to).and_then(|()| sync_dir(folder_of(to)));
            named.map(|()| done).map_err(|why| BackupError::Write { path: to.to_owned(), why })
        });
        if attempt.is_err() {
            let _ = fs::remove_file(&part);
        }
        attempt
    }

    fn backup_to(
        &self,
        file: File,
        part: &Path,
        created_at: Nanos,
        extra_files: &dyn ExtraFiles,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<BackupSummary, BackupError> {
        let mut writer = Writer {
            file: BufWriter::with_capacity(PIECE_BYTES, file),
            hasher: blake3::Hasher::new_keyed(self.shared.master.backup_key()),
            path: part.to_owned(),
            done: BackupSummary::default(),
            progress,
        };
        let db = self.snapshot()?;
        writer.header(&db, &self.shared.master.check_value(), created_at)?;
        writer.rows(&db)?;
        writer.objects(self, &db)?;
        // After the rows: what came meanwhile does no harm, what they speak of has to be here.
        writer.extra_files(extra_files)?;
        let done = writer.end()?;
        let mut written = BackupFile::open(part)?;
        written.check_whole(&self.shared.master, &mut |_| ())?;
        written.walk::<BadBackup>(&mut |_| Ok(()))?;
        Ok(done)
    }
}

struct Writer<'a> {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    path: PathBuf,
    done: BackupSummary,
    progress: &'a mut dyn FnMut(u64) -> ControlFlow<()>,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        self.hasher.update(bytes);
        self.done.bytes += bytes.len() as u64;
        self.file.write_all(bytes).map_err(|why| BackupError::Write { path: self.path.clone(), why })
    }

    fn tell(&mut self) -> Result<(), BackupError> {
        match (self.progress)(self.done.bytes) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(BackupError::Stopped),
        }
    }

    fn record(&mut self, kind: u8, parts: &[&[u8]]) -> Result<(), BackupError> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.put(&[kind])?;
        self.put(&(length as u32).to_be_bytes())?;
        parts.iter().try_for_each(|part| self.put(part))
    }

    fn header(&mut self, db: &Db<Snapshot>, check: &[u8; 32], created_at: Nanos) -> Result<(), BackupError> {
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend(MAGIC);
        header.push(VERSION);
        header.extend(FORMAT.to_be_bytes());
        header.extend(check);
        header.extend(created_at.0.to_be_bytes());
        header.extend(db.epoch()?.to_be_bytes());
        self.put(&header)
    }

    fn rows(&mut self, db: &Db<Snapshot>) -> Result<(), BackupError> {
        let mut table = "";
        export_rows(&db.tables, &mut |name, key, value| {
            if is_planted(PlantedBug::BackupWithoutUsage) && name.starts_with("usage") {
                return Ok(());
            }
            if name != table {
                table = name;
                self.record(TABLE, &[name.as_bytes()])?;
            }
            let Some(value) = value else {
                self.damaged(name_row(name, key));
                return self.record(DAMAGED_ROW, &[key]);
            };
            if key.len() + value.len() + 4 > RECORD_BYTES_MAX {
                return Err(BackupError::Row(name));
            }
            self.record(ROW, &[&(key.len() as u32).to_be_bytes(), key, value])?;
            self.done.rows += 1;
            self.tell()
        })
    }

    fn objects(&mut self, store: &Store, db: &Db<Snapshot>) -> Result<(), BackupError> {
        for object in db.stored_objects()? {
            self.record(OBJECT, &[&object.name.0])?;
            let is_whole = db.copy_object(&object, &mut |piece| {
                self.record(PIECE, &[piece])?;
                self.tell()
            })?;
            // If it was removed after the snapshot was taken, nothing is damaged, and the backup has to be taken anew.
            if !is_whole && !store.snapshot()?.is_stored(&object) {
                return Err(BackupError::ObjectGone(object.name));
            }
            self.record(FILE_END, &[&[u8::from(!is_whole)]])?;
            match is_whole {
                true => self.done.objects += 1,
                false => self.damaged(format!("the object {} is damaged", object.name)),
            }
        }
        Ok(())
    }

    fn extra_files(&mut self, files: &dyn ExtraFiles) -> Result<(), BackupError> {
        for name in files.names().map_err(BackupError::ExtraFiles)? {
            self.record(EXTRA_FILE, &[name.as_bytes()])?;
            let is_whole = files.read(&name, &mut |bytes| {
                for piece in bytes.chunks(PIECE_BYTES) {
                    self.record(PIECE, &[piece])?;
                }
                self.tell()
            })?;
            self.record(FILE_END, &[&[u8::from(!is_whole)]])?;
            match is_whole {
                true => self.done.extra_files += 1,
                false => self.damaged(format!("the file {name} is damaged")),
            }
        }
        Ok(())
    }

    fn damaged(&mut self, what: String) {
        self.done.damaged += 1;
        if self.done.first_damaged.len() < NAMED_MAX {
            self.done.first_damaged.push(what);
        }
    }

    fn end(mut self) -> Result<BackupSummary, BackupError> {
        let counts = [self.done.rows, self.done.objects, self.done.extra_files, self.done.damaged]
            .map(u64::to_be_bytes)
            .concat();
        self.put(&[END])?;
        self.put(&(crate::maintenance::backup::END_BYTES as u32).to_be_bytes())?;
        self.put(&counts)?;
        let hash = self.hasher.finalize();
        self.put(hash.as_bytes())?;
        let failed = |why| BackupError::Write { path: self.path.clone(), why };
        self.file.flush().map_err(failed)?;
        self.file.get_ref().sync_all().map_err(failed)?;
        Ok(self.done)
    }
}

/// Opens the file to write to, and locks it. A beginning of a backup that nobody has locked was cut off by a crash, and is
/// written anew; anything else that stands there is somebody's.
fn open_part(part: &Path) -> Result<File, BackupError> {
    let failed = |why| BackupError::Write { path: part.to_owned(), why };
    let mut options = OpenOptions::new();
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link);
    let file = options.open(part).map_err(|why| match fs::symlink_metadata(part) {
        Ok(_) => BackupError::Exists(part.to_owned()),
        Err(_) => failed(why),
    })?;
    let mut beginning = Vec::new();
    let is_file = file.metadata().map_err(failed)?.is_file();
    if is_file {
        (&file).take(MAGIC.len() as u64).read_to_end(&mut beginning).map_err(failed)?;
    }
    if !is_file || !MAGIC.starts_with(&beginning) {
        return Err(BackupError::Exists(part.to_owned()));
    }
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            let emptied = file.set_len(0).and_then(|()| (&file).seek(SeekFrom::Start(0)));
            emptied.map(|_| file).map_err(failed)
        }
        Err(rustix::io::Errno::WOULDBLOCK) => Err(BackupError::Exists(part.to_owned())),
        Err(why) => Err(failed(why.into())),
    }
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(crate::disk::TEMPORARY);
    name.into()
}

pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}
