//! Random damage of a stopped folder: no panic gets out, nothing wrong is shown, what is damaged is named, and everything
//! else is salvaged.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::WriterCore;
use anteroom_node::commands::{AdminCommand, IdempotencyKey, UserCommand, WebhookCommand};
use anteroom_node::node_commands::Prune;
use anteroom_node::salvage::salvage;
use common::{Home, NOW, read_file};
use engine::reads::Reads as _;
use model::stage::ContentState;
use model::{EventId, FileId, Stamp};
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::shared::jobs::JobKind;
use store::tables::Snapshot;
use store::views::messages::ShownContent;
use store::{Db, FolderDisk, KeySource, MasterKey, Store, StoreOptions};

/// How many damages are tried, unless `ANTEROOM_DAMAGES` says otherwise.
const DAMAGES: u64 = 200;

/// What each message says.
type Messages = BTreeMap<EventId, Vec<u8>>;

fn open(folder: &Path) -> Result<Store, String> {
    let disk = FolderDisk::new(folder).map_err(|why| why.to_string())?;
    let options =
        StoreOptions { cache_bytes: 4 << 20, reserve_bytes: 0, random: KeySource::Seed(2), ..StoreOptions::default() };
    Store::open(Arc::new(disk), MasterKey::new(&[7; 32]), options).map_err(|why| why.to_string())
}

/// A number that looks random.
fn random(seed: u64, number: u64) -> u64 {
    let hash = blake3::hash(&[seed.to_be_bytes(), number.to_be_bytes()].concat());
    u64::from_be_bytes(hash.as_bytes()[..8].try_into().unwrap())
}

/// How many messages there are beside the files.
const MESSAGES: usize = 80;

/// Conversations with short messages and longer ones in rows, and files in objects.
fn fill() -> (tempfile::TempDir, Messages) {
    let home = Home::new();
    for number in 1..=8_u8 {
        home.upload("ada", FileId([number; 16]), &vec![number; 30_000 * usize::from(number)]);
    }
    for number in 0..MESSAGES / 2 {
        let size = [20, 200, 900, 3_000, 30_000][number % 5];
        home.post("ada", &format!("{number} {}", "x".repeat(size)));
        home.post("bob", &format!("answer to {number}"));
    }
    home.core.settle(NOW).unwrap();
    let messages = readable(&home.core.store().snapshot().unwrap());
    assert_eq!(messages.len(), MESSAGES + 8);
    (home.into_folder(), messages)
}

/// The messages that can be read, each by its id.
fn readable(db: &Db<Snapshot>) -> Messages {
    let mut found = Messages::new();
    for seq in db.event_numbers().map(model::Seq) {
        let Ok(Some(row)) = db.event(seq) else { continue };
        let is_message = row.meta.as_ref().is_some_and(|meta| meta.kind == model::Kind::Message);
        if let (true, Ok(ShownContent::Here(bytes))) = (is_message, db.shown(seq)) {
            found.insert(row.id, bytes);
        }
        if let (Ok(Some(file)), Ok(Some(space))) = (db.file_of_event(&row.id), db.space_of(seq))
            && let Ok(Some(bytes)) = read_file(db, &space, file)
        {
            found.insert(row.id, bytes);
        }
    }
    found
}

/// What the page of the first thread shows, as far as there is one.
fn page(db: &Db<Snapshot>) -> Result<Vec<(EventId, ShownContent)>, String> {
    let fault = |why: engine::StoreError| why.to_string();
    let mut shown = Vec::new();
    for (space, ..) in db.spaces().map_err(fault)? {
        let Some(no) = db.space_no(&space).map_err(fault)? else { continue };
        for (_, thread) in db.threads(no, Stamp::FIRST, 9).map_err(fault)? {
            let messages = db.timeline(thread, Stamp::LAST, 1000).map_err(fault)?;
            shown.extend(messages.into_iter().map(|message| (message.stamp.id, message.content)));
        }
    }
    Ok(shown)
}

/// Damages a folder, and says how.
fn damage(folder: &Path, seed: u64) -> String {
    let files: Vec<PathBuf> = {
        let mut files: Vec<PathBuf> =
            fs::read_dir(folder.join(store::disk::OBJECTS)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    };
    let is_content = random(seed, 0).is_multiple_of(4);
    let file =
        if is_content { files[random(seed, 1) as usize % files.len()].clone() } else { folder.join("anteroom.redb") };
    let mut bytes = fs::read(&file).unwrap();
    let at = random(seed, 2) as usize % bytes.len();
    let what = match random(seed, 3) % 8 {
        0 => {
            let from = at / 4096 * 4096;
            let to = (from + 4096).min(bytes.len());
            bytes[from..to].fill(0);
            format!("zeroed bytes {from} to {to}")
        }
        1 if is_content => {
            fs::remove_file(&file).unwrap();
            return format!("removed {}", file.display());
        }
        1 => {
            bytes.truncate(at);
            format!("truncated at {at}")
        }
        bit => {
            bytes[at] ^= 1 << bit;
            format!("flipped bit {bit} of byte {at}")
        }
    };
    fs::write(&file, bytes).unwrap();
    format!("{what} of {}", file.file_name().unwrap().to_string_lossy())
}

/// What became of a damaged folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    /// It cannot be opened, and says so.
    Closed,
    /// Everything is there.
    Harmless,
    /// Something is damaged, and the rest was salvaged.
    Salvaged,
    /// Something is damaged where salvaging needs it.
    Lost,
}

fn examine(folder: &Path, new: &Path, truth: &Messages) -> Found {
    let store = match open(folder) {
        Ok(store) => store,
        Err(why) => {
            println!("{why}");
            return Found::Closed;
        }
    };
    let Ok(db) = store.snapshot() else { return Found::Closed };
    let read = readable(&db);
    for (id, bytes) in &read {
        assert_eq!(truth.get(id), Some(bytes), "wrong data is shown of {id}");
    }
    let page = page(&db);
    for (id, shown) in page.iter().flatten() {
        match shown {
            ShownContent::Here(bytes) => assert_eq!(truth.get(id), Some(bytes), "a page shows wrong data of {id}"),
            ShownContent::Damaged | ShownContent::Absent => {}
            other => panic!("a page shows {other:?} of {id}"),
        }
    }
    let is_whole = read.len() == truth.len()
        && page.as_ref().is_ok_and(|page| {
            page.iter().filter(|(_, shown)| matches!(shown, ShownContent::Here(_))).count() == MESSAGES
        });
    let is_named = store.verify(NOW).is_ok_and(|report| !report.problems.is_empty());
    let verify_failed = store.verify(NOW).is_err();
    assert!(is_whole || is_named || verify_failed, "verify names nothing");
    // A backup is made of whatever can be read, and says what cannot.
    let backup = store.backup(&new.join("backup"), NOW, &mut |_| ());
    let is_clean = backup.as_ref().is_ok_and(|backup| backup.damaged == 0);
    assert!(is_whole || !is_clean, "the backup is said to be whole");
    if is_whole && !is_named && !verify_failed {
        return Found::Harmless;
    }
    let fresh = new.join("fresh");
    fs::create_dir(&fresh).unwrap();
    let Ok(_) = open(&fresh).unwrap().take_over(&db) else { return Found::Lost };
    let Ok(fresh) = open(&fresh) else { return Found::Lost };
    let core = WriterCore::new(fresh);
    let Ok(salvaged) = salvage(&db, &core, NOW, &mut |_| ()) else { return Found::Lost };
    assert_eq!(core.store().verify(NOW).unwrap().problems, Vec::<String>::new());
    let db = core.store().snapshot().unwrap();
    for id in read.keys() {
        assert!(db.is_known(id).unwrap(), "{id} was readable and is not salvaged: {salvaged:?}");
    }
    for (id, bytes) in readable(&db) {
        assert_eq!(truth.get(&id), Some(&bytes), "wrong data was salvaged of {id}");
    }
    Found::Salvaged
}

#[test]
fn salvaging_takes_over_what_no_event_says_and_drops_what_was_dropped() {
    let home = Home::new();
    let (kept, gone) = (home.post("ada", "kept"), home.post("ada", "purged"));
    let mut once = home.posting("bob", "once");
    once.idempotency = Some(IdempotencyKey { who_and_key: [1; 32], fingerprint: [2; 32] });
    home.core.ask(once, NOW).unwrap();
    home.make_admin("ada");
    home.ask("ada", UserCommand::Purge(gone)).unwrap();
    let pruned = home.post("ada", "pruned");
    home.core.ask(Prune(pruned), NOW).unwrap();
    let add = WebhookCommand::Add { url: "https://example.org".into(), secret: Box::new([3; 32]), kinds: Vec::new() };
    home.administer(AdminCommand::Webhook(home.space, [4; 8], add));
    home.core.settle(NOW).unwrap();
    let job = |batch: &mut store::Batch<'_>| {
        let number = batch.begin_job(JobKind::Erase(home.space, model::Identity([6; 32])), "a test")?;
        let mut job = batch.db().job(number)?.unwrap();
        job.cursor = vec![9; 8];
        batch.keep_job(number, &job)
    };
    home.core.store().write(NOW, job).unwrap();
    let db = home.core.store().snapshot().unwrap();
    let new = tempfile::tempdir().unwrap();
    let taken = open(new.path()).unwrap().take_over(&db).unwrap();
    assert!(taken.damaged.is_empty(), "{taken:?}");
    let core = WriterCore::new(open(new.path()).unwrap());
    let salvaged = salvage(&db, &core, NOW, &mut |_| ()).unwrap();
    assert_eq!((salvaged.held, salvaged.damaged.len()), (0, 0), "{salvaged:?}");
    assert_eq!(core.store().verify(NOW).unwrap().problems, Vec::<String>::new());
    let new = core.store().snapshot().unwrap();
    assert_eq!(new.digest().unwrap(), db.digest().unwrap());
    assert!(new.is_known(&kept).unwrap());
    assert!(matches!(new.shown(new.seq(&gone).unwrap().unwrap()).unwrap(), ShownContent::Deleted(_)));
    let row = new.event(new.seq(&pruned).unwrap().unwrap()).unwrap().unwrap();
    assert_eq!(row.content, ContentState::Pruned);
    assert!(new.user(&home.space, "bob").unwrap().is_some());
    // Webhooks go on from here, and jobs begin anew.
    let webhook = new.webhook(&home.space, &[4; 8]).unwrap().unwrap();
    assert_eq!(webhook.progress.epoch, new.position().unwrap().epoch);
    assert!(!new.tables().webhook_progress.is_empty().unwrap());
    let (_, job) = new.next_job().unwrap().unwrap();
    assert_eq!(job.cursor, Vec::<u8>::new());
}

#[test]
fn damage_never_gets_out_as_a_panic_or_as_wrong_data_and_is_named() {
    let (folder, truth) = fill();
    // The database panics on some damaged pages; that is caught, and need not be printed.
    std::panic::set_hook(Box::new(|_| ()));
    let count = std::env::var("ANTEROOM_DAMAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(DAMAGES);
    let mut found = BTreeMap::<String, usize>::new();
    let mut failures = Vec::new();
    for seed in 0..count {
        let copy = tempfile::tempdir().unwrap();
        let new = tempfile::tempdir().unwrap();
        fs::create_dir(copy.path().join(store::disk::OBJECTS)).unwrap();
        fs::copy(folder.path().join("anteroom.redb"), copy.path().join("anteroom.redb")).unwrap();
        for entry in fs::read_dir(folder.path().join(store::disk::OBJECTS)).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, copy.path().join(store::disk::OBJECTS).join(path.file_name().unwrap())).unwrap();
        }
        let what = damage(copy.path(), seed);
        match catch_unwind(AssertUnwindSafe(|| examine(copy.path(), new.path(), &truth))) {
            Ok(outcome) => *found.entry(format!("{outcome:?}")).or_default() += 1,
            Err(panic) => {
                let text = panic
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                failures.push(format!("seed {seed}: {what}: {}", text.unwrap_or_default()));
            }
        }
    }
    let _ = std::panic::take_hook();
    println!("{found:?}");
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
    assert!(found.get("Salvaged").copied().unwrap_or_default() > 0, "{found:?}");
}
