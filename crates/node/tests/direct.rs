//! Who sees a thread: a direct conversation stays between its participants whatever anybody says later, and other changes
//! of visibility are announced.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::AskError;
use anteroom_node::commands::{
    AdminCommand, AdminResult, CommandError, NameOrId, NewThread, SubmitSigned, ThreadChange, UserCommand, find,
    participants, seal_for, thread_visibility,
};
use anteroom_node::node_commands::Arrive;
use common::{Answer, Home, NOW, caller};
use ed25519_dalek::SigningKey;
use engine::chains;
use engine::create::{NewEvent, Seal, prepare};
use engine::reads::Reads as _;
use engine::rows::{Origin, Outcome, ThreadField};
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::{Blob, EventId, Identity, Kind, Nanos, Stamp, body};
use serde_json::json;
use store::views::messages::ShownContent;

const LATER: Nanos = Nanos(NOW.0 + 60 * Nanos::SECOND);

fn open(home: &Home, user: &str, new: NewThread) -> EventId {
    home.ask(user, UserCommand::OpenThread(new)).unwrap().shown
}

fn direct(home: &Home) -> EventId {
    home.post("carol", "everybody is here");
    let new = NewThread { participants: vec!["bob".into()], is_direct: true, ..NewThread::default() };
    open(home, "alice", new)
}

fn change(home: &Home, user: &str, thread: EventId, change: ThreadChange) -> Answer {
    home.ask(user, UserCommand::UpdateThread(NameOrId::Event(thread), change))
}

fn sees(home: &Home, user: &str, thread: EventId) -> bool {
    let db = home.core.store().snapshot().unwrap();
    let no = db.space_no(&home.space).unwrap().unwrap();
    let (_, seq, meta) = find(&db, no, &NameOrId::Event(thread), Kind::Thread).unwrap().unwrap();
    let identity = db.user(&home.space, user).unwrap().unwrap().identity;
    !thread_visibility(&db, seq, &meta, Some(&caller(user)), Some(&identity)).unwrap().is_closed
}

#[test]
fn a_direct_conversation_is_seen_by_its_two_and_changed_by_nobody() {
    let home = Home::new();
    let thread = direct(&home);
    let seen = |home: &Home| ["alice", "bob", "carol"].map(|user| sees(home, user, thread));
    assert_eq!(seen(&home), [true, true, false]);
    let public = ThreadChange { is_private: Some(false), ..ThreadChange::default() };
    let with_carol = ThreadChange { participants: Some(vec!["carol".into()]), ..ThreadChange::default() };
    home.make_admin("bob");
    for (user, wish) in [("alice", &public), ("alice", &with_carol), ("bob", &public)] {
        let answer = change(&home, user, thread, wish.clone());
        assert!(matches!(answer, Err(AskError::Refused(CommandError::Direct))), "{answer:?}");
    }
    assert_eq!(seen(&home), [true, true, false]);
    let titled = ThreadChange { fields: vec![(ThreadField::Title, "us".into())], ..ThreadChange::default() };
    change(&home, "alice", thread, titled).expect("its title may change");
}

#[test]
fn too_many_for_a_direct_conversation_are_told_so() {
    let home = Home::new();
    let talk = |count: usize| {
        let participants = (0..count).map(|number| format!("user-{number}")).collect();
        home.ask("alice", UserCommand::OpenThread(NewThread { participants, is_direct: true, ..NewThread::default() }))
    };
    assert!(matches!(talk(61), Err(AskError::Refused(CommandError::TooManyInDirect(60)))));
    talk(60).expect("as many as there is room for");
}

#[test]
fn what_was_signed_elsewhere_opens_no_direct_conversation() {
    let home = Home::new();
    let thread = direct(&home);
    let key = SigningKey::from_bytes(&[42; 32]);
    let identity = Identity(key.verifying_key().to_bytes());
    let admitted = home.administer(AdminCommand::SetIdentityRole(home.space, identity, Some(MemberRole::Admin)));
    let AdminResult::Admitted(authority) = admitted else { panic!("{admitted:?}") };
    let carol = home.core.store().snapshot().unwrap().user(&home.space, "carol").unwrap().unwrap().identity;
    let said = json!({ "participants": [carol.to_string()], "private": false });
    let signed = {
        let db = home.core.store().snapshot().unwrap();
        let references =
            vec![Reference { role: Role::Authority, id: authority }, Reference { role: Role::Thread, id: thread }];
        let draft = NewEvent {
            kind: Kind::ThreadUpdate,
            space: home.space,
            aux: ThreadField::Participants.aux(),
            payload: Payload::None,
            references,
            content: body::encode(&said).unwrap(),
            seal: seal_for(&db, &home.space).unwrap(),
        };
        let (envelope, content) = prepare(&*db, db.policy(), NOW, identity, draft).unwrap().unwrap();
        SubmitSigned { space: home.space, caller: caller("bob"), signed: envelope.sign(&key).unwrap(), content }
    };
    // The door says that there is no such thread to somebody who does not take part; other nodes may not.
    let answer = home.core.ask(signed.clone(), LATER);
    assert!(matches!(answer, Err(AskError::Refused(CommandError::Unknown(_)))), "{answer:?}");
    let seal = seal_for(&*home.core.store().snapshot().unwrap(), &home.space).unwrap();
    let Seal::Key(space_key) = seal else { panic!("the space is sealed") };
    let (blob, keys) = (Blob::seal(&signed.signed, &space_key).unwrap(), home.core.store().keys().clone());
    let policy = home.core.store().policy();
    let arrival = chains::receive_blob(&*keys, policy, blob.bytes().to_vec(), Some(signed.content), Origin::Import);
    let (_, outcome) = home.core.ask(Arrive(Box::new(arrival.unwrap())), LATER).unwrap();
    assert!(matches!(outcome, Outcome::Applied(_)), "{outcome:?}");
    home.core.settle(LATER).unwrap();
    assert_eq!(["alice", "bob", "carol"].map(|user| sees(&home, user, thread)), [true, true, false]);
    let db = home.core.store().snapshot().unwrap();
    let (no, seq) = (db.space_no(&home.space).unwrap().unwrap(), db.seq(&thread).unwrap().unwrap());
    let listed = participants(&db, seq, no).unwrap();
    assert!(listed.len() == 2 && !listed.contains(&carol), "whoever follows it live is one of the two: {listed:?}");
    drop(db);
    home.verify();
}

#[test]
fn other_changes_of_visibility_are_announced_and_in_the_audit_log() {
    let home = Home::new();
    home.post("carol", "everybody is here");
    let new = NewThread { participants: vec!["bob".into()], is_private: true, ..NewThread::default() };
    let thread = open(&home, "alice", new);
    assert!(!sees(&home, "carol", thread));
    let set = |is_private| {
        change(&home, "alice", thread, ThreadChange { is_private: Some(is_private), ..ThreadChange::default() })
            .unwrap();
    };
    set(true);
    set(false);
    assert!(sees(&home, "carol", thread));
    set(true);
    assert!(!sees(&home, "carol", thread));
    let db = home.core.store().snapshot().unwrap();
    let seq = db.seq(&thread).unwrap().unwrap();
    let said = db.timeline(seq, Stamp::LAST, 10).unwrap();
    let texts: Vec<String> = said
        .iter()
        .map(|message| match &message.content {
            ShownContent::Here(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(texts.len(), 2, "what does not change is not announced: {texts:?}");
    assert!(texts[0].contains("visible to everybody") && texts[1].contains("private"), "{texts:?}");
    let log: Vec<String> = db.audit_log(u64::MAX, 10).unwrap().into_iter().map(|(_, entry)| entry.what).collect();
    assert_eq!(log[..2], ["make thread private", "make thread public"]);
}
