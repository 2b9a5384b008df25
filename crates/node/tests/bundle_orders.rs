//! A bundle gives the same state in whatever order its records stand, from a file and through a pipe.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::bundle::{
    BundleInput, BundleReader, BundleWriter, ExportOptions, ImportError, ImportProgress, Imported, Passphrase, Pipe,
    Record, export, import,
};
use anteroom_node::fetch::hunter::NoSources;
use anteroom_node::{Clock, Node, NodeOptions};
use common::{Home, NOW, edit, react};
use model::Nanos;
use std::fs::File;
use std::io::{BufReader, Seek as _, Write as _};
use std::sync::Arc;
use store::{FolderDisk, KeySource, MasterKey, Store, StoreOptions};

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Nanos {
        Nanos(NOW.0 + 3600 * Nanos::SECOND)
    }
}

fn passphrase() -> Passphrase {
    Passphrase::new("four words that nobody guesses").unwrap()
}

/// The records of a space with contents of every size, an edit, a reaction, and its keys.
fn records() -> Vec<Record> {
    let home = Home::new();
    for (number, length) in [10, 2000, 100, 5000, 60_000].into_iter().enumerate() {
        let id = home.post(["alice", "bob"][number % 2], &"x".repeat(length));
        if number == 0 {
            home.ask("alice", edit(id)).unwrap();
            home.ask("bob", react(id)).unwrap();
        }
    }
    let db = home.core.store().snapshot().unwrap();
    let mut bytes = Vec::new();
    export(&db, ExportOptions::default(), Some(&passphrase()), &mut bytes, &mut |_| ()).unwrap();
    let mut reader = BundleReader::new(bytes.as_slice()).unwrap();
    std::iter::from_fn(|| reader.next_record().unwrap()).map(|(_, record)| record).collect()
}

fn write(records: &[Record]) -> Vec<u8> {
    let mut writer = BundleWriter::new(Vec::new()).unwrap();
    for record in records {
        match record {
            Record::Event { blob, inline } => writer.event(blob, inline).unwrap(),
            Record::Content { space, hash, bytes } => writer.content(space, hash, bytes).unwrap(),
            Record::Keys { sealed } => writer.keys(sealed).unwrap(),
        }
    }
    writer.finish().unwrap()
}

/// A new node.
struct Importing {
    node: Node,
    _folder: tempfile::TempDir,
}

impl Importing {
    fn new() -> Importing {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(FolderDisk::new(folder.path()).unwrap());
        let options = StoreOptions { cache_bytes: 4 << 20, random: KeySource::Seed(2), ..StoreOptions::default() };
        let store = Store::open(disk, MasterKey::new(&[8; 32]), options).unwrap();
        let node = Node::start(store, Arc::new(Still), Arc::new(NoSources), NodeOptions::default());
        Importing { node, _folder: folder }
    }

    fn import(&self, input: impl BundleInput) -> (Imported, Result<(), ImportError>) {
        import(&self.node, input, Some(&passphrase()), &mut |_| true)
    }

    /// What it shows.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        self.node.snapshot().unwrap().dump(&mut |line| lines.push(line)).unwrap();
        lines.sort();
        lines
    }
}

impl Drop for Importing {
    fn drop(&mut self) {
        self.node.stop();
    }
}

/// What a new node shows after it has imported this, and what the import says of contents.
fn imported(input: impl BundleInput) -> (Vec<String>, Imported) {
    let importing = Importing::new();
    let (counted, ended) = importing.import(input);
    ended.unwrap();
    (importing.lines(), counted)
}

fn pipe(bytes: &[u8]) -> Pipe<&[u8]> {
    Pipe::new(bytes, std::env::temp_dir())
}

fn file(bytes: &[u8]) -> BufReader<File> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    BufReader::new(file)
}

#[test]
fn every_order_of_the_records_gives_the_same() {
    let mut records = records();
    let contents = records.iter().filter(|record| matches!(record, Record::Content { .. })).count() as u64;
    assert!(contents >= 3, "{contents}");
    let (expected, counted) = imported(file(&write(&records)));
    assert!(expected.iter().any(|line| line.starts_with("message")), "{expected:#?}");
    assert_eq!((counted.contents, counted.contents_unwanted), (contents, 0));
    for round in 0..6 {
        match round {
            0 => records.reverse(),
            _ => records.sort_by_key(|record| blake3::hash(format!("{round} {record:?}").as_bytes()).to_hex()),
        }
        let bytes = write(&records);
        let (by_file, counted) = imported(file(&bytes));
        assert_eq!(by_file, expected, "round {round}, from a file");
        assert_eq!((counted.contents, counted.contents_unwanted), (contents, 0), "round {round}, from a file");
        let (by_pipe, counted) = imported(pipe(&bytes));
        assert_eq!(by_pipe, expected, "round {round}, through a pipe");
        assert_eq!((counted.contents, counted.contents_unwanted), (contents, 0), "round {round}, through a pipe");
    }
}

#[test]
fn content_that_nothing_refers_to_is_told_once_and_not_kept() {
    let mut records: Vec<_> = records().into_iter().filter(|record| !matches!(record, Record::Event { .. })).collect();
    let contents = records.iter().filter(|record| matches!(record, Record::Content { .. })).count() as u64;
    for _ in 0..2 {
        let (_, counted) = imported(file(&write(&records)));
        assert_eq!((counted.contents, counted.contents_unwanted), (0, contents));
        let bytes = write(&records);
        let (_, counted) = imported(pipe(&bytes));
        assert_eq!((counted.contents, counted.contents_unwanted), (0, contents));
        records.reverse();
    }
}

/// The records with all contents first.
fn contents_first() -> (Vec<Record>, u64) {
    let mut records = records();
    records.sort_by_key(|record| !matches!(record, Record::Content { .. }));
    let contents = records.iter().filter(|record| matches!(record, Record::Content { .. })).count() as u64;
    (records, contents)
}

#[test]
fn what_finds_no_room_aside_is_told_and_comes_with_the_next_import() {
    let (records, contents) = contents_first();
    let bytes = write(&records);
    let (expected, _) = imported(file(&bytes));
    let importing = Importing::new();
    let (counted, ended) = importing.import(pipe(&bytes).with_room(6000));
    let Err(ImportError::Aside { contents: not_kept, .. }) = ended else { panic!("{ended:?}") };
    assert!(not_kept > 0 && counted.contents > 0, "{not_kept} of {contents}");
    assert_eq!((counted.contents + not_kept, counted.contents_unwanted), (contents, 0));
    let (counted, ended) = importing.import(pipe(&bytes));
    ended.unwrap();
    assert_eq!((counted.contents, importing.lines()), (not_kept, expected));
}

#[test]
fn what_finds_no_room_aside_is_not_missed_if_nothing_refers_to_it() {
    let (mut records, contents) = contents_first();
    records.retain(|record| matches!(record, Record::Content { .. }));
    let bytes = write(&records);
    for room in [0, 6000] {
        let (counted, ended) = Importing::new().import(pipe(&bytes).with_room(room));
        ended.unwrap();
        assert_eq!((counted.contents, counted.contents_unwanted), (0, contents), "room for {room} bytes");
    }
}

#[test]
fn a_folder_that_takes_nothing_aside_is_told() {
    let (records, contents) = contents_first();
    let bytes = write(&records);
    let (_, ended) = Importing::new().import(Pipe::new(bytes.as_slice(), "/nowhere".into()));
    let Err(ImportError::Aside { contents: not_kept, why }) = ended else { panic!("{ended:?}") };
    assert_eq!(not_kept, contents);
    assert!(why.contains("No such file"), "{why}");
}

#[test]
fn what_was_read_before_a_bundle_breaks_off_is_kept() {
    let (records, contents) = contents_first();
    let bytes = write(&records);
    let (expected, _) = imported(file(&bytes));
    let cut = &bytes[..bytes.len() - 1];
    for is_file in [true, false] {
        let importing = Importing::new();
        let (counted, ended) = if is_file { importing.import(file(cut)) } else { importing.import(pipe(cut)) };
        assert!(matches!(ended, Err(ImportError::Bundle(_))), "{ended:?}");
        assert_eq!((counted.contents, importing.lines()), (contents, expected.clone()), "from a file: {is_file}");
    }
}

#[test]
fn changed_content_is_told_with_its_place_in_the_bundle() {
    let (mut records, contents) = contents_first();
    let Record::Content { bytes, .. } = &mut records[1] else { panic!("no content") };
    bytes[0] ^= 1;
    let bytes = write(&records);
    let mut reader = BundleReader::new(bytes.as_slice()).unwrap();
    reader.next_record().unwrap();
    let (at, _) = reader.next_record().unwrap().unwrap();
    for is_file in [true, false] {
        let (_, counted) = if is_file { imported(file(&bytes)) } else { imported(pipe(&bytes)) };
        let dropped: Vec<u64> = counted.first_dropped.iter().map(|dropped| dropped.at).collect();
        assert_eq!((dropped, counted.contents), (vec![at], contents - 1), "from a file: {is_file}");
    }
}

#[test]
fn whoever_watches_can_stop_the_second_pass() {
    let (records, _) = contents_first();
    let (bytes, total) = (write(&records), records.len() as u64);
    let mut is_asked = 0;
    let mut watch = |progress: ImportProgress| {
        is_asked += u64::from(progress.records == total);
        is_asked < 2
    };
    let importing = Importing::new();
    let (_, ended) = import(&importing.node, file(&bytes), Some(&passphrase()), &mut watch);
    assert!(matches!(ended, Err(ImportError::Interrupted { .. })), "{ended:?}");
}
