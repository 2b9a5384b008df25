//! Values of a few fields, written one after another.

use crate::keys::{SEQ_BYTES, seq_bytes, seq_from};
use crate::row_value::RowValue;
use engine::fetch::ScheduleRow;
use engine::rows::{ContentLocation, ContentRow, JournalKind, Membership, Origin};
use model::files::WantedBytes;
use model::payload::MemberRole;
use model::reader::{ByteReader, TooShort};
use model::stage::{ContentState, RefusalReason};
use model::{ContentHash, Identity, Nanos, ObjectName, Seq, SpaceNo};

/// Declares values by how they are written and read. What reads must read all of the bytes.
macro_rules! row_values {
    ($($type:ident: $name:literal, $width:expr, |$value:ident, $out:ident| $put:block, |$reader:ident| $get:block)*) => {$(
        impl RowValue for $type {
            type Data<'a> = $type;
            const WIDTH: Option<usize> = $width;
            const NAME: &'static str = $name;

            fn put($value: &$type, $out: &mut Vec<u8>) $put

            fn get(bytes: &[u8]) -> Option<$type> {
                let mut reader = ByteReader::new(bytes);
                let read = |$reader: &mut ByteReader<'_>| -> Result<$type, TooShort> { $get };
                let value = read(&mut reader).ok();
                value.filter(|_| reader.rest().is_empty())
            }
        }
    )*};
}

/// An entry of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalEntry {
    /// The space of the event.
    pub space: SpaceNo,
    /// The event that changed.
    pub seq: Seq,
    /// What changed.
    pub kind: JournalKind,
    /// When it was written here.
    pub at: Nanos,
}

/// Why an id was refused, and its place among those that are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefusedRow {
    /// Why it was refused.
    pub why: RefusalReason,
    /// Its key in `refused_order`.
    pub order: u64,
}

/// When the wait of an id ended, and its place among those that are remembered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExpiredRow {
    /// When its wait ended.
    pub at: Nanos,
    /// Its key in `expired_order`.
    pub order: u64,
}

/// Who brought a known event again last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedAgain {
    /// The door it came through.
    pub origin: Origin,
    /// When it came.
    pub at: Nanos,
}

/// The greatest role that remains of a membership; none after a removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoleCap(pub Option<MemberRole>);

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

/// A byte for the door, and the number of the peer where a peer brought it.
pub(super) fn put_origin(origin: Origin, out: &mut Vec<u8>) {
    match origin {
        Origin::Local => out.push(0),
        Origin::Import => out.push(1),
        Origin::Client => out.push(3),
        Origin::Relay => out.push(4),
        Origin::Peer(peer) => {
            out.push(2);
            out.extend(peer.to_be_bytes());
        }
    }
}

pub(super) fn get_origin(reader: &mut ByteReader<'_>) -> Result<Origin, TooShort> {
    Ok(match reader.u8()? {
        0 => Origin::Local,
        1 => Origin::Import,
        3 => Origin::Client,
        4 => Origin::Relay,
        2 => Origin::Peer(reader.u32()?),
        _ => return Err(TooShort),
    })
}

/// A byte that says whether a number follows.
fn put_optional(number: Option<u64>, out: &mut Vec<u8>) {
    out.push(u8::from(number.is_some()));
    out.extend(number.map(u64::to_be_bytes).into_iter().flatten());
}

fn get_optional(reader: &mut ByteReader<'_>) -> Result<Option<u64>, TooShort> {
    match reader.u8()? {
        0 => Ok(None),
        1 => Ok(Some(reader.u64()?)),
        _ => Err(TooShort),
    }
}

row_values! {
    JournalEntry: "journal entry", Some(13 + SEQ_BYTES), |entry, out| {
        out.extend(entry.space.0.to_be_bytes());
        out.extend(seq_bytes(entry.seq));
        out.push(entry.kind.code());
        out.extend(entry.at.0.to_be_bytes());
    }, |reader| {
        let (space, seq) = (SpaceNo(reader.u32()?), seq_from(reader.array()?));
        let kind = JournalKind::from_code(reader.u8()?).ok_or(TooShort)?;
        Ok(JournalEntry { space, seq, kind, at: reader.nanos()? })
    }

    RefusedRow: "refused", Some(9), |row, out| {
        out.push(row.why.code());
        out.extend(row.order.to_be_bytes());
    }, |reader| {
        let why = RefusalReason::from_code(reader.u8()?).ok_or(TooShort)?;
        Ok(RefusedRow { why, order: reader.u64()? })
    }

    ExpiredRow: "expired", Some(16), |row, out| {
        out.extend(row.at.0.to_be_bytes());
        out.extend(row.order.to_be_bytes());
    }, |reader| {
        Ok(ExpiredRow { at: reader.nanos()?, order: reader.u64()? })
    }

    ReceivedAgain: "received again", None, |row, out| {
        out.extend(row.at.0.to_be_bytes());
        put_origin(row.origin, out);
    }, |reader| {
        let at = reader.nanos()?;
        Ok(ReceivedAgain { origin: get_origin(reader)?, at })
    }

    RoleCap: "role that remains", None, |cap, out| {
        out.extend(cap.0.map(MemberRole::code));
    }, |reader| {
        if reader.rest().is_empty() {
            return Ok(RoleCap(None));
        }
        MemberRole::from_code(reader.u8()?).map(|role| RoleCap(Some(role))).ok_or(TooShort)
    }

    Usage: "usage", Some(80), |usage, out| {
        for (events, bytes) in usage.by_state {
            out.extend(events.to_be_bytes());
            out.extend(bytes.to_be_bytes());
        }
    }, |reader| {
        let mut usage = Usage::default();
        for slot in &mut usage.by_state {
            *slot = (reader.u64()?, reader.u64()?);
        }
        Ok(usage)
    }

    Membership: "membership", Some(34), |membership, out| {
        out.extend([membership.role.code(), u8::from(membership.sealed)]);
        out.extend(membership.member.0);
    }, |reader| {
        let role = MemberRole::from_code(reader.u8()?).ok_or(TooShort)?;
        let sealed = reader.u8()? == 1;
        Ok(Membership { member: Identity(reader.array()?), role, sealed })
    }

    ContentRow: "content", None, |row, out| {
        match row.place {
            ContentLocation::Absent => out.push(0),
            ContentLocation::Row => out.push(1),
            ContentLocation::Object(name) => {
                out.push(2);
                out.extend(name.0);
            }
        }
        out.extend(row.count.to_be_bytes());
        out.extend(row.len.to_be_bytes());
        put_optional(row.unused_since.map(|since| since.0), out);
    }, |reader| {
        let place = match reader.u8()? {
            0 => ContentLocation::Absent,
            1 => ContentLocation::Row,
            2 => ContentLocation::Object(ObjectName(reader.array()?)),
            _ => return Err(TooShort),
        };
        let (count, len) = (reader.u64()?, reader.u64()?);
        Ok(ContentRow { place, count, len, unused_since: get_optional(reader)?.map(Nanos) })
    }

    WantedBytes: "bytes of a file", Some(40), |wanted, out| {
        out.extend(wanted.hash.0);
        out.extend(wanted.len.to_be_bytes());
    }, |reader| {
        Ok(WantedBytes { hash: ContentHash(reader.array()?), len: reader.u64()? })
    }

    ScheduleRow: "schedule", None, |row, out| {
        out.extend(row.attempts.to_be_bytes());
        out.extend(row.next.to_be_bytes());
        out.extend(row.joined.to_be_bytes());
        put_optional(row.last, out);
        put_optional(row.again, out);
    }, |reader| {
        let (attempts, next, joined) = (reader.u32()?, reader.u64()?, reader.u32()?);
        Ok(ScheduleRow { attempts, last: get_optional(reader)?, next, again: get_optional(reader)?, joined })
    }
}
