//! The `probe` protocol: a second protocol that only the simulator speaks, to prove that a protocol lives in its own
//! folders. It has what a foreign protocol brings: ids of 32 bytes, authors of its own, a signature that the id does not
//! cover, and events that name others by address instead of by id.
//!
//! A blob is `0x7f`, the statement, which signature it is (any byte will do), and sixteen bytes of signature. Nothing of
//! this protects anybody: anyone can sign for anyone.

use crate::crypto::event_id;
use crate::ids::{ContentHash, EventId, Nanos, byte_ids};
use crate::limits::IDENTIFIER_BYTES_MAX;
use crate::reader::{ByteReader, TooShort};

/// Why bytes are no probe event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadProbe {
    #[error("these bytes are no probe event")]
    Form,
    #[error("the signature of the probe event is wrong")]
    Signature,
}

/// The first byte of a blob of this protocol.
pub const PROBE_FORM: u8 = 0x7f;

byte_ids! {
    /// The key of an author of the `probe` protocol.
    ProbeKey(32, "probe", "a probe key");
    /// The whole id of a probe event: the hash of the statement without its salt, and the hash of all of it.
    ProbeId(32, "probe", "a probe id");
    /// The hash of a name, as rows keep it.
    ProbeName(16, "name", "the hash of a probe name");
}

impl ProbeId {
    /// The id by which the node knows the event: the first half.
    pub fn short(&self) -> EventId {
        let mut id = [0; 16];
        id.copy_from_slice(&self.0[..16]);
        EventId(id)
    }
}

impl ProbeName {
    /// The hash of a name.
    pub fn of(name: &str) -> ProbeName {
        ProbeName(event_id(name.as_bytes()).0)
    }
}

/// The kinds of the `probe` protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ProbeKind {
    /// A value under a name. The latest of an author counts; of equal times the one with the least id.
    Value,
    /// Deletes the content of all earlier values of its author under a name.
    Clear,
}

impl ProbeKind {
    /// The code of the kind.
    pub fn code(self) -> u16 {
        match self {
            ProbeKind::Value => 1,
            ProbeKind::Clear => 2,
        }
    }

    /// The kind of a code.
    pub fn from_code(code: u16) -> Option<ProbeKind> {
        match code {
            1 => Some(ProbeKind::Value),
            2 => Some(ProbeKind::Clear),
            _ => None,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            ProbeKind::Value => "probe-value",
            ProbeKind::Clear => "probe-clear",
        }
    }
}

/// What a probe event states.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProbeStatement {
    /// The kind.
    pub kind: ProbeKind,
    /// Who states it.
    pub author: ProbeKey,
    /// When.
    pub at: Nanos,
    /// Statements that differ in nothing else clash: they share the first half of their ids.
    pub salt: u8,
    /// Under which name.
    pub name: String,
    /// A name of the same author under which a value must be applied first; empty for none.
    pub after: String,
    /// How long its content is.
    pub content_len: u64,
    /// Which content.
    pub content_hash: ContentHash,
}

impl ProbeStatement {
    fn encode(&self, with_salt: bool) -> Vec<u8> {
        let mut out = self.kind.code().to_be_bytes().to_vec();
        out.extend(self.author.0);
        out.extend(self.at.0.to_be_bytes());
        for text in [&self.name, &self.after] {
            out.extend((text.len() as u16).to_be_bytes());
            out.extend(text.as_bytes());
        }
        out.extend(self.content_len.to_be_bytes());
        out.extend(self.content_hash.0);
        out.extend(with_salt.then_some(self.salt));
        out
    }

    /// The whole id.
    pub fn id(&self) -> ProbeId {
        let mut id = [0; 32];
        id[..16].copy_from_slice(&event_id(&self.encode(false)).0);
        id[16..].copy_from_slice(&event_id(&self.encode(true)).0);
        ProbeId(id)
    }

    /// The blob of the statement, with one of its signatures.
    pub fn sign(&self, which: u8) -> Vec<u8> {
        [&[PROBE_FORM], self.encode(true).as_slice(), &[which], &signature(&self.id(), which)].concat()
    }

    /// The statement of a blob, whoever signed it.
    pub fn read(blob: &[u8]) -> Result<ProbeStatement, BadProbe> {
        Ok(parse(blob)?.0)
    }

    /// The statement of a blob whose signature is right.
    pub fn check(blob: &[u8]) -> Result<ProbeStatement, BadProbe> {
        let (statement, which, signed) = parse(blob)?;
        if signature(&statement.id(), which) == signed { Ok(statement) } else { Err(BadProbe::Signature) }
    }
}

fn signature(id: &ProbeId, which: u8) -> [u8; 16] {
    event_id(&[b"probe signature".as_slice(), &id.0, &[which]].concat()).0
}

fn parse(blob: &[u8]) -> Result<(ProbeStatement, u8, [u8; 16]), BadProbe> {
    read_parts(&mut ByteReader::new(blob)).map_err(|_| BadProbe::Form)
}

fn read_parts(reader: &mut ByteReader<'_>) -> Result<(ProbeStatement, u8, [u8; 16]), TooShort> {
    let is_ours = reader.u8()? == PROBE_FORM;
    let kind = ProbeKind::from_code(reader.u16()?).ok_or(TooShort)?;
    let (author, at) = (ProbeKey(reader.array()?), reader.nanos()?);
    let (name, after) = (read_name(reader)?, read_name(reader)?);
    let (content_len, content_hash) = (reader.u64()?, ContentHash(reader.array()?));
    let statement = ProbeStatement { kind, author, at, salt: reader.u8()?, name, after, content_len, content_hash };
    let parts = (statement, reader.u8()?, reader.array()?);
    if is_ours && reader.rest().is_empty() { Ok(parts) } else { Err(TooShort) }
}

fn read_name(reader: &mut ByteReader<'_>) -> Result<String, TooShort> {
    let length = usize::from(reader.u16()?);
    if length > IDENTIFIER_BYTES_MAX {
        return Err(TooShort);
    }
    String::from_utf8(reader.bytes(length)?.to_vec()).map_err(|_| TooShort)
}
