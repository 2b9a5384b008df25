//! Shared rows: no update is lost, a stale one is named, and every prefix of a write of several rows is sound.

use crate::database::open::{Store, StoreOptions};
use crate::keys::*;
use crate::shared::accounts::{Account, Invitation, Session, session_id};
use crate::shared::api_keys::{ApiKey, IdempotencyRecord, RequestOutcome, SigningSecret};
use crate::shared::jobs::JobKind;
use crate::shared::moderation::{BlockKind, UserReport};
use crate::shared::retention::Retention;
use crate::shared::rows::{RowVersion, SharedWriteError, Versioned};
use crate::shared::users::{HostedSpace, User};
use crate::shared::webhooks::{Webhook, WebhookProgress};
use crate::shared::{Custodians, ReportNumbers, Sessions, Users, Webhooks};
use crate::tables::{TableClass, census};
use crate::{Batch, FolderDisk, KeySource, MasterKey, Protection};
use engine::StoreError;
use engine::access::KeyRole;
use engine::reads::StoreResult;
use model::payload::MemberRole;
use model::{EventId, Identity, Nanos, Position, SpaceId};
use proptest::prelude::*;
use std::sync::Arc;

const NOW: Nanos = Nanos(1_700_000_000_000_000_000);
const SPACE: SpaceId = SpaceId([1; 16]);
const KEEPER: Identity = Identity([9; 32]);

fn open(folder: &std::path::Path) -> Store {
    let disk = Arc::new(FolderDisk::new(folder).expect("a folder"));
    let options = StoreOptions { cache_bytes: 1 << 20, random: KeySource::Seed(1), ..StoreOptions::default() };
    Store::open(disk, MasterKey::new(&[7; 32]), options).expect("opened")
}

fn counter() -> SpaceIdKey {
    SpaceIdKey::new(SPACE)
}

/// Adds one to what was read; says whether that was still there.
fn add_one(batch: &mut Batch<'_>, read: Option<&Versioned<u64>>) -> StoreResult<bool> {
    let expected = read.map(|row| row.version);
    match batch.put_shared::<ReportNumbers>(&counter(), expected, &(read.map_or(0, |row| row.value) + 1)) {
        Ok(version) => {
            assert!(expected.is_none_or(|expected| version > expected));
            Ok(true)
        }
        Err(SharedWriteError::Stale { expected: said, found, .. }) => {
            assert!(said == expected && found != expected);
            Ok(false)
        }
        Err(SharedWriteError::Store(error)) => Err(error),
    }
}

#[test]
fn an_account_is_found_by_what_a_passkey_calls_it() {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(home.path());
    let account = Account::new("alice".to_owned(), NOW);
    store.write(NOW, |batch| batch.keep_account(&SPACE, &account)).expect("written");
    let db = store.snapshot().expect("a snapshot");
    let handle = db.handle(&SPACE, "alice");
    assert_eq!(db.account_by_handle(&SPACE, &handle).expect("read").map(|found| found.user), Some("alice".to_owned()));
    assert_eq!(db.account_by_handle(&SPACE, &db.handle(&SPACE, "bob")).expect("read").map(|found| found.user), None);
    assert_eq!(db.account_by_handle(&SpaceId([2; 16]), &handle).expect("read").map(|found| found.user), None);
}

#[test]
fn the_largest_tables_are_told_first() {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(home.path());
    let account = Account::new("alice".repeat(20), NOW);
    store.write(NOW, |batch| batch.keep_account(&SPACE, &account)).expect("written");
    let sizes: Vec<u64> =
        store.size().expect("a size").tables.iter().map(|table| table.stored_bytes + table.unfilled_bytes).collect();
    assert!(sizes.len() > 10 && sizes.is_sorted_by(|one, next| one >= next) && sizes[0] > 0, "{sizes:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn writers_that_read_at_different_times_lose_no_update(steps in prop::collection::vec((0..4usize, 0..5u8), 1..60)) {
        let home = tempfile::tempdir().expect("a folder");
        let store = open(home.path());
        let counted = store.write(NOW, |batch| {
            let mut read: [Option<Versioned<u64>>; 4] = Default::default();
            let mut expected = 0;
            for (writer, step) in &steps {
                match step {
                    0 | 1 => read[*writer] = batch.db.shared_row::<ReportNumbers>(&counter())?,
                    // Somebody else begins anew: versions of before are not good any more.
                    2 if batch.clear_shared::<ReportNumbers>(&counter())? => expected = 0,
                    _ => expected += u64::from(add_one(batch, read[*writer].as_ref())?),
                }
                assert_eq!(batch.db.shared::<ReportNumbers>(&counter())?.unwrap_or(0), expected);
            }
            Ok(expected)
        });
        let kept = store.snapshot().and_then(|db| db.shared::<ReportNumbers>(&counter())).expect("read");
        prop_assert_eq!(kept.unwrap_or(0), counted.expect("written"));
    }
}

#[test]
fn threads_that_retry_when_stale_lose_no_update() {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(home.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let is_added = || {
                        let read = store.snapshot()?.shared_row::<ReportNumbers>(&counter())?;
                        store.write(NOW, |batch| add_one(batch, read.as_ref()))
                    };
                    while !is_added().expect("written") {}
                }
            });
        }
    });
    let counted = store.snapshot().and_then(|db| db.shared::<ReportNumbers>(&counter())).expect("read");
    assert_eq!(counted, Some(40));
}

#[test]
fn a_row_that_was_made_again_is_not_the_one_before() {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(home.path());
    let put = |batch: &mut Batch<'_>| {
        batch.put_shared::<ReportNumbers>(&counter(), None, &1).map_err(SharedWriteError::within_batch)
    };
    let first = store.write(NOW, put).expect("written");
    let again = |batch: &mut Batch<'_>| -> StoreResult<RowVersion> {
        batch.delete_shared::<ReportNumbers>(&counter(), first).map_err(SharedWriteError::within_batch)?;
        put(batch)
    };
    let second = store.write(NOW, again).expect("written");
    assert!(second > first);
    let stale = store.write(NOW, |batch| Ok(batch.delete_shared::<ReportNumbers>(&counter(), first)));
    let named = matches!(stale, Ok(Err(SharedWriteError::Stale { found: Some(found), .. })) if found == second);
    assert!(named);
}

fn user(name: &str, byte: u8) -> User {
    let (identity, membership) = (Identity([byte; 32]), EventId([byte; 16]));
    User { id: name.into(), identity, membership, since: NOW, is_gone: false }
}

fn report(by: u8) -> UserReport {
    let reporter = Identity([by; 32]);
    UserReport { reporter, message: EventId([5; 16]), reason: "rude".into(), at: NOW, settled: None }
}

fn webhook(at: Position) -> Webhook {
    let progress = WebhookProgress::told_up_to(at);
    let url = "https://example.org/".into();
    Webhook { url, secret: [6; 32], previous: None, kinds: Vec::new(), created_at: NOW, progress }
}

/// A hosted space with two users, who have everything that users have, and everything that a space has.
fn inhabit(batch: &mut Batch<'_>) -> StoreResult<()> {
    batch.add_custodian(&KEEPER, &[9; 32])?;
    let kept = HostedSpace { name: "home".into(), keeper: KEEPER, founding: EventId([9; 16]), sealed: false };
    batch.host_space(&SPACE, &kept)?;
    batch.keep_api_key([3; 8], &ApiKey::new(KeyRole::Admin, SPACE, [4; 32], "a key".into(), NOW))?;
    batch.keep_signing_key(&SPACE, 1, &SigningSecret { secret: [1; 32], created_at: NOW, ends_at: None })?;
    batch.set_protection(&SPACE, &Protection::Nothing)?;
    let retention = Retention { age_seconds: Some(9), count: None, deleted_seconds: None };
    batch.set_retention(&SPACE, None, Some(&retention))?;
    batch.set_retention(&SPACE, Some(&EventId([4; 16])), Some(&retention))?;
    batch.keep_webhook(&SPACE, &[6; 8], &webhook(batch.db.position()?))?;
    for (name, byte) in [("ann", 1), ("bob", 2)] {
        batch.add_custodian(&Identity([byte; 32]), &[byte; 32])?;
        batch.keep_user(&SPACE, &user(name, byte))?;
        batch.keep_account(&SPACE, &Account::new(name.into(), NOW))?;
        for secret in [[byte; 32], [byte + 10; 32]] {
            let id = session_id(&batch.db.session_prefix(&SPACE, name), &secret);
            let session = Session { user: name.into(), is_operator: false, since: NOW, seen: NOW, agent: "x".into() };
            batch.keep_session(&id, &session)?;
        }
        let invitation = Invitation::new(MemberRole::Member, name.into(), String::new(), NOW, NOW.plus(9), 1);
        batch.keep_invitation(&SPACE, &[byte; 32], &invitation)?;
        batch.add_report(&SPACE, &report(byte))?;
        batch.set_block(&SPACE, &Identity([byte; 32]), &KEEPER, Some(BlockKind::Mute))?;
    }
    Ok(())
}

/// What must hold after any prefix of a write.
fn assert_sound(batch: &Batch<'_>, what: &str) -> StoreResult<()> {
    let db = &batch.db;
    assert_eq!(db.shared_problems()?, Vec::<String>::new(), "{what}");
    // There or not, whether its keys were destroyed or not.
    let is_hosted = db.is_hosted(&SPACE);
    for (name, byte) in [("ann", 1), ("bob", 2), ("cid", 3)] {
        let identity = Identity([byte; 32]);
        let account = db.account(&SPACE, name)?;
        assert!(account.is_some() || db.sessions_of(&SPACE, name)?.is_empty(), "{what}: a way in without its account");
        let custodian = db.shared::<Custodians>(&IdentityKey::new(identity))?;
        let is_gone = !is_hosted || db.user(&SPACE, name)?.is_none();
        assert!(custodian.is_some() || is_gone, "{what}: a user who cannot act");
    }
    assert!(is_hosted || db.api_keys()?.is_empty(), "{what}: a key to a space that is not there");
    let keeper = db.shared::<Custodians>(&IdentityKey::new(KEEPER))?;
    assert!(keeper.is_some() || !is_hosted, "{what}: a space without its keeper");
    Ok(())
}

type Write = fn(&mut Batch<'_>) -> StoreResult<()>;

#[test]
fn every_prefix_of_a_write_of_several_rows_is_sound() {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(home.path());
    store.write(NOW, inhabit).expect("written");
    let writes: [(&str, Write); 6] = [
        ("a new user", |batch| {
            batch.add_custodian(&Identity([3; 32]), &[3; 32])?;
            batch.keep_user(&SPACE, &user("cid", 3))
        }),
        ("a new report", |batch| batch.add_report(&SPACE, &report(1)).map(drop)),
        ("forgetting an account", |batch| batch.forget_account(&SPACE, "ann")),
        ("forgetting a user", |batch| batch.forget_user(&SPACE, &user("ann", 1))),
        ("ending a space", |batch| batch.end_space(&SPACE)),
        ("forgetting the rest of a space", |batch| {
            let left = batch.shared_writes_left.take();
            batch.end_space(&SPACE)?;
            batch.shared_writes_left = left;
            while batch.shared_writes_left != Some(0) && batch.forget_some(&SPACE, 1)? > 0 {}
            Ok(())
        }),
    ];
    for (what, write) in writes {
        let mut cuts = 0;
        loop {
            let mut is_whole = false;
            let cut_off: StoreResult<()> = store.write(NOW, |batch| {
                batch.shared_writes_left = Some(cuts);
                write(batch)?;
                is_whole = batch.shared_writes_left != Some(0);
                assert_sound(batch, &format!("{what}, cut after {cuts} rows"))?;
                Err(StoreError::Full)
            });
            assert!(matches!(cut_off, Err(StoreError::Full)), "{what}: {cut_off:?}");
            cuts += 1;
            if is_whole {
                break;
            }
        }
        assert!(cuts > 2, "{what} is a write of several rows");
    }
}

#[test]
fn putting_to_rest_anew_keeps_versions() {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(home.path());
    store.write(NOW, inhabit).expect("written");
    let key = || {
        let db = store.snapshot().expect("a snapshot");
        let user = db.shared.user_key(&SPACE, "ann");
        SessionKey::new(SPACE, user.user(), [1; 16])
    };
    let version = |store: &Store| store.snapshot().and_then(|db| db.shared_version::<Sessions>(&key())).expect("read");
    let before = version(&store);
    assert!(before.is_some());
    while !store.write(NOW, |batch| batch.rotate(&SPACE, 3)).expect("written").is_done {}
    assert_eq!(version(&store), before);
    assert_eq!(store.snapshot().and_then(|db| db.storage_key_numbers(&SPACE)).expect("read"), [2]);
    let read = store.snapshot().and_then(|db| db.sessions_of(&SPACE, "ann")).expect("read");
    assert_eq!(read.len(), 2);
}

#[test]
fn nothing_of_an_ended_space_and_its_users_is_left() {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(home.path());
    let shared = |store: &Store| {
        let db = store.snapshot().expect("a snapshot");
        let rows = census(&db.tables).expect("counted").into_iter();
        let rows = rows.filter(|(class, name, _)| *class == TableClass::Shared || *name == "webhook_progress_v1");
        rows.filter(|(_, _, count)| *count > 0).map(|(_, name, _)| name).collect::<Vec<_>>()
    };
    store.write(NOW, inhabit).expect("written");
    // Everything but what is not of a space: requests, jobs and the audit log.
    assert_eq!(shared(&store).len(), 17, "{:?}", shared(&store));
    store.write(NOW, |batch| batch.end_space(&SPACE)).expect("written");
    while store.write(NOW, |batch| batch.forget_some(&SPACE, 2)).expect("written") > 0 {}
    assert_eq!(shared(&store), Vec::<&str>::new());
}

#[test]
fn telling_a_webhook_changes_no_shared_row() {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(home.path());
    store.write(NOW, inhabit).expect("written");
    let version = |store: &Store| {
        let key = WebhookKey::new(SPACE, [6; 8]);
        store.snapshot().and_then(|db| db.shared_version::<Webhooks>(&key)).expect("read")
    };
    let before = version(&store);
    let further = Position { epoch: 1, number: 77 };
    store.write(NOW, |batch| batch.keep_webhook(&SPACE, &[6; 8], &webhook(further))).expect("written");
    assert_eq!(version(&store), before);
    let other = Webhook { url: "https://example.net/".into(), ..webhook(further) };
    store.write(NOW, |batch| batch.keep_webhook(&SPACE, &[6; 8], &other)).expect("written");
    assert!(version(&store) > before);
}

#[test]
fn verify_names_what_does_not_fit_between_shared_rows() {
    let breaks: [(&str, Write); 6] = [
        ("the name of a user who is not there", |batch| {
            let key = batch.shared.user_key(&SPACE, "ann");
            batch.clear_shared::<Users>(&key).map(drop)
        }),
        ("a number that was not given", |batch| batch.set_shared::<ReportNumbers>(&counter(), &1)),
        ("is wrongly listed", |batch| {
            let number = batch.begin_job(JobKind::Encrypt, "a test")?;
            batch.db.tables.open_jobs.remove(JobNo::new(number)).map(drop)
        }),
        ("is listed but not there", |batch| {
            batch.touch();
            batch.db.tables.open_jobs.insert(JobNo::new(99), ())
        }),
        ("not found by its age", |batch| {
            let asked = IdempotencyRecord { fingerprint: [1; 32], at: NOW, outcome: RequestOutcome::Done };
            batch.keep_asked([2; 32], &asked)?;
            batch.db.tables.idempotency_order.remove(RequestOrderKey::new(NOW, [2; 32])).map(drop)
        }),
        ("the progress of a webhook", |batch| {
            batch.clear_shared::<Webhooks>(&WebhookKey::new(SPACE, [6; 8])).map(drop)
        }),
    ];
    for (what, write) in breaks {
        let home = tempfile::tempdir().expect("a folder");
        let store = open(home.path());
        store.write(NOW, inhabit).expect("written");
        assert_eq!(store.verify(NOW).expect("checked").problems, Vec::<String>::new());
        store.write(NOW, write).expect("written");
        let problems = store.verify(NOW).expect("checked").problems;
        assert!(problems.len() == 1 && problems[0].contains(what), "{what}: {problems:?}");
    }
}
