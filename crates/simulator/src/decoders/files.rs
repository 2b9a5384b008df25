//! Files that somebody hands over: bundles, and backups of a data folder.

use super::master_key;
use model::Nanos;
use model::limits::{BLOB_BYTES_MAX, INLINE_WIRE_BYTES_MAX};
use node::bundle::{BadBundle, BundleReader, BundleWriter, CONTENT_RECORD_BYTES_MAX, KEYS_RECORD_BYTES_MAX, Record};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use store::StoreOptions;
use store::maintenance::backup::{BackupFile, BackupHeader, restore};

/// What the header of a backup says stands after its name and version; the check value of the key after the format.
const HEADER_AT: usize = 15 + 1;
const KEY_CHECK_AT: usize = HEADER_AT + 8;
const HASH_BYTES: usize = 32;

/// A bundle: every record is bounded, and one that reads to its end is what would be written.
pub fn bundle(bytes: &[u8]) {
    let whole = read_bundle(bytes).map_err(explain);
    assert_eq!(read_bundle(Trickle(bytes)).map_err(explain), whole, "the same however the bytes come in");
    if let Ok(records) = whole {
        assert_eq!(write_bundle(&records), bytes);
    }
    let records = [
        Record::Event { blob: bytes[..bytes.len().min(BLOB_BYTES_MAX)].to_vec(), inline: Vec::new() },
        Record::Event { blob: Vec::new(), inline: bytes[..bytes.len().min(INLINE_WIRE_BYTES_MAX)].to_vec() },
        Record::Content { space: super::SPACE, hash: model::crypto::content_hash(bytes), bytes: bytes.to_vec() },
        Record::Keys { sealed: bytes[..bytes.len().min(KEYS_RECORD_BYTES_MAX)].to_vec() },
    ];
    let read = read_bundle(write_bundle(&records).as_slice());
    assert_eq!(read.expect("what was written reads"), records);
}

fn explain(why: BadBundle) -> String {
    assert!(!why.to_string().is_empty() && !why.what_to_do().is_empty());
    why.to_string()
}

fn read_bundle(input: impl Read) -> Result<Vec<Record>, BadBundle> {
    let mut reader = BundleReader::new(input)?;
    let mut records = Vec::new();
    let mut end = reader.at();
    while let Some((at, record)) = reader.next_record()? {
        assert_eq!(at, end, "records follow each other");
        match &record {
            Record::Event { blob, inline } => {
                assert!(blob.len() + inline.len() <= BLOB_BYTES_MAX + INLINE_WIRE_BYTES_MAX);
            }
            Record::Content { bytes, .. } => assert!(bytes.len() <= CONTENT_RECORD_BYTES_MAX),
            Record::Keys { sealed } => assert!(sealed.len() <= KEYS_RECORD_BYTES_MAX),
        }
        end = reader.at();
        records.push(record);
    }
    assert!(matches!(reader.next_record(), Ok(None)), "nothing comes after the end");
    Ok(records)
}

fn write_bundle(records: &[Record]) -> Vec<u8> {
    let write = || -> io::Result<Vec<u8>> {
        let mut writer = BundleWriter::new(Vec::new())?;
        for record in records {
            match record {
                Record::Event { blob, inline } => writer.event(blob, inline)?,
                Record::Content { space, hash, bytes } => writer.content(space, hash, bytes)?,
                Record::Keys { sealed } => writer.keys(sealed)?,
            }
        }
        writer.finish()
    };
    write().expect("memory takes everything")
}

/// A pipe that hands over a few bytes at a time.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(7);
        self.0.read(&mut buffer[..most])
    }
}

/// A backup: its header is what its bytes say; what is not whole is not restored; and what cannot be restored leaves
/// nothing behind.
pub fn backup(bytes: &[u8]) {
    with_file(bytes, |path| {
        let whole = BackupFile::open(path).and_then(|mut file| {
            assert_eq!(header_bytes(file.header()), bytes[HEADER_AT..HEADER_AT + 8 + 32 + 8 + 8]);
            file.check_whole(&master_key(), &mut |_| ())
        });
        match whole {
            Ok(()) => restore_whole(path),
            Err(why) => assert!(!why.to_string().is_empty() && !why.what_to_do().is_empty()),
        }
    });
}

fn header_bytes(header: &BackupHeader) -> Vec<u8> {
    let mut bytes = header.format.to_be_bytes().to_vec();
    bytes.extend(header.key_check);
    bytes.extend(header.created_at.0.to_be_bytes());
    bytes.extend(header.epoch.to_be_bytes());
    bytes
}

/// The same with the check value and the hash put right, so that what is inside is read as well. The hash is handed in:
/// keyed BLAKE3 of some bytes.
pub fn backup_under(bytes: &[u8], keyed_hash: impl Fn(&[u8; 32], &[u8]) -> [u8; HASH_BYTES]) {
    let (mut whole, master) = (bytes.to_vec(), master_key());
    if let Some(check) = whole.get_mut(KEY_CHECK_AT..KEY_CHECK_AT + 32) {
        check.copy_from_slice(&master.check_value());
    }
    if let Some((before, hash)) = whole.split_last_chunk_mut::<HASH_BYTES>() {
        *hash = keyed_hash(master.backup_key(), before);
    }
    backup(&whole);
}

fn restore_whole(path: &Path) {
    let into = path.with_extension("restored");
    let options = StoreOptions {
        cache_bytes: 4 << 20,
        reserve_bytes: 0,
        random: store::KeySource::Seed(1),
        ..StoreOptions::default()
    };
    match restore(path, &into, &master_key(), options, false, Nanos(1), &mut |_| ()) {
        Ok(_) => fs::remove_dir_all(&into).expect("a restored folder"),
        Err(why) => {
            assert!(!why.to_string().is_empty() && !why.what_to_do().is_empty());
            assert!(!into.exists(), "{why}: something was left behind");
        }
    }
}

/// Runs with a file of these bytes under a name that nobody else has.
fn with_file(bytes: &[u8], run: impl FnOnce(&Path)) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("anteroom-decoders-{}-{number}", std::process::id());
    let file = Temporary(std::env::temp_dir().join(name));
    fs::write(&file.0, bytes).expect("a writable folder for temporary files");
    run(&file.0);
}

struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
