//! Files beside HTTP: work on leases, what fails and is tried again, and what goes with whom.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../common/mod.rs"]
mod common;
mod elsewhere;
mod upkeep;

use anteroom_node::commands::files::completion::CompleteWork;
use anteroom_node::commands::files::jobs::{ATTEMPTS_MAX, LEASE_NANOS, TakeWork, WorkError};
use anteroom_node::commands::files::{FileChange, FileCommand, FileError, FileRequest, NewFile, UploadedBytes};
use anteroom_node::commands::{AdminCommand, UserCommand};
use anteroom_node::files::processing::{AskWriter, ImageRenderer, MadeImage, RenderFailure, work_on};
use anteroom_node::large_content::StagedContent;
use anteroom_node::{Answered, AskError, WriterCommand};
use common::{Home, NOW, caller, read_file};
use media::Variant;
use model::content::seal_content;
use model::crypto::content_hash;
use model::files::{DerivedStatus, FileStatus, StoredStatus};
use model::{FileId, Identity, Nanos, ObjectName};
use store::shared::files::{FileJob, FileRecord};

const FILE: FileId = FileId([3; 16]);

/// A writer at a time.
struct At<'a>(&'a Home, Nanos);

impl AskWriter for At<'_> {
    fn ask<C: WriterCommand>(&self, command: C) -> Answered<C> {
        self.0.core.ask(command, self.1)
    }
}

/// Makes a rendition of so many bytes, or fails.
struct Fake(Result<usize, RenderFailure>);

impl ImageRenderer for Fake {
    fn render(&self, _: &[u8], variants: &[Variant]) -> Result<Vec<MadeImage>, RenderFailure> {
        let length = self.0.clone()?;
        let made = |variant: &Variant| MadeImage {
            variant: variant.to_string(),
            media_type: "image/jpeg".to_owned(),
            width: 3,
            height: 2,
            bytes: vec![variant.name().len() as u8; length],
        };
        Ok(variants.iter().map(made).collect())
    }
}

fn variants() -> Vec<Variant> {
    ["thumbnail_256", "full_2048"].map(|name| name.parse().unwrap()).to_vec()
}

/// A home with a file that waits for its renditions.
fn waiting() -> Home {
    let home = Home::new();
    home.upload("bob", FILE, &[7; 100_000]);
    let job = FileJob { attempts: 0, due: NOW, lease: None, reason: None };
    home.core.store().write(NOW, |batch| batch.put_file_job(&home.space, FILE, &job)).unwrap();
    home
}

fn work(home: &Home, at: Nanos, renderer: &Fake) -> bool {
    work_on(home.core.store(), &At(home, at), renderer, "a worker", &variants()).unwrap()
}

fn file(home: &Home) -> FileRecord {
    home.core.store().snapshot().unwrap().file(&home.space, FILE).unwrap().unwrap()
}

fn check(home: &Home, at: Nanos) {
    let report = home.core.store().verify(at).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn renditions_are_files_of_their_own_and_everything_is_processed_when_all_are_made() {
    for length in [500, 200_000] {
        let home = waiting();
        assert!(work(&home, NOW, &Fake(Ok(length))));
        assert!(!work(&home, NOW, &Fake(Ok(length))), "nothing is left to do");
        let db = home.core.store().snapshot().unwrap();
        assert_eq!(file(&home).status, FileStatus::Processed);
        assert_eq!(db.file_version(&home.space, FILE, 1).unwrap().unwrap().status, StoredStatus::Processed);
        for derived in db.derived_files(&home.space, FILE).unwrap() {
            assert_eq!((derived.status, derived.dimensions), (DerivedStatus::Processed, Some((3, 2))));
            assert_eq!(derived.attempts, 1);
            let child = db.file(&home.space, derived.child.unwrap()).unwrap().unwrap();
            assert_eq!((child.status, child.size), (FileStatus::Uploaded, Some(length as u64)));
            let bytes = read_file(&db, &home.space, derived.child.unwrap()).unwrap().unwrap();
            assert_eq!(bytes, vec![derived.variant.len() as u8; length]);
        }
        check(&home, NOW);
    }
}

#[test]
fn what_fails_for_now_is_tried_later_and_later_and_what_is_refused_is_not() {
    let home = waiting();
    let refused = Fake(Err(RenderFailure::Refused("no image".into())));
    assert!(work(&home, NOW, &refused));
    assert_eq!((file(&home).status, file(&home).error.as_deref()), (FileStatus::Failed, Some("no image")));
    assert_eq!(home.core.store().snapshot().unwrap().next_file_job().unwrap(), None);
    let home = waiting();
    let later = Fake(Err(RenderFailure::Temporary("no memory".into())));
    let (mut now, mut delays) = (NOW, Vec::new());
    for attempt in 1..=ATTEMPTS_MAX {
        assert!(work(&home, now, &later), "attempt {attempt}");
        let Some(next) = home.core.store().snapshot().unwrap().next_file_job().unwrap() else { break };
        assert!(!work(&home, next.minus(1), &later), "not before its time");
        delays.push(next.minus(now.0).0 / Nanos::SECOND);
        now = next;
    }
    assert_eq!((delays, file(&home).status), (vec![10, 40, 160, 640], FileStatus::Failed));
    let request = |command| {
        let (space, random) = (home.space, *blake3::hash(b"bob").as_bytes());
        FileRequest { space, caller: caller("bob"), file: FILE, command, idempotency: None, random }
    };
    home.core.ask(request(FileCommand::Retry), now).unwrap();
    assert!(work(&home, now, &Fake(Ok(10))));
    assert_eq!(file(&home).status, FileStatus::Processed);
    assert!(home.core.ask(request(FileCommand::Retry), now).is_err(), "nothing has failed");
    check(&home, now);
}

#[test]
fn whoever_comes_after_their_lease_changes_nothing() {
    let home = waiting();
    let take = || TakeWork { worker: "a worker".into(), variants: vec!["thumbnail_256".into()] };
    let first = home.core.ask(take(), NOW).unwrap().unwrap();
    assert_eq!(home.core.ask(take(), NOW.plus(LEASE_NANOS - 1)).unwrap(), None, "somebody has it");
    let after = NOW.plus(LEASE_NANOS);
    let second = home.core.ask(take(), after).unwrap().unwrap();
    assert!(second.token > first.token);
    let say = |token| home.core.ask(CompleteWork { space: home.space, file: FILE, token, made: Vec::new() }, after);
    assert_eq!(say(first.token), Err(AskError::Refused(WorkError::LeaseEnded)));
    assert_eq!(file(&home).status, FileStatus::Processing);
    assert_eq!(say(second.token), Ok(()));
    assert_eq!(say(second.token), Err(AskError::Refused(WorkError::LeaseEnded)), "once");
    // Whoever begins it and never says a word again uses up its attempts.
    let home = waiting();
    let mut now = NOW;
    for _ in 0..ATTEMPTS_MAX {
        assert!(home.core.ask(take(), now).unwrap().is_some());
        now = now.plus(LEASE_NANOS);
    }
    assert_eq!(home.core.ask(take(), now).unwrap(), None);
    assert_eq!(file(&home).status, FileStatus::Failed);
    check(&home, now);
}

#[test]
fn renditions_go_with_the_event_of_their_file_and_with_their_space() {
    let home = waiting();
    work(&home, NOW, &Fake(Ok(200_000)));
    let event = file(&home).event.unwrap();
    let db = home.core.store().snapshot().unwrap();
    let children: Vec<FileId> =
        db.derived_files(&home.space, FILE).unwrap().into_iter().map(|derived| derived.child.unwrap()).collect();
    home.core.ask(home.by("bob", UserCommand::Purge(event)), NOW).unwrap();
    home.core.settle(NOW).unwrap();
    let db = home.core.store().snapshot().unwrap();
    for id in children.into_iter().chain([FILE]) {
        assert_eq!(read_file(&db, &home.space, id).unwrap(), None);
    }
    assert!(db.contents().unwrap().iter().all(|(count, _)| *count == 0), "nobody refers to the bytes");
    check(&home, NOW);
    let home = waiting();
    work(&home, NOW, &Fake(Ok(500)));
    home.upload("bob", FileId([4; 16]), &[1; 10]);
    let job = FileJob { attempts: 0, due: NOW, lease: None, reason: None };
    home.core.store().write(NOW, |batch| batch.put_file_job(&home.space, FileId([4; 16]), &job)).unwrap();
    home.administer(AdminCommand::EndSpace(home.space));
    home.core.settle(NOW).unwrap();
    check(&home, NOW);
    assert!(!work(&home, NOW, &Fake(Ok(500))));
    let db = home.core.store().snapshot().unwrap();
    assert_eq!(db.next_file_job().unwrap(), None, "work of a space that ended waits for nobody");
    check(&home, NOW);
}

/// Purges the file for ever, and collects what is left of it.
fn purge_for_ever(home: &Home) {
    let event = file(home).event.unwrap();
    home.core.ask(home.by("bob", UserCommand::Purge(event)), NOW).unwrap();
    home.core.settle(NOW).unwrap();
}

#[test]
fn what_is_purged_waits_for_no_work() {
    let home = waiting();
    purge_for_ever(&home);
    assert_eq!(home.core.store().snapshot().unwrap().next_file_job().unwrap(), None);
    check(&home, NOW);
}

#[test]
fn a_backup_takes_along_what_is_forgotten_while_it_is_written() {
    let home = waiting();
    let folder = tempfile::tempdir().unwrap();
    let mut is_purged = false;
    // The rows are those of its beginning; the bytes are there as long as nobody removes them.
    let written = home.core.store().backup(&folder.path().join("backup"), NOW, &mut |_| {
        if !std::mem::replace(&mut is_purged, true) {
            purge_for_ever(&home);
        }
    });
    assert_eq!(written.map(|done| (done.objects, done.damaged)).map_err(|why| why.to_string()), Ok((1, 0)));
}

fn ask(home: &Home, now: Nanos, command: FileCommand) -> Result<FileRecord, String> {
    let (space, random) = (home.space, *blake3::hash(b"bob").as_bytes());
    let request = FileRequest { space, caller: caller("bob"), file: FILE, command, idempotency: None, random };
    home.core.ask(request, now).map(|done| done.record).map_err(|why| why.to_string())
}

/// Uploads other bytes as a new version.
fn upload_version(home: &Home, seed: u8, is_renderable: bool) {
    let content = vec![seed; 1000];
    let wire = {
        let key = home.core.store().snapshot().unwrap().current_space_key(&home.space).unwrap();
        key.map_or(content.clone(), |key| seal_content(&key, &content, 0, Identity([0; 32]), Nanos(0)))
    };
    let bytes = UploadedBytes {
        hash: content_hash(&wire),
        len: wire.len() as u64,
        content: StagedContent::Bytes(wire),
        size: 1000,
        media_type: Some(if is_renderable { "image/png" } else { "text/plain" }.to_owned()),
        is_renderable,
        by_link: None,
    };
    ask(home, NOW, FileCommand::Finish(None, bytes)).unwrap();
}

#[test]
fn renditions_are_those_of_the_latest_version() {
    let home = waiting();
    assert!(work(&home, NOW, &Fake(Ok(500))));
    let children = |home: &Home| -> Vec<FileId> {
        let db = home.core.store().snapshot().unwrap();
        let derived = db.derived_files(&home.space, FILE).unwrap().into_iter();
        derived.filter(|row| row.deleted_at.is_none()).map(|row| row.child.unwrap()).collect()
    };
    let older = children(&home);
    upload_version(&home, 9, true);
    assert_eq!(file(&home).status, FileStatus::Processed, "it can be downloaded all the time");
    assert!(work(&home, NOW, &Fake(Ok(501))));
    let newer = children(&home);
    assert!(older.iter().all(|child| !newer.contains(child)), "{older:?} {newer:?}");
    let db = home.core.store().snapshot().unwrap();
    assert!(
        older.iter().all(|child| read_file(&db, &home.space, *child).unwrap().is_none()),
        "the older ones are gone"
    );
    assert_eq!(read_file(&db, &home.space, newer[0]).unwrap().map(|bytes| bytes.len()), Some(501));
    check(&home, NOW);
    // Of what is no image nothing is derived.
    upload_version(&home, 10, false);
    assert_eq!(children(&home), []);
    assert!(!work(&home, NOW, &Fake(Ok(502))));
    upload_version(&home, 11, true);
    assert!(work(&home, NOW, &Fake(Ok(503))));
    assert_eq!(children(&home).len(), 2);
    check(&home, NOW);
}

#[test]
fn work_can_be_stopped_with_a_reason_and_whoever_does_it_comes_too_late() {
    let home = waiting();
    let failed = ask(&home, NOW, FileCommand::FailWork("hostile".into())).unwrap();
    assert_eq!((failed.status, failed.error.as_deref()), (FileStatus::Failed, Some("hostile")), "it only waited");
    assert_eq!(home.core.store().snapshot().unwrap().next_file_job().unwrap(), None);
    assert!(ask(&home, NOW, FileCommand::FailWork("no".into())).is_err(), "nothing waits any more");
    let home = waiting();
    let take = TakeWork { worker: "a worker".into(), variants: vec!["thumbnail_256".into()] };
    let taken = home.core.ask(take, NOW).unwrap().unwrap();
    let failed = ask(&home, NOW, FileCommand::FailWork("it looks wrong".into())).unwrap();
    assert_eq!((failed.status, failed.error.as_deref()), (FileStatus::Failed, Some("it looks wrong")));
    let late = CompleteWork { space: home.space, file: FILE, token: taken.token, made: Vec::new() };
    assert_eq!(home.core.ask(late, NOW), Err(AskError::Refused(WorkError::LeaseEnded)));
    check(&home, NOW);
}

#[test]
fn purging_an_older_version_leaves_the_latest_and_purging_the_latest_takes_all() {
    let home = waiting();
    let first = file(&home).event.unwrap();
    upload_version(&home, 9, false);
    home.core.ask(home.by("bob", UserCommand::Purge(first)), NOW).unwrap();
    home.core.settle(NOW).unwrap();
    let db = home.core.store().snapshot().unwrap();
    assert_eq!(read_file(&db, &home.space, FILE).unwrap().map(|bytes| bytes.len()), Some(1000));
    assert!(db.file_version(&home.space, FILE, 1).unwrap().unwrap().deleted_at.is_some());
    check(&home, NOW);
    // What is being processed is purged as well, and stands in no state that nobody moves.
    upload_version(&home, 10, true);
    let take = TakeWork { worker: "a worker".into(), variants: vec!["thumbnail_256".into()] };
    home.core.ask(take, NOW).unwrap().unwrap();
    purge_for_ever(&home);
    assert_eq!(read_file(&home.core.store().snapshot().unwrap(), &home.space, FILE).unwrap(), None);
    check(&home, NOW);
}

#[test]
fn an_upload_ends_by_itself_alone_and_its_object_with_it() {
    let home = Home::new();
    let new = NewFile { name: "film".into(), ..NewFile::default() };
    let begun = ask(&home, NOW, FileCommand::ReceiveResumable(Some(new), 1_000_000)).unwrap();
    assert_eq!(begun.status, FileStatus::Uploading);
    let open = |home: &Home| home.core.store().snapshot().unwrap().open_upload(&home.space, FILE).unwrap();
    let object = open(&home).unwrap().object;
    ask(&home, NOW, FileCommand::Fail("another".into(), Some(ObjectName([9; 16])))).unwrap();
    assert!(open(&home).is_some(), "it was about another upload");
    ask(&home, NOW, FileCommand::Pause(9, vec![7; 9])).unwrap();
    home.core.store().write(NOW, |batch| batch.forget_object(object)).unwrap();
    assert!(ask(&home, NOW, FileCommand::Pause(10, vec![7; 10])).is_err(), "its object is gone");
    ask(&home, NOW, FileCommand::Fail("no".into(), Some(object))).unwrap();
    assert_eq!((open(&home), file(&home).status), (None, FileStatus::Failed));
    // Bytes that are not there make no version.
    let gone = UploadedBytes {
        content: StagedContent::Object(object, 10),
        hash: content_hash(b"gone"),
        len: 10,
        size: 10,
        media_type: None,
        is_renderable: false,
        by_link: None,
    };
    assert!(ask(&home, NOW, FileCommand::Finish(None, gone)).is_err());
    assert_eq!(file(&home).version, 0);
    check(&home, NOW);
}

#[test]
fn somebody_opens_fifty_uploads_and_no_more() {
    let home = Home::new();
    let begin = |number: u8| {
        let (space, random) = (home.space, *blake3::hash(b"bob").as_bytes());
        let command = FileCommand::ReceiveResumable(Some(NewFile { name: "x".into(), ..NewFile::default() }), 10);
        let file = FileId([number; 16]);
        home.core.ask(FileRequest { space, caller: caller("bob"), file, command, idempotency: None, random }, NOW)
    };
    assert!((0..50).all(|number| begin(number).is_ok()));
    assert!(matches!(begin(50), Err(AskError::Refused(FileError::TooManyUploads(50)))));
    check(&home, NOW);
}

#[test]
fn what_was_made_of_a_file_is_changed_with_it_only() {
    let home = waiting();
    assert!(work(&home, NOW, &Fake(Ok(500))));
    let child = home.core.store().snapshot().unwrap().derived_files(&home.space, FILE).unwrap()[0].child.unwrap();
    for command in [FileCommand::Delete, FileCommand::Purge, FileCommand::Change(FileChange::default())] {
        let (space, random) = (home.space, *blake3::hash(b"bob").as_bytes());
        let request = FileRequest { space, caller: caller("bob"), file: child, command, idempotency: None, random };
        assert!(matches!(home.core.ask(request, NOW), Err(AskError::Refused(FileError::Derived))));
    }
}

#[test]
fn of_what_nothing_can_be_made_nothing_is_expected() {
    let home = waiting();
    upload_version(&home, 9, true);
    assert!(work(&home, NOW, &Fake(Err(RenderFailure::NotSupported))));
    assert_eq!(file(&home).status, FileStatus::Processed, "everything is there that is expected");
    let db = home.core.store().snapshot().unwrap();
    assert!(db.derived_files(&home.space, FILE).unwrap().iter().all(|row| row.deleted_at.is_some()));
    assert_eq!(db.next_file_job().unwrap(), None);
    check(&home, NOW);
}

#[test]
fn a_purge_ends_the_upload_of_a_new_version() {
    let home = Home::new();
    home.upload("bob", FILE, &[7; 100_000]);
    ask(&home, NOW, FileCommand::ReceiveResumable(None, 1_000_000)).unwrap();
    ask(&home, NOW, FileCommand::Pause(9, vec![7; 9])).unwrap();
    purge_for_ever(&home);
    assert_eq!(home.core.store().snapshot().unwrap().open_upload(&home.space, FILE).unwrap(), None);
    assert!(ask(&home, NOW, FileCommand::Pause(10, vec![7; 10])).is_err());
    check(&home, NOW);
}

#[test]
fn a_file_has_a_thousand_versions_and_no_more() {
    let home = Home::new();
    home.upload("bob", FILE, &[7; 10]);
    let many = |batch: &mut store::Batch<'_>| {
        let record = batch.db().file(&home.space, FILE)?.unwrap();
        batch.put_file(&home.space, FILE, &FileRecord { version: 1000, ..record })
    };
    home.core.store().write(NOW, many).unwrap();
    let refused = ask(&home, NOW, FileCommand::Receive(None)).unwrap_err();
    assert!(refused.contains("a thousand versions"), "{refused}");
}
