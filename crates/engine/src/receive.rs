//! RECEIVE: what others send becomes an [`Arrival`], or is dropped with a reason that is counted.
//!
//! All of this happens before the writer, in parallel: parsing, hashing, decryption, signatures. The writer gets
//! values whose type says that they were checked.

use crate::content::ContentCheck;
use crate::keyring::{Keyring, Transit};
use crate::opened::{Opened, Opening};
use crate::policy::Policy;
use crate::protocol;
use crate::rows::Origin;
use model::Blob;
use model::blob::{BadBlob, BlobForm};
use model::nostr::VerifiedNostr;
use model::packet::{self, BadPacket, PacketContent, PacketHeader};
use model::planted::{PlantedBug, is_planted};

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
    let space = match (arrival.blob.form().named_space(), &arrival.opening) {
        (Some(space), _) => space,
        (None, Opening::Opened(opened)) => opened.space(),
        (None, _) => return Err(DropReason::Gate),
    };
    match transit {
        Some(transit) if transit.space == space => Ok(arrival),
        None if arrival.blob.form() == BlobForm::Plain => Ok(arrival),
        Some(_) | None => Err(DropReason::Gate),
    }
}

/// Parses a blob of the `space` protocol and opens it as far as the keys go.
pub fn parse(
    keyring: &impl Keyring,
    policy: &Policy,
    blob: Vec<u8>,
    inline: Option<Vec<u8>>,
    origin: Origin,
) -> Result<Arrival, DropReason> {
    accept(keyring, policy, Blob::parse(blob)?, inline, origin)
}

/// Opens a parsed blob as far as the keys go. What opens to something invalid is dropped here.
pub fn accept(
    keyring: &impl Keyring,
    policy: &Policy,
    blob: Blob,
    inline: Option<Vec<u8>>,
    origin: Origin,
) -> Result<Arrival, DropReason> {
    let inline = inline.filter(|bytes| !bytes.is_empty());
    if inline.as_ref().is_some_and(|bytes| bytes.len() as u64 > policy.inline_bytes_max) {
        return Err(DropReason::Inline);
    }
    let opening = match protocol::open(keyring, &blob) {
        Opening::Bad(why) => return Err(DropReason::Blob(why)),
        opening => opening,
    };
    Ok(complete(keyring, policy, Arrival { blob, opening, inline, verdict: None, origin }))
}

/// An event of the `nostr` protocol that was checked already, as clients and relays send them.
pub fn accept_nostr(event: VerifiedNostr, origin: Origin) -> Result<Arrival, DropReason> {
    let blob = Blob::parse_kept(event.to_blob())?;
    Ok(Arrival { blob, opening: Opening::Opened(Opened::Nostr(event)), inline: None, verdict: None, origin })
}

/// Checks inline content against the opened event; bytes that are not those that were signed for are left out.
pub fn complete(keyring: &impl Keyring, policy: &Policy, mut arrival: Arrival) -> Arrival {
    let (Opening::Opened(opened), Some(wire)) = (&arrival.opening, &arrival.inline) else { return arrival };
    let is_content = opened.is_content(wire) || is_planted(PlantedBug::InlineContentUnchecked);
    if opened.content().0 > policy.inline_bytes_max || !is_content {
        arrival.inline = None;
        return arrival;
    }
    arrival.verdict = Some(protocol::judge_content(keyring, policy, opened, wire));
    arrival
}
