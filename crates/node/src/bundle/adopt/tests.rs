//! A space is taken over by its owner only, and once.

use super::*;
use crate::WriterCore;
use crate::bundle::secrets::each_part;
use crate::commands::{AdminCommand, AdminRequest, AdminResult};
use crate::writer::node_commands::{Arrive, LearnSpaceKey};
use engine::rows::Origin;
use model::payload::MemberRole;
use model::{Nanos, Seq};
use std::sync::Arc;
use store::{FolderDisk, KeySource, MasterKey, Store, StoreOptions};

const NOW: Nanos = Nanos(1_800_000_000 * Nanos::SECOND);

fn open(folder: &tempfile::TempDir, seed: u8) -> WriterCore {
    let disk = Arc::new(FolderDisk::new(folder.path()).expect("a folder"));
    let random = KeySource::Seed(u64::from(seed));
    let options = StoreOptions { cache_bytes: 4 << 20, reserve_bytes: 0, random, ..StoreOptions::default() };
    WriterCore::new(Store::open(disk, MasterKey::new(&[seed; 32]), options).expect("it opens"))
}

fn administer(core: &WriterCore, what: AdminCommand) -> AdminResult {
    core.ask(AdminRequest::by("a test", what), NOW).expect("done")
}

fn found(core: &WriterCore, random: u8) -> SpaceId {
    let (name, random) = ("home".to_owned(), Box::new([random; 80]));
    match administer(core, AdminCommand::FoundSpace { name, sealed: true, random }) {
        AdminResult::Founded(space) => space,
        other => panic!("{other:?}"),
    }
}

/// A space with a user, as a bundle tells it, and a node that has its events and keys.
fn scene() -> (SpaceSecrets, WriterCore, [tempfile::TempDir; 2]) {
    scene_with(&[Some(MemberRole::Member)])
}

/// The same, with a user who was given these roles.
fn scene_with(roles: &[Option<MemberRole>]) -> (SpaceSecrets, WriterCore, [tempfile::TempDir; 2]) {
    let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
    let (here, there) = (open(&folders[0], 1), open(&folders[1], 2));
    let space = found(&here, 3);
    for role in roles {
        let (user, role, random) = ("alice".to_owned(), *role, Box::new([9; 32]));
        administer(&here, AdminCommand::SetRole { space, user, role, random });
    }
    let db = here.store().snapshot().expect("a snapshot");
    let mut parts = Vec::new();
    let take = &mut |part| {
        parts.push(part);
        Ok::<(), StoreError>(())
    };
    each_part(&db, &space, take).expect("read");
    let secrets = SpaceSecrets::join(parts).pop().expect("keys");
    there.ask(LearnSpaceKey(space, secrets.keys[0]), NOW).expect("learned");
    for seq in db.events_after(Seq(0), 99).expect("read") {
        let kept = db.kept(seq).expect("read").expect("an event");
        let store = there.store();
        let arrival = engine::chains::receive_blob(
            &**store.keys(),
            store.policy(),
            kept.blob.bytes().to_vec(),
            kept.inline,
            Origin::Import,
        );
        there.ask(Arrive(Box::new(arrival.expect("fit"))), NOW).expect("stored");
    }
    (secrets, there, folders)
}

fn adopt(core: &WriterCore, secrets: &SpaceSecrets) -> Adopted {
    core.ask(AdoptSpace { secrets: secrets.clone(), signing_secret: [4; 32] }, NOW).expect("done")
}

#[test]
fn a_space_is_taken_over_once_under_a_free_name_with_its_users_and_its_key() {
    let (secrets, core, _folders) = scene();
    found(&core, 5);
    assert!(core.store().snapshot().expect("read").current_space_key(&secrets.space).expect("read").is_none());
    assert_eq!(adopt(&core, &secrets), Adopted { is_new: true, users: 1 });
    let db = core.store().snapshot().expect("read");
    let hosted = db.hosted_space(&secrets.space).expect("read").expect("hosted");
    assert_eq!((hosted.name.as_str(), hosted.sealed), ("home-2", true));
    let current = db.current_space_key(&secrets.space).expect("read").expect("a key");
    assert_eq!(Some(current.secret()), secrets.keys.last());
    let alice = db.user(&secrets.space, "alice").expect("read").expect("alice");
    assert!(db.signing_key(&alice.identity).expect("read").is_some());
    drop(db);
    // Whoever was erased here meanwhile does not come back with another import.
    let random = Box::new([0; 32]);
    let (space, user) = (secrets.space, "alice".to_owned());
    administer(&core, AdminCommand::SetRole { space, user, role: None, random });
    assert_eq!(adopt(&core, &secrets), Adopted::default());
    assert_eq!(core.store().verify(NOW).expect("read").problems, Vec::<String>::new());
}

#[test]
fn users_who_come_later_are_taken_over_later() {
    let (secrets, core, _folders) = scene();
    let mut first = secrets.clone();
    first.users.clear();
    assert_eq!(adopt(&core, &first), Adopted { is_new: true, users: 0 });
    assert_eq!(adopt(&core, &secrets), Adopted { is_new: false, users: 1 });
    assert_eq!(adopt(&core, &secrets), Adopted::default(), "once");
}

#[test]
fn whoever_was_removed_is_not_taken_over() {
    let (secrets, core, _folders) = scene_with(&[Some(MemberRole::Member), None]);
    assert_eq!(secrets.users.len(), 1);
    assert_eq!(adopt(&core, &secrets), Adopted { is_new: true, users: 0 });
}

#[test]
fn nothing_is_taken_over_without_the_key_of_whoever_founded_it() {
    let (secrets, core, _folders) = scene();
    let keeper = secrets.hosted.as_ref().expect("hosted").keeper;
    let mut without = secrets.clone();
    without.custodians.retain(|(identity, _)| *identity != keeper);
    let mut wrong = secrets.clone();
    wrong.custodians.iter_mut().for_each(|(_, secret)| secret[0] ^= 1);
    let mut other_founding = secrets.clone();
    let membership = secrets.users[0].membership;
    other_founding.hosted.as_mut().expect("hosted").founding = membership;
    let mut unknown_founding = secrets.clone();
    unknown_founding.hosted.as_mut().expect("hosted").founding = EventId([8; 16]);
    let mut other_space = secrets.clone();
    other_space.space = SpaceId([8; 16]);
    let mut no_key = secrets.clone();
    no_key.keys.clear();
    let mut bad_name = secrets.clone();
    bad_name.hosted.as_mut().expect("hosted").name = "\u{202e}\n".to_owned();
    let (eve, her_key) = (SigningKey::from_bytes(&[6; 32]), [6; 32]);
    let eve = Identity(eve.verifying_key().to_bytes());
    let mut usurped = secrets.clone();
    usurped.custodians.push((eve, her_key));
    usurped.hosted.as_mut().expect("hosted").keeper = eve;
    let cases = [without, wrong, other_founding, unknown_founding, other_space, no_key, bad_name, usurped];
    for (number, case) in cases.iter().enumerate() {
        assert_eq!(adopt(&core, case), Adopted::default(), "case {number}");
        assert!(!core.store().snapshot().expect("read").is_hosted(&secrets.space), "case {number}");
    }
}

#[test]
fn a_user_is_taken_over_with_their_own_key_and_membership_only() {
    let (secrets, core, _folders) = scene();
    let alice = secrets.users[0].clone();
    let key_of = |number: u8| Identity(SigningKey::from_bytes(&[number; 32]).verifying_key().to_bytes());
    let mut case = secrets.clone();
    case.custodians.push((key_of(6), [6; 32]));
    case.users = vec![
        // Without a key, with a key but another's membership, with a name that cannot be, and twice.
        User { id: "bob".into(), identity: key_of(5), ..alice.clone() },
        User { id: "eve".into(), identity: key_of(6), ..alice.clone() },
        User { id: "a\nb".into(), ..alice.clone() },
        alice.clone(),
        User { id: "alias".into(), ..alice.clone() },
    ];
    assert_eq!(adopt(&core, &case), Adopted { is_new: true, users: 1 });
    let db = core.store().snapshot().expect("read");
    let names = db.users(&secrets.space, None, 9).expect("read").into_iter().map(|(_, user)| user.id);
    assert_eq!(names.collect::<Vec<_>>(), ["alice"]);
    assert!(db.signing_key(&key_of(6)).expect("read").is_none());
}
