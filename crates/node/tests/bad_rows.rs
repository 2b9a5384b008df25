//! One bad row of each table: the writer goes on, whatever it is of.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::commands::{UserCommand, message_content};
use anteroom_node::node_commands::{Arrive, Collect, Purge, Tick};
use anteroom_node::{WriterCore, pipeline};
use common::{Home, NOW, edit, message, react};
use engine::reads::{Reads as _, StoreError};
use engine::rows::Origin;
use model::blob::Blob;
use model::stage::Stage;
use model::{Envelope, EventId, Identity, Kind, Nanos, Reference, Role, Seq};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use store::tables::export_rows;
use store::{FolderDisk, KeySource, MasterKey, Store, StoreOptions};

/// So many that wait for one event are not released in one transaction.
const SLEEPERS: u64 = 1100;
const DAY: u64 = 24 * 3600 * Nanos::SECOND;

fn policy() -> engine::Policy {
    engine::Policy { row_content_bytes_max: 2000, ..engine::Policy::default() }
}

fn open(folder: &Path) -> Store {
    let disk = FolderDisk::new(folder).unwrap();
    let (policy, random) = (policy(), KeySource::Seed(2));
    let options = StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, random };
    Store::open(Arc::new(disk), MasterKey::new(&[7; 32]), options).unwrap()
}

/// A post of somebody's own that answers something that is not here, if it answers anything.
fn stranger(number: u8, answers: Option<EventId>) -> (Vec<u8>, Vec<u8>) {
    stranger_at(number, u64::from(number), answers)
}

fn stranger_at(number: u8, after: u64, answers: Option<EventId>) -> (Vec<u8>, Vec<u8>) {
    let author = ed25519_dalek::SigningKey::from_bytes(&[number; 32]);
    let identity = Identity(author.verifying_key().to_bytes());
    let space = model::crypto::public_space(&identity);
    let kind = if answers.is_some() { Kind::Edit } else { Kind::Post };
    let mut envelope = Envelope::new(kind, Nanos(NOW.0 - 1_000_000 + after), space, identity);
    envelope.references = answers.map(|id| Reference { role: Role::Target, id }).into_iter().collect();
    let content = br#"{"text":"hi"}"#.to_vec();
    envelope.content_len = content.len() as u64;
    envelope.content_hash = model::crypto::content_hash(&content);
    (Blob::plain(&envelope.sign(&author).unwrap()).unwrap().bytes().to_vec(), content)
}

fn arrive(core: &WriterCore, (blob, inline): (Vec<u8>, Vec<u8>), now: Nanos) -> Result<(), String> {
    let store = core.store();
    let arrival = engine::chains::receive_blob(&**store.keys(), store.policy(), blob, Some(inline), Origin::Import);
    core.ask(Arrive(Box::new(arrival.unwrap())), now).map(drop).map_err(|why| why.to_string())
}

/// A folder with something of everything that the writer looks at by itself.
fn fill() -> tempfile::TempDir {
    let home = Home::with_policy(policy());
    for number in 0..6 {
        let size = [20, 1500, 5000][number % 3];
        let id = home.post("ada", &"x".repeat(size));
        home.ask("bob", react(id)).unwrap();
        home.ask("ada", edit(id)).unwrap();
        if number > 3 {
            let (space, audit_name) = (home.space, "test".to_owned());
            home.core.ask(Purge { space, targets: vec![id], audit_name }, NOW).unwrap();
        }
    }
    for number in 1..5 {
        arrive(&home.core, stranger(number, Some(EventId([number; 16]))), NOW).unwrap();
    }
    home.core.settle(NOW).unwrap();
    // More wait for one event than a transaction releases: the rest is queued.
    let (needed, content) = stranger(50, None);
    let id = model::crypto::event_id(&needed);
    for number in 0..SLEEPERS {
        let (blob, inline) = stranger_at(50, number, Some(id));
        arrive(&home.core, (blob, inline), NOW).unwrap();
    }
    arrive(&home.core, (needed, content), NOW).unwrap();
    home.into_folder()
}

/// The first row of each table: how its value is stored.
fn first_rows(folder: &Path) -> BTreeMap<&'static str, Vec<u8>> {
    let mut rows = BTreeMap::new();
    let store = open(folder);
    let each = &mut |table: &'static str, _: &[u8], stored: Option<&[u8]>| {
        rows.entry(table).or_insert_with(|| stored.unwrap().to_vec());
        Ok::<(), StoreError>(())
    };
    export_rows(store.snapshot().unwrap().tables(), each).unwrap();
    rows
}

/// Whatever the writer does by itself and is asked for, now and long afterwards.
fn work(core: &WriterCore, home: &Home) -> Result<(), String> {
    let fault = |why: StoreError| why.to_string();
    for now in [NOW, NOW.plus(40 * DAY)] {
        core.run(vec![Tick], now).map(drop).map_err(fault)?;
        core.settle(now).map_err(fault)?;
        core.ask(Collect, now).map(drop).map_err(|why| why.to_string())?;
        arrive(core, stranger(100 + (now.0 / DAY % 100) as u8, None), now)?;
        // What concerns the damaged row may be refused; it must not stop the writer.
        let _ = core.ask(home.posting("bob", "hello"), now);
        let _ = core.ask(
            home.by("eve", UserCommand::Edit(message(EventId([9; 16])), message_content("x".into(), None).unwrap())),
            now,
        );
        core.settle(now).map_err(fault)?;
    }
    Ok(())
}

#[test]
fn one_bad_row_of_any_table_does_not_stop_the_writer() {
    pipeline::isolate_bugs();
    let filled = fill();
    let home = Home::with_policy(policy());
    let rows = first_rows(filled.path());
    assert!(rows.len() > 30, "{} tables have rows", rows.len());
    for queue in ["tasks_v1", "ready_v1", "held_v1", "waiting_v1", "schedule_v1"] {
        assert!(rows.contains_key(queue), "{queue} has no row: {:?}", rows.keys());
    }
    let sound = fs::read(filled.path().join("anteroom.redb")).unwrap();
    let mut stopped = Vec::new();
    for (table, stored) in rows {
        let mut bytes = sound.clone();
        let places: Vec<usize> =
            (0..bytes.len() - stored.len()).filter(|at| bytes[*at..].starts_with(&stored)).collect();
        assert!(!places.is_empty(), "{table}");
        for at in places {
            bytes[at + stored.len() - 1] ^= 4;
        }
        fs::write(filled.path().join("anteroom.redb"), bytes).unwrap();
        let core = WriterCore::new(open(filled.path()));
        if let Err(why) = work(&core, &home) {
            stopped.push(format!("{table}: {why}"));
        }
        // What was queued is done, whatever the queue says.
        let db = core.store().snapshot().unwrap();
        let is_ready = |seq: &Seq| matches!(db.event(*seq), Ok(Some(row)) if row.stage == Stage::Ready);
        assert_eq!(db.event_numbers().map(Seq).find(is_ready), None, "{table}");
        // Whoever waited for what is here was woken, and did not have to give up in the end.
        let left = db.event_numbers().count() as u64;
        assert!(left >= SLEEPERS, "{table}: only {left} events are left");
    }
    assert!(stopped.is_empty(), "{}", stopped.join("\n"));
}
