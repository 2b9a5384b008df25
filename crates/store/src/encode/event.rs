//! The row of an event: its stage, the state of its content, what its envelope says, its blob, its inline content.

use super::broken;
use super::values::{get_origin, put_origin};
use super::varint::{get_number, get_varint, put_varint};
use crate::at_rest::Inline;
use engine::reads::StoreResult;
use engine::rows::{EventKind, EventRow, Meta};
use model::blob::{PLAIN_HASH_AT, PLAIN_TIME_AT};
use model::payload::MemberRole;
use model::reader::{ByteReader, TooShort};
use model::stage::{ContentState, Stage};
use model::{AuthorNo, Blob, ContentHash, Nanos, Need, Seq, SpaceNo, Stamp};

/// The first byte of every row, so that its form may change.
const ROW_VERSION: u8 = 1;
const FLAG_INLINE: u8 = 1;
const FLAG_OPENED: u8 = 2;
const FLAG_COUNTS: u8 = 4;
/// The event stands on a membership.
const LINK_AUTHORITY: u8 = 1;
/// The event belongs to a thread or target.
const LINK_SUBJECT: u8 = 2;
/// The inline content begins with a tag that tells its form.
const FLAG_AT_REST: u8 = 8;
/// Why an event is parked is told in at most so many bytes.
const WHY_BYTES_MAX: usize = 500;
/// The event gives a role, which is said.
const FLAG_GRANTS: u8 = 16;
/// The time and the hash of the content stand in the blob, and are not said again.
const FLAG_IN_BLOB: u8 = 32;

/// An event's row as it is kept: the row, its blob, its inline content.
pub(crate) fn encode_event(row: &EventRow, blob: &[u8], inline: Option<&Inline<'_>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(160 + blob.len() + inline.map_or(0, |inline| inline.bytes.len()));
    let mut flags = 0;
    flags |= if inline.is_some() { FLAG_INLINE } else { 0 };
    flags |= if inline.is_some_and(|inline| inline.is_at_rest) { FLAG_AT_REST } else { 0 };
    flags |= if row.meta.is_some() { FLAG_OPENED } else { 0 };
    flags |= if row.meta.as_ref().is_some_and(|meta| meta.counts) { FLAG_COUNTS } else { 0 };
    flags |= if row.meta.as_ref().is_some_and(|meta| meta.grants.is_some()) { FLAG_GRANTS } else { 0 };
    let is_in_blob = row.meta.as_ref().is_some_and(|meta| said_in(blob) == Some((meta.at, meta.content_hash)));
    flags |= if is_in_blob { FLAG_IN_BLOB } else { 0 };
    // The id is the hash of the blob.
    out.extend([ROW_VERSION, flags]);
    put_origin(row.origin, &mut out);
    out.extend(row.received_at.0.to_be_bytes());
    encode_stage(&row.stage, &mut out);
    encode_state(row.content, &mut out);
    if let Some(meta) = &row.meta {
        encode_meta(meta, &mut out);
        if !is_in_blob {
            out.extend(meta.at.0.to_be_bytes());
            out.extend(meta.content_hash.0);
        }
    }
    put_varint(blob.len() as u64, &mut out);
    out.extend(blob);
    out.extend(inline.map_or(&[][..], |inline| &inline.bytes));
    out
}

fn encode_stage(stage: &Stage, out: &mut Vec<u8>) {
    match stage {
        Stage::Ready => out.push(0),
        Stage::Held { unmet, since, until } => {
            out.push(1);
            out.extend(since.0.to_be_bytes());
            out.extend(until.0.to_be_bytes());
            out.extend((unmet.len() as u16).to_be_bytes());
            unmet.iter().for_each(|need| out.extend(need.to_key()));
        }
        Stage::Applied { position } => {
            out.push(2);
            put_varint(*position, out);
        }
        Stage::Carried => out.push(3),
        Stage::Parked { why } => {
            let why = &why.as_bytes()[..why.floor_char_boundary(WHY_BYTES_MAX)];
            out.push(5);
            out.extend((why.len() as u16).to_be_bytes());
            out.extend(why);
        }
        // Refused and expired events have no row.
        Stage::Refused { .. } | Stage::Expired => out.push(4),
    }
}

fn encode_state(state: ContentState, out: &mut Vec<u8>) {
    match state {
        ContentState::Missing => out.push(0),
        ContentState::Processed => out.push(1),
        ContentState::Invalid => out.push(2),
        ContentState::Pruned => out.push(3),
        ContentState::Deleted { by } => {
            out.push(4);
            out.extend(by.to_bytes());
        }
    }
}

fn encode_meta(meta: &Meta, out: &mut Vec<u8>) {
    let (protocol, kind) = meta.kind.to_code();
    out.push(protocol);
    out.extend(kind.to_be_bytes());
    put_varint(u64::from(meta.space.0), out);
    put_varint(u64::from(meta.author.0), out);
    let links = if meta.authority.is_some() { LINK_AUTHORITY } else { 0 };
    out.push(links | if meta.subject.is_some() { LINK_SUBJECT } else { 0 });
    for link in [meta.authority, meta.subject].into_iter().flatten() {
        put_varint(link.0, out);
    }
    out.extend(meta.grants.map(MemberRole::code));
    put_varint(meta.content_len, out);
}

/// What a blob that anyone can read says of its time and the hash of its content.
fn said_in(blob: &[u8]) -> Option<(Nanos, ContentHash)> {
    let at = blob.get(PLAIN_TIME_AT..)?.first_chunk()?;
    let hash = blob.get(PLAIN_HASH_AT..)?.first_chunk()?;
    Some((Nanos(u64::from_be_bytes(*at)), ContentHash(*hash)))
}

/// The parts of an event's row, borrowed from its bytes.
pub(crate) struct EventParts<'a> {
    pub(crate) row: EventRow,
    pub(crate) blob: &'a [u8],
    pub(crate) inline: Option<Inline<'a>>,
}

pub(crate) fn decode_event(bytes: &[u8]) -> StoreResult<EventParts<'_>> {
    decode_parts(bytes).map_err(|_| broken("an event row"))
}

fn decode_parts(bytes: &[u8]) -> Result<EventParts<'_>, TooShort> {
    let mut reader = ByteReader::new(bytes);
    if reader.u8()? != ROW_VERSION {
        return Err(TooShort);
    }
    let flags = reader.u8()?;
    let origin = get_origin(&mut reader)?;
    let received_at = reader.nanos()?;
    let stage = decode_stage(&mut reader)?;
    let content = decode_state(&mut reader)?;
    let mut meta = if flags & FLAG_OPENED != 0 { Some(decode_meta(&mut reader, flags)?) } else { None };
    let length = usize::try_from(get_varint(&mut reader)?).map_err(|_| TooShort)?;
    let blob = reader.bytes(length)?;
    if let Some(meta) = &mut meta
        && flags & FLAG_IN_BLOB != 0
    {
        (meta.at, meta.content_hash) = said_in(blob).ok_or(TooShort)?;
    }
    let id = Blob::id_of(blob).map_err(|_| TooShort)?;
    let is_at_rest = flags & FLAG_AT_REST != 0;
    let inline = (flags & FLAG_INLINE != 0).then(|| Inline { bytes: reader.rest().into(), is_at_rest });
    let row = EventRow { id, stage, content, has_inline: inline.is_some(), origin, received_at, meta };
    Ok(EventParts { row, blob, inline })
}

fn decode_stage(reader: &mut ByteReader<'_>) -> Result<Stage, TooShort> {
    Ok(match reader.u8()? {
        0 => Stage::Ready,
        1 => {
            let (since, until) = (reader.nanos()?, reader.nanos()?);
            let count = usize::from(reader.u16()?);
            let mut unmet = Vec::with_capacity(count.min(128));
            for _ in 0..count {
                unmet.push(Need::read_key(reader).map_err(|_| TooShort)?);
            }
            Stage::Held { unmet, since, until }
        }
        2 => Stage::Applied { position: get_varint(reader)? },
        3 => Stage::Carried,
        5 => {
            let length = usize::from(reader.u16()?);
            Stage::Parked { why: String::from_utf8_lossy(reader.bytes(length)?).into_owned() }
        }
        _ => return Err(TooShort),
    })
}

fn decode_state(reader: &mut ByteReader<'_>) -> Result<ContentState, TooShort> {
    Ok(match reader.u8()? {
        0 => ContentState::Missing,
        1 => ContentState::Processed,
        2 => ContentState::Invalid,
        3 => ContentState::Pruned,
        4 => ContentState::Deleted { by: Stamp::from_bytes(reader.array()?) },
        _ => return Err(TooShort),
    })
}

fn decode_meta(reader: &mut ByteReader<'_>, flags: u8) -> Result<Meta, TooShort> {
    let (protocol, kind) = (reader.u8()?, reader.u16()?);
    let kind = EventKind::from_code(protocol, kind).ok_or(TooShort)?;
    let (space, author) = (SpaceNo(get_number(reader)?), AuthorNo(get_number(reader)?));
    let links = reader.u8()?;
    let mut link = |flag| if links & flag == 0 { Ok(None) } else { get_varint(reader).map(|number| Some(Seq(number))) };
    let (authority, subject) = (link(LINK_AUTHORITY)?, link(LINK_SUBJECT)?);
    let grants = match flags & FLAG_GRANTS {
        0 => None,
        _ => Some(MemberRole::from_code(reader.u8()?).ok_or(TooShort)?),
    };
    let content_len = get_varint(reader)?;
    // Where the blob says it, it is read with that.
    let (at, content_hash) = match flags & FLAG_IN_BLOB {
        0 => (reader.nanos()?, ContentHash(reader.array()?)),
        _ => (Nanos(0), ContentHash([0; 32])),
    };
    Ok(Meta {
        kind,
        at,
        space,
        author,
        authority,
        subject,
        grants,
        counts: flags & FLAG_COUNTS != 0,
        content_len,
        content_hash,
    })
}
