//! Sample events: a space with members, a thread and messages, and invalid or sealed events.

use ed25519_dalek::SigningKey;
use model::crypto::{SpaceKey, content_hash, space_id};
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::{AuxKey, Blob, ContentHash, Envelope, EventId, Identity, Kind, Nanos, SpaceId};
use node::bundle::BundleWriter;

/// When the first event of the world was made: in the past of every clock that runs the tests.
const BEGINNING: u64 = 1_700_000_000_000_000_000;

/// An event with its content.
#[derive(Clone)]
pub struct Made {
    pub id: EventId,
    pub space: SpaceId,
    pub blob: Vec<u8>,
    pub content: Vec<u8>,
}

impl Made {
    pub fn id(&self) -> String {
        self.id.to_string()
    }

    pub fn hash(&self) -> ContentHash {
        content_hash(&self.content)
    }
}

/// Who writes, in which space, and what time it is.
pub struct World {
    pub space: SpaceId,
    owner: SigningKey,
    member: SigningKey,
    tick: u64,
    pub founding: Made,
    pub membership: Made,
    pub thread: Made,
}

fn identity(key: &SigningKey) -> Identity {
    Identity(key.verifying_key().to_bytes())
}

impl World {
    pub fn new() -> World {
        World::numbered(1)
    }

    /// Another space with other people.
    pub fn numbered(number: u8) -> World {
        let owner = SigningKey::from_bytes(&[number; 32]);
        let member = SigningKey::from_bytes(&[number + 100; 32]);
        let aux = AuxKey([number; 16]);
        let space = space_id(&identity(&owner), &aux, false);
        let nothing = Made { id: EventId::ZERO, space, blob: Vec::new(), content: Vec::new() };
        let mut world = World {
            space,
            owner,
            member,
            tick: 0,
            founding: nothing.clone(),
            membership: nothing.clone(),
            thread: nothing,
        };
        let mut founding = world.envelope(Kind::Space, &world.owner);
        founding.aux = aux;
        founding.payload = Payload::Space { sealed: false };
        world.founding = world.finish(founding, &[], br#"{"name":"home"}"#, true);
        let mut grant = world.envelope(Kind::Member, &world.owner);
        grant.payload = Payload::Member { member: identity(&world.member), role: MemberRole::Member };
        let authority = [(Role::Authority, world.founding.id)];
        world.membership = world.finish(grant, &authority, b"", true);
        world.thread = world.make_thread("one");
        world
    }

    fn envelope(&self, kind: Kind, author: &SigningKey) -> Envelope {
        Envelope::new(kind, Nanos(BEGINNING + self.tick), self.space, identity(author))
    }

    fn finish(&mut self, mut envelope: Envelope, references: &[(Role, EventId)], content: &[u8], owner: bool) -> Made {
        self.tick += 1_000_000_000;
        envelope.created_at = Nanos(BEGINNING + self.tick);
        envelope.references = references.iter().map(|(role, id)| Reference { role: *role, id: *id }).collect();
        envelope.content_len = content.len() as u64;
        envelope.content_hash = content_hash(content);
        let key = if owner { &self.owner } else { &self.member };
        let signed = envelope.sign(key).expect("a well-formed envelope");
        let blob = Blob::plain(&signed).expect("a well-formed blob");
        Made { id: blob.id(), space: self.space, blob: blob.bytes().to_vec(), content: content.to_vec() }
    }

    fn by_member(&mut self, kind: Kind, references: &[(Role, EventId)], content: &[u8]) -> Made {
        let envelope = self.envelope(kind, &self.member);
        let authority = [(Role::Authority, self.membership.id)];
        self.finish(envelope, &[&authority, references].concat(), content, false)
    }

    pub fn make_thread(&mut self, title: &str) -> Made {
        let content = format!("{{\"title\":\"{title}\"}}");
        self.by_member(Kind::Thread, &[], content.as_bytes())
    }

    /// A message of the member in a thread.
    pub fn message(&mut self, thread: &Made, text: &str) -> Made {
        let content = format!("{{\"text\":\"{text}\"}}");
        self.by_member(Kind::Message, &[(Role::Thread, thread.id)], content.as_bytes())
    }

    /// A message that names no thread, which is never valid.
    pub fn invalid(&mut self) -> Made {
        self.by_member(Kind::Message, &[], br#"{"text":"lost"}"#)
    }

    /// Something of a kind that this release does not know, with as much content as wanted.
    pub fn unknown(&mut self, content: &[u8]) -> Made {
        self.by_member(Kind::Unknown(999), &[], content)
    }

    /// The owner ends the membership of the member.
    pub fn removal(&mut self) -> Made {
        let envelope = self.envelope(Kind::Removal, &self.owner);
        let references = [(Role::Authority, self.founding.id), (Role::Target, self.membership.id)];
        self.finish(envelope, &references, b"", true)
    }

    /// The member deletes what they wrote.
    pub fn delete(&mut self, target: &Made) -> Made {
        self.by_member(Kind::Delete, &[(Role::Target, target.id)], b"")
    }

    /// The space, the membership and the thread.
    pub fn foundation(&self) -> Vec<Made> {
        vec![self.founding.clone(), self.membership.clone(), self.thread.clone()]
    }
}

/// A bundle of these events, with contents that are not inline after them.
pub fn bundle(events: &[Made]) -> Vec<u8> {
    let mut writer = BundleWriter::new(Vec::new()).expect("written");
    let is_inline = |made: &&Made| made.content.len() as u64 <= model::limits::INLINE_BYTES_MAX;
    for made in events {
        let inline = if is_inline(&made) { made.content.as_slice() } else { &[] };
        writer.event(&made.blob, inline).expect("written");
    }
    for made in events.iter().filter(|made| !is_inline(made)) {
        writer.content(&made.space, &made.hash(), &made.content).expect("written");
    }
    writer.finish().expect("written")
}

/// A bundle with a bit of everything: messages, one in a thread that is not there, a content in a row, one in a file.
pub fn everything() -> (World, Vec<Made>, Vec<u8>) {
    let mut world = World::new();
    let mut events = world.foundation();
    let thread = world.thread.clone();
    events.extend((0..20).map(|number| world.message(&thread, &format!("message {number}"))));
    let elsewhere = world.make_thread("elsewhere");
    events.push(world.message(&elsewhere, "too early"));
    events.push(world.message(&thread, &"long ".repeat(1000)));
    events.push(world.unknown(&[7; 200_000]));
    let bytes = bundle(&events);
    (world, events, bytes)
}

/// An event of a sealed space that nobody else can open.
pub fn sealed() -> Made {
    let owner = SigningKey::from_bytes(&[77; 32]);
    let aux = AuxKey([77; 16]);
    let space = space_id(&identity(&owner), &aux, true);
    let key = SpaceKey::new(&space, [78; 32]);
    let mut envelope = Envelope::new(Kind::Space, Nanos(BEGINNING), space, identity(&owner));
    let content = model::content::seal_content(&key, b"{}", 1024, envelope.author, envelope.created_at);
    envelope.aux = aux;
    envelope.key = key.id();
    envelope.payload = Payload::Space { sealed: true };
    envelope.content_len = content.len() as u64;
    envelope.content_hash = content_hash(&content);
    let signed = envelope.sign(&owner).expect("a well-formed envelope");
    let blob = Blob::seal(&signed, &key).expect("a well-formed blob");
    Made { id: blob.id(), space, blob: blob.bytes().to_vec(), content }
}
