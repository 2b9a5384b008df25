//! A distinctive text is said in every way there is, and no file of the data folder or of a backup shows it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::WriterCore;
use anteroom_node::commands::accounts::{AccountChange, AccountCommand, AccountRequest, NewSession};
use anteroom_node::commands::{
    AdminCommand, AdminRequest, AdminResult, Caller, CallerKind, CommandRequest, NameOrId, NewMessage, NewThread,
    UserCommand, message_content,
};
use engine::Policy;
use engine::access::KeyRole;
use engine::reads::StoreResult;
use model::payload::MemberRole;
use model::{FileId, Nanos, SpaceId};
use serde_json::{Map, json};
use std::path::Path;
use std::sync::Arc;
use store::maintenance::sweep::SweepProgress;
use store::shared::accounts::Invitation;
use store::views::messages::ShownContent;
use store::{Batch, FolderDisk, KeySource, MasterKey, OpenError, Protection, Store, StoreOptions};

const FILE: FileId = FileId([5; 16]);
const CANARY: &str = "yellow-canary-9f31";
const NOW: Nanos = Nanos(1_800_000_000 * Nanos::SECOND);

struct Cage {
    core: WriterCore,
    space: SpaceId,
    folder: tempfile::TempDir,
}

impl Cage {
    fn new(sealed: bool) -> Cage {
        let folder = tempfile::tempdir().unwrap();
        let core = WriterCore::new(open(&folder.path().join("data"), MasterKey::new(&[7; 32])));
        let found = AdminCommand::FoundSpace { name: CANARY.into(), sealed, random: Box::new([3; 80]) };
        let founded = core.ask(AdminRequest::by("an operator", found), NOW).unwrap();
        let AdminResult::Founded(space) = founded else { panic!("{founded:?}") };
        Cage { core, space, folder }
    }

    fn act(&self, command: UserCommand) {
        let user = Some(CANARY.to_owned());
        let caller = Caller { kind: CallerKind::Key(KeyRole::Backend), user, audit_name: "a key".into() };
        let act =
            CommandRequest { space: self.space, caller, idempotency: None, expected: None, command, random: [9; 32] };
        self.core.ask(act, NOW).unwrap();
    }

    /// A thread with a title, and messages that rest inline and in rows.
    fn sing(&self) {
        let fields = Map::from_iter([("title".to_owned(), CANARY.into())]);
        let chosen = Some(CANARY.to_owned());
        self.act(UserCommand::OpenThread(NewThread { chosen, fields, ..NewThread::default() }));
        [1, 600, 2500].into_iter().for_each(|times| self.post(times));
        self.act(UserCommand::Report(self.first_message(), CANARY.to_owned()));
        self.come_in();
        self.core.settle(NOW).unwrap();
    }

    /// A file that rests in an object.
    fn attach(&self) {
        let user = Some(CANARY.to_owned());
        let caller = Caller { kind: CallerKind::Key(KeyRole::Backend), user, audit_name: "a key".into() };
        common::upload(&self.core, &self.space, &caller, FILE, CANARY.repeat(9000).as_bytes(), NOW);
        self.core.settle(NOW).unwrap();
    }

    fn first_message(&self) -> NameOrId {
        let db = self.core.store().snapshot().unwrap();
        let no = engine::reads::Reads::space_no(&*db, &self.space).unwrap().unwrap();
        let (_, thread) = db.threads(no, model::Stamp::FIRST, 9).unwrap()[0];
        NameOrId::Event(db.timeline(thread, model::Stamp::LAST, 9).unwrap()[0].stamp.id)
    }

    /// An invitation, a session and an account that all say it.
    fn come_in(&self) {
        let caller = Caller { kind: CallerKind::Operator, user: None, audit_name: "an operator".into() };
        let invitation =
            Invitation::new(MemberRole::Member, CANARY.into(), CANARY.into(), NOW, NOW.plus(Nanos::SECOND), 1);
        let browser = NewSession { hash: [1; 32], agent: CANARY.into() };
        let change = AccountChange::Display(CANARY.into());
        for what in [
            AccountCommand::Invite(caller, [2; 32], invitation),
            AccountCommand::SignInOperator(CANARY.into(), browser, Box::new([8; 32])),
            AccountCommand::Change(CANARY.into(), Box::new(change)),
        ] {
            self.core.ask(AccountRequest { space: self.space, what }, NOW).unwrap();
        }
    }

    fn post(&self, times: usize) {
        let content = message_content(json!({ "text": CANARY.repeat(times) }), None).unwrap();
        let thread = Some(NameOrId::Chosen(CANARY.into()));
        let (chosen, reply_to) = (None, None);
        let (mentions, attachments) = (vec![CANARY.to_owned()], Vec::new());
        self.act(UserCommand::Post(NewMessage { thread, chosen, content, reply_to, mentions, attachments }));
    }

    fn shown(&self) -> Vec<ShownContent> {
        let db = self.core.store().snapshot().unwrap();
        let no = engine::reads::Reads::space_no(&*db, &self.space).unwrap().unwrap();
        let (_, thread) = db.threads(no, model::Stamp::FIRST, 9).unwrap()[0];
        let page = db.timeline(thread, model::Stamp::LAST, 9).unwrap();
        page.into_iter().map(|message| message.content).collect()
    }

    /// How often each message says it.
    fn said(&self) -> Vec<usize> {
        let length = |shown: &ShownContent| match shown {
            ShownContent::Here(bytes) => count(bytes),
            other => panic!("{other:?}"),
        };
        self.shown().iter().map(length).collect()
    }

    /// How often the text stands in the files of the data folder, and in those of a new backup.
    fn heard(&self) -> (usize, usize) {
        let backup = self.folder.path().join("backup");
        let _ = std::fs::remove_file(&backup);
        self.core.store().backup(&backup, NOW, &mut |_| ()).unwrap();
        (search(&self.folder.path().join("data")), search(&backup))
    }
}

fn try_open(folder: &Path, master: MasterKey) -> Result<Store, OpenError> {
    // Bodies have at most 64 KiB, so that files begin lower here.
    let policy = Policy { row_content_bytes_max: 16 << 10, ..Policy::default() };
    let options = StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, random: KeySource::Seed(1) };
    Store::open(Arc::new(FolderDisk::new(folder).unwrap()), master, options)
}

fn open(folder: &Path, master: MasterKey) -> Store {
    try_open(folder, master).unwrap()
}

fn count(bytes: &[u8]) -> usize {
    bytes.windows(CANARY.len()).filter(|window| *window == CANARY.as_bytes()).count()
}

fn search(path: &Path) -> usize {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        return entries.map(|entry| search(&entry.unwrap().path())).sum();
    }
    assert!(!path.to_string_lossy().contains(CANARY));
    count(&std::fs::read(path).unwrap())
}

#[test]
fn nothing_said_in_a_space_shows_on_the_disk() {
    for sealed in [false, true] {
        let cage = Cage::new(sealed);
        cage.sing();
        cage.attach();
        assert_eq!(cage.said(), [1, 600, 2500]);
        let objects = cage.folder.path().join("data").join(store::disk::OBJECTS);
        assert_eq!(std::fs::read_dir(objects).unwrap().count(), 1, "the file rests in an object");
        let db = cage.core.store().snapshot().unwrap();
        let read = common::read_file(&db, &cage.space, FILE).unwrap();
        assert_eq!(count(&read.unwrap()), 9000);
        assert_eq!(cage.heard(), (0, 0), "sealed: {sealed}");
        let report = cage.core.store().verify(NOW).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

#[test]
fn the_search_would_find_it() {
    let cage = Cage::new(false);
    cage.protect(&Protection::Nothing);
    cage.sing();
    assert_eq!(cage.said(), [1, 600, 2500]);
    let (folder, backup) = cage.heard();
    assert!(folder > 3100 && backup > 3100, "{folder}, {backup}");
}

#[test]
fn named_fields_are_hidden_and_the_rest_stays_readable() {
    let cage = Cage::new(false);
    let fields = Protection::fields(&["body.text", "title", "id"]).unwrap();
    cage.protect(&fields);
    cage.sing();
    assert_eq!(cage.said(), [1, 600, 2500]);
    assert_eq!(cage.heard(), (0, 0));
    let database = std::fs::read(cage.folder.path().join("data/anteroom.redb")).unwrap();
    assert!(database.windows(13).any(|window| window == b"\"text\":{\"_enc"));
    let report = cage.core.store().verify(NOW).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

impl Cage {
    fn protect(&self, protection: &Protection) {
        self.core.store().write(NOW, |batch| batch.set_protection(&self.space, protection)).unwrap();
    }

    fn digest(&self) -> String {
        let report = self.core.store().verify(NOW).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        report.digest
    }

    /// Runs work in small steps, opening the folder anew between any two of them.
    fn step_by_step(mut self, work: impl Fn(&mut Batch<'_>) -> StoreResult<SweepProgress>) -> (Cage, u64) {
        for step in 0..200 {
            let progress = self.core.store().write(NOW, &work).unwrap();
            assert_eq!(self.said(), [1, 600, 2500], "after step {step}");
            self = self.again(MasterKey::new(&[7; 32]));
            assert_eq!(self.said(), [1, 600, 2500], "after step {step}, opened anew");
            if progress.is_done {
                return (self, progress.changed);
            }
        }
        panic!("it does not end");
    }

    fn again(self, master: MasterKey) -> Cage {
        let Cage { core, space, folder } = self;
        drop(core);
        Cage { core: WriterCore::new(open(&folder.path().join("data"), master)), space, folder }
    }
}

#[test]
fn what_rests_plain_is_encrypted_step_by_step() {
    let cage = Cage::new(false);
    cage.protect(&Protection::Nothing);
    cage.sing();
    let before = cage.digest();
    cage.protect(&Protection::Whole);
    let (mut cage, changed) = cage.step_by_step(|batch| batch.encrypt_existing(2));
    // The thread, its title and three messages; the founding was encrypted when it came.
    assert!(changed >= 4, "{changed}");
    assert_eq!(cage.digest(), before);
    assert_eq!(cage.heard().1, 0, "the backup shows nothing");
    // Some of a long message may stay on free pages until they are written over.
    cage.core.store_mut().compact().unwrap();
    let (folder, backup) = cage.heard();
    assert!(folder < 10 && backup == 0, "{folder}, {backup}");
    let (cage, changed) = cage.step_by_step(|batch| batch.encrypt_existing(1000));
    assert_eq!(changed, 0, "everything rests as it should");
    drop(cage);
}

#[test]
fn a_space_moves_to_a_new_key_and_the_old_one_goes() {
    for sealed in [false, true] {
        let cage = Cage::new(sealed);
        cage.sing();
        cage.attach();
        let before = cage.digest();
        let space = cage.space;
        let (cage, changed) = cage.step_by_step(|batch| batch.rotate(&space, 2));
        assert!(changed >= 4, "{changed}");
        assert_eq!(cage.digest(), before);
        assert_eq!(cage.core.store().snapshot().unwrap().storage_key_numbers(&space).unwrap(), [2]);
        let db = cage.core.store().snapshot().unwrap();
        let read = common::read_file(&db, &space, FILE).unwrap();
        assert_eq!(count(&read.unwrap()), 9000, "the key of its object moved with the space");
        assert_eq!(cage.heard(), (0, 0));
    }
}

#[test]
fn a_rotation_touches_no_other_space() {
    let cage = Cage::new(false);
    cage.protect(&Protection::Nothing);
    cage.sing();
    cage.protect(&Protection::Whole);
    let found = AdminCommand::FoundSpace { name: "other".into(), sealed: false, random: Box::new([4; 80]) };
    let founded = cage.core.ask(AdminRequest::by("an operator", found), NOW).unwrap();
    let AdminResult::Founded(other) = founded else { panic!("{founded:?}") };
    let database = cage.folder.path().join("data/anteroom.redb");
    assert!(search(&database) > 3100, "messages that are not encrypted yet");
    let (cage, _) = cage.step_by_step(|batch| batch.rotate(&other, 1000));
    assert!(search(&database) > 3100);
    drop(cage);
}

#[test]
fn a_folder_moves_to_a_new_master_key() {
    for sealed in [false, true] {
        let cage = Cage::new(sealed);
        cage.sing();
        let (before, new) = (cage.digest(), MasterKey::new(&[8; 32]));
        let Cage { core, space, folder } = cage;
        drop(core);
        let path = folder.path().join("data");
        assert!(open(&path, MasterKey::new(&[7; 32])).begin_rewrap(&new).unwrap());
        assert!(try_open(&path, MasterKey::new(&[7; 32])).is_err(), "it is of the new key now");
        let mut cage = Cage { core: WriterCore::new(open(&path, new.clone())), space, folder };
        for _ in 0..200 {
            assert_eq!(cage.said(), [1, 600, 2500]);
            let progress = cage.core.store().write(NOW, |batch| batch.rewrap(1)).unwrap();
            cage = cage.again(new.clone());
            if progress.is_done {
                assert!(progress.changed >= 4, "{progress:?}");
                break;
            }
        }
        assert!(!cage.core.store().snapshot().unwrap().is_rewrapping().unwrap());
        assert_eq!(cage.digest(), before);
        let db = cage.core.store().snapshot().unwrap();
        assert!(db.user(&space, CANARY).unwrap().is_some(), "users are found by name");
        assert_eq!(db.audit_log(u64::MAX, 9).unwrap().len(), 3);
        drop(db);
        cage.post(3);
        assert_eq!(cage.said(), [1, 600, 2500, 3]);
    }
}

#[test]
fn what_lost_its_keys_reads_as_absent() {
    for sealed in [false, true] {
        let mut cage = Cage::new(sealed);
        cage.sing();
        let space = cage.space;
        assert!(cage.core.store().write(NOW, |batch| batch.destroy_keys(&space)).unwrap() >= 1);
        for _ in 0..2 {
            let db = cage.core.store().snapshot().unwrap();
            assert_eq!(cage.shown(), [ShownContent::Absent, ShownContent::Absent, ShownContent::Absent]);
            assert_eq!((db.user(&space, CANARY).unwrap(), db.hosted_space(&space).unwrap()), (None, None));
            drop(db);
            let report = cage.core.store().verify(NOW).unwrap();
            assert!(report.problems.is_empty(), "{:?}", report.problems);
            assert!(report.unreadable > 0 || sealed);
            cage = cage.again(MasterKey::new(&[7; 32]));
        }
        cage.core.store().rebuild_views(NOW, &mut |_| ()).unwrap();
        let report = cage.core.store().verify(NOW).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        assert_eq!(cage.heard(), (0, 0));
    }
}
