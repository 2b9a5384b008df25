//! A small world from a seed: people, spaces, and everything they say, honest and otherwise.

mod across;
mod attached;
mod lies;
mod misuse;
mod public;

use crate::protocol::space::cast::{Author, EventText, MadeEvent, Wrapping, chosen, found, grant, send_key, write};
use crate::random::SeededRandom;
pub use attached::AttachedFile;
use engine::rows::ThreadField;
use model::envelope::Role;
use model::payload::MemberRole;
use model::{AuxKey, EventId, Kind};
use std::collections::BTreeSet;

/// When the story begins, in Unix nanoseconds.
pub const BEGINNING: u64 = 1_700_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;

/// Everything that exists and may or may not arrive somewhere.
#[derive(Debug)]
pub struct World {
    /// Content up to this is inline.
    pub inline_max: u64,
    /// Every event that was signed.
    pub events: Vec<MadeEvent>,
    /// Events that never arrive anywhere, so that what needs them waits for ever.
    pub lost: Vec<EventId>,
    /// Blobs that are broken, sealed again, or nonsense.
    pub lies: Vec<Lie>,
    /// The files that file events speak of.
    pub files: Vec<AttachedFile>,
    /// The secret of each node's prekey.
    pub prekeys: Vec<[u8; 32]>,
    /// The key events for each node.
    pub key_events: Vec<Vec<MadeEvent>>,
    /// The last moment that any event names.
    pub end: u64,
}

/// A blob that is a lie, with what comes beside it.
#[derive(Debug)]
pub struct Lie {
    /// The event about which it lies.
    pub of: EventId,
    pub blob: Vec<u8>,
    pub inline: Option<Vec<u8>>,
}

struct Room {
    place: Wrapping,
    /// The same space under the key that followed.
    later_key: Option<Wrapping>,
    members: Vec<(usize, EventId, u64)>,
    threads: Vec<(EventId, u64)>,
    messages: Vec<(EventId, EventId, u64, usize)>,
    files: Vec<(EventId, u64)>,
    targets: Vec<EventId>,
}

struct Story<'c> {
    random: &'c mut SeededRandom,
    authors: Vec<Author>,
    rooms: Vec<Room>,
    posts: Vec<(usize, EventId, u64)>,
    events: Vec<MadeEvent>,
    now: u64,
    inline_max: u64,
    big: Vec<Vec<u8>>,
    attached: Vec<AttachedFile>,
}

impl World {
    /// The world of that stream of chance, for so many nodes.
    pub fn new(random: &mut SeededRandom, nodes: usize) -> World {
        let inline_max = if random.percent(50) { 1024 } else { 0 };
        let big = (0..3).map(|n| body("text", &format!("{n}").repeat(1500 + 2000 * n))).collect();
        let mut story = Story {
            random,
            authors: (0..5).map(Author::new).collect(),
            rooms: Vec::new(),
            posts: Vec::new(),
            events: Vec::new(),
            now: BEGINNING,
            inline_max,
            big,
            attached: Vec::new(),
        };
        story.open_rooms();
        for _ in 0..story.random.below(40) + 20 {
            story.act();
        }
        story.finish(nodes)
    }
}

impl World {
    /// These events, by number, exist nowhere.
    pub fn lose(&mut self, events: &BTreeSet<usize>) {
        self.lost.extend(events.iter().filter_map(|index| self.events.get(*index)).map(|made| made.id));
        self.lies.retain(|lie| !self.lost.contains(&lie.of));
    }
}

fn body(name: &str, text: &str) -> Vec<u8> {
    let mut map = serde_json::Map::new();
    map.insert(name.to_owned(), serde_json::Value::String(text.to_owned()));
    model::body::encode(&serde_json::Value::Object(map)).expect("a body")
}

impl Story<'_> {
    fn open_rooms(&mut self) {
        let mut keys = vec![None];
        for (percent, is_sealed) in [(60, true), (50, false), (25, true)] {
            if self.random.percent(percent) {
                keys.push(is_sealed.then(|| self.random.bytes32()));
            }
        }
        for key in keys {
            let at = self.later();
            let number = self.rooms.len() as u8;
            let (place, made) = found(&self.authors[0], at, number, key, self.inline_max);
            let founding = made.id;
            self.events.push(made);
            let (members, threads, messages, files) = (vec![(0, founding, at)], Vec::new(), Vec::new(), Vec::new());
            let later_key = across::later_key(self.random, &place);
            self.rooms.push(Room { place, later_key, members, threads, messages, files, targets: Vec::new() });
            for (member, role) in [(1, MemberRole::Admin), (2, MemberRole::Member)] {
                self.grant(number as usize, (0, founding, at), member, role, None);
            }
        }
    }

    fn later(&mut self) -> u64 {
        let step = [0, 1, SECOND, 60 * SECOND][self.random.below(4)];
        self.now += step + self.random.below(3) as u64;
        self.now
    }

    /// A time for an event that refers to something as late as this: usually now, sometimes long ago.
    fn time_after(&mut self, after: u64) -> u64 {
        let now = self.later().max(after + 1);
        if self.random.percent(25) { after + 1 + self.random.next_u64() % (now - after) } else { now }
    }

    fn content(&mut self) -> Vec<u8> {
        match self.random.below(12) {
            0 => b"this is not a body".to_vec(),
            1..=4 => self.random.pick(&self.big.clone()).clone(),
            _ => body("text", &format!("hello {}", self.random.below(1000))),
        }
    }

    fn put(&mut self, author: usize, place: &Wrapping, text: EventText<'_>) -> EventId {
        let made = write(&self.authors[author], place, self.inline_max, text);
        let id = made.id;
        self.events.push(made);
        id
    }

    fn grant(
        &mut self,
        room: usize,
        by: (usize, EventId, u64),
        member: usize,
        role: MemberRole,
        old: Option<(EventId, u64)>,
    ) {
        let at = self.time_after(by.2.max(old.map_or(0, |old| old.1)));
        let mut references = vec![(Role::Authority, by.1)];
        references.extend(old.map(|old| (Role::Target, old.0)));
        let payload = grant(&self.authors[member], role);
        let place = self.place(room);
        let id = self.put(by.0, &place, EventText::new(Kind::Member, at, &references, b"").payload(payload));
        self.rooms[room].members.push((member, id, at));
    }

    fn act(&mut self) {
        if self.random.percent(20) {
            return self.act_in_public();
        }
        let room = self.random.below(self.rooms.len());
        let by = *self.random.pick(&self.rooms[room].members.clone());
        match self.random.below(29) {
            0 | 1 => self.open_thread(room, by),
            2..=6 => self.say(room, by),
            7 | 8 => self.edit(room, by),
            9 => self.react(room, by),
            10 => self.update_thread(room, by),
            11 | 12 => self.delete(room, by),
            13 => self.small(room, by),
            14 | 15 => {
                let member = self.random.below(self.authors.len());
                let role = *self.random.pick(&[MemberRole::Reader, MemberRole::Member, MemberRole::Admin]);
                self.grant(room, by, member, role, None);
            }
            16 => {
                let old = *self.random.pick(&self.rooms[room].members.clone());
                let role = *self.random.pick(&[MemberRole::Reader, MemberRole::Member, MemberRole::Admin]);
                self.grant(room, by, old.0, role, Some((old.1, old.2)));
            }
            17 | 18 => self.remove(room, by),
            19 => self.read(room, by),
            20 => self.attach(room, by),
            21..=23 => self.reach_across(room, by),
            24 => self.fall_and_rise(room),
            25 | 26 => self.misuse(room, by),
            27 => self.trespass(),
            _ => self.unknown(room, by),
        }
    }

    fn remove(&mut self, room: usize, by: (usize, EventId, u64)) {
        let old = *self.random.pick(&self.rooms[room].members.clone());
        let at = self.time_after(by.2.max(old.2));
        let place = self.place(room);
        let references = [(Role::Authority, by.1), (Role::Target, old.1)];
        self.put(by.0, &place, EventText::new(Kind::Removal, at, &references, b""));
    }

    fn open_thread(&mut self, room: usize, by: (usize, EventId, u64)) {
        let at = self.time_after(by.2);
        let place = self.place(room);
        let aux = if self.random.percent(30) { chosen("general") } else { AuxKey::ZERO };
        let content = self.content();
        let other = self.authors.get(self.random.below(20)).map(|author| (Role::Mention, EventId(author.home().0)));
        let references: Vec<_> = [(Role::Authority, by.1)].into_iter().chain(other).collect();
        let id = self.put(by.0, &place, EventText::new(Kind::Thread, at, &references, &content).aux(aux));
        self.rooms[room].threads.push((id, at));
        self.rooms[room].targets.push(id);
    }

    fn say(&mut self, room: usize, by: (usize, EventId, u64)) {
        if self.rooms[room].threads.is_empty() {
            return self.open_thread(room, by);
        }
        let thread = *self.random.pick(&self.rooms[room].threads.clone());
        // Now and then a message is older than its thread, which no node may accept.
        let after = if self.random.percent(3) { 0 } else { thread.1 };
        let at = self.time_after(by.2.max(after)).max(BEGINNING);
        let mut references = vec![(Role::Authority, by.1), (Role::Thread, thread.0)];
        if let (true, Some(other)) = (self.random.percent(25), self.rooms[room].messages.last()) {
            references.push((Role::ReplyTo, other.0));
        }
        let mentioned = self.authors.get(self.random.below(40));
        references.extend(mentioned.map(|author| (Role::Mention, EventId(author.home().0))));
        if self.random.percent(20)
            && let Some(file) = self.rooms[room].files.last()
            && file.1 < at
        {
            references.push((Role::Attachment, file.0));
        }
        let place = self.place(room);
        let aux = if self.random.percent(20) { chosen("same") } else { AuxKey::ZERO };
        let content = self.content();
        let id = self.put(by.0, &place, EventText::new(Kind::Message, at, &references, &content).aux(aux));
        self.rooms[room].messages.push((id, thread.0, at, by.0));
        self.rooms[room].targets.push(id);
    }

    fn pick_message(&mut self, room: usize) -> Option<(EventId, EventId, u64, usize)> {
        let messages = self.rooms[room].messages.clone();
        (!messages.is_empty()).then(|| *self.random.pick(&messages))
    }

    fn edit(&mut self, room: usize, by: (usize, EventId, u64)) {
        let Some(message) = self.pick_message(room) else {
            return self.say(room, by);
        };
        let own = self.rooms[room].members.iter().find(|member| member.0 == message.3).copied();
        let by = if self.random.percent(80) { own.unwrap_or(by) } else { by };
        let at = self.time_after(by.2.max(message.2));
        let place = self.place(room);
        let content = self.content();
        let references = [(Role::Authority, by.1), (Role::Target, message.0)];
        let id = self.put(by.0, &place, EventText::new(Kind::Edit, at, &references, &content));
        self.rooms[room].targets.push(id);
    }

    fn react(&mut self, room: usize, by: (usize, EventId, u64)) {
        let Some(message) = self.pick_message(room) else {
            return self.say(room, by);
        };
        let at = self.time_after(by.2.max(message.2));
        let place = self.place(room);
        let references = [(Role::Authority, by.1), (Role::Target, message.0)];
        let text = body("reaction", ["+1", "heart", ""][self.random.below(3)]);
        let removal = self.random.percent(30);
        let (kind, content) = if removal { (Kind::ReactionRemoval, &b""[..]) } else { (Kind::Reaction, &text[..]) };
        self.put(by.0, &place, EventText::new(kind, at, &references, content));
    }

    fn update_thread(&mut self, room: usize, by: (usize, EventId, u64)) {
        if self.rooms[room].threads.is_empty() {
            return self.open_thread(room, by);
        }
        let thread = *self.random.pick(&self.rooms[room].threads.clone());
        let at = self.time_after(by.2.max(thread.1));
        let place = self.place(room);
        let references = [(Role::Authority, by.1), (Role::Thread, thread.0)];
        if self.random.percent(20) {
            self.put(by.0, &place, EventText::new(Kind::ThreadDelete, at, &references, b""));
            return;
        }
        let field = *self.random.pick(&ThreadField::UPDATABLE);
        let content = self.content();
        self.put(by.0, &place, EventText::new(Kind::ThreadUpdate, at, &references, &content).aux(field.aux()));
    }

    fn delete(&mut self, room: usize, by: (usize, EventId, u64)) {
        let targets = self.rooms[room].targets.clone();
        if targets.is_empty() {
            return self.open_thread(room, by);
        }
        let target = *self.random.pick(&targets);
        let at = self.time_after(by.2);
        let place = self.place(room);
        let references = [(Role::Authority, by.1), (Role::Target, target)];
        self.put(by.0, &place, EventText::new(Kind::Delete, at, &references, b""));
    }

    fn small(&mut self, room: usize, by: (usize, EventId, u64)) {
        let at = self.time_after(by.2);
        let place = self.place(room);
        let content = self.content();
        let kind = *self.random.pick(&[Kind::Settings, Kind::Profile, Kind::Device]);
        let aux = if kind == Kind::Device { AuxKey([1 + self.random.below(2) as u8; 16]) } else { AuxKey::ZERO };
        self.put(by.0, &place, EventText::new(kind, at, &[(Role::Authority, by.1)], &content).aux(aux));
    }

    fn read(&mut self, room: usize, by: (usize, EventId, u64)) {
        let Some(message) = self.pick_message(room) else {
            return self.say(room, by);
        };
        let at = self.time_after(by.2.max(message.2));
        let place = self.place(room);
        let references = [(Role::Authority, by.1), (Role::Thread, message.1), (Role::Target, message.0)];
        self.put(by.0, &place, EventText::new(Kind::ReadMarker, at, &references, b""));
    }

    fn unknown(&mut self, room: usize, by: (usize, EventId, u64)) {
        let at = self.time_after(by.2);
        let place = self.place(room);
        self.put(by.0, &place, EventText::new(Kind::Unknown(999), at, &[(Role::Authority, by.1)], b"{}"));
    }

    fn finish(mut self, nodes: usize) -> World {
        let lost: Vec<EventId> = (0..self.random.below(3)).map(|_| self.random.pick(&self.events).id).collect();
        let mut lies = Vec::new();
        for _ in 0..4 {
            let made = self.random.pick(&self.events).clone();
            if !lost.contains(&made.id) {
                let (blob, inline) = self.lie(&made);
                lies.push(Lie { of: made.id, blob, inline });
            }
        }
        let prekeys: Vec<[u8; 32]> = (0..nodes).map(|_| self.random.bytes32()).collect();
        let places = self.rooms.iter().flat_map(|room| [Some(&room.place), room.later_key.as_ref()]).flatten();
        let sealed: Vec<Wrapping> = places.filter(|place| place.key.is_some()).cloned().collect();
        let key_events = prekeys
            .iter()
            .map(|prekey| sealed.iter().map(|place| send_key(&self.authors[0], place, self.now, prekey)).collect())
            .collect();
        // Something of the future, which waits for the clock.
        if let (true, Some(post)) = (self.random.percent(50), self.posts.first().copied()) {
            let place = Wrapping { space: self.authors[post.0].home(), key: None };
            self.now += 3600 * SECOND;
            let (at, content) = (self.now, self.content());
            self.put(post.0, &place, EventText::new(Kind::Post, at, &[], &content));
        }
        let mut seen = BTreeSet::new();
        self.events.retain(|made| seen.insert(made.id));
        let (inline_max, events, files) = (self.inline_max, self.events, self.attached);
        World { inline_max, events, lost, lies, files, prekeys, key_events, end: self.now }
    }
}
