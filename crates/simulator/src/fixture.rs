//! Short texts as tests: who says what, in which order it arrives, and what is shown then.
//!
//! A scene has an open space founded by `root`, in which `ann` is an admin and `bob` a member. Statements are separated
//! by `|`. Those that begin with a name make an event without delivering it; their times follow the order of writing
//! unless `at N` says otherwise. Verbs: `thread`, `say THREAD TEXT`, `edit TARGET TEXT`, `react TARGET TEXT`,
//! `unreact TARGET`, `delete TARGET`, `grant WHO ROLE`, `replace WHO ROLE`, `remove WHO`, `post TEXT`, `follow WHO`,
//! `unfollow WHO`, `reply THREAD TARGET TEXT`, each with an optional `by WHO`. Others act on the node: `arrive NAMES`,
//! `content NAMES`, `prune NAMES`, `want NAMES`, `explain NAMES`, `held COUNT`, `collect`,
//! `later SECONDS`.

use crate::disk::SimDisk;
use crate::protocol::space::cast::{Author, EventText, MadeEvent, Wrapping, found, grant, write};
use crate::protocol::space::world::BEGINNING;
use engine::chains;
use engine::policy::Policy;
use engine::reads::Reads as _;
use engine::rows::Origin;
use model::envelope::Role;
use model::payload::MemberRole;
use model::{AuxKey, EventId, Kind, Nanos, Stamp};
use node::explain::{HeldFilter, HeldNeed, NotCounting, StageExplanation, held};
use node::large_content::stage;
use node::node_commands::{Arrive, Collect, Prune, Tick, WantBack};
use node::{WriterCommand, WriterCore};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use store::views::messages::ShownContent;
use store::{MasterKey, Store, StoreOptions};

const PEOPLE: [&str; 4] = ["root", "ann", "bob", "cid"];
const SECOND: u64 = 1_000_000_000;

/// A node and the events that were made for it.
#[derive(Debug)]
pub struct NodeFixture {
    core: WriterCore,
    policy: Policy,
    place: Wrapping,
    made: BTreeMap<String, MadeEvent>,
    memberships: BTreeMap<String, EventId>,
    order: Vec<String>,
    time: u64,
    now: u64,
    told: String,
}

fn person(name: &str) -> Author {
    let number = PEOPLE.iter().position(|person| *person == name);
    Author::new(number.unwrap_or_else(|| panic!("nobody is called {name}")) as u64)
}

/// Plays a scene and says what is shown in the end.
pub fn play(text: &str) -> String {
    let policy = Policy { inline_bytes_max: 0, row_content_bytes_max: 40, ..Policy::default() };
    play_with(text, policy)
}

/// As [`play`], with local limits.
pub fn play_with(text: &str, policy: Policy) -> String {
    let options = StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, random: store::KeySource::Seed(1) };
    let store = Store::open(Arc::new(SimDisk::new()), MasterKey::new(&[1; 32]), options).expect("an empty disk");
    let (place, founding) = found(&person("root"), BEGINNING, 0, None, policy.inline_bytes_max);
    let mut fixture = NodeFixture {
        core: WriterCore::new(store),
        policy,
        place,
        made: BTreeMap::new(),
        memberships: BTreeMap::from([("root".to_owned(), founding.id)]),
        order: Vec::new(),
        time: BEGINNING + SECOND,
        now: BEGINNING + 1_000_000 * SECOND,
        told: String::new(),
    };
    fixture.deliver(&founding);
    for (who, role) in [("ann", MemberRole::Admin), ("bob", MemberRole::Member)] {
        let payload = grant(&person(who), role);
        let made = fixture.write("root", EventText::new(Kind::Member, 0, &[], b"").payload(payload), None);
        fixture.memberships.insert(who.to_owned(), made.id);
        fixture.deliver(&made);
    }
    for statement in text.split('|').map(str::trim).filter(|statement| !statement.is_empty()) {
        fixture.run(statement);
    }
    fixture.tell()
}

impl NodeFixture {
    fn write(&mut self, by: &str, mut text: EventText<'_>, at: Option<u64>) -> MadeEvent {
        self.time += SECOND;
        text.at = at.map_or(self.time, |at| BEGINNING + at * SECOND);
        let author = person(by);
        let public = matches!(text.kind, Kind::Post | Kind::Follow | Kind::Unfollow);
        let place = if public { Wrapping { space: author.home(), key: None } } else { self.place.clone() };
        if !public {
            text.references.push((Role::Authority, self.memberships[by]));
        }
        write(&author, &place, self.policy.inline_bytes_max, text)
    }

    fn ask<C: WriterCommand>(&mut self, command: C) -> C::Answer {
        let answer = self.core.ask(command, Nanos(self.now)).expect("a healthy disk");
        self.core.settle(Nanos(self.now)).expect("a healthy disk");
        answer
    }

    fn deliver(&mut self, made: &MadeEvent) {
        let keys = self.core.store().keys().clone();
        let inline = made.inline(self.policy.inline_bytes_max);
        let arrival = chains::receive_blob(&*keys, &self.policy, made.blob.clone(), inline, Origin::Import);
        self.ask(Arrive(Box::new(arrival.expect("an honest event"))));
    }

    fn run(&mut self, statement: &str) {
        if let Some((name, rest)) = statement.split_once(':') {
            return self.make(name.trim(), rest.trim());
        }
        let mut words = statement.split_whitespace();
        let verb = words.next().unwrap_or_default();
        if verb == "later" {
            let seconds: u64 = words.next().and_then(|word| word.parse().ok()).expect("later SECONDS");
            self.now += seconds * SECOND;
            self.ask(Tick);
        }
        if verb == "collect" {
            for _ in 0..2 {
                self.ask(Collect);
            }
        }
        if verb == "held" {
            let most = words.next().and_then(|word| word.parse().ok()).expect("held COUNT");
            self.tell_held(most);
        }
        for name in words {
            let Some(made) = self.made.get(name).cloned() else {
                continue;
            };
            match verb {
                "arrive" => self.deliver(&made),
                "content" => {
                    let (space, hash, bytes) = (made.envelope.space, made.hash(), made.wire.clone());
                    let now = Nanos(self.now);
                    let staged = stage(self.core.store(), space, hash, bytes, |begin| self.core.ask(begin, now));
                    let delivered = self.ask(staged.expect("a healthy disk"));
                    let _ = writeln!(self.told, "content {name}: {delivered:?}");
                }
                "prune" => {
                    let pruned = self.ask(Prune(made.id));
                    let _ = writeln!(self.told, "prune {name}: {pruned:?}");
                }
                "want" => {
                    self.ask(WantBack(made.id));
                }
                "explain" => {
                    let why = self.explain(&made.id);
                    let _ = writeln!(self.told, "explain {name}: {why}");
                }
                _ => panic!("no verb {verb}"),
            }
        }
    }

    /// The first so many needs, and who waits for each.
    fn tell_held(&mut self, most: usize) {
        let db = self.core.store().snapshot().expect("a snapshot");
        let list = held(&db, most, &HeldFilter::default()).expect("a read");
        let _ = writeln!(self.told, "{} held", list.held);
        let ids = self.made.iter().map(|(name, made)| (name, made.id));
        let ids: Vec<_> = ids.chain(self.memberships.iter().map(|(who, id)| (who, *id))).collect();
        let named = |text: String| ids.iter().fold(text, |text, (name, id)| text.replace(&id.to_string(), name));
        for HeldNeed { need, first, .. } in &list.needs {
            let waiting: Vec<String> = first.iter().map(|item| named(item.id.to_string())).collect();
            let need = if need.word() == "content" { "content".to_owned() } else { named(need.to_string()) };
            let _ = writeln!(self.told, "for {need}: {}", waiting.join(" "));
        }
        if list.and_more {
            let _ = writeln!(self.told, "and more");
        }
    }

    /// Why an event does not count.
    fn explain(&self, id: &EventId) -> String {
        let db = self.core.store().snapshot().expect("a snapshot");
        match node::explain::explain(&db, id).expect("a read").standing {
            StageExplanation::Applied(applied) => {
                applied.not_counting.map_or_else(|| "counts".to_owned(), |why| self.tell_why(&why))
            }
            other => format!("{other:?}"),
        }
    }

    fn tell_why(&self, why: &NotCounting) -> String {
        let name = |id: &str| {
            let made = self.made.iter().map(|(name, made)| (name, made.id));
            let memberships = self.memberships.iter().map(|(who, id)| (who, *id));
            made.chain(memberships).find(|(_, other)| other.to_string() == id).map_or("?", |(name, _)| name).to_owned()
        };
        match why {
            NotCounting::Ended { authority, by, .. } => format!("{} was ended by {}", name(authority), name(by)),
            NotCounting::Lessened { authority, by, to } => {
                format!("{} was lessened to {to} by {}", name(authority), name(by))
            }
            NotCounting::Authority { authority, because } => {
                let because = because.as_ref().map_or_else(|| "?".to_owned(), |why| self.tell_why(why));
                format!("{} does not count: {because}", name(authority))
            }
            NotCounting::Pending => "pending".to_owned(),
        }
    }

    fn make(&mut self, name: &str, rest: &str) {
        let (rest, at) = option(rest, " at ");
        let (rest, by) = option(rest, " by ");
        let at = at.and_then(|at| at.parse().ok());
        let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let (first, text) = rest.split_once(' ').unwrap_or((rest, ""));
        let by = by.unwrap_or("bob");
        let id = |fixture: &NodeFixture, name: &str| {
            fixture.made.get(name).map(|made| made.id).unwrap_or_else(|| panic!("no event {name}"))
        };
        let field = |name: &str, text: &str| format!("{{\"{name}\":\"{text}\"}}").into_bytes();
        let body = field("text", text);
        let made = match verb {
            "thread" => self.write(by, EventText::new(Kind::Thread, 0, &[], b"{\"title\":\"t\"}"), at),
            "say" => {
                let thread = id(self, first);
                self.write(by, EventText::new(Kind::Message, 0, &[(Role::Thread, thread)], &body), at)
            }
            "reply" => {
                let (target, text) = text.split_once(' ').expect("reply THREAD TARGET TEXT");
                let references = [(Role::Thread, id(self, first)), (Role::ReplyTo, id(self, target))];
                self.write(by, EventText::new(Kind::Message, 0, &references, &field("text", text)), at)
            }
            "raw" => {
                let thread = id(self, first);
                self.write(by, EventText::new(Kind::Message, 0, &[(Role::Thread, thread)], text.as_bytes()), at)
            }
            "edit" => {
                let target = id(self, first);
                self.write(by, EventText::new(Kind::Edit, 0, &[(Role::Target, target)], &body), at)
            }
            "react" => {
                let (target, body) = ([(Role::Target, id(self, first))], field("reaction", text));
                self.write(by, EventText::new(Kind::Reaction, 0, &target, &body), at)
            }
            "unreact" => {
                let target = id(self, first);
                self.write(by, EventText::new(Kind::ReactionRemoval, 0, &[(Role::Target, target)], b""), at)
            }
            "delete" => {
                let target = id(self, first);
                self.write(by, EventText::new(Kind::Delete, 0, &[(Role::Target, target)], b""), at)
            }
            "grant" | "replace" => {
                let payload = grant(&person(first), text.parse().expect("a role"));
                let old = (verb == "replace").then(|| (Role::Target, self.memberships[first]));
                let references: Vec<_> = old.into_iter().collect();
                let made = self.write(by, EventText::new(Kind::Member, 0, &references, b"").payload(payload), at);
                if verb == "grant" {
                    self.memberships.insert(first.to_owned(), made.id);
                }
                made
            }
            "remove" => {
                let target = self.memberships[first];
                self.write(by, EventText::new(Kind::Removal, 0, &[(Role::Target, target)], b""), at)
            }
            "post" => self.write(by, EventText::new(Kind::Post, 0, &[], &field("text", rest)), at),
            "follow" | "unfollow" => {
                let kind = if verb == "follow" { Kind::Follow } else { Kind::Unfollow };
                let aux = AuxKey(person(first).home().0);
                self.write(by, EventText::new(kind, 0, &[], b"").aux(aux), at)
            }
            other => panic!("no verb {other}"),
        };
        self.made.insert(name.to_owned(), made);
        self.order.push(name.to_owned());
    }

    /// The stage and content of every event that was named, then what the views show.
    fn tell(self) -> String {
        let mut out = self.told.clone();
        let db = self.core.store().snapshot().expect("a snapshot");
        for name in &self.order {
            let made = &self.made[name];
            let line = match db.seq(&made.id).expect("a read") {
                Some(seq) => {
                    let row = db.event(seq).expect("a read").expect("a row");
                    let counts = row.meta.as_ref().is_some_and(|meta| meta.counts);
                    let hidden = if row.is_applied() && !counts { " hidden" } else { "" };
                    format!("{} {}{hidden}", row.stage.word(), row.content.word())
                }
                None => match db.refused(&made.id).expect("a read") {
                    Some(why) => format!("refused: {why}"),
                    None => "not here".to_owned(),
                },
            };
            let _ = writeln!(out, "{name}: {line}");
        }
        self.tell_threads(&db, &mut out);
        let contents = db.contents().expect("a read");
        if !contents.is_empty() {
            let _ = writeln!(out, "references: {contents:?}");
        }
        for who in PEOPLE {
            let follows = db.follows(&person(who).identity).expect("a read");
            let names: Vec<&str> = PEOPLE.into_iter().filter(|other| follows.contains(&person(other).home())).collect();
            if !names.is_empty() {
                let _ = writeln!(out, "{who} follows {}", names.join(" "));
            }
        }
        let report = self.core.store().verify(Nanos(self.now)).expect("a read");
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        out
    }

    fn tell_threads(&self, db: &store::Db<store::tables::Snapshot>, out: &mut String) {
        let name_of = |id: EventId| {
            self.made.iter().find(|(_, made)| made.id == id).map_or("?".to_owned(), |(name, _)| name.clone())
        };
        let Some(space) = db.space_no(&self.place.space).expect("a read") else {
            return;
        };
        for (stamp, thread) in db.threads(space, Stamp::FIRST, 100).expect("a read") {
            let page = db.timeline(thread, Stamp::LAST, 100).expect("a page");
            let messages: Vec<String> = page
                .iter()
                .map(|message| {
                    let text = match &message.content {
                        ShownContent::Here(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                        ShownContent::Absent => "absent".into(),
                        ShownContent::Damaged => "damaged".into(),
                        ShownContent::Invalid => "invalid".into(),
                        ShownContent::Deleted(by) => format!("deleted by {}", name_of(by.id)),
                    };
                    let reactions = if message.reactions.is_empty() {
                        String::new()
                    } else {
                        format!(" +{}", message.reactions.len())
                    };
                    let replies = if message.replies == 0 { String::new() } else { format!(" re{}", message.replies) };
                    format!(
                        "{} shows {}: {text}{reactions}{replies}",
                        name_of(message.stamp.id),
                        name_of(message.version.id)
                    )
                })
                .collect();
            let _ = writeln!(out, "thread {} [{}]", name_of(stamp.id), messages.join(", "));
        }
    }
}

/// Takes an option with one word from the end of a statement.
fn option<'a>(statement: &'a str, word: &str) -> (&'a str, Option<&'a str>) {
    match statement.rsplit_once(word) {
        Some((rest, value)) if !value.contains(' ') => (rest, Some(value)),
        _ => (statement, None),
    }
}
