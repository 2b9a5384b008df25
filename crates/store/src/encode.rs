//! The bytes of rows and keys. The first byte of every value that may change its form is a version.

use crate::at_rest::Inline;
use engine::reads::{StoreError, StoreResult};
use engine::rows::{
    ContentLocation, ContentRow, EventKind, EventRow, Membership, Meta, Origin, Owner, Register, RegisterKey,
    SpaceTask, Task,
};
use model::payload::MemberRole;
use model::reader::{ByteReader, TooShort};
use model::stage::{ContentState, Stage};
use model::{AuthorNo, ContentHash, EventId, Identity, Nanos, Need, Seq, SpaceId, SpaceNo, Stamp};
use serde::{Deserialize, Serialize};

pub(crate) const ROW_VERSION: u8 = 1;
const FLAG_INLINE: u8 = 1;
const FLAG_OPENED: u8 = 2;
const FLAG_COUNTS: u8 = 4;
/// The event stands on a membership.
const LINK_AUTHORITY: u8 = 1;
/// The event belongs to a thread or target.
const LINK_SUBJECT: u8 = 2;
/// The inline content begins with a tag that tells its form.
const FLAG_AT_REST: u8 = 8;

pub(crate) fn broken(what: &str) -> StoreError {
    StoreError::Broken(format!("{what} cannot be read back; run `anteroom verify`"))
}

pub(crate) fn number_stamp(number: Seq, stamp: Stamp) -> [u8; 32] {
    crate::keys::key(&[&number.0.to_be_bytes(), &stamp.to_bytes()])
}

pub(crate) fn space_stamp(space: SpaceNo, stamp: Stamp) -> [u8; 28] {
    crate::keys::key(&[&space.0.to_be_bytes(), &stamp.to_bytes()])
}

pub(crate) fn author_stamp(space: SpaceNo, author: AuthorNo, stamp: Stamp) -> [u8; 32] {
    crate::keys::key(&[&space.0.to_be_bytes(), &author.0.to_be_bytes(), &stamp.to_bytes()])
}

pub(crate) fn id_stamp(id: &EventId, stamp: Stamp) -> [u8; 40] {
    crate::keys::key(&[&id.0, &stamp.to_bytes()])
}

pub(crate) fn reply_key(space: SpaceNo, id: &EventId, stamp: Stamp) -> [u8; 44] {
    crate::keys::key(&[&space.0.to_be_bytes(), &id.0, &stamp.to_bytes()])
}

pub(crate) fn content_key(space: SpaceNo, hash: &ContentHash) -> [u8; 36] {
    crate::keys::key(&[&space.0.to_be_bytes(), &hash.0])
}

pub(crate) fn reaction_key(target: Seq, author: AuthorNo, stamp: Stamp) -> [u8; 36] {
    crate::keys::key(&[&target.0.to_be_bytes(), &author.0.to_be_bytes(), &stamp.to_bytes()])
}

pub(crate) fn register_key(register: &RegisterKey, stamp: Stamp) -> [u8; 49] {
    let mut subject = [0; 20];
    let code = match register.register {
        Register::Settings => 0,
        Register::Profile(author) => {
            subject[..4].copy_from_slice(&author.0.to_be_bytes());
            1
        }
        Register::Device(author, aux) => {
            subject[..4].copy_from_slice(&author.0.to_be_bytes());
            subject[4..].copy_from_slice(&aux.0);
            2
        }
        Register::ReadMarker(author, thread) => {
            subject[..4].copy_from_slice(&author.0.to_be_bytes());
            subject[4..12].copy_from_slice(&thread.0.to_be_bytes());
            3
        }
        Register::ThreadField(thread, field) => {
            subject[..8].copy_from_slice(&thread.0.to_be_bytes());
            subject[8] = field;
            4
        }
        Register::Follow(author, aux) => {
            subject[..4].copy_from_slice(&author.0.to_be_bytes());
            subject[4..].copy_from_slice(&aux.0);
            5
        }
    };
    crate::keys::key(&[&register.space.0.to_be_bytes(), &[code], &subject, &stamp.to_bytes()])
}

/// The stamp at the end of a key.
pub(crate) fn stamp_at_end(key: &[u8]) -> Stamp {
    let mut bytes = [0; Stamp::LEN];
    if let Some(tail) = key.last_chunk::<{ Stamp::LEN }>() {
        bytes = *tail;
    }
    Stamp::from_bytes(bytes)
}

pub(crate) fn owner_key(owner: Owner) -> [u8; 5] {
    match owner {
        Owner::Author(author) => crate::keys::key(&[&[0], &author.0.to_be_bytes()]),
        Owner::Door(origin) => {
            let (code, peer) = origin_code(origin);
            crate::keys::key(&[&[1 + code], &peer.to_be_bytes()])
        }
    }
}

fn origin_code(origin: Origin) -> (u8, u32) {
    match origin {
        Origin::Local => (0, 0),
        Origin::Import => (1, 0),
        Origin::Peer(peer) => (2, peer),
    }
}

pub(crate) fn encode_origin(origin: Origin) -> [u8; 5] {
    let (code, peer) = origin_code(origin);
    crate::keys::key(&[&[code], &peer.to_be_bytes()])
}

pub(crate) fn decode_origin(reader: &mut ByteReader<'_>) -> Result<Origin, TooShort> {
    let (code, peer) = (reader.u8()?, reader.u32()?);
    Ok(match code {
        0 => Origin::Local,
        1 => Origin::Import,
        _ => Origin::Peer(peer),
    })
}

/// An event's row as it is kept: the row, its blob, its inline content.
pub(crate) fn encode_event(row: &EventRow, blob: &[u8], inline: Option<&Inline<'_>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(160 + blob.len() + inline.map_or(0, |inline| inline.bytes.len()));
    let mut flags = 0;
    flags |= if inline.is_some() { FLAG_INLINE } else { 0 };
    flags |= if inline.is_some_and(|inline| inline.is_at_rest) { FLAG_AT_REST } else { 0 };
    flags |= if row.meta.is_some() { FLAG_OPENED } else { 0 };
    flags |= if row.meta.as_ref().is_some_and(|meta| meta.counts) { FLAG_COUNTS } else { 0 };
    out.extend([ROW_VERSION, flags]);
    out.extend(row.id.0);
    out.extend(encode_origin(row.origin));
    out.extend(row.received_at.0.to_be_bytes());
    encode_stage(&row.stage, &mut out);
    encode_state(row.content, &mut out);
    if let Some(meta) = &row.meta {
        encode_meta(meta, &mut out);
    }
    out.extend((blob.len() as u32).to_be_bytes());
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
            out.extend(position.to_be_bytes());
        }
        Stage::Carried => out.push(3),
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
    out.extend(meta.at.0.to_be_bytes());
    out.extend(meta.space.0.to_be_bytes());
    out.extend(meta.author.0.to_be_bytes());
    let links = if meta.authority.is_some() { LINK_AUTHORITY } else { 0 };
    out.push(links | if meta.subject.is_some() { LINK_SUBJECT } else { 0 });
    for link in [meta.authority, meta.subject].into_iter().flatten() {
        out.extend(link.0.to_be_bytes());
    }
    out.push(meta.grants.map_or(0, MemberRole::code));
    out.extend(meta.content_len.to_be_bytes());
    out.extend(meta.content_hash.0);
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
    let id = EventId(reader.array()?);
    let origin = decode_origin(&mut reader)?;
    let received_at = reader.nanos()?;
    let stage = decode_stage(&mut reader)?;
    let content = decode_state(&mut reader)?;
    let counts = flags & FLAG_COUNTS != 0;
    let meta = if flags & FLAG_OPENED != 0 { Some(decode_meta(&mut reader, counts)?) } else { None };
    let length = usize::try_from(reader.u32()?).map_err(|_| TooShort)?;
    let blob = reader.bytes(length)?;
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
        2 => Stage::Applied { position: reader.u64()? },
        3 => Stage::Carried,
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

fn decode_meta(reader: &mut ByteReader<'_>, counts: bool) -> Result<Meta, TooShort> {
    let (protocol, kind) = (reader.u8()?, reader.u16()?);
    let kind = EventKind::from_code(protocol, kind).ok_or(TooShort)?;
    let (at, space, author) = (reader.nanos()?, SpaceNo(reader.u32()?), AuthorNo(reader.u32()?));
    let links = reader.u8()?;
    let mut link = |flag| if links & flag == 0 { Ok(None) } else { reader.u64().map(|number| Some(Seq(number))) };
    let (authority, subject) = (link(LINK_AUTHORITY)?, link(LINK_SUBJECT)?);
    Ok(Meta {
        kind,
        at,
        space,
        author,
        authority,
        subject,
        grants: MemberRole::from_code(reader.u8()?),
        counts,
        content_len: reader.u64()?,
        content_hash: ContentHash(reader.array()?),
    })
}

pub(crate) fn encode_membership(membership: &Membership) -> Vec<u8> {
    let mut out = vec![ROW_VERSION, membership.role.code(), u8::from(membership.sealed)];
    out.extend(membership.member.0);
    out
}

pub(crate) fn decode_membership(bytes: &[u8]) -> StoreResult<Membership> {
    let mut reader = ByteReader::new(bytes);
    let mut read = || {
        let _version = reader.u8().ok()?;
        let role = MemberRole::from_code(reader.u8().ok()?)?;
        let sealed = reader.u8().ok()? == 1;
        Some(Membership { member: Identity(reader.array().ok()?), role, sealed })
    };
    read().ok_or_else(|| broken("a membership row"))
}

pub(crate) fn encode_content(row: &ContentRow) -> Vec<u8> {
    let place = match row.place {
        ContentLocation::Absent => 0,
        ContentLocation::Row => 1,
        ContentLocation::File => 2,
    };
    let mut out = vec![ROW_VERSION, place];
    out.extend(row.count.to_be_bytes());
    out.extend(row.len.to_be_bytes());
    out.extend(row.unused_since.0.to_be_bytes());
    out
}

pub(crate) fn decode_content(bytes: &[u8]) -> StoreResult<ContentRow> {
    let read = || {
        let mut reader = ByteReader::new(bytes);
        let _version = reader.u8()?;
        let place = match reader.u8()? {
            0 => ContentLocation::Absent,
            1 => ContentLocation::Row,
            2 => ContentLocation::File,
            _ => return Err(TooShort),
        };
        Ok(ContentRow { place, count: reader.u64()?, len: reader.u64()?, unused_since: reader.nanos()? })
    };
    read().map_err(|_| broken("a content row"))
}

pub(crate) fn encode_task(task: &Task) -> Vec<u8> {
    let join = |code: u8, parts: &[&[u8]]| [&[code], parts.concat().as_slice()].concat();
    match task {
        Task::Release(need) => join(1, &[&need.to_key()]),
        Task::Content(space, hash, after) => join(2, &[&space.0.to_be_bytes(), &hash.0, &after.0.to_be_bytes()]),
        // By stamp, so that the earliest is settled first and each event is looked at once.
        Task::Space(SpaceTask::Rederive(membership, after)) => {
            join(3, &[&after.to_bytes(), &membership.0.to_be_bytes()])
        }
        Task::Space(SpaceTask::Versions(target, after)) => join(4, &[&target.0.to_be_bytes(), &after.to_bytes()]),
        Task::Join(space, after) => join(5, &[&space.0, &after.0.to_be_bytes()]),
    }
}

/// The keys of all tasks that look again at events.
pub(crate) fn rederive_range() -> (Vec<u8>, Vec<u8>) {
    (vec![3], vec![4])
}

pub(crate) fn decode_task(bytes: &[u8]) -> StoreResult<Task> {
    let read = || {
        let mut reader = ByteReader::new(bytes);
        Ok(match reader.u8()? {
            1 => Task::Release(Need::read_key(&mut reader).map_err(|_| TooShort)?),
            2 => Task::Content(SpaceNo(reader.u32()?), ContentHash(reader.array()?), Seq(reader.u64()?)),
            3 => {
                let after = Stamp::from_bytes(reader.array()?);
                Task::Space(SpaceTask::Rederive(Seq(reader.u64()?), after))
            }
            4 => Task::Space(SpaceTask::Versions(Seq(reader.u64()?), Stamp::from_bytes(reader.array()?))),
            5 => Task::Join(SpaceId(reader.array()?), Seq(reader.u64()?)),
            _ => return Err(TooShort),
        })
    };
    read().map_err(|_| broken("a task row"))
}

/// What an author uses in a space, by state of content: how many events, how many bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Events and bytes per state: missing, processed, invalid, pruned, deleted.
    pub by_state: [(u64, u64); 5],
}

/// The place of a state in [`Usage`].
pub(crate) fn usage_index(state: ContentState) -> usize {
    match state {
        ContentState::Missing => 0,
        ContentState::Processed => 1,
        ContentState::Invalid => 2,
        ContentState::Pruned => 3,
        ContentState::Deleted { .. } => 4,
    }
}

pub(crate) fn encode_usage(usage: &Usage) -> Vec<u8> {
    let mut out = vec![ROW_VERSION];
    for (events, bytes) in usage.by_state {
        out.extend(events.to_be_bytes());
        out.extend(bytes.to_be_bytes());
    }
    out
}

pub(crate) fn decode_usage(bytes: &[u8]) -> StoreResult<Usage> {
    let read = || {
        let mut reader = ByteReader::new(bytes);
        let _version = reader.u8()?;
        let mut usage = Usage::default();
        for slot in &mut usage.by_state {
            *slot = (reader.u64()?, reader.u64()?);
        }
        Ok::<_, TooShort>(usage)
    };
    read().map_err(|_| broken("a usage row"))
}

/// An entry of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalEntry {
    /// In which space.
    pub space: SpaceNo,
    /// Which event.
    pub seq: Seq,
    /// What changed.
    pub kind: engine::rows::JournalKind,
    /// When it was written here.
    pub at: Nanos,
}

pub(crate) fn encode_entry(entry: &JournalEntry) -> [u8; 21] {
    crate::keys::key(&[
        &entry.space.0.to_be_bytes(),
        &entry.seq.0.to_be_bytes(),
        &[entry.kind.code()],
        &entry.at.0.to_be_bytes(),
    ])
}

pub(crate) fn decode_entry(bytes: &[u8; 21]) -> StoreResult<JournalEntry> {
    let read = || {
        let mut reader = ByteReader::new(bytes);
        let space = SpaceNo(reader.u32().ok()?);
        let seq = Seq(reader.u64().ok()?);
        let kind = engine::rows::JournalKind::from_code(reader.u8().ok()?)?;
        Some(JournalEntry { space, seq, kind, at: reader.nanos().ok()? })
    };
    read().ok_or_else(|| broken("a journal entry"))
}
pub(crate) fn to_row(value: &impl Serialize) -> StoreResult<Vec<u8>> {
    postcard::to_stdvec(value).map_err(|_| broken("a row that could not be written"))
}

pub(crate) fn from_row<'a, T: Deserialize<'a>>(bytes: &'a [u8], what: &str) -> StoreResult<T> {
    postcard::from_bytes(bytes).map_err(|_| broken(what))
}

/// The name of a content file.
pub(crate) fn file_name(space: &SpaceId, hash: &ContentHash) -> String {
    format!("{space}-{hash}")
}
