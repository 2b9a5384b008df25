//! The envelope: the signed bytes of an event of the `space` protocol.
//!
//! One layout, one encoding: what decodes encodes to the same bytes, so that an envelope has one form and its blob one
//! id. Decoding checks everything that can be said of an envelope alone; what depends on other events is the engine's.

use crate::author_points::verifying_key;
use crate::crypto::content_hash;
use crate::ids::{AuxKey, ContentHash, EventId, Identity, KeyId, Nanos, SpaceId};
use crate::kind::{ContentRule, Kind};
use crate::limits::{
    CONTENT_BYTES_MAX, ENVELOPE_BYTES_MAX, FORMAT_VERSION, PAYLOAD_BYTES_MAX, REFERENCES_MAX, SIGNATURE_BYTES,
};
use crate::payload::{BadPayload, Payload};
use crate::reader::{ByteReader, TooShort};
use ed25519_dalek::{Signature, Signer, SigningKey};

const SIGNATURE_TAG: &[u8] = b"anteroom envelope v1\0";

/// Why an event refers to another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// The membership that gives the right. A need.
    Authority,
    /// The thread it belongs to. A need.
    Thread,
    /// What it changes. A need, except of a delete.
    Target,
    /// A file it carries. A need.
    Attachment,
    /// What it answers. Not a need.
    ReplyTo,
    /// Whose public space it mentions. Not a need.
    Mention,
}

impl Role {
    pub fn code(self) -> u8 {
        match self {
            Role::Authority => 1,
            Role::Thread => 2,
            Role::Target => 3,
            Role::Attachment => 4,
            Role::ReplyTo => 5,
            Role::Mention => 6,
        }
    }

    pub fn from_code(code: u8) -> Option<Role> {
        match code {
            1 => Some(Role::Authority),
            2 => Some(Role::Thread),
            3 => Some(Role::Target),
            4 => Some(Role::Attachment),
            5 => Some(Role::ReplyTo),
            6 => Some(Role::Mention),
            _ => None,
        }
    }
}

/// A reference to another event. They are sorted, and none stands twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Reference {
    pub role: Role,
    pub id: EventId,
}

/// Why bytes are not an envelope, or an envelope is not valid by itself.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadEnvelope {
    #[error("unknown envelope version {0}; this release knows version 1")]
    Version(u8),
    #[error("unknown envelope flags {0:#04x}")]
    Flags(u8),
    #[error("the envelope ends too early")]
    Short,
    #[error("the envelope has bytes after its end")]
    Long,
    #[error("the time of the envelope is zero or beyond 2^63")]
    Time,
    #[error("the content is larger than {CONTENT_BYTES_MAX} bytes")]
    ContentLength,
    /// Content where there must be none, or none where there must be some.
    #[error("the content does not fit the kind")]
    Content,
    /// The hash of empty content is not that of no bytes.
    #[error("the hash of empty content is wrong")]
    EmptyHash,
    #[error("the payload is larger than {PAYLOAD_BYTES_MAX} bytes")]
    PayloadLength,
    /// A payload that does not fit its kind.
    #[error(transparent)]
    Payload(#[from] BadPayload),
    #[error("more than {REFERENCES_MAX} references")]
    References,
    #[error("the references are not sorted, or one stands twice")]
    Unsorted,
    #[error("unknown role {0} of a reference")]
    Role(u8),
    /// The author is not a key, or the signature is not theirs.
    #[error("the signature is not the author's")]
    Signature,
}

impl From<TooShort> for BadEnvelope {
    fn from(_: TooShort) -> BadEnvelope {
        BadEnvelope::Short
    }
}

/// The statement of an event, without its signature.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    pub kind: Kind,
    /// By the author's clock.
    pub created_at: Nanos,
    pub space: SpaceId,
    pub author: Identity,
    /// Under which key it is sealed; for key events the prekey; zero: plain.
    pub key: KeyId,
    /// Two earlier events of this author in this space, or zero.
    pub parents: [EventId; 2],
    pub aux: AuxKey,
    /// In bytes, as it travels.
    pub content_len: u64,
    pub content_hash: ContentHash,
    /// Small data that decides validity.
    pub payload: Payload,
    /// Sorted.
    pub references: Vec<Reference>,
}

impl Envelope {
    /// An envelope that says nothing yet: no content, no references.
    pub fn new(kind: Kind, created_at: Nanos, space: SpaceId, author: Identity) -> Envelope {
        Envelope {
            kind,
            created_at,
            space,
            author,
            key: KeyId::ZERO,
            parents: [EventId::ZERO; 2],
            aux: AuxKey::ZERO,
            content_len: 0,
            content_hash: content_hash(&[]),
            payload: Payload::None,
            references: Vec::new(),
        }
    }

    pub fn reference(&self, role: Role) -> Option<EventId> {
        self.references.iter().find(|reference| reference.role == role).map(|reference| reference.id)
    }

    /// The references that must be applied before this can be.
    pub fn needed_references(&self) -> impl Iterator<Item = Reference> + '_ {
        self.references.iter().copied().filter(|reference| match reference.role {
            Role::Authority | Role::Thread | Role::Attachment => true,
            Role::Target => self.kind != Kind::Delete,
            Role::ReplyTo | Role::Mention => false,
        })
    }

    /// Signs it, which also puts the references in order.
    pub fn sign(mut self, key: &SigningKey) -> Result<Verified, BadEnvelope> {
        self.references.sort_unstable();
        self.references.dedup();
        self.author = Identity(key.verifying_key().to_bytes());
        let mut bytes = self.encode_unsigned();
        let signature = key.sign(&signed_text(&bytes));
        bytes.extend_from_slice(&signature.to_bytes());
        let envelope = Envelope::decode(&bytes)?.0;
        Ok(Verified { envelope, bytes })
    }

    /// What somebody whose key is elsewhere has to sign. The references must be in order.
    pub fn text_to_sign(&self) -> Vec<u8> {
        signed_text(&self.encode_unsigned())
    }

    fn encode_unsigned(&self) -> Vec<u8> {
        let payload = self.payload.encode();
        let mut out = Vec::with_capacity(512);
        out.extend([FORMAT_VERSION, 0]);
        out.extend(self.kind.code().to_be_bytes());
        out.extend(self.created_at.0.to_be_bytes());
        out.extend(self.space.0);
        out.extend(self.author.0);
        out.extend(self.key.0);
        out.extend(self.parents[0].0);
        out.extend(self.parents[1].0);
        out.extend(self.aux.0);
        out.extend(self.content_len.to_be_bytes());
        out.extend(self.content_hash.0);
        out.extend((payload.len() as u16).to_be_bytes());
        out.extend(payload);
        out.push(self.references.len() as u8);
        for reference in &self.references {
            out.push(reference.role.code());
            out.extend(reference.id.0);
        }
        out
    }

    /// Reads an envelope and its signature, checking all but the signature.
    pub fn decode(bytes: &[u8]) -> Result<(Envelope, [u8; SIGNATURE_BYTES]), BadEnvelope> {
        if bytes.len() > ENVELOPE_BYTES_MAX {
            return Err(BadEnvelope::Long);
        }
        let mut reader = ByteReader::new(bytes);
        match reader.u8()? {
            FORMAT_VERSION => {}
            other => return Err(BadEnvelope::Version(other)),
        }
        match reader.u8()? {
            0 => {}
            other => return Err(BadEnvelope::Flags(other)),
        }
        let kind = Kind::from_code(reader.u16()?);
        let created_at = reader.nanos()?;
        let space = SpaceId(reader.array()?);
        let author = Identity(reader.array()?);
        let key = KeyId(reader.array()?);
        let parents = [EventId(reader.array()?), EventId(reader.array()?)];
        let aux = AuxKey(reader.array()?);
        let content_len = reader.u64()?;
        let content_hash = ContentHash(reader.array()?);
        let payload = decode_payload(kind, &mut reader)?;
        let references = decode_references(&mut reader)?;
        let signature = reader.array()?;
        if !reader.rest().is_empty() {
            return Err(BadEnvelope::Long);
        }
        let envelope = Envelope {
            kind,
            created_at,
            space,
            author,
            key,
            parents,
            aux,
            content_len,
            content_hash,
            payload,
            references,
        };
        envelope.check_alone()?;
        Ok((envelope, signature))
    }

    fn check_alone(&self) -> Result<(), BadEnvelope> {
        if self.created_at.0 == 0 || self.created_at.0 > i64::MAX as u64 {
            return Err(BadEnvelope::Time);
        }
        if self.content_len > CONTENT_BYTES_MAX {
            return Err(BadEnvelope::ContentLength);
        }
        if self.content_len == 0 && self.content_hash != content_hash(&[]) {
            return Err(BadEnvelope::EmptyHash);
        }
        match (self.kind.content_rule(), self.content_len) {
            (ContentRule::Json, 0) | (ContentRule::Empty, 1..) => Err(BadEnvelope::Content),
            (ContentRule::Json | ContentRule::Empty | ContentRule::Any, _) => Ok(()),
        }
    }
}

fn decode_payload(kind: Kind, reader: &mut ByteReader<'_>) -> Result<Payload, BadEnvelope> {
    let length = usize::from(reader.u16()?);
    if length > PAYLOAD_BYTES_MAX {
        return Err(BadEnvelope::PayloadLength);
    }
    Ok(Payload::decode(kind, reader.bytes(length)?)?)
}

fn decode_references(reader: &mut ByteReader<'_>) -> Result<Vec<Reference>, BadEnvelope> {
    let count = usize::from(reader.u8()?);
    if count > REFERENCES_MAX {
        return Err(BadEnvelope::References);
    }
    let mut references: Vec<Reference> = Vec::with_capacity(count);
    for _ in 0..count {
        let code = reader.u8()?;
        let role = Role::from_code(code).ok_or(BadEnvelope::Role(code))?;
        let reference = Reference { role, id: EventId(reader.array()?) };
        if references.last().is_some_and(|last| *last >= reference) {
            return Err(BadEnvelope::Unsorted);
        }
        references.push(reference);
    }
    Ok(references)
}

fn signed_text(unsigned: &[u8]) -> Vec<u8> {
    [SIGNATURE_TAG, unsigned].concat()
}

/// An envelope whose signature was checked. Everything beyond the doors takes nothing else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    envelope: Envelope,
    bytes: Vec<u8>,
}

impl Verified {
    /// Decodes the bytes and checks the signature, strictly: small-order keys and malleable signatures are refused.
    pub fn check(bytes: &[u8]) -> Result<Verified, BadEnvelope> {
        let (envelope, signature) = Envelope::decode(bytes)?;
        let key = verifying_key(&envelope.author).ok_or(BadEnvelope::Signature)?;
        let unsigned = &bytes[..bytes.len().saturating_sub(SIGNATURE_BYTES)];
        key.verify_strict(&signed_text(unsigned), &Signature::from_bytes(&signature))
            .map_err(|_| BadEnvelope::Signature)?;
        Ok(Verified { envelope, bytes: bytes.to_vec() })
    }

    /// Puts together what was signed elsewhere, as [`Envelope::text_to_sign`] gave it out, and checks it.
    pub fn from_elsewhere(text: &[u8], signature: &[u8; SIGNATURE_BYTES]) -> Result<Verified, BadEnvelope> {
        let unsigned = text.strip_prefix(SIGNATURE_TAG).ok_or(BadEnvelope::Signature)?;
        Verified::check(&[unsigned, signature].concat())
    }

    /// Decodes bytes that this node checked before it kept them, as their row in the store says.
    pub fn kept(bytes: &[u8]) -> Result<Verified, BadEnvelope> {
        let (envelope, _) = Envelope::decode(bytes)?;
        Ok(Verified { envelope, bytes: bytes.to_vec() })
    }

    pub fn envelope(&self) -> &Envelope {
        &self.envelope
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::ops::Deref for Verified {
    type Target = Envelope;

    fn deref(&self) -> &Envelope {
        &self.envelope
    }
}
