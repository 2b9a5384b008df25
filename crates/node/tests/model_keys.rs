//! Rotation, another master key, protection, backups and crashes change how everything rests, and never what it says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::commands::accounts::{AccountCommand, AccountRequest, Credential, NewSession};
use anteroom_node::commands::files::jobs::TakeWork;
use anteroom_node::commands::files::{FileCommand, FileRequest, NewFile, NewLink};
use anteroom_node::commands::{AdminCommand, Caller, CallerKind, IdempotencyKey, WebhookCommand};
use common::{Home, NOW, caller, edit, options, react, read_file};
use engine::access::KeyRole;
use engine::reads::{Reads as _, StoreError};
use model::files::FileStatus;
use model::payload::MemberRole;
use model::{EventId, FileId, LinkId, Nanos};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use store::maintenance::backup;
use store::shared::accounts::Invitation;
use store::shared::files::{FileJob, LinkPurpose};
use store::shared::moderation::{BlockKind, UserReport};
use store::shared::retention::Retention;
use store::tables::{Snapshot, TableClass, census, export_rows};
use store::{FolderDisk, MasterKey, Protection, Store};

/// How many kinds of things can be made.
const KINDS: u8 = 13;

#[derive(Clone, Debug)]
enum Step {
    /// Something of one kind is made.
    Make(u8),
    /// A part of a rotation of the space's storage key, which begins if there is none.
    Rotate(usize),
    /// Another master key, unless the last change is unfinished.
    ChangeMaster,
    /// A part of the change.
    Rewrap(usize),
    /// What of the content is encrypted.
    Protect(u8),
    /// A part of what that asks for.
    Encrypt(usize),
    Crash,
    /// A backup, on which everything goes on.
    Restore,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..KINDS).prop_map(Step::Make),
        4 => (1..9_usize).prop_map(Step::Rotate),
        2 => Just(Step::ChangeMaster),
        4 => (1..9_usize).prop_map(Step::Rewrap),
        1 => (0..3_u8).prop_map(Step::Protect),
        2 => (1..9_usize).prop_map(Step::Encrypt),
        1 => Just(Step::Crash),
        1 => Just(Step::Restore),
    ]
}

fn hash(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

struct Trial {
    home: Home,
    made: u64,
    messages: Vec<EventId>,
    masters: Vec<u8>,
}

impl Trial {
    fn new() -> Trial {
        let home = Home::new();
        home.make_admin("alice");
        let messages = vec![home.post("bob", "the first")];
        Trial { home, made: 0, messages, masters: vec![7] }
    }

    fn account(&self, what: AccountCommand) {
        self.home.core.ask(AccountRequest { space: self.home.space, what }, NOW).unwrap();
    }

    /// Makes something of a kind: together the kinds leave rows in every shared table.
    fn make(&mut self, kind: u8) {
        self.made += 1;
        let (home, space, number) = (&self.home, self.home.space, self.made);
        let last = *self.messages.last().unwrap();
        let secret = hash(&format!("secret {number}"));
        let name = *secret.first_chunk::<8>().unwrap();
        match kind {
            0 => self.messages.push(home.post("bob", &format!("message {number}"))),
            1 => {
                let mut request = home.posting("bob", &format!("message {number}"));
                request.idempotency = Some(IdempotencyKey { who_and_key: secret, fingerprint: secret });
                self.messages.push(home.core.ask(request, NOW).unwrap().shown);
            }
            2 => drop(home.ask("bob", edit(last)).unwrap()),
            3 => drop(home.ask("bob", react(last)).unwrap()),
            4 => {
                let hash = secret;
                let by = Caller { kind: CallerKind::Key(KeyRole::Admin), ..caller("alice") };
                let ends_at = NOW.plus(Nanos::SECOND);
                let link = Invitation::new(MemberRole::Member, "alice".into(), "for x".into(), NOW, ends_at, 2);
                self.account(AccountCommand::Invite(by, hash, link));
                self.account(AccountCommand::Join {
                    invitation: hash,
                    user: format!("user-{number}"),
                    way: Credential::Password(format!("hash {number}")),
                    browser: NewSession { hash: secret, agent: format!("browser {number}") },
                    random: Box::new(secret),
                });
            }
            5 => {
                let add =
                    WebhookCommand::Add { url: format!("https://{number}"), secret: secret.into(), kinds: vec![] };
                home.administer(AdminCommand::Webhook(space, name, add));
            }
            6 => {
                let label = format!("key {number}");
                home.administer(AdminCommand::AddKey { id: name, role: KeyRole::Backend, space, hash: secret, label });
            }
            7 => drop(home.administer(AdminCommand::AddSigningKey(space, secret.into()))),
            8 => {
                let db = home.core.store().snapshot().unwrap();
                let reporter = db.user(&space, "bob").unwrap().unwrap().identity;
                let report =
                    UserReport { reporter, message: last, reason: format!("{number}"), at: NOW, settled: None };
                home.core.store().write(NOW, |batch| batch.add_report(&space, &report)).unwrap();
            }
            9 => {
                let db = home.core.store().snapshot().unwrap();
                let owner = db.user(&space, "bob").unwrap().unwrap().identity;
                let other = model::Identity(secret);
                let block = Some(BlockKind::Block);
                home.core.store().write(NOW, |batch| batch.set_block(&space, &owner, &other, block)).unwrap();
            }
            10 => {
                let rule = Retention { age_seconds: Some(u64::from(u32::MAX)), ..Retention::default() };
                home.administer(AdminCommand::Retain(space, None, Some(rule)));
                let db = home.core.store().snapshot().unwrap();
                let thread = home.subject_of(&db, db.seq(&last).unwrap().unwrap());
                home.administer(AdminCommand::Retain(space, Some(thread), Some(rule)));
            }
            11 => home.make_admin(&format!("admin-{number}")),
            _ => self.make_file(FileId(*secret.first_chunk().unwrap())),
        }
    }

    /// A file in an object, and work that waits for it.
    fn make_file(&self, file: FileId) {
        let (home, space) = (&self.home, self.home.space);
        home.upload("bob", file, &vec![self.made as u8; 100_000]);
        let job = FileJob { attempts: 0, due: NOW, lease: None, reason: None };
        home.core.store().write(NOW, |batch| batch.put_file_job(&space, file, &job)).unwrap();
        let take = TakeWork { worker: "a worker".into(), variants: vec!["thumbnail_256".into()] };
        home.core.ask(take, NOW).unwrap();
        let random = *blake3::hash(b"bob").as_bytes();
        let ask = |file, command| {
            home.core.ask(FileRequest { space, caller: caller("bob"), file, command, idempotency: None, random }, NOW)
        };
        let purpose = LinkPurpose::Download { variant: None };
        let link = NewLink { secret: [self.made as u8; 32], purpose, seconds: 60 };
        ask(file, FileCommand::MakeLink(LinkId(file.0), link)).unwrap();
        let mut half = file;
        half.0[0] ^= 0x80;
        let new = NewFile { name: "half".to_owned(), ..NewFile::default() };
        ask(half, FileCommand::ReceiveResumable(Some(new), 1_000_000)).unwrap();
        ask(half, FileCommand::Pause(9, vec![self.made as u8; 9])).unwrap();
    }

    /// Everything that can be read, in words.
    fn told(&self) -> BTreeSet<String> {
        let (db, space) = (self.home.core.store().snapshot().unwrap(), self.home.space);
        let mut told = BTreeSet::new();
        let last = (Nanos(u64::MAX), FileId([0xff; 16]));
        for (id, record) in db.list_files(&space, FileStatus::ALL, &[0, 1, 2, 3], last, 99).unwrap() {
            let bytes = read_file(&db, &space, id).unwrap().unwrap_or_default();
            let (derived, job) = (db.derived_files(&space, id).unwrap(), db.file_job(&space, id).unwrap());
            let (links, upload) = (db.file_links(&space, id).unwrap(), db.open_upload(&space, id).unwrap());
            let secrets: Vec<_> = links.iter().map(|(id, link)| (id, link.secret, link.until)).collect();
            told.insert(format!("links {secrets:?} upload {upload:?}"));
            told.insert(format!("file {record:?} of {} times {:?}: {derived:?} {job:?}", bytes.len(), bytes.first()));
        }
        db.dump(&mut |line| told.extend([line])).unwrap();
        for id in &self.messages {
            told.insert(format!("{id} {:?}", db.shown(db.seq(id).unwrap().unwrap()).unwrap()));
        }
        for (_, user) in db.users(&space, None, usize::MAX).unwrap() {
            let account = db.account(&space, &user.id).unwrap().map(|account| (account.password, account.since));
            let sessions = db.sessions_of(&space, &user.id).unwrap();
            let key = db.signing_key(&user.identity).unwrap().map(|key| key.to_bytes());
            let (name, blocks) = (db.user_name(&space, &user.identity), db.blocks_by(&space, &user.identity));
            told.insert(format!("{user:?} {account:?} {sessions:?} {key:?} {name:?} {blocks:?}"));
        }
        for (id, hook) in db.webhooks(Some(&space)).unwrap().into_iter().map(|(_, id, hook)| (id, hook)) {
            told.insert(format!("{id:?} {} {:?} {:?} {:?}", hook.url, hook.secret, hook.kinds, hook.progress.number));
        }
        for (number, key) in db.signing_keys(&space).unwrap() {
            told.insert(format!("signing key {number} {:?} {:?}", key.secret, key.ends_at));
        }
        told.extend(db.invitations(&space).unwrap().iter().map(|row| format!("{row:?}")));
        told.extend(db.reports(&space, u64::MAX, usize::MAX).unwrap().iter().map(|row| format!("{row:?}")));
        told.extend(db.api_keys().unwrap().iter().map(|row| format!("{row:?}")));
        told.extend(db.audit_log(u64::MAX, usize::MAX).unwrap().iter().map(|row| format!("{row:?}")));
        told.extend(db.retentions().unwrap().iter().map(|row| format!("{row:?}")));
        told.extend(db.hosted_spaces().unwrap().iter().map(|row| format!("{row:?}")));
        told.extend(db.space_keys(&space).unwrap().iter().map(|row| format!("space key {row:?}")));
        told
    }

    /// A part of something that goes on until it is done. Says whether it is.
    fn part(&self, step: &Step) -> bool {
        let (store, space) = (self.home.core.store(), self.home.space);
        let done = store.write(NOW, |batch| match *step {
            Step::Rotate(most) => batch.rotate(&space, most),
            Step::Rewrap(most) => batch.rewrap(most),
            Step::Encrypt(most) => batch.encrypt_existing(most),
            _ => panic!("{step:?}"),
        });
        done.unwrap().is_done
    }

    fn take(mut self, step: &Step) -> Trial {
        match step {
            Step::Make(kind) => self.make(*kind),
            Step::Rotate(_) | Step::Rewrap(_) | Step::Encrypt(_) => drop(self.part(step)),
            Step::ChangeMaster => self = self.change_master(),
            Step::Protect(which) => {
                let protection = match which {
                    0 => Protection::Whole,
                    1 => Protection::fields(&["body"]).unwrap(),
                    _ => Protection::Nothing,
                };
                let space = self.home.space;
                self.home.core.store().write(NOW, |batch| batch.set_protection(&space, &protection)).unwrap();
            }
            Step::Crash => self.home = self.home.crash(),
            Step::Restore => self = self.restore(),
        }
        self
    }

    fn change_master(mut self) -> Trial {
        let (space, old) = (self.home.space, self.home.master);
        let folder = self.home.into_folder();
        let store = open(folder.path(), old).expect("its master key");
        let begun = store.begin_rewrap(&MasterKey::new(&[old + 1; 32])).unwrap();
        let master = if begun { old + 1 } else { old };
        if begun {
            self.masters.push(master);
        }
        self.home = Home::open(folder, space, master);
        self
    }

    fn restore(mut self) -> Trial {
        let folder = tempfile::tempdir().unwrap();
        let (file, into) = (folder.path().join("backup"), tempfile::tempdir().unwrap());
        self.home.core.store().backup(&file, NOW, &mut |_| ()).unwrap();
        let master = MasterKey::new(&[self.home.master; 32]);
        backup::restore(&file, into.path(), &master, options(), false, NOW, &mut |_| ()).unwrap();
        let restored = Home::open(into, self.home.space, self.home.master);
        assert_eq!(rows(&restored), rows(&self.home));
        let counts = |home: &Home| {
            let counts = census(home.core.store().snapshot().unwrap().tables()).unwrap();
            Vec::from_iter(counts.into_iter().filter(|(_, table, _)| *table != "about_v1"))
        };
        assert_eq!(counts(&restored), counts(&self.home));
        self.home = restored;
        self
    }
}

fn open(folder: &std::path::Path, master: u8) -> Option<Store> {
    let disk = Arc::new(FolderDisk::new(folder).unwrap());
    Store::open(disk, MasterKey::new(&[master; 32]), options()).ok()
}

/// Every row of every table; what a folder knows of itself is its own.
fn rows(home: &Home) -> BTreeSet<String> {
    let mut rows = BTreeSet::new();
    let db = home.core.store().snapshot().unwrap();
    let tables: &Snapshot = db.tables();
    export_rows::<StoreError>(tables, &mut |table, key, value| {
        if table != "about_v1" {
            rows.insert(format!("{table} {key:02x?} {:02x?}", value.unwrap()));
        }
        Ok(())
    })
    .unwrap();
    rows
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn how_things_rest_changes_nothing_that_they_say(steps in proptest::collection::vec(step(), 1..40)) {
        let mut trial = Trial::new();
        for step in &steps {
            let before = trial.told();
            trial = trial.take(step);
            if !matches!(step, Step::Make(_)) {
                let after = trial.told();
                let lost: Vec<_> = before.difference(&after).collect();
                prop_assert!(lost.is_empty() && before == after, "{step:?} lost {lost:?}");
            }
        }
        let before = trial.told();
        for step in [Step::Rewrap(50), Step::Rotate(50), Step::Encrypt(50)] {
            while !trial.part(&step) {}
        }
        prop_assert_eq!(&trial.told(), &before);
        trial.home.verify();
        let db = trial.home.core.store().snapshot().unwrap();
        prop_assert_eq!(db.storage_key_numbers(&trial.home.space).unwrap().len(), 1);
        drop(db);
        let masters = trial.masters;
        let (last, folder) = (trial.home.master, trial.home.into_folder());
        for master in masters {
            prop_assert_eq!(open(folder.path(), master).is_some(), master == last);
        }
    }
}

#[test]
fn a_backup_has_the_rows_of_every_shared_table() {
    let mut trial = Trial::new();
    for kind in 0..KINDS {
        trial.make(kind);
    }
    trial = trial.take(&Step::Protect(1));
    let rotate = store::shared::jobs::JobKind::Rotate(trial.home.space);
    trial.home.administer(AdminCommand::Begin(rotate));
    let tables = census(trial.home.core.store().snapshot().unwrap().tables()).unwrap();
    let empty = tables.iter().filter(|(class, _, rows)| *class == TableClass::Shared && *rows == 0);
    assert_eq!(Vec::from_iter(empty), Vec::<&(TableClass, &str, u64)>::new(), "nothing is made for these");
    drop(trial.restore());
}
