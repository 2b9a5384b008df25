//! A Nostr event: reading it from JSON, its id, its signature, and the one way in which it is kept.

use super::{NOSTR_EVENT_BYTES_MAX, NOSTR_FORM, TAG_VALUE_BYTES_MAX, TAGS_MAX};
use crate::ids::{EventId, Nanos, NostrKey, Stamp, byte_ids};
use secp256k1::schnorr::Signature;
use secp256k1::{Keypair, SECP256K1, XOnlyPublicKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::ops::Deref;

byte_ids! {
    /// The whole id of a Nostr event: SHA-256 of what is signed.
    NostrId(32, "note", "a Nostr event id");
}

impl NostrId {
    /// The id by which the node knows the event: the first half.
    pub fn short(&self) -> EventId {
        let mut id = [0; 16];
        id.copy_from_slice(&self.0[..16]);
        EventId(id)
    }
}

/// Why a text is not a Nostr event that can be taken. The words go to clients, behind `invalid:`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadNostrEvent {
    #[error("the event is larger than {NOSTR_EVENT_BYTES_MAX} bytes")]
    Long,
    #[error("this is not an event: {0}")]
    Json(String),
    #[error("{0} must be hexadecimal digits in lower case, and exactly as many as it has")]
    Hex(&'static str),
    #[error("created_at must be a time in seconds between 1 and 18446744073")]
    Time,
    #[error("an event has at most {TAGS_MAX} tags, none of them empty")]
    Tags,
    #[error("a value in a tag has at most {TAG_VALUE_BYTES_MAX} bytes")]
    TagValue,
    #[error("the id is not that of the event")]
    Id,
    #[error("the signature is wrong")]
    Signature,
}

/// A Nostr event. Nothing is checked but its form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NostrEvent {
    pub id: NostrId,
    pub author: NostrKey,
    /// In seconds.
    pub created_at: u64,
    pub kind: u16,
    pub tags: Vec<Vec<String>>,
    pub content: String,
    pub signature: [u8; 64],
}

/// The fields as JSON has them, in the order in which an event is kept.
#[derive(Serialize, Deserialize)]
struct Fields<'a, T> {
    #[serde(borrow)]
    id: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    pubkey: std::borrow::Cow<'a, str>,
    created_at: u64,
    kind: u16,
    tags: T,
    #[serde(borrow)]
    content: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    sig: std::borrow::Cow<'a, str>,
}

impl NostrEvent {
    /// Reads an event from JSON, within the limits. Fields that Nostr does not know are left out.
    pub fn parse(text: &str) -> Result<NostrEvent, BadNostrEvent> {
        if text.len() > NOSTR_EVENT_BYTES_MAX {
            return Err(BadNostrEvent::Long);
        }
        let event = NostrEvent::read(text)?;
        if event.tags.len() > TAGS_MAX || event.tags.iter().any(Vec::is_empty) {
            return Err(BadNostrEvent::Tags);
        }
        if event.tags.iter().flatten().any(|value| value.len() > TAG_VALUE_BYTES_MAX) {
            return Err(BadNostrEvent::TagValue);
        }
        Ok(event)
    }

    fn read(text: &str) -> Result<NostrEvent, BadNostrEvent> {
        let fields: Fields<'_, Vec<Vec<String>>> =
            serde_json::from_str(text).map_err(|why| BadNostrEvent::Json(why.to_string()))?;
        let mut signature = [0; 64];
        let is_lower = fields.sig.bytes().all(|byte| !byte.is_ascii_uppercase());
        if !is_lower || hex::decode_to_slice(&*fields.sig, &mut signature).is_err() {
            return Err(BadNostrEvent::Hex("sig"));
        }
        // Times are kept in nanoseconds.
        if fields.created_at == 0 || fields.created_at > u64::MAX / Nanos::SECOND {
            return Err(BadNostrEvent::Time);
        }
        Ok(NostrEvent {
            id: fields.id.parse().map_err(|_| BadNostrEvent::Hex("id"))?,
            author: fields.pubkey.parse().map_err(|_| BadNostrEvent::Hex("pubkey"))?,
            created_at: fields.created_at,
            kind: fields.kind,
            tags: fields.tags,
            content: fields.content.into_owned(),
            signature,
        })
    }

    /// The event in its one serialisation.
    pub fn to_json(&self) -> String {
        let fields = Fields {
            id: self.id.to_string().into(),
            pubkey: self.author.to_string().into(),
            created_at: self.created_at,
            kind: self.kind,
            tags: &self.tags,
            content: self.content.as_str().into(),
            sig: hex::encode(self.signature).into(),
        };
        // Strings and numbers can always be written.
        serde_json::to_string(&fields).unwrap_or_default()
    }

    /// The id that what it says has.
    pub fn compute_id(&self) -> NostrId {
        let signed = (0, self.author.to_string(), self.created_at, self.kind, &self.tags, &self.content);
        let mut hash = Sha256::new();
        // Hashing does not fail.
        let _ = serde_json::to_writer(HashWriter(&mut hash), &signed);
        NostrId(hash.finalize().into())
    }

    /// An event signed with a secret key. Which signature it is of those that are valid does not matter.
    pub fn sign(
        secret: &[u8; 32],
        created_at: u64,
        kind: u16,
        tags: Vec<Vec<String>>,
        content: &str,
    ) -> Result<VerifiedNostr, BadNostrEvent> {
        let key = Keypair::from_seckey_slice(SECP256K1, secret).map_err(|_| BadNostrEvent::Signature)?;
        let author = NostrKey(key.x_only_public_key().0.serialize());
        let (id, signature, content) = (NostrId::ZERO, [0; 64], content.to_owned());
        let mut event = NostrEvent { id, author, created_at, kind, tags, content, signature };
        event.id = event.compute_id();
        event.signature = SECP256K1.sign_schnorr_with_aux_rand(&event.id.0, &key, &[0; 32]).to_byte_array();
        event.check()
    }

    /// Checks the id, then the signature.
    pub fn check(self) -> Result<VerifiedNostr, BadNostrEvent> {
        if self.compute_id() != self.id {
            return Err(BadNostrEvent::Id);
        }
        let signature = Signature::from_slice(&self.signature).map_err(|_| BadNostrEvent::Signature)?;
        let author = XOnlyPublicKey::from_slice(&self.author.0).map_err(|_| BadNostrEvent::Signature)?;
        match SECP256K1.verify_schnorr(&signature, &self.id.0, &author) {
            Ok(()) => Ok(VerifiedNostr(self)),
            Err(_) => Err(BadNostrEvent::Signature),
        }
    }

    /// When, in nanoseconds.
    pub fn at(&self) -> Nanos {
        Nanos(self.created_at.saturating_mul(Nanos::SECOND))
    }

    /// Its place in the order of events.
    pub fn stamp(&self) -> Stamp {
        Stamp { at: self.at(), id: self.id.short() }
    }

    /// The values of the first tag of that name, without the name.
    pub fn tag(&self, name: &str) -> Option<&[String]> {
        self.tags_of(name).next()
    }

    /// The values of all tags of that name, without the name.
    pub fn tags_of(&self, name: &str) -> impl Iterator<Item = &[String]> {
        self.tags
            .iter()
            .filter_map(move |tag| tag.split_first().filter(|(first, _)| *first == name))
            .map(|(_, rest)| rest)
    }

    /// The first value of the first tag of that name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.tag(name)?.first().map(String::as_str)
    }

    /// When it ends to count, in seconds (NIP-40).
    pub fn expires_at(&self) -> Option<u64> {
        self.value("expiration")?.parse().ok()
    }

    /// Whether only its author may publish it (NIP-70).
    pub fn is_protected(&self) -> bool {
        self.tag("-").is_some()
    }
}

/// Bytes that are hashed as they are written.
struct HashWriter<'a>(&'a mut Sha256);

impl std::io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A Nostr event whose id and signature were checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifiedNostr(NostrEvent);

impl VerifiedNostr {
    /// The event of a blob that was checked before it was kept.
    pub fn kept(blob: &[u8]) -> Result<VerifiedNostr, BadNostrEvent> {
        NostrEvent::read(json_of(blob)?).map(VerifiedNostr)
    }

    /// The event of a blob, checked.
    pub fn of_blob(blob: &[u8]) -> Result<VerifiedNostr, BadNostrEvent> {
        let event = NostrEvent::parse(json_of(blob)?)?;
        // One event has one blob: another serialisation is none.
        if event.to_blob() != blob {
            return Err(BadNostrEvent::Json("it is not in its canonical form".into()));
        }
        event.check()
    }
}

impl NostrEvent {
    /// The bytes in which it is kept and travels between nodes.
    pub fn to_blob(&self) -> Vec<u8> {
        [&[NOSTR_FORM], self.to_json().as_bytes()].concat()
    }
}

impl Deref for VerifiedNostr {
    type Target = NostrEvent;

    fn deref(&self) -> &NostrEvent {
        &self.0
    }
}

fn json_of(blob: &[u8]) -> Result<&str, BadNostrEvent> {
    let json = blob.strip_prefix(&[NOSTR_FORM]).unwrap_or_default();
    std::str::from_utf8(json).map_err(|_| BadNostrEvent::Json("it is not UTF-8".into()))
}

/// What stands before the id in a blob.
const BEFORE_ID: &[u8] = b"\x05{\"id\":\"";

/// The whole id that a blob says, without looking at the rest.
pub(crate) fn id_in(blob: &[u8]) -> Option<NostrId> {
    let digits = blob.strip_prefix(BEFORE_ID)?.first_chunk::<64>()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}
