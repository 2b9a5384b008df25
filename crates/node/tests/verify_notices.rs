//! `verify` notices a row that is gone, and one that says what another should, in every table that it speaks for.
#![cfg(feature = "simulation")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::WriterCore;
use anteroom_node::commands::accounts::{AccountCommand, AccountRequest, Credential, NewSession};
use anteroom_node::commands::{
    AdminCommand, Caller, CallerKind, IdempotencyKey, NameOrId, NewMessage, NewThread, UserCommand, WebhookCommand,
    message_content,
};
use anteroom_node::node_commands::{Arrive, Purge};
use common::{Home, NOW, caller, edit, react};
use engine::access::KeyRole;
use engine::reads::StoreError;
use engine::rows::Origin;
use model::blob::Blob;
use model::payload::MemberRole;
use model::{Envelope, EventId, Identity, Kind, Nanos, Reference, Role};
use std::collections::{BTreeMap, BTreeSet};
use store::shared::accounts::Invitation;
use store::shared::jobs::JobKind;
use store::shared::moderation::{BlockKind, UserReport};
use store::tables::export_rows;

/// Bytes of a row's checksum.
const CHECKSUM: usize = 4;

/// Tables of which a row may be gone without a notice, and why.
const FREE_TO_GO: [(&str, &str); 21] = [
    ("about_v1", "what is absent has a meaning"),
    ("accounts_v1", "they can be ended"),
    ("arrivals_v1", "a chart"),
    ("audit_v1", "old entries go"),
    ("blocks_v1", "they can be lifted"),
    ("counts_v1", "what is absent counts zero"),
    ("current_keys_v1", "nothing is sealed under an older key for lack of it, since none is chosen"),
    ("custodians_v1", "a user may have left their key"),
    ("hosted_spaces_v1", "a space may be kept elsewhere"),
    ("idempotency_v1", "old ones go"),
    ("invitations_v1", "they can be taken back"),
    ("jobs_v1", "old ones go"),
    ("joined_v1", "a space may have been left"),
    ("journal_v1", "old entries go"),
    ("keys_v1", "read when the folder is opened"),
    ("reports_v1", "a number may have been given to none, by a write that was cut off"),
    ("sessions_v1", "they can be ended"),
    ("signing_keys_v1", "they can be ended"),
    ("storage_keys_v1", "read when the folder is opened"),
    ("user_names_v1", "a write of both that was cut off leaves a user without"),
    ("webhook_progress_v1", "a webhook that has not begun has none"),
];
/// Tables of which a row may say what another says, and why.
const FREE_TO_SAY: [(&str, &str); 4] = [
    ("about_v1", "each is of its own kind"),
    ("blocks_v1", "all say one of two words"),
    ("idempotency_v1", "nothing else knows what was answered"),
    ("storage_keys_v1", "read when the folder is opened"),
];

/// How a problem begins that ended the look.
const ENDED: &str = "ended: ";
/// Tables of which one wrong row ends it.
const MAY_END: [&str; 2] = ["events_v1", "space_ids_v1"];

/// An event of somebody's own, which answers something that is not here, if it answers anything.
fn arrive(core: &WriterCore, number: u8, answers: Option<EventId>) {
    let author = ed25519_dalek::SigningKey::from_bytes(&[number; 32]);
    let identity = Identity(author.verifying_key().to_bytes());
    let space = model::crypto::public_space(&identity);
    let kind = if answers.is_some() { Kind::Edit } else { Kind::Post };
    let mut envelope = Envelope::new(kind, Nanos(NOW.0 - 1_000_000 + u64::from(number)), space, identity);
    envelope.references = answers.map(|id| Reference { role: Role::Target, id }).into_iter().collect();
    let content = br#"{"text":"hi"}"#.to_vec();
    envelope.content_len = content.len() as u64;
    envelope.content_hash = model::crypto::content_hash(&content);
    let blob = Blob::plain(&envelope.sign(&author).unwrap()).unwrap().bytes().to_vec();
    let store = core.store();
    let arrival = engine::chains::receive_blob(&**store.keys(), store.policy(), blob, Some(content), Origin::Import);
    core.ask(Arrive(Box::new(arrival.unwrap())), NOW).unwrap();
}

/// A folder with something of everything.
fn fill() -> Home {
    let policy = engine::Policy { row_content_bytes_max: 2000, ..engine::Policy::default() };
    let home = Home::with_policy(policy);
    home.make_admin("alice");
    for number in 0..6 {
        let size = [20, 1500, 5000][number % 3];
        let id = home.post("ada", &format!("{number} {}", "x".repeat(size)));
        home.ask("bob", react(id)).unwrap();
        home.ask("ada", edit(id)).unwrap();
        if number > 3 {
            let (space, audit_name) = (home.space, "test".to_owned());
            home.core.ask(Purge { space, targets: vec![id], audit_name }, NOW).unwrap();
        }
        let content = message_content("an answer".into(), None).unwrap();
        let (thread, mentions) = (Some(NameOrId::Chosen("lobby".to_owned())), vec!["bob".to_owned()]);
        let chosen = Some(format!("answer-{number}"));
        let reply_to = (number < 4).then_some(NameOrId::Event(id));
        let answer = NewMessage { thread, chosen, content, reply_to, mentions, attachments: vec![] };
        home.ask("alice", UserCommand::Post(answer)).unwrap();
        let hook = WebhookCommand::Add { url: "https://x".into(), secret: Box::new([1; 32]), kinds: vec![] };
        home.administer(AdminCommand::Webhook(home.space, [number as u8; 8], hook));
        let direct = NewThread {
            participants: vec![format!("friend-{number}")],
            is_private: true,
            is_direct: true,
            ..NewThread::default()
        };
        home.ask("alice", UserCommand::OpenThread(direct)).unwrap();
    }
    for number in 1..5 {
        arrive(&home.core, number, Some(EventId([number; 16])));
        arrive(&home.core, 100 + number, None);
    }
    add_people(&home);
    home.administer(AdminCommand::Begin(JobKind::Encrypt));
    home.core.settle(NOW).unwrap();
    home
}

/// Accounts with sessions and invitations, reports, blocks, rules of retention, API keys and requests that were answered.
fn add_people(home: &Home) {
    let (space, db) = (home.space, home.core.store().snapshot().unwrap());
    let reporter = db.user(&space, "bob").unwrap().unwrap().identity;
    for number in 1..4_u8 {
        let secret = [number; 32];
        let by = Caller { kind: CallerKind::Key(KeyRole::Admin), ..caller("alice") };
        let ends_at = NOW.plus(Nanos::SECOND);
        let link = Invitation::new(MemberRole::Member, "alice".into(), format!("for {number}"), NOW, ends_at, 2);
        let join = AccountCommand::Join {
            invitation: secret,
            user: format!("user-{number}"),
            way: Credential::Password(format!("hash {number}")),
            browser: NewSession { hash: secret, agent: format!("browser {number}") },
            random: Box::new(secret),
        };
        for what in [AccountCommand::Invite(by, secret, link), join] {
            home.core.ask(AccountRequest { space, what }, NOW).unwrap();
        }
        let reason = format!("reason {number}");
        let report = UserReport { reporter, message: EventId([number; 16]), reason, at: NOW, settled: None };
        home.core.store().write(NOW, |batch| batch.add_report(&space, &report)).unwrap();
        let other = Identity(secret);
        let block = Some(BlockKind::Block);
        home.core.store().write(NOW, |batch| batch.set_block(&space, &reporter, &other, block)).unwrap();
        let mut request = home.posting("bob", &format!("message {number}"));
        request.idempotency = Some(IdempotencyKey { who_and_key: secret, fingerprint: secret });
        home.core.ask(request, NOW).unwrap();
    }
}

type RowBytes = (Vec<u8>, Vec<u8>);

/// The rows of each table, without their checksums.
fn rows(home: &Home) -> BTreeMap<&'static str, Vec<RowBytes>> {
    let mut rows: BTreeMap<_, Vec<_>> = BTreeMap::new();
    export_rows::<StoreError>(home.core.store().snapshot().unwrap().tables(), &mut |table, key, stored| {
        let stored = stored.unwrap();
        rows.entry(table).or_default().push((key.to_vec(), stored[..stored.len() - CHECKSUM].to_vec()));
        Ok(())
    })
    .unwrap();
    rows
}

fn problems(home: &Home) -> Vec<String> {
    match home.core.store().verify(NOW) {
        Ok(report) => report.problems,
        // Events that contradict one another end the look at them.
        Err(why) => vec![format!("{ENDED}{why}")],
    }
}

/// What a tampered row leads to. Only what events and their views say may end it.
fn problems_of(home: &Home, table: &str) -> Vec<String> {
    let problems = problems(home);
    let has_ended = problems.iter().any(|problem| problem.starts_with(ENDED));
    assert!(!has_ended || MAY_END.contains(&table), "{table}: {problems:?}");
    problems
}

/// The first, the last, and one in the middle.
fn some(count: usize) -> BTreeSet<usize> {
    [0, count / 2, count - 1].into_iter().collect()
}

#[test]
fn a_row_that_is_gone_is_noticed() {
    let home = fill();
    assert_eq!(problems(&home), Vec::<String>::new());
    let store = home.core.store();
    let mut unnoticed = BTreeSet::new();
    for (table, rows) in rows(&home) {
        for at in some(rows.len()) {
            let (key, value) = &rows[at];
            assert!(store.tamper(table, key, None).unwrap());
            if problems_of(&home, table).is_empty() {
                unnoticed.insert(table);
            }
            store.tamper(table, key, Some(value)).unwrap();
        }
    }
    assert_eq!(problems(&home), Vec::<String>::new());
    assert_eq!(unnoticed, FREE_TO_GO.iter().map(|(table, _)| *table).collect());
}

#[test]
fn a_row_that_says_what_another_should_is_noticed() {
    let home = fill();
    let store = home.core.store();
    let mut unnoticed = BTreeSet::new();
    for (table, rows) in rows(&home) {
        for at in some(rows.len()) {
            let (key, value) = &rows[at];
            let Some((_, other)) = rows.iter().find(|(_, other)| other != value) else { continue };
            store.tamper(table, key, Some(other)).unwrap();
            if problems_of(&home, table).is_empty() {
                unnoticed.insert(table);
            }
            store.tamper(table, key, Some(value)).unwrap();
        }
    }
    assert_eq!(unnoticed, FREE_TO_SAY.iter().map(|(table, _)| *table).collect());
}

#[test]
fn a_storage_key_that_is_gone_is_noticed_when_the_folder_is_opened_again() {
    let home = fill();
    for (key, _) in &rows(&home)["storage_keys_v1"] {
        assert!(home.core.store().tamper("storage_keys_v1", key, None).unwrap());
    }
    let problems = problems(&home.reopen());
    let of_users = problems.iter().filter(|problem| problem.contains("rests under a key that is gone"));
    assert!(of_users.count() > 0, "{problems:?}");
}
