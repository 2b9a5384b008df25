//! The row of an event: its stage, the state of its content, what its envelope says, its blob, its inline content.

use super::broken;
use super::values::{get_origin, put_origin};
use super::varint::{add_difference, get_number, get_varint, put_difference, put_varint};
use crate::at_rest::Inline;
use engine::reads::StoreResult;
use engine::rows::{EventKind, EventRow, Meta};
use model::blob::{PLAIN_HASH_AT, PLAIN_TIME_AT};
use model::crypto::content_hash;
use model::payload::MemberRole;
use model::reader::{ByteReader, TooShort};
use model::stage::{ContentState, Stage};
use model::{AuthorNo, ContentHash, EventId, Nanos, Need, Seq, SpaceNo, Stamp};

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
/// The hash of the content is that of the inline content, and is not said.
const FLAG_HASHED: u8 = 64;

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
    let is_hashed = row.meta.as_ref().is_some_and(|meta| !is_in_blob && hash_of(inline) == Some(meta.content_hash));
    flags |= if is_hashed { FLAG_HASHED } else { 0 };
    out.push(flags);
    // It follows from the blob, but whoever reads a row wants it, and hashing takes longer than reading.
    out.extend(row.id.0);
    put_origin(row.origin, &mut out);
    // What is written here is received at its own time.
    put_difference(row.received_at.0, row.meta.as_ref().map_or(0, |meta| meta.at.0), &mut out);
    encode_stage(&row.stage, &mut out);
    encode_state(row.content, &mut out);
    if let Some(meta) = &row.meta {
        encode_meta(meta, &mut out);
        if !is_in_blob {
            out.extend(meta.at.0.to_be_bytes());
        }
        if !is_in_blob && !is_hashed {
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
    put_varint(u64::from(kind), out);
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

/// The hash of inline content that rests as it travels.
fn hash_of(inline: Option<&Inline<'_>>) -> Option<ContentHash> {
    inline.filter(|inline| !inline.is_at_rest).map(|inline| content_hash(&inline.bytes))
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
    let flags = reader.u8()?;
    let id = EventId(reader.array()?);
    let origin = get_origin(&mut reader)?;
    let late_by = get_varint(&mut reader)?;
    let stage = decode_stage(&mut reader)?;
    let content = decode_state(&mut reader)?;
    let mut meta = if flags & FLAG_OPENED != 0 { Some(decode_meta(&mut reader, flags)?) } else { None };
    let length = usize::try_from(get_varint(&mut reader)?).map_err(|_| TooShort)?;
    let blob = reader.bytes(length)?;
    let is_at_rest = flags & FLAG_AT_REST != 0;
    let inline = (flags & FLAG_INLINE != 0).then(|| Inline { bytes: reader.rest().into(), is_at_rest });
    if let Some(meta) = &mut meta {
        match flags & (FLAG_IN_BLOB | FLAG_HASHED) {
            0 => {}
            FLAG_HASHED => meta.content_hash = hash_of(inline.as_ref()).ok_or(TooShort)?,
            _ => (meta.at, meta.content_hash) = said_in(blob).ok_or(TooShort)?,
        }
    }
    let received_at = Nanos(add_difference(late_by, meta.as_ref().map_or(0, |meta| meta.at.0)));
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
    let (protocol, kind) = (reader.u8()?, u16::try_from(get_varint(reader)?).map_err(|_| TooShort)?);
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
    // What the blob or the inline content says is read with that.
    let at = if flags & FLAG_IN_BLOB == 0 { reader.nanos()? } else { Nanos(0) };
    let hash = match flags & (FLAG_IN_BLOB | FLAG_HASHED) {
        0 => ContentHash(reader.array()?),
        _ => ContentHash([0; 32]),
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
        content_hash: hash,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::rows::Origin;
    use model::Kind;
    use proptest::prelude::*;

    const AT: u64 = 1_700_000_000_000_000_000;

    fn message(received_at: u64, at: u64, content_hash: ContentHash, blob: &[u8], has_inline: bool) -> EventRow {
        let meta = Meta {
            kind: EventKind::Space(Kind::Message),
            at: Nanos(at),
            space: SpaceNo(1),
            author: AuthorNo(300),
            authority: Some(Seq(4)),
            subject: Some(Seq(70_000)),
            grants: None,
            counts: true,
            content_len: 7,
            content_hash,
        };
        EventRow {
            id: model::Blob::id_of(blob).unwrap(),
            stage: Stage::Applied { position: 99 },
            content: ContentState::Processed,
            has_inline,
            origin: Origin::Local,
            received_at: Nanos(received_at),
            meta: Some(meta),
        }
    }

    fn sealed_blob() -> Vec<u8> {
        [&[1][..], &[7; 400]].concat()
    }

    fn comes_back(row: &EventRow, blob: &[u8], inline: Option<&Inline<'_>>) -> usize {
        let bytes = encode_event(row, blob, inline);
        let parts = decode_event(&bytes).unwrap();
        assert_eq!(parts.row, *row);
        assert_eq!(parts.blob, blob);
        assert_eq!(parts.inline.map(|inline| inline.bytes.into_owned()), inline.map(|inline| inline.bytes.to_vec()));
        bytes.len()
    }

    #[test]
    fn the_hash_of_inline_content_is_not_said_and_another_is() {
        let (blob, inline) = (sealed_blob(), Inline::wire(b"content".to_vec()));
        let own = content_hash(b"content");
        let short = comes_back(&message(AT, AT, own, &blob, true), &blob, Some(&inline));
        let other = comes_back(&message(AT, AT, ContentHash([5; 32]), &blob, true), &blob, Some(&inline));
        let protected = Inline { is_at_rest: true, ..inline };
        let at_rest = comes_back(&message(AT, AT, own, &blob, true), &blob, Some(&protected));
        let without = comes_back(&message(AT, AT, own, &blob, false), &blob, None);
        assert_eq!((other - short, at_rest - short, without + 7 - short), (32, 32, 32));
    }

    #[test]
    fn a_row_that_lacks_the_inline_content_whose_hash_it_leaves_out_is_damaged() {
        let (blob, inline) = (sealed_blob(), Inline::wire(b"content".to_vec()));
        let row = message(AT, AT, content_hash(b"content"), &blob, true);
        let mut bytes = encode_event(&row, &blob, Some(&inline));
        bytes[0] &= !FLAG_INLINE;
        assert!(decode_event(&bytes).is_err());
    }

    proptest! {
        #[test]
        fn when_it_was_received_comes_back(received in any::<u64>(), at in any::<u64>()) {
            let blob = sealed_blob();
            comes_back(&message(received, at, ContentHash([5; 32]), &blob, false), &blob, None);
        }
    }

    #[test]
    fn what_was_received_at_its_own_time_says_it_in_a_byte() {
        let blob = sealed_blob();
        let length = |received| comes_back(&message(received, AT, ContentHash([5; 32]), &blob, false), &blob, None);
        assert_eq!(length(AT + 1), length(AT));
        assert_eq!(length(AT - 1), length(AT));
        assert_eq!(length(AT + 1_000_000), length(AT) + 2);
    }
}
