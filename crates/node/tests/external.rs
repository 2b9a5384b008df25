//! Events that were signed elsewhere: everything is decided when they are stored, not before.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::AskError;
use anteroom_node::commands::{
    AdminCommand, AdminResult, CommandError, NameOrId, NewThread, Submission, SubmitSigned, UserCommand,
    message_content, reaction_content, seal_for,
};
use anteroom_node::node_commands::Purge;
use common::{Home, NOW, caller, message};
use ed25519_dalek::SigningKey;
use engine::Policy;
use engine::create::{NewEvent, prepare};
use engine::reads::Reads as _;
use engine::rows::Outcome;
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::stage::ContentState;
use model::{AuxKey, EventId, Identity, Kind, Nanos, Need};

/// When events are submitted: after everything else has happened.
const LATER: Nanos = Nanos(NOW.0 + 60 * Nanos::SECOND);

/// Somebody whose key is not on the node.
struct Client<'a> {
    home: &'a Home,
    key: SigningKey,
    authority: EventId,
}

impl Client<'_> {
    fn new(home: &Home) -> Client<'_> {
        let key = SigningKey::from_bytes(&[42; 32]);
        let identity = Identity(key.verifying_key().to_bytes());
        match home.administer(AdminCommand::SetIdentityRole(home.space, identity, Some(MemberRole::Member))) {
            AdminResult::Admitted(authority) => Client { home, key, authority },
            other => panic!("{other:?}"),
        }
    }

    fn identity(&self) -> Identity {
        Identity(self.key.verifying_key().to_bytes())
    }

    /// Has an event prepared from what the node knows now, and signs it.
    fn sign(&self, kind: Kind, reference: (Role, EventId), content: Vec<u8>) -> SubmitSigned {
        let db = self.home.core.store().snapshot().unwrap();
        let seal = seal_for(&db, &self.home.space).unwrap();
        let authority = Reference { role: Role::Authority, id: self.authority };
        let references = vec![authority, Reference { role: reference.0, id: reference.1 }];
        let (space, aux, payload) = (self.home.space, AuxKey::ZERO, Payload::None);
        let draft = NewEvent { kind, space, aux, payload, references, content, seal };
        let (envelope, content) = prepare(&*db, db.policy(), NOW, self.identity(), draft).unwrap().unwrap();
        let signed = envelope.sign(&self.key).unwrap();
        SubmitSigned { space, caller: caller("bob"), signed, content }
    }

    fn message_in(&self, thread: EventId, text: &str) -> SubmitSigned {
        self.sign(Kind::Message, (Role::Thread, thread), message_content(text.into(), None).unwrap())
    }

    fn edit_of(&self, target: EventId) -> SubmitSigned {
        self.sign(Kind::Edit, (Role::Target, target), message_content("edited".into(), None).unwrap())
    }

    fn reaction_to(&self, target: EventId) -> SubmitSigned {
        self.sign(Kind::Reaction, (Role::Target, target), reaction_content("+1").unwrap())
    }
}

fn submit(home: &Home, command: &SubmitSigned) -> Result<Submission, CommandError> {
    home.core.ask(command.clone(), LATER).map_err(|why| match why {
        AskError::Refused(why) => why,
        AskError::NotRun(why) => panic!("{why}"),
    })
}

fn open_thread(home: &Home, user: &str, new: NewThread) -> EventId {
    home.ask(user, UserCommand::OpenThread(new)).unwrap().shown
}

#[test]
fn a_signed_message_is_applied_once() {
    let home = Home::new();
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread::default());
    let signed = client.message_in(thread, "from elsewhere");
    let first = submit(&home, &signed).unwrap();
    assert!(matches!(first.outcome, Outcome::Applied(_)), "{first:?}");
    let again = submit(&home, &signed).unwrap();
    assert_eq!(again.event, first.event);
    assert!(matches!(again.outcome, Outcome::Known(_)), "{again:?}");
    home.verify();
}

#[test]
fn content_that_is_too_long_to_be_inline_is_stored_with_its_event() {
    let home = Home::new();
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread::default());
    let signed = client.message_in(thread, &"long ".repeat(1000));
    let inline_max = home.core.store().policy().inline_bytes_max;
    assert!(signed.content.len() as u64 > inline_max);
    let Outcome::Applied(seq) = submit(&home, &signed).unwrap().outcome else { panic!("not applied") };
    home.core.settle(NOW).unwrap();
    let row = home.core.store().snapshot().unwrap().event(seq).unwrap().unwrap();
    assert_eq!(row.content, ContentState::Processed);
    home.verify();
}

#[test]
fn what_was_deleted_since_it_was_prepared_is_neither_edited_nor_reacted_to() {
    let home = Home::new();
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread::default());
    let posted = submit(&home, &client.message_in(thread, "hello")).unwrap().event;
    let earlier = client.edit_of(posted);
    submit(&home, &earlier).unwrap();
    let (edit, reaction) = (client.edit_of(posted), client.reaction_to(posted));
    home.make_admin("carol");
    home.ask("carol", UserCommand::DeleteMessage(message(posted))).unwrap();
    assert_eq!(submit(&home, &edit), Err(CommandError::Deleted));
    assert_eq!(submit(&home, &reaction), Err(CommandError::Deleted));
    let known = submit(&home, &earlier).expect("what is here is here");
    assert!(matches!(known.outcome, Outcome::Known(_)), "{known:?}");
    let late = client.message_in(thread, "too late");
    home.ask("alice", UserCommand::DeleteThread(NameOrId::Event(thread))).unwrap();
    assert!(matches!(submit(&home, &late), Err(CommandError::Unknown(what)) if what.contains("deleted")));
}

#[test]
fn whoever_was_removed_since_is_turned_away() {
    let home = Home::new();
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread::default());
    let signed = client.message_in(thread, "hello");
    let removal = Reference { role: Role::Target, id: client.authority };
    remove_membership(&home, removal);
    assert_eq!(submit(&home, &signed), Err(CommandError::NotInForce));
}

/// The keeper of the space ends a membership.
fn remove_membership(home: &Home, target: Reference) {
    let db = home.core.store().snapshot().unwrap();
    let kept = db.hosted_space(&home.space).unwrap().unwrap();
    let author = Box::new(SigningKey::clone(&db.signing_key(&kept.keeper).unwrap().unwrap()));
    let authority = Reference { role: Role::Authority, id: kept.founding };
    let draft = Box::new(NewEvent {
        kind: Kind::Removal,
        space: home.space,
        aux: AuxKey::ZERO,
        payload: Payload::None,
        references: vec![authority, target],
        content: Vec::new(),
        seal: seal_for(&db, &home.space).unwrap(),
    });
    drop(db);
    home.core.ask(anteroom_node::node_commands::Create { author, draft }, NOW).unwrap();
}

#[test]
fn a_private_thread_is_closed_to_those_who_do_not_take_part() {
    let home = Home::new();
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread { is_private: true, ..NewThread::default() });
    let refused = Err(CommandError::Unknown("thread or message"));
    assert_eq!(submit(&home, &client.message_in(thread, "hello")), refused);
    let participants = vec![client.identity().to_string()];
    let open = open_thread(&home, "alice", NewThread { is_private: true, participants, ..NewThread::default() });
    assert!(submit(&home, &client.message_in(open, "hello")).is_ok());
}

#[test]
fn an_event_of_another_space_is_not_taken_in() {
    let home = Home::new();
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread::default());
    let signed = SubmitSigned { space: home.found("other", 4), ..client.message_in(thread, "hello") };
    assert_eq!(submit(&home, &signed), Err(CommandError::OtherSpace));
}

#[test]
fn the_quota_of_a_user_holds_wherever_they_sign() {
    let home = Home::with_policy(Policy { user_bytes_max: Some(500), ..Policy::default() });
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread::default());
    let first = client.message_in(thread, &"x".repeat(300));
    submit(&home, &first).unwrap();
    let second = client.message_in(thread, &"y".repeat(300));
    assert_eq!(submit(&home, &second), Err(CommandError::OverQuota("user")));
    assert!(submit(&home, &first).is_ok(), "what is here already needs no room");
}

#[test]
fn the_quota_of_a_space_counts_what_was_committed_before() {
    let home = Home::with_policy(Policy { space_bytes_max: Some(1000), ..Policy::default() });
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread::default());
    let texts = ["a", "b", "c", "d"].map(|letter| client.message_in(thread, &letter.repeat(300)));
    let submitted = texts.each_ref().map(|message| submit(&home, message));
    assert!(submitted[0].is_ok() && submitted[1].is_ok(), "{submitted:?}");
    assert_eq!(submitted[3], Err(CommandError::OverQuota("space")));
    // What is purged makes room again.
    let target = submitted[0].as_ref().map(|done| done.event).unwrap();
    home.core.ask(Purge { space: home.space, targets: vec![target], audit_name: "test".into() }, LATER).unwrap();
    home.core.settle(LATER).unwrap();
    assert!(submit(&home, &texts[3]).is_ok());
}

#[test]
fn a_reader_submits_nothing() {
    let home = Home::new();
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread::default());
    let (user, random) = ("bob".to_owned(), Box::new([8; 32]));
    home.administer(AdminCommand::SetRole { space: home.space, user, role: Some(MemberRole::Reader), random });
    let refused = submit(&home, &client.message_in(thread, "hello"));
    assert!(matches!(refused, Err(CommandError::Denied(_))), "{refused:?}");
}

#[test]
fn content_that_does_not_match_is_said_to_be_missing_until_it_comes() {
    let home = Home::new();
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread::default());
    for text in ["short".to_owned(), "long ".repeat(1000)] {
        let signed = client.message_in(thread, &text);
        let need = Need::Content(home.space, signed.signed.content_hash);
        for wrong in [Vec::new(), vec![7; signed.content.len()]] {
            let said = submit(&home, &SubmitSigned { content: wrong, ..signed.clone() }).unwrap();
            assert_eq!(said.missing, Some(need.clone()), "{said:?}");
        }
        assert_eq!(submit(&home, &signed).unwrap().missing, None);
        home.core.settle(NOW).unwrap();
        assert_eq!(submit(&home, &signed).unwrap().missing, None);
    }
    home.verify();
}

/// One event of each kind that is in the space.
fn one_of_each_kind(home: &Home) -> Vec<EventId> {
    let db = home.core.store().snapshot().unwrap();
    let mut found = std::collections::BTreeMap::new();
    for seq in db.all_events().unwrap() {
        let row = db.event(seq).unwrap().unwrap();
        found.insert(row.meta.unwrap().kind, row.id);
    }
    found.into_values().collect()
}

#[test]
fn no_reference_to_anything_breaks_a_rule_of_the_store() {
    let home = Home::new();
    let client = Client::new(&home);
    let thread = open_thread(&home, "alice", NewThread::default());
    let posted = submit(&home, &client.message_in(thread, "hello")).unwrap().event;
    for signed in [client.edit_of(posted), client.reaction_to(posted), client.message_in(thread, "more")] {
        submit(&home, &signed).unwrap();
    }
    home.ask("alice", UserCommand::DeleteThread(NameOrId::Event(open_thread(&home, "alice", NewThread::default()))))
        .unwrap();
    home.ask("alice", UserCommand::Purge(home.post("alice", "gone"))).unwrap();
    let targets = one_of_each_kind(&home);
    assert!(targets.len() >= 8, "{targets:?}");
    let roles = [Role::Thread, Role::Target, Role::Attachment, Role::ReplyTo, Role::Mention];
    let model = client.message_in(thread, "any");
    let mut submitted = 0;
    for kind in Kind::ALL.iter().copied().chain([Kind::Unknown(999)]) {
        for authority in targets.iter().chain([&client.authority]) {
            for (role, other) in roles.iter().flat_map(|role| targets.iter().map(move |other| (*role, *other))) {
                let mut envelope = model.signed.envelope().clone();
                envelope.kind = kind;
                envelope.created_at = Nanos(LATER.0 - 1_000_000 + submitted);
                let mut references =
                    vec![Reference { role: Role::Authority, id: *authority }, Reference { role, id: other }];
                references.sort();
                envelope.references = references;
                let Ok(signed) = envelope.sign(&client.key) else { continue };
                submitted += 1;
                let outcome = home.core.ask(SubmitSigned { signed, ..model.clone() }, LATER);
                let is_broken = match &outcome {
                    Ok(_) => false,
                    Err(AskError::Refused(why)) => matches!(why, CommandError::Store(_)),
                    Err(AskError::NotRun(_)) => true,
                };
                assert!(!is_broken, "{kind} on {authority}, {role:?} {other}: {outcome:?}");
            }
        }
    }
    assert!(submitted > 1000, "only {submitted}");
    home.verify();
}
