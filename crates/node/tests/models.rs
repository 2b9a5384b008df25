//! Random sequences of commands against naive models, with crashes in between.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use anteroom_node::commands::{
    AdminCommand, CommandError, IdempotencyKey, NameOrId, NewMessage, UserCommand, message_content,
};
use anteroom_node::jobs::retention::{PlanCursor, plan};
use anteroom_node::{AskError, WriterCore};
use common::{Home, NOW, message};
use model::{EventId, Nanos};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use store::shared::retention::Retention;

const HOUR: u64 = 3600 * Nanos::SECOND;
const DAY: u64 = 24 * HOUR;

fn hash(text: &str) -> [u8; 32] {
    *blake3::hash(text.as_bytes()).as_bytes()
}

fn few() -> ProptestConfig {
    ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() }
}

#[derive(Clone, Debug)]
enum Asking {
    /// A user posts a text under a key.
    Post { user: u8, key: u8, text: u8 },
    /// So many hours pass.
    Later(u64),
    /// The node is killed and started again.
    Crash,
}

fn asking() -> impl Strategy<Value = Asking> {
    prop_oneof![
        8 => (0..3_u8, 0..3_u8, 0..2_u8).prop_map(|(user, key, text)| Asking::Post { user, key, text }),
        2 => (1..20_u64).prop_map(Asking::Later),
        1 => Just(Asking::Crash),
    ]
}

proptest! {
    #![proptest_config(few())]

    /// Within a day the same request is answered as before and does nothing, and another under its key is refused.
    #[test]
    fn requests_are_repeated_for_a_day(steps in proptest::collection::vec(asking(), 1..60)) {
        let mut home = Home::new();
        let (mut now, mut posted) = (NOW.0, 0);
        // Who and key, to what was asked, when, and what came of it.
        let mut model: BTreeMap<(u8, u8), (u8, u64, EventId)> = BTreeMap::new();
        for step in steps {
            match step {
                Asking::Later(hours) => now += hours * HOUR,
                Asking::Crash => home = home.crash(),
                Asking::Post { user, key, text } => {
                    now += Nanos::SECOND;
                    let mut request = home.posting(&format!("user-{user}"), &format!("text {text}"));
                    request.idempotency = Some(IdempotencyKey {
                        who_and_key: hash(&format!("{user} {key}")),
                        fingerprint: hash(&format!("text {text}")),
                    });
                    let answer = home.core.ask(request, Nanos(now));
                    let earlier = model.get(&(user, key)).copied().filter(|(_, at, _)| now < at + DAY);
                    match (earlier, answer) {
                        (Some((said, _, id)), Ok(done)) => {
                            prop_assert!(said == text, "another request was answered");
                            prop_assert!(!done.is_new && done.shown == id);
                        }
                        (Some((said, ..)), Err(AskError::Refused(CommandError::OtherRequest))) => {
                            prop_assert!(said != text, "the same request was refused");
                        }
                        (None, Ok(done)) => {
                            prop_assert!(done.is_new);
                            posted += 1;
                            model.insert((user, key), (text, now, done.shown));
                        }
                        (earlier, answer) => prop_assert!(false, "{earlier:?} and then {answer:?}"),
                    }
                }
            }
        }
        let db = home.core.store().snapshot().unwrap();
        let mut lines = 0;
        db.dump(&mut |line| lines += usize::from(line.starts_with("message "))).unwrap();
        prop_assert_eq!(lines, posted);
        home.verify();
    }
}

#[derive(Clone, Debug)]
enum Keeping {
    Post { thread: u8 },
    Delete { which: u8 },
    Rule { thread: Option<u8>, age: Option<u8>, count: Option<u8>, deleted: Option<u8> },
    Lift { thread: Option<u8> },
    Later(u64),
    Crash,
}

fn keeping() -> impl Strategy<Value = Keeping> {
    let bound = || proptest::option::of(0..6_u8);
    let rule = (proptest::option::of(0..2_u8), bound(), bound(), bound());
    prop_oneof![
        8 => (0..2_u8).prop_map(|thread| Keeping::Post { thread }),
        3 => any::<u8>().prop_map(|which| Keeping::Delete { which }),
        2 => rule.prop_map(|(thread, age, count, deleted)| Keeping::Rule { thread, age, count, deleted }),
        1 => proptest::option::of(0..2_u8).prop_map(|thread| Keeping::Lift { thread }),
        4 => (1..3_u64).prop_map(Keeping::Later),
        1 => Just(Keeping::Crash),
    ]
}

/// A message of the model: its thread, when it was written, and when it was deleted softly.
struct Kept {
    id: EventId,
    thread: u8,
    at: u64,
    deleted: Option<u64>,
}

/// What goes by the rules, said as simply as they are written down.
fn expected(kept: &[Kept], rules: &BTreeMap<Option<u8>, Retention>, now: u64) -> BTreeSet<EventId> {
    let mut going = BTreeSet::new();
    for message in kept {
        let Some(rule) = rules.get(&Some(message.thread)).or_else(|| rules.get(&None)) else { continue };
        let later = kept.iter().filter(|other| other.thread == message.thread && other.at > message.at).count() as u64;
        let before = |seconds: u64| now - seconds * Nanos::SECOND;
        let is_old = rule.age_seconds.is_some_and(|age| message.at < before(age));
        let is_beyond = rule.count.is_some_and(|count| later >= count);
        let is_deleted = rule.deleted_seconds.zip(message.deleted).is_some_and(|(after, at)| at < before(after));
        if is_old || is_beyond || is_deleted {
            going.insert(message.id);
        }
    }
    going
}

/// Everything that a plan takes, a few messages at a time.
fn planned(core: &WriterCore, now: u64, most: usize) -> BTreeSet<EventId> {
    let db = core.store().snapshot().unwrap();
    let (mut going, mut from) = (BTreeSet::new(), PlanCursor::FIRST);
    loop {
        let part = plan(&db, None, Nanos(now), from, most).unwrap();
        going.extend(part.going.iter().map(|going| going.message));
        match part.next {
            Some(next) => from = next,
            None => return going,
        }
    }
}

proptest! {
    #![proptest_config(few())]

    /// A message goes when it is too old, when enough are newer, or when it was deleted long ago; the rule of its thread
    /// replaces that of the space.
    #[test]
    fn what_retention_takes_is_what_its_rules_say(
        steps in proptest::collection::vec(keeping(), 1..60), most in 1..8_usize,
    ) {
        let mut home = Home::new();
        home.make_admin("alice");
        let mut ever_wanted: BTreeSet<EventId> = BTreeSet::new();
        let (mut now, mut kept, mut rules) = (NOW.0, Vec::<Kept>::new(), BTreeMap::new());
        let (mut threads, mut gone) = (BTreeMap::<u8, EventId>::new(), BTreeSet::<EventId>::new());
        for step in steps {
            now += Nanos::SECOND;
            match step {
                Keeping::Later(hours) => now += hours * HOUR,
                Keeping::Crash => home = home.crash(),
                Keeping::Post { thread } => {
                    let name = NameOrId::Chosen(format!("thread-{thread}"));
                    let content = message_content("text".into(), None).unwrap();
                    let new = NewMessage {
                        thread: Some(name), chosen: None, content, reply_to: None, mentions: vec![], attachments: vec![],
                    };
                    let done = home.core.ask(home.by("alice", UserCommand::Post(new)), Nanos(now)).unwrap();
                    let db = home.core.store().snapshot().unwrap();
                    let subject = home.subject_of(&db, done.seq);
                    threads.insert(thread, subject);
                    let at = home.time_of(&db, done.seq);
                    kept.push(Kept { id: done.shown, thread, at, deleted: None });
                }
                Keeping::Delete { which } if !kept.is_empty() => {
                    let at = usize::from(which) % kept.len();
                    if kept[at].deleted.is_none() {
                        let command = UserCommand::DeleteMessage(message(kept[at].id));
                        // One that was purged meanwhile cannot be deleted any more.
                        if home.core.ask(home.by("alice", command), Nanos(now)).is_err() {
                            prop_assert!(home.is_purged(kept[at].id));
                            continue;
                        }
                        let db = home.core.store().snapshot().unwrap();
                        kept[at].deleted = Some(home.version_of(&db, kept[at].id));
                    }
                }
                Keeping::Delete { .. } => {}
                Keeping::Rule { thread, age, count, deleted } => {
                    let seconds = |hours: Option<u8>| hours.map(|hours| u64::from(hours) * 3600 + 1);
                    let rule = Retention {
                        age_seconds: seconds(age), count: count.map(u64::from), deleted_seconds: seconds(deleted),
                    };
                    let Some(of) = thread.map_or(Some(None), |thread| threads.get(&thread).copied().map(Some)) else {
                        continue;
                    };
                    home.administer(AdminCommand::Retain(home.space, of, Some(rule)));
                    rules.insert(thread, rule);
                }
                Keeping::Lift { thread } => {
                    let Some(of) = thread.map_or(Some(None), |thread| threads.get(&thread).copied().map(Some)) else {
                        continue;
                    };
                    home.administer(AdminCommand::Retain(home.space, of, None));
                    rules.remove(&thread);
                }
            }
            // The writer carries the rules out by itself every now and then; what is gone was to go.
            let (mut wanted, planned) = (expected(&kept, &rules, now), planned(&home.core, now, most));
            gone.extend(wanted.iter().copied().filter(|id| !planned.contains(id) && home.is_purged(*id)));
            ever_wanted.extend(wanted.iter().copied());
            for message in kept.iter().filter(|message| home.is_purged(message.id)) {
                prop_assert!(ever_wanted.contains(&message.id), "a message is gone that no rule takes");
            }
            wanted.retain(|id| !gone.contains(id));
            prop_assert_eq!(planned, wanted);
        }
    }
}
