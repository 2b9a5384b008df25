//! Rows that cannot be read: each concerns its own event, which is parked and named, and everything else goes on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_node::node_commands::{Arrive, HuntNow, Tick};
use anteroom_node::{WriterCore, pipeline};
use engine::reads::Reads as _;
use engine::rows::{Origin, Outcome};
use model::blob::Blob;
use model::stage::Stage;
use model::{Envelope, EventId, Identity, Kind, Nanos, Reference, Role};
use std::sync::Arc;
use store::{FolderDisk, MasterKey, Store, StoreOptions};

const NOW: Nanos = Nanos(1_800_000_000 * Nanos::SECOND);
const HOLD: u64 = 31 * 24 * 3600 * Nanos::SECOND;

/// A folder, and an author with a public space.
struct World {
    folder: tempfile::TempDir,
    author: ed25519_dalek::SigningKey,
}

struct Made {
    id: EventId,
    blob: Vec<u8>,
}

impl World {
    fn new() -> World {
        pipeline::isolate_bugs();
        World { folder: tempfile::tempdir().unwrap(), author: ed25519_dalek::SigningKey::from_bytes(&[5; 32]) }
    }

    fn open(&self) -> WriterCore {
        let disk = Arc::new(FolderDisk::new(self.folder.path()).unwrap());
        let options = StoreOptions { cache_bytes: 4 << 20, reserve_bytes: 0, ..StoreOptions::default() };
        WriterCore::new(Store::open(disk, MasterKey::new(&[7; 32]), options).unwrap())
    }

    /// A post in the author's public space that may answer another.
    fn post(&self, number: u64, answers: Option<&Made>) -> Made {
        let identity = Identity(self.author.verifying_key().to_bytes());
        let space = model::crypto::public_space(&identity);
        let kind = if answers.is_some() { Kind::Edit } else { Kind::Post };
        let mut envelope = Envelope::new(kind, Nanos(NOW.0 - 1_000_000 + number), space, identity);
        envelope.references = answers.map(|made| Reference { role: Role::Target, id: made.id }).into_iter().collect();
        let content = br#"{"text":"hi"}"#;
        envelope.content_len = content.len() as u64;
        envelope.content_hash = model::crypto::content_hash(content);
        let blob = Blob::plain(&envelope.sign(&self.author).unwrap()).unwrap();
        Made { id: blob.id(), blob: blob.bytes().to_vec() }
    }

    /// Flips a bit in the row of an event, wherever the database has it.
    fn damage(&self, made: &Made) {
        let file = self.folder.path().join("anteroom.redb");
        let mut bytes = std::fs::read(&file).unwrap();
        let places: Vec<usize> =
            (0..bytes.len() - made.blob.len()).filter(|at| bytes[*at..].starts_with(&made.blob)).collect();
        assert!(!places.is_empty());
        for at in places {
            bytes[at + made.blob.len() / 2] ^= 4;
        }
        std::fs::write(&file, bytes).unwrap();
    }
}

fn store_event(core: &WriterCore, made: &Made) -> Outcome {
    let store = core.store();
    let inline = Some(br#"{"text":"hi"}"#.to_vec());
    let arrival =
        engine::chains::receive_blob(&**store.keys(), store.policy(), made.blob.clone(), inline, Origin::Import)
            .unwrap();
    core.ask(Arrive(Box::new(arrival)), NOW).unwrap().1
}

fn stage_of(core: &WriterCore, made: &Made) -> Option<Stage> {
    let db = core.store().snapshot().unwrap();
    let seq = db.seq(&made.id).unwrap()?;
    db.event(seq).ok()?.map(|row| row.stage)
}

/// Many that wait for one event, of which one is damaged.
fn waiting(count: u64) -> (World, Made, Vec<Made>) {
    let world = World::new();
    let first = world.post(0, None);
    let waiting: Vec<Made> = (1..=count).map(|number| world.post(number, Some(&first))).collect();
    let core = world.open();
    for made in &waiting {
        let outcome = store_event(&core, made);
        assert!(matches!(outcome, Outcome::Held(..)), "{outcome:?}");
    }
    drop(core);
    world.damage(&waiting[1]);
    (world, first, waiting)
}

#[test]
fn one_damaged_row_does_not_keep_the_others_from_being_released() {
    // Few are woken at once, many by a task.
    for count in [5, 100] {
        let (world, first, waiting) = waiting(count);
        let core = world.open();
        assert!(matches!(store_event(&core, &first), Outcome::Applied(_)));
        core.settle(NOW).unwrap();
        for (number, made) in waiting.iter().enumerate().filter(|(number, _)| *number != 1) {
            let stage = stage_of(&core, made);
            assert!(matches!(stage, Some(Stage::Applied { .. })), "{number}: {stage:?}");
        }
        let db = core.store().snapshot().unwrap();
        assert_eq!(db.stages().unwrap().iter().find(|(word, _)| *word == "parked").unwrap().1, 1);
        assert_eq!(db.counts().unwrap().iter().find(|(word, _)| word == "parked").unwrap().1, 1);
        let problems = core.store().verify(NOW).unwrap().problems;
        assert!(problems.iter().any(|problem| problem.contains(&waiting[1].id.to_string())), "{problems:?}");
    }
}

#[test]
fn one_damaged_row_does_not_keep_the_clock_from_its_work() {
    let (world, _, waiting) = waiting(5);
    let core = world.open();
    core.ask(Tick, NOW.plus(HOLD)).unwrap();
    core.settle(NOW.plus(HOLD)).unwrap();
    let db = core.store().snapshot().unwrap();
    assert_eq!(db.held_total().unwrap(), 0);
    for (number, made) in waiting.iter().enumerate().filter(|(number, _)| *number != 1) {
        assert_eq!(db.seq(&made.id).unwrap(), None, "{number}");
    }
    // It is over: nothing is looked at again and again.
    assert!(!core.run(vec![Tick], NOW.plus(HOLD)).unwrap().has_more);
}

/// Two events, of which the second waited for the first and was parked.
fn parked() -> (World, WriterCore, Made, Made) {
    let world = World::new();
    let first = world.post(0, None);
    let second = world.post(1, Some(&first));
    let core = world.open();
    store_event(&core, &second);
    let seq = core.store().snapshot().unwrap().seq(&second.id).unwrap().unwrap();
    let park = |batch: &mut store::Batch<'_>| {
        let changes = engine::release::park(batch.db(), seq, "a test says so".into())?;
        batch.apply(changes)
    };
    core.store().write(NOW, park).unwrap();
    (world, core, first, second)
}

#[test]
fn what_is_parked_waits_for_nothing_is_named_and_is_looked_at_again_when_somebody_asks() {
    let (_world, core, first, second) = parked();
    assert_eq!(stage_of(&core, &second), Some(Stage::Parked { why: "a test says so".into() }));
    assert_eq!(core.store().snapshot().unwrap().held_total().unwrap(), 0);
    let report = core.store().verify(NOW).unwrap();
    assert_eq!((report.problems.len(), report.parked.len()), (0, 1), "{report:?}");
    assert!(report.parked[0].contains("is parked: a test says so"), "{report:?}");
    // What it waited for comes, which changes nothing.
    store_event(&core, &first);
    core.settle(NOW).unwrap();
    assert!(matches!(stage_of(&core, &second), Some(Stage::Parked { .. })));
    core.ask(HuntNow::ForEvent(second.id), NOW).unwrap();
    core.settle(NOW).unwrap();
    assert!(matches!(stage_of(&core, &second), Some(Stage::Applied { .. })));
    assert_eq!(core.store().verify(NOW).unwrap().problems, Vec::<String>::new());
}

#[test]
fn what_breaks_again_when_it_is_looked_at_again_is_parked_again_and_nobody_waits_for_ever() {
    let (world, core, first, second) = parked();
    store_event(&core, &first);
    core.settle(NOW).unwrap();
    drop(core);
    // What it refers to can be read no more, so that looking at it again breaks.
    world.damage(&first);
    let core = world.open();
    core.ask(HuntNow::ForEvent(second.id), NOW).unwrap();
    core.settle(NOW).unwrap();
    let Some(Stage::Parked { why }) = stage_of(&core, &second) else { panic!("not parked") };
    assert!(why.contains("damaged"), "{why}");
    // Everything else goes on.
    let third = world.post(2, None);
    assert!(matches!(store_event(&core, &third), Outcome::Applied(_)));
}
