//! Backups of a node that serves: asked for, and by the clock.

use super::Home;
use model::Nanos;
use serde_json::{Value, json};
use server::BackupPlan;
use server::ServerOptions;
use server::backups::BackupTaskError;
use server::test_support::{Answer, OPERATOR};
use std::path::Path;
use std::sync::Arc;
use store::MasterKey;

const HOUR: u64 = 3600;

async fn ask(home: &Home, method: &str, body: Option<&Value>) -> Answer {
    let operator = format!("Bearer op_{OPERATOR}");
    home.send(method, "/admin/backups", &[("authorization", &operator)], body).await
}

async fn say(home: &Home, text: &str) {
    home.by("alice", "POST", "/v1/threads/t1/messages", Some(json!({ "body": text }))).await;
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The times of backups, as their names say.
fn times(folder: &Path) -> Vec<String> {
    let names = names(folder);
    let times = names.iter().filter_map(|name| name.strip_prefix("anteroom-")?.strip_suffix(".backup"));
    times.map(|rest| rest[9..].to_owned()).collect()
}

/// A home with a backup every day, of which two are kept.
fn scheduled_home(folder: &Path) -> Home {
    let plan = BackupPlan { folder: folder.to_owned(), every_nanos: 24 * HOUR * Nanos::SECOND, keep: 2 };
    Home::with(ServerOptions { backups: Some(plan), ..ServerOptions::default() })
}

#[tokio::test]
async fn what_the_operator_asks_for_is_written_and_can_be_restored() {
    let (home, folder) = (Home::new(), tempfile::tempdir().expect("a folder"));
    say(&home, "one").await;
    let file = folder.path().join("now.backup");
    let made = ask(&home, "POST", Some(&json!({ "file": file }))).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.body["bytes"], std::fs::metadata(&file).expect("a file").len());
    assert!(made.body["rows"].as_u64() > Some(10) && made.body["name"] == json!(file));
    let status = ask(&home, "GET", None).await.body;
    assert_eq!((&status["last"], &status["running"], &status["failures"]), (&made.body, &Value::Null, &json!(0)));
    let (new, master) = (folder.path().join("new"), MasterKey::new(&[5; 32]));
    let digest = home.state.node.snapshot().and_then(|db| db.digest()).expect("a digest").to_string();
    let now = home.state.node.now();
    let restored = store::maintenance::backup::restore(
        &file,
        &new,
        &master,
        store::StoreOptions::default(),
        false,
        now,
        &mut |_| (),
    );
    assert_eq!(restored.expect("restored").digest, digest);
}

#[tokio::test]
async fn a_backup_that_failed_is_in_the_audit_log_as_failed() {
    let (home, folder) = (Home::new(), tempfile::tempdir().expect("a folder"));
    let nowhere = folder.path().join("no/such/folder");
    assert_eq!(ask(&home, "POST", Some(&json!({ "file": nowhere }))).await.status, 422);
    let operator = format!("Bearer op_{OPERATOR}");
    let log = home.send("GET", "/admin/audit?limit=2", &[("authorization", &operator)], None).await.body;
    let entries: Vec<_> =
        log["entries"].as_array().expect("entries").iter().map(|entry| entry["what"].clone()).collect();
    assert_eq!(entries, ["back up, which failed", "back up"], "{log}");
}

#[tokio::test]
async fn a_path_that_cannot_be_written_is_the_callers_mistake() {
    let (home, folder) = (Home::new(), tempfile::tempdir().expect("a folder"));
    let there = folder.path().join("there");
    std::fs::write(&there, "mine").expect("written");
    for (body, status) in [
        (json!({ "file": there }), 409),
        (json!({ "file": folder.path() }), 409),
        (json!({ "file": folder.path().join("no/such/folder") }), 422),
        (json!({ "file": "here.backup" }), 422),
        (json!({ "file": "" }), 422),
        (json!({ "file": "/" }), 422),
        (json!({ "file": "/nowhere/.." }), 422),
        (json!({ "file": "/tmp/a\0b" }), 422),
        (json!({ "file": format!("/{}", "x".repeat(5000)) }), 422),
        (json!({ "file": format!("/{}", "x".repeat(300)) }), 422),
        (json!({ "file": 7 }), 422),
        (json!({}), 422),
        (json!([]), 422),
    ] {
        let answer = ask(&home, "POST", Some(&body)).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        assert!(!answer.body["action"].as_str().expect("text").is_empty());
    }
    assert_eq!(std::fs::read(&there).expect("read"), b"mine");
    assert_eq!(names(folder.path()), ["there"]);
}

#[tokio::test]
async fn the_writer_goes_on_while_a_backup_is_written() {
    let (home, folder) = (Home::new(), tempfile::tempdir().expect("a folder"));
    say(&home, "before").await;
    let (file, node) = (folder.path().join("slow.backup"), home.state.node.clone());
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let mut begun = Some(begun);
    // The backup stops at its first row until a message was written.
    let slow = tokio::task::spawn_blocking(move || {
        node.store().backup(&file, Nanos(1), &mut |_| {
            if let Some(begun) = begun.take() {
                let _ = begun.send(());
                let _ = may_go_on.recv();
            }
        })
    });
    has_begun.await.expect("it begins");
    let made = home.by("alice", "POST", "/v1/threads/t1/messages", Some(json!({ "body": "meanwhile" }))).await;
    assert_eq!(made.status, 201);
    go_on.send(()).expect("it waits");
    slow.await.expect("it ends").expect("a backup");
}

#[tokio::test]
async fn one_backup_is_written_at_a_time_and_a_stop_ends_it() {
    let (home, folder) = (Home::new(), tempfile::tempdir().expect("a folder"));
    home.state.backups.stop();
    let stopped = ask(&home, "POST", Some(&json!({ "file": folder.path().join("a") }))).await;
    assert_eq!((stopped.status.as_u16(), names(folder.path()).len()), (503, 0), "{stopped:?}");
    let status = ask(&home, "GET", None).await.body;
    assert_eq!((&status["failures"], &status["running"]), (&json!(1), &Value::Null));
}

#[tokio::test]
async fn backups_by_the_clock_are_made_when_due_and_the_oldest_go() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("kept");
    let home = scheduled_home(&place);
    let (state, clock) = (home.state.clone(), home.clock.clone());
    let look = || state.backups.run_due();
    look();
    assert_eq!(times(&place), ["20270115T080000Z"]);
    // Others may put what they like beside them.
    let (mine, like_ours) = ("mine.backup", "anteroom-00000000-20200101T000000Z.backup");
    let ours = names(&place)[0].clone();
    let renamed = format!("{ours}.old");
    for name in [mine, like_ours, &renamed] {
        std::fs::write(place.join(name), "x").expect("written");
    }
    clock.advance(23 * HOUR);
    look();
    assert_eq!(names(&place).len(), 4);
    for _ in 0..3 {
        clock.advance(25 * HOUR);
        look();
        look();
    }
    let left: Vec<String> = names(&place).into_iter().filter(|name| name.starts_with(&ours[..18])).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert_eq!(left[1][18..], *"20270118T090000Z.backup");
    assert_eq!(left[2][18..], *"20270119T100000Z.backup");
    assert!(left.contains(&renamed) && place.join(mine).exists() && place.join(like_ours).exists());
    let status = ask(&home, "GET", None).await.body;
    assert_eq!(status["schedule"], json!({ "folder": place, "every_hours": 24, "keep": 2 }));
    assert_eq!(status["failures"], 0);
}

#[tokio::test]
async fn a_backup_that_fails_is_told_and_costs_no_old_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("kept");
    let home = scheduled_home(&place);
    let look = || home.state.backups.run_due();
    let day = || home.clock.advance(24 * HOUR);
    look();
    day();
    look();
    assert_eq!(times(&place).len(), 2);
    // Nothing can be written there while a file stands in the folder's place.
    std::fs::rename(&place, folder.path().join("away")).expect("renamed");
    std::fs::write(&place, "in the way").expect("written");
    day();
    look();
    look();
    let status = ask(&home, "GET", None).await.body;
    assert_eq!(status["failures"], 1, "{status}");
    assert!(status["last_failure"]["detail"].as_str().expect("text").contains("cannot write the backup"));
    std::fs::remove_file(&place).expect("removed");
    std::fs::rename(folder.path().join("away"), &place).expect("renamed");
    let before = times(&place);
    look();
    assert_eq!(times(&place), before, "the next attempt comes when the next is due");
    day();
    look();
    assert_eq!((times(&place).len(), times(&place)[0] == before[1]), (2, true));
}

#[tokio::test]
async fn a_restart_goes_on_with_what_the_names_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("kept");
    scheduled_home(&place).state.backups.run_due();
    let home = scheduled_home(&place);
    assert_eq!(home.state.backups.state().newest, None);
    home.state.backups.run_due();
    assert_eq!(times(&place).len(), 1);
    let bytes = std::fs::metadata(place.join(&names(&place)[0])).expect("a file").len();
    assert_eq!(home.state.backups.state().newest.map(|(_, bytes)| bytes), Some(bytes));
    home.clock.advance(24 * HOUR);
    home.state.backups.run_due();
    assert_eq!(times(&place).len(), 2);
}

#[tokio::test]
async fn what_a_crash_left_half_written_goes_with_the_next_backup() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = scheduled_home(folder.path());
    home.state.backups.run_due();
    let half = format!("{}.part", names(folder.path())[0]);
    std::fs::write(folder.path().join(&half), "half").expect("written");
    std::fs::write(folder.path().join("other.part"), "mine").expect("written");
    home.clock.advance(24 * HOUR);
    home.state.backups.run_due();
    let left = names(folder.path());
    assert!(!left.contains(&half) && left.contains(&"other.part".to_owned()), "{left:?}");
}

#[tokio::test]
async fn two_at_a_time_are_too_many() {
    let (home, folder) = (Home::new(), tempfile::tempdir().expect("a folder"));
    let state = Arc::clone(&home.state);
    let _first = state.backups.begin(&folder.path().join("first")).expect("the first");
    let second = state.backups.make(&folder.path().join("second"));
    assert!(matches!(second, Err(BackupTaskError::Busy)), "{second:?}");
    let status = ask(&home, "GET", None).await.body;
    assert_eq!(status["running"]["name"], json!(folder.path().join("first")));
}
