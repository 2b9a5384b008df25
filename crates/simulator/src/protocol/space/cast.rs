//! The cast: authors with keys, and the events they write, as anyone outside the node could make them.

use ed25519_dalek::SigningKey;
use model::content::seal_content;
use model::crypto::{SpaceKey, chosen_key, content_hash, prekey_id, prekey_public, public_space, space_id};
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::{AuxKey, Blob, ContentHash, Envelope, EventId, Identity, KeyId, Kind, Nanos, SpaceId, Verified};
use std::sync::Arc;

/// Somebody who signs.
#[derive(Clone, Debug)]
pub struct Author {
    /// Their key.
    pub key: SigningKey,
    /// Who they are.
    pub identity: Identity,
}

impl Author {
    /// The author of that number.
    pub fn new(number: u64) -> Author {
        let mut secret = [7; 32];
        secret[..8].copy_from_slice(&number.to_be_bytes());
        let key = SigningKey::from_bytes(&secret);
        Author { identity: Identity(key.verifying_key().to_bytes()), key }
    }

    /// Their public space.
    pub fn home(&self) -> SpaceId {
        public_space(&self.identity)
    }
}

/// An event with everything that travels beside it.
#[derive(Clone, Debug)]
pub struct MadeEvent {
    /// The id.
    pub id: EventId,
    /// The signed envelope.
    pub envelope: Verified,
    /// The blob.
    pub blob: Vec<u8>,
    /// Its content as it travels.
    pub wire: Vec<u8>,
    /// Its content, plain.
    pub plain: Vec<u8>,
}

impl MadeEvent {
    /// The content that travels beside the blob, given what is inline.
    pub fn inline(&self, inline_max: u64) -> Option<Vec<u8>> {
        (!self.wire.is_empty() && self.wire.len() as u64 <= inline_max).then(|| self.wire.clone())
    }

    /// The hash of its content.
    pub fn hash(&self) -> ContentHash {
        self.envelope.content_hash
    }
}

/// How events of a space are wrapped.
#[derive(Clone, Debug)]
pub struct Wrapping {
    /// The space.
    pub space: SpaceId,
    /// Its key; none in an open space.
    pub key: Option<Arc<SpaceKey>>,
}

/// What is to be written.
#[derive(Clone, Debug)]
pub struct EventText<'a> {
    /// The kind.
    pub kind: Kind,
    /// When.
    pub at: u64,
    /// The auxiliary key.
    pub aux: AuxKey,
    /// The payload.
    pub payload: Payload,
    /// What it refers to.
    pub references: Vec<(Role, EventId)>,
    /// The content, plain.
    pub content: &'a [u8],
}

impl<'a> EventText<'a> {
    /// A text of that kind and time that refers to these.
    pub fn new(kind: Kind, at: u64, references: &[(Role, EventId)], content: &'a [u8]) -> EventText<'a> {
        let references = references.iter().copied().filter(|(_, id)| *id != EventId::ZERO).collect();
        EventText { kind, at, aux: AuxKey::ZERO, payload: Payload::None, references, content }
    }

    /// The same with an auxiliary key.
    pub fn aux(self, aux: AuxKey) -> EventText<'a> {
        EventText { aux, ..self }
    }

    /// The same with a payload.
    pub fn payload(self, payload: Payload) -> EventText<'a> {
        EventText { payload, ..self }
    }
}

/// Writes, signs and wraps.
pub fn write(author: &Author, place: &Wrapping, inline_max: u64, text: EventText<'_>) -> MadeEvent {
    let mut envelope = Envelope::new(text.kind, Nanos(text.at), place.space, author.identity);
    envelope.aux = text.aux;
    envelope.payload = text.payload;
    envelope.references = text.references.into_iter().map(|(role, id)| Reference { role, id }).collect();
    let wire = match &place.key {
        Some(key) => {
            envelope.key = key.id();
            seal_content(key, text.content, inline_max, author.identity, Nanos(text.at))
        }
        None => text.content.to_vec(),
    };
    envelope.content_len = wire.len() as u64;
    envelope.content_hash = content_hash(&wire);
    let signed = envelope.sign(&author.key).expect("a well-formed envelope");
    let blob = match &place.key {
        Some(key) => Blob::seal(&signed, key),
        None => Blob::plain(&signed),
    };
    let blob = blob.expect("a well-formed blob");
    MadeEvent { id: blob.id(), envelope: signed, blob: blob.bytes().to_vec(), wire, plain: text.content.to_vec() }
}

/// The founding of a space.
pub fn found(author: &Author, at: u64, number: u8, sealed: Option<[u8; 32]>, inline_max: u64) -> (Wrapping, MadeEvent) {
    let aux = AuxKey([number + 1; 16]);
    let space = space_id(&author.identity, &aux, sealed.is_some());
    let place = Wrapping { space, key: sealed.map(|secret| Arc::new(SpaceKey::new(&space, secret))) };
    let payload = Payload::Space { sealed: sealed.is_some() };
    let text = EventText::new(Kind::Space, at, &[], br#"{"name":"home"}"#).aux(aux).payload(payload);
    let made = write(author, &place, inline_max, text);
    (place, made)
}

/// A key event for the holder of a prekey.
pub fn send_key(author: &Author, place: &Wrapping, at: u64, prekey_secret: &[u8; 32]) -> MadeEvent {
    let public = prekey_public(prekey_secret);
    let secret = *place.key.as_ref().expect("a sealed space").secret();
    let mut envelope = Envelope::new(Kind::Key, Nanos(at), place.space, author.identity);
    envelope.key = KeyId(prekey_id(&public).0);
    envelope.payload = Payload::Key(secret);
    let signed = envelope.sign(&author.key).expect("a well-formed envelope");
    let blob = Blob::address(&signed, &public).expect("a well-formed blob");
    MadeEvent { id: blob.id(), envelope: signed, blob: blob.bytes().to_vec(), wire: Vec::new(), plain: Vec::new() }
}

/// A grant.
pub fn grant(member: &Author, role: MemberRole) -> Payload {
    Payload::Member { member: member.identity, role }
}

/// The auxiliary key of an id that a client chose.
pub fn chosen(id: &str) -> AuxKey {
    chosen_key(id)
}
