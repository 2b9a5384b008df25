//! RECEIVE: what others send becomes an [`Arrival`], or is dropped with a reason that is counted.
//!
//! All of this happens before the writer, in parallel: parsing, hashing, decryption, signatures. The writer gets
//! values whose type says that they were checked.

use crate::content::ContentCheck;
use crate::opened::Opened;
use crate::policy::Policy;
use crate::protocol::space::judge_body;
use crate::rows::Origin;
use model::blob::{BadBlob, BlobForm};
use model::content::{ChunkBinding, open_content};
use model::crypto::{SpaceKey, TransitSecret, content_hash};
use model::packet::{self, BadPacket, PacketContent, PacketHeader};
use model::{Blob, Envelope, KeyId, PrekeyId, SpaceId, TransitId};
use std::sync::Arc;

/// The secrets at hand.
pub trait Keyring {
    /// A space key.
    fn space_key(&self, space: &SpaceId, key: &KeyId) -> Option<Arc<SpaceKey>>;
    /// The secret of a prekey.
    fn prekey(&self, prekey: &PrekeyId) -> Option<[u8; 32]>;
    /// A transit secret, with the space and the peer it stands for.
    fn transit(&self, transit: &TransitId) -> Option<Transit>;
}

/// What a transit secret attributes a packet to.
#[derive(Clone, Debug)]
pub struct Transit {
    /// The secret.
    pub secret: Arc<TransitSecret>,
    /// The space it was agreed for.
    pub space: SpaceId,
    /// The peer it was agreed with.
    pub peer: u32,
}

impl std::fmt::Debug for dyn Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyring")
    }
}

/// What opening a blob came to.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all of them are opened")]
pub enum Opening {
    /// Opened and checked.
    Opened(Opened),
    /// The space key is not here.
    NoKey(SpaceId, KeyId),
    /// Addressed to a prekey that is not ours.
    NotOurs(SpaceId),
    /// It opens to something that is not valid.
    Bad(BadBlob),
}

/// Something that came through a door and can be stored.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The blob.
    pub blob: Blob,
    /// What it opens to, as far as the keys at hand go.
    pub opening: Opening,
    /// The inline content that came beside it.
    pub inline: Option<Vec<u8>>,
    /// Whether that content fits, where the blob could be opened.
    pub verdict: Option<ContentCheck>,
    /// The door.
    pub origin: Origin,
}

/// Why something was dropped at the door. Nothing of it is remembered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DropReason {
    /// Not a packet.
    #[error(transparent)]
    Packet(#[from] BadPacket),
    /// Not a blob, or not a valid one.
    #[error(transparent)]
    Blob(#[from] BadBlob),
    /// Wrapped for a secret that is not here.
    #[error("the packet names a secret that is not here")]
    Secret,
    /// The blob is not of the space that the secret stands for.
    #[error("the packet's secret is not for the blob's space")]
    Gate,
    /// More inline content than there can be.
    #[error("the inline content is too long")]
    Inline,
}

impl DropReason {
    /// The word under which it is counted.
    pub fn word(&self) -> &'static str {
        match self {
            DropReason::Packet(_) => "packet",
            DropReason::Blob(BadBlob::Version(_)) => "version",
            DropReason::Blob(BadBlob::Resealed) => "resealed",
            DropReason::Blob(_) => "blob",
            DropReason::Secret => "secret",
            DropReason::Gate => "gate",
            DropReason::Inline => "inline",
        }
    }
}

/// Unwraps a packet, with what its secret attributes it to.
pub fn unwrap(keyring: &impl Keyring, bytes: &[u8]) -> Result<(PacketContent, Option<Transit>), DropReason> {
    match packet::parse(bytes)? {
        PacketHeader::Transit(id) => {
            let transit = keyring.transit(&id).ok_or(DropReason::Secret)?;
            Ok((packet::unwrap(&transit.secret, bytes)?, Some(transit)))
        }
        PacketHeader::FirstMeeting(id) => {
            let secret = keyring.prekey(&id).ok_or(DropReason::Secret)?;
            Ok((packet::unwrap_first(&secret, bytes)?, None))
        }
    }
}

/// The space in the blob must be the one the secret stands for; strangers bring plain blobs only.
pub fn gate(arrival: Arrival, transit: Option<&Transit>) -> Result<Arrival, DropReason> {
    let space = match (&arrival.opening, arrival.blob.form()) {
        (_, BlobForm::Sealed { space, .. } | BlobForm::Addressed { space, .. }) => space,
        (Opening::Opened(opened), BlobForm::Plain) => opened.space(),
        (_, BlobForm::Plain) => return Err(DropReason::Gate),
    };
    match transit {
        Some(transit) if transit.space == space => Ok(arrival),
        None if arrival.blob.form() == BlobForm::Plain => Ok(arrival),
        Some(_) | None => Err(DropReason::Gate),
    }
}

/// Parses a blob and opens it as far as the keys go. What opens to something invalid is dropped here.
pub fn parse(
    keyring: &impl Keyring,
    policy: &Policy,
    blob: Vec<u8>,
    inline: Option<Vec<u8>>,
    origin: Origin,
) -> Result<Arrival, DropReason> {
    let blob = Blob::parse(blob)?;
    let inline = inline.filter(|bytes| !bytes.is_empty());
    if inline.as_ref().is_some_and(|bytes| bytes.len() as u64 > policy.inline_bytes_max) {
        return Err(DropReason::Inline);
    }
    let opening = match open(keyring, &blob) {
        Opening::Bad(why) => return Err(DropReason::Blob(why)),
        opening => opening,
    };
    Ok(complete(keyring, policy, Arrival { blob, opening, inline, verdict: None, origin }))
}

/// Checks inline content against the opened envelope; bytes that are not those that were signed for are left out.
pub fn complete(keyring: &impl Keyring, policy: &Policy, mut arrival: Arrival) -> Arrival {
    let Opening::Opened(Opened::Space(envelope)) = &arrival.opening else {
        return arrival;
    };
    let Some(wire) = &arrival.inline else { return arrival };
    if envelope.content_len > policy.inline_bytes_max || !is_content_of(envelope, wire) {
        arrival.inline = None;
        return arrival;
    }
    arrival.verdict = Some(match plain_content(keyring, policy.inline_bytes_max, envelope, wire) {
        Some(plain) => judge_body(envelope.kind, &plain),
        None => ContentCheck::Unfit,
    });
    arrival
}

/// Whether these bytes are the content that the envelope names.
pub fn is_content_of(envelope: &Envelope, wire: &[u8]) -> bool {
    envelope.content_len == wire.len() as u64 && content_hash(wire) == envelope.content_hash
}

/// The plain bytes of content as it travels, if it opens.
pub fn plain_content(
    keyring: &impl Keyring,
    inline_bytes_max: u64,
    envelope: &Envelope,
    wire: &[u8],
) -> Option<Vec<u8>> {
    if envelope.key.is_zero() {
        return Some(wire.to_vec());
    }
    let key = keyring.space_key(&envelope.space, &envelope.key)?;
    open_content(&key, wire, ChunkBinding::of(envelope, inline_bytes_max)).ok()
}

/// Opens a blob with the keys at hand and checks the signature.
pub fn open(keyring: &impl Keyring, blob: &Blob) -> Opening {
    let checked = match blob.form() {
        BlobForm::Plain => blob.check_plain(),
        BlobForm::Sealed { space, key } => match keyring.space_key(&space, &key) {
            Some(secret) => blob.check_sealed(&secret),
            None => return Opening::NoKey(space, key),
        },
        BlobForm::Addressed { space, prekey } => match keyring.prekey(&prekey) {
            Some(secret) => blob.check_addressed(&secret),
            None => return Opening::NotOurs(space),
        },
    };
    checked.map_or_else(Opening::Bad, |envelope| Opening::Opened(Opened::Space(envelope)))
}

/// Opens a blob that was checked before it was kept.
pub fn reopen(keyring: &impl Keyring, blob: &Blob) -> Option<Opened> {
    let envelope = match blob.form() {
        BlobForm::Plain => blob.kept_plain().ok(),
        BlobForm::Sealed { space, key } => blob.kept_sealed(&*keyring.space_key(&space, &key)?).ok(),
        BlobForm::Addressed { prekey, .. } => blob.kept_addressed(&keyring.prekey(&prekey)?).ok(),
    };
    envelope.map(Opened::Space)
}
