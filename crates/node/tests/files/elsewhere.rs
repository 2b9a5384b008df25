//! Files whose events were made on another node, and files that were deleted long enough ago.

use super::common::{Home, NOW, caller, read_file};
use super::{CompleteWork, FILE, Fake, RenderFailure, TakeWork, ask, check, file, work};
use anteroom_node::commands::files::{FileCommand, FileRequest, NewFile, UploadedBytes};
use anteroom_node::commands::{AdminCommand, NameOrId, UserCommand};
use anteroom_node::large_content::{Deliver, StagedContent};
use anteroom_node::writer::node_commands::Arrive;
use engine::{chains, receive::Arrival};
use model::crypto::content_hash;
use model::files::{FileStatus, StoredStatus};
use model::{FileId, Nanos, Seq, SpaceId};
use store::Db;
use store::shared::files::FileRecord;
use store::shared::retention::Retention;
use store::tables::Snapshot;

/// A node whose open space others may follow.
fn publisher() -> Home {
    let mut home = Home::new();
    home.space = home.found_open("plaza", 9);
    home
}

fn snapshot(home: &Home) -> std::sync::Arc<Db<Snapshot>> {
    home.core.store().snapshot().unwrap()
}

/// Uploads a picture, or what says that it is one, under an id that its author chose.
fn publish(home: &Home, user: &str, id: FileId, name: &str, bytes: &[u8]) -> FileRecord {
    publish_as("image/png", home, (user, id, name), bytes)
}

fn publish_as(media_type: &str, home: &Home, (user, id, name): (&str, FileId, &str), bytes: &[u8]) -> FileRecord {
    let new = snapshot(home).file(&home.space, id).unwrap().is_none();
    let uploaded = UploadedBytes {
        content: StagedContent::Bytes(bytes.to_vec()),
        hash: content_hash(bytes),
        len: bytes.len() as u64,
        size: bytes.len() as u64,
        media_type: Some(media_type.to_owned()),
        is_renderable: media_type == "image/png",
        by_link: None,
    };
    let new = new.then(|| NewFile { name: name.to_owned(), ..NewFile::default() });
    let (space, random) = (home.space, *blake3::hash(user.as_bytes()).as_bytes());
    let command = FileCommand::Finish(new, uploaded);
    let request = FileRequest { space, caller: caller(user), file: id, command, idempotency: None, random };
    home.core.ask(request, NOW).unwrap().record
}

/// The events of a space of another node, the first one first.
fn events_of(home: &Home) -> Vec<Arrival> {
    let (db, store) = (snapshot(home), home.core.store());
    let kept = db.event_numbers().map(Seq).filter_map(|seq| db.kept_event(seq).unwrap());
    let arrivals = kept.map(|kept| {
        chains::receive_blob(&**store.keys(), store.policy(), kept.blob, kept.inline, kept.origin).unwrap()
    });
    arrivals.collect()
}

/// Everything of these that can be read without a key arrives.
fn receive(home: &Home, events: Vec<Arrival>) {
    home.core.run(events.into_iter().map(|arrival| Arrive(Box::new(arrival))).collect(), NOW).unwrap();
    home.core.settle(NOW).unwrap();
}

fn deliver(home: &Home, space: SpaceId, bytes: &[u8]) {
    let (hash, content) = (content_hash(bytes), StagedContent::Bytes(bytes.to_vec()));
    home.core.ask(Deliver { space, hash, content }, NOW).unwrap();
    home.core.settle(NOW).unwrap();
}

fn record(home: &Home, space: &SpaceId, id: FileId) -> FileRecord {
    snapshot(home).file(space, id).unwrap().unwrap()
}

#[test]
fn a_file_of_another_node_is_shown_as_missing_until_its_bytes_come_and_processed_here() {
    let (there, mut here) = (publisher(), Home::new());
    let bytes = vec![5; 2000];
    let made = publish(&there, "bob", FILE, "cat.png", &bytes);
    receive(&here, events_of(&there));
    let space = there.space;
    let missing = record(&here, &space, FILE);
    assert_eq!(
        (missing.name.as_str(), missing.media_type.as_str(), missing.size),
        ("cat.png", "image/png", Some(2000))
    );
    assert_eq!((missing.status, missing.owner, missing.event), (FileStatus::Created, made.owner, made.event));
    assert_eq!(snapshot(&here).next_file_job().unwrap(), None, "there is nothing to work on yet");
    assert_eq!(read_file(&snapshot(&here), &space, FILE).unwrap(), None);
    check(&here, NOW);
    deliver(&here, space, &bytes);
    assert_eq!(record(&here, &space, FILE).status, FileStatus::Uploaded);
    assert_eq!(snapshot(&here).file_version(&space, FILE, 1).unwrap().unwrap().status, StoredStatus::Uploaded);
    assert!(read_file(&snapshot(&here), &space, FILE).unwrap() == Some(bytes));
    here.space = space;
    assert!(work(&here, NOW, &Fake(Ok(500))), "renditions are made here");
    assert_eq!(record(&here, &space, FILE).status, FileStatus::Processed);
    check(&here, NOW);
    // The same once more changes nothing.
    receive(&here, events_of(&there));
    assert_eq!(record(&here, &space, FILE).status, FileStatus::Processed);
    // It goes when its author deletes it.
    there.core.ask(there.by("bob", UserCommand::Purge(made.event.unwrap())), NOW).unwrap();
    receive(&here, events_of(&there));
    let gone = record(&here, &space, FILE);
    assert!(gone.is_purged && gone.deleted_at.is_some());
    assert_eq!(read_file(&snapshot(&here), &space, FILE).unwrap(), None);
    check(&here, NOW);
}

#[test]
fn versions_of_another_node_follow_one_another_and_the_latest_one_stays() {
    let (there, here) = (publisher(), Home::new());
    let versions = [vec![1; 1500], vec![2; 1600]];
    versions.iter().for_each(|bytes| drop(publish(&there, "bob", FILE, "plan.png", bytes)));
    let events = events_of(&there);
    let backwards = Home::new();
    let space = there.space;
    receive(&here, events.clone());
    receive(&backwards, events.into_iter().rev().collect());
    for home in [&here, &backwards] {
        versions.iter().for_each(|bytes| deliver(home, space, bytes));
        assert!(read_file(&snapshot(home), &space, FILE).unwrap().as_ref() == Some(&versions[1]));
        assert_eq!(record(home, &space, FILE).status, FileStatus::Uploaded);
        check(home, NOW);
    }
    assert_eq!([record(&here, &space, FILE).version, record(&backwards, &space, FILE).version], [2, 1]);
}

/// A node that follows a space in which a file has two versions, of which it has only the events.
fn follower_of_two_versions() -> (Home, Home, [Vec<u8>; 2]) {
    let (there, mut here) = (publisher(), Home::new());
    let versions = [vec![1; 1500], vec![2; 1600]];
    publish(&there, "bob", FILE, "plan.png", &versions[0]);
    receive(&here, events_of(&there));
    here.space = there.space;
    (there, here, versions)
}

#[test]
fn what_was_deleted_stays_so_when_bytes_of_an_older_version_come_late() {
    let (there, here, versions) = follower_of_two_versions();
    let latest = publish(&there, "bob", FILE, "plan.png", &versions[1]).event.unwrap();
    receive(&here, events_of(&there));
    there.core.ask(there.by("bob", UserCommand::Purge(latest)), NOW).unwrap();
    receive(&here, events_of(&there));
    versions.iter().for_each(|bytes| deliver(&here, there.space, bytes));
    let gone = record(&here, &there.space, FILE);
    assert!(gone.is_purged && gone.deleted_at.is_some());
    assert!(snapshot(&here).contents().unwrap().iter().all(|(count, _)| *count == 0), "nobody refers to the bytes");
    check(&here, NOW);
}

#[test]
fn a_version_whose_bytes_are_not_here_is_waited_for_and_worked_on_when_they_come() {
    let (there, here, versions) = follower_of_two_versions();
    deliver(&here, there.space, &versions[0]);
    assert!(snapshot(&here).next_file_job().unwrap().is_some(), "the first version waits for work");
    publish(&there, "bob", FILE, "plan.png", &versions[1]);
    receive(&here, events_of(&there));
    assert!(!work(&here, NOW, &Fake(Ok(500))), "there is nothing to work on");
    assert_eq!(record(&here, &there.space, FILE).status, FileStatus::Uploaded);
    deliver(&here, there.space, &versions[1]);
    assert!(work(&here, NOW, &Fake(Ok(500))));
    assert_eq!(record(&here, &there.space, FILE).status, FileStatus::Processed);
    check(&here, NOW);
}

#[test]
fn a_version_that_comes_while_an_older_one_is_processed_follows_it() {
    let (there, here, versions) = follower_of_two_versions();
    deliver(&here, there.space, &versions[0]);
    let take = TakeWork { worker: "a worker".into(), variants: vec!["thumbnail_256".into()] };
    let taken = here.core.ask(take, NOW).unwrap().unwrap();
    publish(&there, "bob", FILE, "plan.png", &versions[1]);
    receive(&here, events_of(&there));
    deliver(&here, there.space, &versions[1]);
    assert_eq!(record(&here, &there.space, FILE).version, 1, "somebody works on it");
    let done = CompleteWork { space: there.space, file: FILE, token: taken.token, made: Vec::new() };
    here.core.ask(done, NOW).unwrap();
    here.core.settle(NOW).unwrap();
    assert_eq!(record(&here, &there.space, FILE).version, 2);
    deliver(&here, there.space, &versions[1]);
    assert!(work(&here, NOW, &Fake(Ok(500))));
    assert_eq!(read_file(&snapshot(&here), &there.space, FILE).unwrap().map(|bytes| bytes.len()), Some(1600));
    check(&here, NOW);
}

#[test]
fn a_failed_file_is_well_again_with_a_version_from_elsewhere() {
    let (there, here, versions) = follower_of_two_versions();
    deliver(&here, there.space, &versions[0]);
    assert!(work(&here, NOW, &Fake(Err(RenderFailure::Refused("damaged".into())))));
    assert_eq!(record(&here, &there.space, FILE).status, FileStatus::Failed);
    // Its bytes are here already, as those of another file.
    publish(&there, "bob", FileId([5; 16]), "same.png", &versions[1]);
    receive(&here, events_of(&there));
    deliver(&here, there.space, &versions[1]);
    publish(&there, "bob", FILE, "plan.png", &versions[1]);
    receive(&here, events_of(&there));
    while work(&here, NOW, &Fake(Ok(500))) {}
    assert_eq!(record(&here, &there.space, FILE).status, FileStatus::Processed);
    check(&here, NOW);
}

#[test]
fn whoever_takes_the_id_of_somebody_elses_file_gets_another() {
    // Both found the same space, as whoever copied the folder of a node could.
    let (there, copy, here) = (publisher(), publisher(), Home::new());
    let space = there.space;
    assert_eq!(copy.space, space);
    let first = publish(&there, "bob", FILE, "mine.png", &[1; 1500]);
    let second = publish(&copy, "eve", FILE, "theirs.png", &[2; 1500]);
    receive(&here, events_of(&there));
    receive(&here, events_of(&copy));
    let kept = record(&here, &space, FILE);
    assert_eq!((kept.owner, kept.version), (first.owner, 1));
    let other = record(&here, &space, FileId(second.event.unwrap().0));
    assert_eq!((other.owner, other.name.as_str()), (second.owner, "theirs.png"));
    check(&here, NOW);
}

#[test]
fn a_file_that_was_deleted_long_enough_ago_goes_for_ever() {
    let home = Home::new();
    home.upload("bob", FILE, &[7; 100_000]);
    home.upload("bob", FileId([4; 16]), &[8; 100_000]);
    let event = file(&home).event.unwrap();
    ask(&home, NOW, FileCommand::Delete).unwrap();
    let retention = Retention { age_seconds: None, count: None, deleted_seconds: Some(3600) };
    home.core.store().write(NOW, |batch| batch.set_retention(&home.space, None, Some(&retention))).unwrap();
    let hour = 3600 * Nanos::SECOND;
    home.core.settle(NOW.plus(hour)).unwrap();
    assert!(!file(&home).is_purged, "an hour is not over");
    ask(&home, NOW, FileCommand::Undelete).unwrap();
    home.core.settle(NOW.plus(3 * hour)).unwrap();
    assert!(!file(&home).is_purged, "it was brought back");
    ask(&home, NOW.plus(3 * hour), FileCommand::Delete).unwrap();
    home.core.settle(NOW.plus(5 * hour)).unwrap();
    assert!(file(&home).is_purged && home.is_purged(event));
    assert_eq!(
        ask(&home, NOW, FileCommand::Undelete).err().as_deref(),
        Some("the file was purged, so there is nothing to show again")
    );
    let db = snapshot(&home);
    assert_eq!(read_file(&db, &home.space, FILE).unwrap(), None);
    assert!(read_file(&db, &home.space, FileId([4; 16])).unwrap().is_some(), "the other one was not deleted");
    check(&home, NOW.plus(5 * hour));
}

#[test]
fn nothing_is_left_of_the_files_of_somebody_who_was_erased() {
    let home = Home::new();
    home.upload("bob", FILE, &[7; 100_000]);
    let of = |user: &str, number: u8, command: FileCommand| {
        let (space, random) = (home.space, *blake3::hash(user.as_bytes()).as_bytes());
        let file = FileId([number; 16]);
        home.core
            .ask(FileRequest { space, caller: caller(user), file, command, idempotency: None, random }, NOW)
            .unwrap()
    };
    let named =
        |name: &str| NewFile { name: name.to_owned(), metadata: "{\"number\":123}".to_owned(), ..NewFile::default() };
    of("bob", 4, FileCommand::Begin(named("never came")));
    of("bob", 5, FileCommand::ReceiveResumable(Some(named("half")), 1_000_000));
    of("eve", 6, FileCommand::Begin(named("of another")));
    home.administer(AdminCommand::EraseUser(home.space, "bob".to_owned()));
    home.core.settle(NOW).unwrap();
    for number in [3, 4, 5] {
        let gone = record(&home, &home.space, FileId([number; 16]));
        assert_eq!((gone.is_purged, gone.name.as_str(), gone.metadata.as_str()), (true, "purged", ""), "{number}");
    }
    assert_eq!(snapshot(&home).open_upload_count(None).unwrap(), 0);
    let kept = record(&home, &home.space, FileId([6; 16]));
    assert_eq!((kept.is_purged, kept.name.as_str()), (false, "of another"));
    check(&home, NOW);
}

#[test]
fn messages_carry_no_file_that_is_hidden() {
    let home = Home::new();
    home.upload("bob", FILE, &[7; 100]);
    let post = |text: &str| {
        let mut posting = home.posting("bob", text);
        if let UserCommand::Post(new) = &mut posting.command {
            new.attachments = vec![NameOrId::Chosen(FILE.to_name())];
        }
        home.core.ask(posting, NOW).map(|_| ()).map_err(|why| why.to_string())
    };
    assert_eq!(post("here it is"), Ok(()));
    ask(&home, NOW, FileCommand::Delete).unwrap();
    assert!(post("it was here").unwrap_err().contains("file"));
}

#[test]
fn what_was_made_of_an_older_version_goes_when_nothing_is_made_of_the_next() {
    let (there, here, versions) = follower_of_two_versions();
    deliver(&here, there.space, &versions[0]);
    assert!(work(&here, NOW, &Fake(Ok(500))));
    let children: Vec<FileId> =
        snapshot(&here).derived_files(&there.space, FILE).unwrap().into_iter().filter_map(|row| row.child).collect();
    assert_eq!(children.len(), 2);
    publish_as("application/zip", &there, ("bob", FILE, "plan.zip"), &versions[1]);
    receive(&here, events_of(&there));
    let derived = snapshot(&here).derived_files(&there.space, FILE).unwrap();
    assert!(derived.iter().all(|row| row.child.is_none() && row.deleted_at.is_some()), "{derived:?}");
    for child in children {
        assert_eq!(read_file(&snapshot(&here), &there.space, child).unwrap(), None);
    }
    check(&here, NOW);
}

#[test]
fn a_version_from_elsewhere_waits_for_an_upload_here_and_neither_is_lost() {
    // Two nodes that keep the same space, and the same person on both.
    let (there, here) = (publisher(), publisher());
    publish(&there, "bob", FILE, "plan.png", &[1; 1500]);
    receive(&here, events_of(&there));
    deliver(&here, there.space, &[1; 1500]);
    ask(&here, NOW, FileCommand::ReceiveResumable(None, 1_000_000)).unwrap();
    ask(&here, NOW, FileCommand::Pause(9, vec![7; 9])).unwrap();
    publish(&there, "bob", FILE, "plan.png", &[2; 1600]);
    receive(&here, events_of(&there));
    assert_eq!(record(&here, &there.space, FILE).version, 1, "an upload is under way");
    ask(&here, NOW, FileCommand::Pause(10, vec![7; 10])).unwrap();
    check(&here, NOW);
    ask(&here, NOW, FileCommand::Fail("given up".into(), None)).unwrap();
    here.core.settle(NOW).unwrap();
    assert_eq!(record(&here, &there.space, FILE).version, 2);
    deliver(&here, there.space, &[2; 1600]);
    assert!(work(&here, NOW, &Fake(Ok(500))));
    assert!(read_file(&snapshot(&here), &there.space, FILE).unwrap() == Some(vec![2; 1600]));
    check(&here, NOW);
}
