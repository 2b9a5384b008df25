//! Values at rest: what opens, what does not, and that nothing is lost on the way.

use super::*;
use crate::at_rest::master::MasterKey;
use crate::database::open::{Store, StoreOptions};
use crate::database::writing_at_rest::plain;
use crate::{Batch, FolderDisk};
use model::Nanos;
use std::path::Path;
use std::sync::Arc;

const NOW: Nanos = Nanos(1_700_000_000_000_000_000);
const SPACE: SpaceId = SpaceId([1; 16]);

fn open(folder: &Path) -> Store {
    let disk = Arc::new(FolderDisk::new(folder).expect("a folder"));
    let options = StoreOptions { cache_bytes: 1 << 20, random: KeySource::Seed(1), ..StoreOptions::default() };
    Store::open(disk, MasterKey::new(&[7; 32]), options).expect("opened")
}

fn key(number: u32) -> StorageKey {
    StorageKey::new(number, &[number as u8; 32])
}

#[test]
fn a_value_opens_under_its_key_and_name_only() {
    let mut sealed = Vec::new();
    key(1).seal_onto(&mut sealed, b"name", b"value");
    assert_eq!(key(1).open(b"name", &sealed).as_deref(), Some(&b"value"[..]));
    assert_eq!(key(1).open(b"other", &sealed), None);
    assert_eq!(key(2).open(b"name", &sealed), None);
    assert_eq!(key(1).open(b"name", &sealed[..30]), None);
}

#[test]
fn fields_are_encrypted_and_give_back_the_very_bytes() {
    let text =
        r#"{"body":{"a":[{"secret":1.5,"x":null},{"secret":"é"}],"secret":{"deep":true},"text":"hi"},"n":1e+21}"#;
    let bytes = model::body::encode(&serde_json::from_str(text).expect("JSON")).expect("a body");
    for (paths, count) in [
        (&["body.text"][..], 1),
        (&["body.*.secret", "n"], 1),
        (&["body.*.*.secret"], 2),
        (&["*"], 2),
        (&["body.text", "body", "body.text"], 2),
        (&["body", "body.text", "body"], 1),
    ] {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        let json = fields::seal(&key(1), b"name", &paths, &bytes).expect("sealed");
        let shown = String::from_utf8(json.clone()).expect("text");
        let nested = usize::from(paths.len() == 3 && count == 2);
        assert_eq!(shown.matches("_enc").count(), count - nested, "{paths:?}: {shown}");
        assert_eq!(fields::open(&key(1), b"name", &json).as_deref(), Some(bytes.as_slice()), "{paths:?}");
        assert_eq!(fields::open(&key(1), b"other", &json), None);
        assert_eq!(fields::open(&key(2), b"name", &json), None);
    }
}

#[test]
fn a_field_cannot_be_moved_to_another_place() {
    let paths = ["a".to_owned(), "b".to_owned()];
    let json = fields::seal(&key(1), b"name", &paths, br#"{"a":1,"b":2}"#).expect("sealed");
    let mut body: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let moved = body["a"].take();
    body["b"] = moved;
    assert_eq!(fields::open(&key(1), b"name", body.to_string().as_bytes()), None);
}

#[test]
fn what_is_no_body_or_speaks_in_our_terms_is_encrypted_whole() {
    let paths = ["a".to_owned()];
    for text in [r#"{"a": 1}"#, "no JSON", r#"{"b":1}"#, r#"{"a":1,"b":{"_enc":"00","v":1}}"#] {
        assert_eq!(fields::seal(&key(1), b"name", &paths, text.as_bytes()), None, "{text}");
    }
    assert_eq!(Protection::fields(&["a..b"]), Err(BadPath));
}

fn protect(batch: &mut Batch<'_>, row: &[u8]) -> Vec<u8> {
    batch.protect(&SPACE, row, b"value").expect("protected")
}

#[test]
fn keys_are_made_once_and_kept() {
    let home = tempfile::tempdir().expect("a folder");
    let first = open(home.path()).write(NOW, |batch| Ok(protect(batch, b"row"))).expect("written");
    let store = open(home.path());
    let db = store.snapshot().expect("a snapshot");
    assert_eq!(db.newest_storage_key(&SPACE).expect("read"), Some(1));
    assert_eq!(db.open_at_rest(&SPACE, b"row", &first).expect("read").as_deref(), Some(&b"value"[..]));
    assert!(db.open_at_rest(&SPACE, b"other", &first).is_err());
    assert!(db.open_at_rest(&SPACE, b"row", &[99]).is_err());
    let unknown = [&[TAG_WHOLE, 0, 0, 0, 9], &first[5..]].concat();
    assert_eq!(db.open_at_rest(&SPACE, b"row", &unknown).expect("read"), None);
    assert_eq!(store.write(NOW, |batch| Ok(protect(batch, b"row"))).expect("written"), first);
    let (old, named) = (db.shared.master.wrap(&full_name(&SPACE, b"row"), b"old"), plain(b"as it is"));
    assert_eq!(db.open_at_rest(&SPACE, b"row", &old).expect("read").as_deref(), Some(&b"old"[..]));
    assert_eq!(db.open_at_rest(&SPACE, b"row", &named).expect("read").as_deref(), Some(&b"as it is"[..]));
}

#[test]
fn a_key_that_was_not_committed_is_not_used() {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(home.path());
    let failed: engine::reads::StoreResult<()> = store.write(NOW, |batch| {
        protect(batch, b"row");
        Err(engine::StoreError::Full)
    });
    assert!(failed.is_err());
    assert!(store.keys().storage_key(&SPACE, 1).is_none());
}

#[test]
fn destroyed_keys_leave_nothing_to_read_and_their_numbers_are_not_given_again() {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(home.path());
    let first = store.write(NOW, |batch| Ok(protect(batch, b"row"))).expect("written");
    assert_eq!(store.write(NOW, |batch| batch.destroy_keys(&SPACE)).expect("written"), 1);
    drop(store);
    for _ in 0..2 {
        let store = open(home.path());
        let db = store.snapshot().expect("a snapshot");
        assert!(db.is_destroyed(&SPACE).expect("read"));
        assert_eq!(db.open_at_rest(&SPACE, b"row", &first).expect("read"), None);
    }
    let store = open(home.path());
    let second = store.write(NOW, |batch| Ok(protect(batch, b"row"))).expect("written");
    assert_eq!((&first[..5], &second[..5]), (&[TAG_WHOLE, 0, 0, 0, 1][..], &[TAG_WHOLE, 0, 0, 0, 2][..]));
    let db = store.snapshot().expect("a snapshot");
    assert_eq!(db.open_at_rest(&SPACE, b"row", &first).expect("read"), None);
    assert!(db.open_at_rest(&SPACE, b"row", &second).expect("read").is_some());
}
