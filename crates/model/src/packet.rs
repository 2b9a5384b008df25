//! The packet between nodes: a blob and its inline content, encrypted for one receiver.
//!
//! What is malformed, unknown or mis-attributed is dropped without an answer, so errors here are for counters only.

use crate::crypto::{
    BOX_OVERHEAD_BYTES, DecryptError, NONCE_BYTES, TAG_BYTES, TransitSecret, open_box, prekey_id, seal_box,
};
use crate::ids::{PrekeyId, TransitId};
use crate::limits::{BLOB_BYTES_MAX, INLINE_WIRE_BYTES_MAX, PACKET_BYTES_MAX};

const TRANSIT: u8 = 0x02;
const FIRST_MEETING: u8 = 0x03;
const HEADER_BYTES: usize = 1 + 16;

/// Why a packet is dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPacket {
    #[error("unknown packet version {0:#04x}; this release knows 0x02 and 0x03")]
    Version(u8),
    #[error("no packet has this length")]
    Length,
    /// Decryption failed.
    #[error(transparent)]
    Cipher(#[from] DecryptError),
}

/// The addressee of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketHeader {
    /// Someone we share a transit secret with.
    Transit(TransitId),
    /// Someone contacted for the first time, by their prekey.
    FirstMeeting(PrekeyId),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PacketContent {
    pub blob: Vec<u8>,
    /// The inline content beside it; empty for none.
    pub inline: Vec<u8>,
}

/// Reads the header of a packet without decrypting it.
pub fn parse(packet: &[u8]) -> Result<PacketHeader, BadPacket> {
    if packet.len() > PACKET_BYTES_MAX {
        return Err(BadPacket::Length);
    }
    let (form, rest) = packet.split_first().ok_or(BadPacket::Length)?;
    let (id, rest) = rest.split_first_chunk::<16>().ok_or(BadPacket::Length)?;
    match *form {
        TRANSIT if rest.len() >= NONCE_BYTES + TAG_BYTES + 2 => Ok(PacketHeader::Transit(TransitId(*id))),
        FIRST_MEETING if rest.len() >= BOX_OVERHEAD_BYTES + 2 => Ok(PacketHeader::FirstMeeting(PrekeyId(*id))),
        TRANSIT | FIRST_MEETING => Err(BadPacket::Length),
        other => Err(BadPacket::Version(other)),
    }
}

/// Encrypts a packet for a peer. The nonce must be random and must never repeat.
pub fn wrap(secret: &TransitSecret, nonce: [u8; NONCE_BYTES], carried: &PacketContent) -> Result<Vec<u8>, BadPacket> {
    let mut packet = header(TRANSIT, &secret.id().0);
    let sealed = secret.seal(&nonce, &packet, &encode(carried)?);
    packet.extend(nonce);
    packet.extend(sealed);
    Ok(packet)
}

/// Decrypts a packet from a peer.
pub fn unwrap(secret: &TransitSecret, packet: &[u8]) -> Result<PacketContent, BadPacket> {
    let (header, rest) = packet.split_at_checked(HEADER_BYTES).ok_or(BadPacket::Length)?;
    let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(BadPacket::Length)?;
    decode(&secret.open(nonce, header, sealed)?)
}

/// Wraps for someone met for the first time; the ephemeral secret is random.
pub fn wrap_first(ephemeral: [u8; 32], prekey: &[u8; 32], carried: &PacketContent) -> Result<Vec<u8>, BadPacket> {
    let mut packet = header(FIRST_MEETING, &prekey_id(prekey).0);
    let sealed = seal_box(&ephemeral, prekey, &packet, &encode(carried)?)?;
    packet.extend(sealed);
    Ok(packet)
}

/// Decrypts the first packet from somebody, which is sealed to our prekey.
pub fn unwrap_first(secret: &[u8; 32], packet: &[u8]) -> Result<PacketContent, BadPacket> {
    let (header, sealed) = packet.split_at_checked(HEADER_BYTES).ok_or(BadPacket::Length)?;
    decode(&open_box(secret, header, sealed)?.1)
}

fn header(form: u8, id: &[u8; 16]) -> Vec<u8> {
    [&[form], id.as_slice()].concat()
}

fn encode(carried: &PacketContent) -> Result<Vec<u8>, BadPacket> {
    if carried.blob.len() > BLOB_BYTES_MAX || carried.inline.len() > INLINE_WIRE_BYTES_MAX {
        return Err(BadPacket::Length);
    }
    let mut bytes = (carried.blob.len() as u32).to_be_bytes().to_vec();
    bytes.extend(&carried.blob);
    bytes.extend(&carried.inline);
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Result<PacketContent, BadPacket> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(BadPacket::Length)?;
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(|_| BadPacket::Length)?;
    let (blob, inline) = rest.split_at_checked(length).ok_or(BadPacket::Length)?;
    if inline.len() > INLINE_WIRE_BYTES_MAX {
        return Err(BadPacket::Length);
    }
    Ok(PacketContent { blob: blob.to_vec(), inline: inline.to_vec() })
}
