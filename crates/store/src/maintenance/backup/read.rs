//! Reading a backup: first whether it is one, whole and under this key; then what is in it.

use crate::at_rest::master::MasterKey;
use crate::database::open::FORMAT;
use crate::maintenance::backup::extra_files::is_extra_name;
use crate::maintenance::backup::{
    DAMAGED_ROW, END, END_BYTES, EXTRA_FILE, FILE_END, HASH_BYTES, HEADER_BYTES, MAGIC, OBJECT, PIECE, PIECE_BYTES,
    RECORD_BYTES_MAX, RECORD_HEAD_BYTES, ROW, TABLE, VERSION,
};
use crate::maintenance::verify_rows::name_row;
use model::reader::ByteReader;
use model::{Nanos, ObjectName};
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Why a file cannot be restored from.
#[derive(Debug, thiserror::Error)]
pub enum BadBackup {
    /// It cannot be read at all.
    #[error("cannot read the backup {}: {why}", path.display())]
    Read {
        /// The file that was to be read.
        path: PathBuf,
        /// What the operating system said.
        why: io::Error,
    },
    /// It is something else.
    #[error("this is not an anteroom backup")]
    Other,
    /// A later release wrote it.
    #[error("the backup has version {0}, and this release knows version {VERSION}")]
    Version(u8),
    /// The data folder it was taken from is of a later release.
    #[error("the backup is of a data folder of format {0}, and this release knows formats up to {FORMAT}")]
    Format(u64),
    /// It was made under another master key.
    #[error("the backup was made under another master key, or its header is damaged")]
    WrongKey,
    /// Its end is missing.
    #[error("the backup was cut off: it has {0} bytes and no end")]
    CutOff(u64),
    /// Its bytes are not those that were written.
    #[error("the backup is damaged: its bytes are not those that were written")]
    Damaged,
    /// It is whole, but what it says makes no sense.
    #[error("the backup is whole but cannot be understood at byte {at}: {what}")]
    Strange {
        /// The byte at which reading stopped.
        at: u64,
        /// What was expected there.
        what: &'static str,
    },
}

impl BadBackup {
    /// What whoever has the file can do.
    pub fn what_to_do(&self) -> &'static str {
        match self {
            BadBackup::Read { .. } => "check the path and that you may read it",
            BadBackup::Other => "pass the file that `anteroom backup` wrote",
            BadBackup::Version(_) | BadBackup::Format(_) => "use the release that wrote it, or a newer one",
            BadBackup::WrongKey => {
                "pass the master key it was made under: --master-key FILE, or `restore --recover` with its recovery text"
            }
            BadBackup::CutOff(_) => "copy the whole file again, or use an older backup",
            BadBackup::Damaged => "copy the file again from where it was kept, or use an older backup",
            BadBackup::Strange { .. } => "use the release that wrote it, and report this",
        }
    }
}

/// What the beginning of a backup says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackupHeader {
    /// The format of the data folder.
    pub format: u64,
    /// The check value of the master key.
    pub key_check: [u8; 32],
    /// When it was made.
    pub created_at: Nanos,
    /// The epoch of its journal.
    pub epoch: u64,
}

/// Something in a backup.
#[derive(Debug)]
pub(super) enum BackupItem<'a> {
    Row {
        table: &'a str,
        key: &'a [u8],
        value: &'a [u8],
    },
    Object {
        name: ObjectName,
    },
    ExtraFile {
        name: &'a str,
    },
    /// More of the object or extra file.
    Piece {
        bytes: &'a [u8],
    },
    FileEnd {
        is_whole: bool,
    },
    /// Something that could not be read when the backup was made.
    Damaged {
        what: String,
    },
}

/// How much there is in a backup.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct ItemCounts {
    pub(super) rows: u64,
    pub(super) objects: u64,
    pub(super) extra_files: u64,
    pub(super) damaged: u64,
}

/// A file that begins as a backup does.
#[derive(Debug)]
pub struct BackupFile {
    path: PathBuf,
    file: BufReader<File>,
    size: u64,
    header: BackupHeader,
}

impl BackupFile {
    /// Opens it and looks at its header.
    pub fn open(path: &Path) -> Result<BackupFile, BadBackup> {
        let failed = |why| BadBackup::Read { path: path.to_owned(), why };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(failed(io::Error::other("it is not a regular file")));
        }
        let mut file = BufReader::with_capacity(PIECE_BYTES, file);
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        file.by_ref().take(HEADER_BYTES as u64).read_to_end(&mut bytes).map_err(failed)?;
        let header = parse_header(&bytes, metadata.len())?;
        Ok(BackupFile { path: path.to_owned(), file, size: metadata.len(), header })
    }

    /// What its beginning says.
    pub fn header(&self) -> &BackupHeader {
        &self.header
    }

    /// Whether it is whole, and made under this key. Reads all of it.
    pub fn check_whole(&mut self, master: &MasterKey, progress: &mut dyn FnMut(u64)) -> Result<(), BadBackup> {
        if self.header.key_check != master.check_value() {
            return Err(BadBackup::WrongKey);
        }
        let end = (RECORD_HEAD_BYTES + END_BYTES) as u64;
        let Some(end_at) = self.size.checked_sub(end).filter(|at| *at >= HEADER_BYTES as u64) else {
            return Err(BadBackup::CutOff(self.size));
        };
        self.seek(end_at)?;
        let mut head = [0; RECORD_HEAD_BYTES];
        self.fill(&mut head)?;
        if head[0] != END || head[1..] != (END_BYTES as u32).to_be_bytes() {
            return Err(BadBackup::CutOff(self.size));
        }
        self.compare_hash(master, progress)
    }

    fn compare_hash(&mut self, master: &MasterKey, progress: &mut dyn FnMut(u64)) -> Result<(), BadBackup> {
        let mut hasher = blake3::Hasher::new_keyed(master.backup_key());
        let mut left = self.size - HASH_BYTES as u64;
        let mut buffer = vec![0; PIECE_BYTES];
        self.seek(0)?;
        while left > 0 {
            let most = left.min(PIECE_BYTES as u64) as usize;
            self.fill(&mut buffer[..most])?;
            hasher.update(&buffer[..most]);
            left -= most as u64;
            progress(self.size - left);
        }
        let mut said = [0; HASH_BYTES];
        self.fill(&mut said)?;
        // Compared in constant time.
        if hasher.finalize() == said { Ok(()) } else { Err(BadBackup::Damaged) }
    }

    /// Hands everything in it to a function. Says how much there was.
    pub(super) fn walk<E: From<BadBackup>>(
        &mut self,
        each: &mut dyn FnMut(BackupItem<'_>) -> Result<(), E>,
    ) -> Result<ItemCounts, E> {
        let (mut counts, mut at) = (ItemCounts::default(), HEADER_BYTES as u64);
        let mut table = String::new();
        let mut record = Vec::new();
        self.seek(at)?;
        loop {
            let kind = self.record(at, &mut record)?;
            let strange = |what| BadBackup::Strange { at, what };
            let next = at + (RECORD_HEAD_BYTES + record.len()) as u64;
            match kind {
                TABLE => {
                    table = String::from_utf8(std::mem::take(&mut record)).map_err(|_| strange("a table's name"))?
                }
                ROW => {
                    let (key, value) = split_row(&record).ok_or_else(|| strange("a row"))?;
                    each(BackupItem::Row { table: &table, key, value })?;
                    counts.rows += 1;
                }
                OBJECT => {
                    let name = record.as_slice().try_into().map(ObjectName);
                    let name = name.map_err(|_| strange("the name of an object"))?;
                    at = next;
                    each(BackupItem::Object { name })?;
                    let is_whole = self.each_piece(&mut at, each)?;
                    counts.objects += u64::from(is_whole);
                    counts.damaged += damaged_unless(is_whole, format!("the object {name} is damaged"), each)?;
                    continue;
                }
                EXTRA_FILE => {
                    let name = String::from_utf8(std::mem::take(&mut record)).ok().filter(|name| is_extra_name(name));
                    let name = name.ok_or_else(|| strange("an extra file's name"))?;
                    at = next;
                    each(BackupItem::ExtraFile { name: &name })?;
                    let is_whole = self.each_piece(&mut at, each)?;
                    counts.extra_files += u64::from(is_whole);
                    counts.damaged += damaged_unless(is_whole, format!("the file {name} is damaged"), each)?;
                    continue;
                }
                DAMAGED_ROW => {
                    each(BackupItem::Damaged { what: name_row(&table, &record) })?;
                    counts.damaged += 1;
                }
                END => {
                    let said = [counts.rows, counts.objects, counts.extra_files, counts.damaged]
                        .map(u64::to_be_bytes)
                        .concat();
                    let fits = next == self.size && record.get(..said.len()) == Some(&said);
                    return if fits { Ok(counts) } else { Err(strange("its counts").into()) };
                }
                _ => return Err(strange("an unknown type of record").into()),
            }
            at = next;
        }
    }

    /// Hands the pieces of an object or an extra file to a function. Says whether it is whole.
    fn each_piece<E: From<BadBackup>>(
        &mut self,
        at: &mut u64,
        each: &mut dyn FnMut(BackupItem<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut record = Vec::new();
        loop {
            let kind = self.record(*at, &mut record)?;
            let strange = BadBackup::Strange { at: *at, what: "a file without an end" };
            *at += (RECORD_HEAD_BYTES + record.len()) as u64;
            match (kind, record.as_slice()) {
                (PIECE, bytes) => each(BackupItem::Piece { bytes })?,
                (FILE_END, [broken @ (0 | 1)]) => {
                    let is_whole = *broken == 0;
                    return each(BackupItem::FileEnd { is_whole }).map(|()| is_whole);
                }
                _ => return Err(strange.into()),
            }
        }
    }

    fn record(&mut self, at: u64, record: &mut Vec<u8>) -> Result<u8, BadBackup> {
        let mut head = [0; RECORD_HEAD_BYTES];
        self.fill(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if length > RECORD_BYTES_MAX {
            return Err(BadBackup::Strange { at, what: "a record longer than there can be" });
        }
        record.resize(length, 0);
        self.fill(record)?;
        Ok(head[0])
    }

    fn seek(&mut self, to: u64) -> Result<(), BadBackup> {
        let sought = self.file.seek(SeekFrom::Start(to));
        sought.map(drop).map_err(|why| BadBackup::Read { path: self.path.clone(), why })
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), BadBackup> {
        self.file.read_exact(buffer).map_err(|why| match why.kind() {
            io::ErrorKind::UnexpectedEof => BadBackup::CutOff(self.size),
            _ => BadBackup::Read { path: self.path.clone(), why },
        })
    }
}

fn parse_header(bytes: &[u8], size: u64) -> Result<BackupHeader, BadBackup> {
    let known = bytes.len().min(MAGIC.len());
    if bytes.is_empty() || bytes[..known] != MAGIC[..known] {
        return Err(BadBackup::Other);
    }
    let cut = |_| BadBackup::CutOff(size);
    let mut reader = ByteReader::new(&bytes[known..]);
    match reader.u8().map_err(cut)? {
        VERSION => {}
        other => return Err(BadBackup::Version(other)),
    }
    let format = reader.u64().map_err(cut)?;
    if format > FORMAT {
        return Err(BadBackup::Format(format));
    }
    let key_check = reader.array().map_err(cut)?;
    let created_at = reader.nanos().map_err(cut)?;
    Ok(BackupHeader { format, key_check, created_at, epoch: reader.u64().map_err(cut)? })
}

fn split_row(record: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = record.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// Says that something is damaged, if it is not whole, and how much that counts.
fn damaged_unless<E>(
    is_whole: bool,
    what: String,
    each: &mut dyn FnMut(BackupItem<'_>) -> Result<(), E>,
) -> Result<u64, E> {
    if !is_whole {
        each(BackupItem::Damaged { what })?;
    }
    Ok(u64::from(!is_whole))
}
