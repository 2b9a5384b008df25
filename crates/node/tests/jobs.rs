//! Jobs: a part with each commit, and nothing lost or done twice when the node stops between any two of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_node::WriterCore;
use anteroom_node::commands::{
    AdminCommand, AdminRequest, AdminResult, Caller, CallerKind, CommandRequest, MessageRef, NameOrId, NewMessage,
    UserCommand, message_content,
};
use anteroom_node::jobs::PurgeResult;
use anteroom_node::node_commands::{Purge, Tick};
use engine::access::KeyRole;
use engine::change::{Change, RowChange};
use engine::protocol::space::rederive::rederive;
use engine::reads::{Reads as _, SpaceReads as _};
use model::stage::ContentState;
use model::{EventId, Nanos, SpaceId, Stamp};
use std::path::Path;
use std::sync::Arc;
use store::shared::jobs::{Job, JobKind};
use store::shared::retention::Retention;
use store::views::messages::ShownContent;
use store::{FolderDisk, KeySource, MasterKey, Store, StoreOptions};

const NOW: Nanos = Nanos(1_800_000_000_000_000_000);
const MESSAGES: usize = 130;

fn open(folder: &Path) -> WriterCore {
    let disk = Arc::new(FolderDisk::new(folder).expect("a folder"));
    let options =
        StoreOptions { cache_bytes: 4 << 20, reserve_bytes: 0, random: KeySource::Seed(1), ..StoreOptions::default() };
    WriterCore::new(Store::open(disk, MasterKey::new(&[7; 32]), options).expect("a store"))
}

fn administer(core: &WriterCore, what: AdminCommand) -> AdminResult {
    core.ask(AdminRequest::by("a test", what), NOW).expect("a result")
}

fn post(core: &WriterCore, space: SpaceId, user: &str, text: &str) -> EventId {
    let caller =
        Caller { kind: CallerKind::Key(KeyRole::Backend), user: Some(user.into()), audit_name: "a test".into() };
    let new = NewMessage {
        thread: Some("lobby".parse().expect("a name")),
        chosen: None,
        content: message_content(text.into(), None).expect("content"),
        reply_to: None,
        mentions: Vec::new(),
        attachments: Vec::new(),
    };
    let random = *blake3::hash(user.as_bytes()).as_bytes();
    let act =
        CommandRequest { space, caller, idempotency: None, expected: None, command: UserCommand::Post(new), random };
    core.ask(act, NOW).expect("a result").shown
}

/// A space in which two users have talked.
fn talk(core: &WriterCore) -> (SpaceId, Vec<EventId>) {
    let founding = AdminCommand::FoundSpace { name: "home".into(), sealed: true, random: Box::new([3; 80]) };
    let AdminResult::Founded(space) = administer(core, founding) else { panic!("not founded") };
    let user = |number| if number % 2 == 0 { "alice" } else { "bob" };
    (space, (0..MESSAGES).map(|number| post(core, space, user(number), &format!("{number}"))).collect())
}

/// Begins a job and stops the node after so many commits, again and again, until it is done. Says what came of it.
fn run_with_stops(folder: &Path, mut core: WriterCore, begun: AdminResult, commits: usize) -> (WriterCore, Job) {
    let AdminResult::Begun(number) = begun else { panic!("no job: {begun:?}") };
    for _ in 0..1000 {
        for _ in 0..commits {
            core.ask(Tick, NOW).expect("a healthy disk");
        }
        drop(core);
        core = open(folder);
        let job = core.store().snapshot().expect("a snapshot").job(number).expect("read").expect("a job");
        if job.ended_at.is_some() {
            core.settle(NOW).expect("a healthy disk");
            return (core, job);
        }
    }
    panic!("the job does not end");
}

/// The messages that still say something.
fn left(core: &WriterCore, messages: &[EventId]) -> Vec<usize> {
    let db = core.store().snapshot().expect("a snapshot");
    let says = |id: &EventId| {
        let seq = db.seq(id).expect("read").expect("known");
        matches!(db.shown(seq).expect("read"), ShownContent::Here(_))
    };
    (0..messages.len()).filter(|number| says(&messages[*number])).collect()
}

fn verify(core: &WriterCore) {
    let report = core.store().verify(NOW).expect("a report");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn retention_goes_on_wherever_it_was_stopped() {
    for commits in [1, 2, 3, 7] {
        let home = tempfile::tempdir().expect("a folder");
        let core = open(home.path());
        let (space, messages) = talk(&core);
        let rule = Retention { count: Some(10), ..Retention::default() };
        administer(&core, AdminCommand::Retain(space, None, Some(rule)));
        let begun = administer(&core, AdminCommand::Begin(JobKind::Retain(Some(space))));
        let (core, job) = run_with_stops(home.path(), core, begun, commits);
        assert_eq!((job.receipt.deleted, job.receipt.pruned, job.failed), (MESSAGES as u64 - 10, 0, None));
        assert_eq!(left(&core, &messages), Vec::from_iter(MESSAGES - 10..MESSAGES));
        verify(&core);
    }
}

#[test]
fn erasing_a_user_goes_on_wherever_it_was_stopped() {
    for commits in [1, 2, 5] {
        let home = tempfile::tempdir().expect("a folder");
        let core = open(home.path());
        let (space, messages) = talk(&core);
        let begun = administer(&core, AdminCommand::EraseUser(space, "alice".into()));
        let (core, job) = run_with_stops(home.path(), core, begun, commits);
        // Alice also opened the thread.
        assert_eq!(job.receipt.deleted, MESSAGES as u64 / 2 + 1);
        assert_eq!(left(&core, &messages), Vec::from_iter((0..MESSAGES).filter(|number| number % 2 == 1)));
        let db = core.store().snapshot().expect("a snapshot");
        assert!(db.user(&space, "alice").expect("read").is_none());
        verify(&core);
    }
}

#[test]
fn a_space_that_ended_is_forgotten_wherever_that_was_stopped() {
    let home = tempfile::tempdir().expect("a folder");
    let core = open(home.path());
    let (space, messages) = talk(&core);
    let begun = administer(&core, AdminCommand::EndSpace(space));
    let (core, job) = run_with_stops(home.path(), core, begun, 1);
    assert!(job.receipt.pruned >= MESSAGES as u64, "{job:?}");
    assert_eq!(left(&core, &messages), Vec::<usize>::new());
    let db = core.store().snapshot().expect("a snapshot");
    assert!(db.hosted_spaces().expect("read").is_empty());
    assert!(db.users(&space, None, 10).expect("read").is_empty());
}

#[test]
fn what_is_pruned_takes_its_versions_along() {
    let home = tempfile::tempdir().expect("a folder");
    let core = open(home.path());
    let (space, messages) = talk(&core);
    let last = *messages.last().expect("messages");
    let caller =
        Caller { kind: CallerKind::Key(KeyRole::Backend), user: Some("bob".into()), audit_name: "a test".into() };
    let place = MessageRef { thread: None, message: NameOrId::Event(last) };
    let command = UserCommand::Edit(place, message_content("edited".into(), None).expect("content"));
    let edit = CommandRequest { space, caller, idempotency: None, expected: None, command, random: [9; 32] };
    core.ask(edit, NOW).expect("an edit");
    // A node that does not keep a space prunes. The job that the end of the space begins has not come this far yet.
    administer(&core, AdminCommand::EndSpace(space));
    let purge = Purge { space, targets: vec![last], audit_name: "a test".into() };
    assert_eq!(core.ask(purge, NOW), Ok(vec![(last, PurgeResult::Pruned)]));
    let db = core.store().snapshot().expect("a snapshot");
    let seq = db.seq(&last).expect("read").expect("a message");
    let versions = db.versions(seq, Stamp::FIRST, 10).expect("read");
    assert_eq!(versions.len(), 1);
    for seq in [seq, versions[0].1] {
        assert_eq!(db.event(seq).expect("read").expect("a row").content, ContentState::Pruned);
    }
    let before = db.seq(&messages[MESSAGES - 2]).expect("read").expect("a message");
    assert_eq!(db.event(before).expect("read").expect("a row").content, ContentState::Processed);
}

#[test]
fn the_same_job_is_not_begun_twice_and_a_rotated_space_reads_the_same() {
    let home = tempfile::tempdir().expect("a folder");
    let core = open(home.path());
    let (space, messages) = talk(&core);
    let begun = administer(&core, AdminCommand::Begin(JobKind::Rotate(space)));
    let (core, job) = run_with_stops(home.path(), core, begun, 1);
    assert!(job.receipt.rewritten > 0 && job.failed.is_none(), "{job:?}");
    assert_eq!(left(&core, &messages).len(), MESSAGES);
    assert_eq!(core.store().snapshot().expect("a snapshot").storage_key_numbers(&space).expect("read"), [2]);
    verify(&core);
    let first = core.store().write(NOW, |batch| batch.begin_job(JobKind::Encrypt, "a test")).expect("written");
    let again = core.store().write(NOW, |batch| batch.begin_job(JobKind::Encrypt, "a test")).expect("written");
    assert_eq!(first, again);
}

#[test]
fn what_stands_on_a_membership_is_looked_at_again_in_one_step() {
    let home = tempfile::tempdir().expect("a folder");
    let core = open(home.path());
    let (space, _) = talk(&core);
    let db = core.store().snapshot().expect("a snapshot");
    let bob = db.user(&space, "bob").expect("read").expect("a user");
    let membership = db.seq(&bob.membership).expect("read").expect("known");
    let changes = rederive(&*db, core.store().policy(), membership, Stamp::FIRST).expect("read");
    // Everything counts as before, so that only the task goes; nothing is left for another one.
    assert!(matches!(changes.as_slice(), [Change::Task(RowChange::Remove, _)]), "{changes:?}");
}
