//! The bytes of a bundle, record by record.

use model::limits::{BLOB_BYTES_MAX, INLINE_WIRE_BYTES_MAX};
use model::{ContentHash, SpaceId};
use std::io::{self, Read, Write};

const MAGIC: &[u8; 15] = b"anteroom bundle";
/// The version that this release writes and reads.
pub const VERSION: u8 = 1;
/// The largest content that a bundle carries, in one record: a reader holds a whole record in memory.
pub const CONTENT_RECORD_BYTES_MAX: usize = 64 << 20;
/// The longest record of keys.
pub const KEYS_RECORD_BYTES_MAX: usize = 4 << 20;

const EVENT: u8 = 1;
const CONTENT: u8 = 2;
const KEYS: u8 = 3;
const END: u8 = 255;
const HEAD_BYTES: usize = 1 + 4;
const CONTENT_HEAD_BYTES: usize = SpaceId::LEN + ContentHash::LEN;
const END_BYTES: usize = 8 + 32;

/// Something that a bundle carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// A blob with the inline content beside it.
    Event {
        /// The blob, not checked yet.
        blob: Vec<u8>,
        /// The inline content; empty for none.
        inline: Vec<u8>,
    },
    Content {
        /// Of which space.
        space: SpaceId,
        /// Its hash, not compared yet.
        hash: ContentHash,
        /// The bytes as they travel.
        bytes: Vec<u8>,
    },
    /// Keys of a space, sealed under a passphrase.
    Keys { sealed: Vec<u8> },
}

/// Why a bundle cannot be read on. What was read before is good.
#[derive(Debug, thiserror::Error)]
pub enum BadBundle {
    /// It is something else.
    #[error("this is not an anteroom bundle: it does not begin with \"anteroom bundle\"")]
    Other,
    /// A version that this release does not know.
    #[error("the bundle has version {0}, and this release knows version {VERSION}")]
    Version(u8),
    /// It ends before its end record.
    #[error("the bundle ends too early at byte {at}: it was cut off")]
    CutOff { at: u64 },
    /// A type of record that this release does not know.
    #[error("the bundle has a record of unknown type {kind} at byte {at}")]
    Kind { kind: u8, at: u64 },
    /// A record longer than there can be.
    #[error("the {what} record at byte {at} says it is {length} bytes long, and {most} is the most")]
    Long {
        what: &'static str,
        at: u64,
        /// How long it says it is.
        length: u32,
        most: usize,
    },
    /// A record that is shorter than its own parts.
    #[error("the {what} record at byte {at} is shorter than its parts")]
    Short { what: &'static str, at: u64 },
    /// Its end counts other records than there were.
    #[error("the bundle says it has {said} records, and {found} were found")]
    Count { said: u64, found: u64 },
    /// Its bytes are not those that were written.
    #[error("the checksum of the bundle is wrong: it was changed on the way")]
    Checksum,
    /// Something follows its end.
    #[error("the bundle goes on after its end at byte {at}")]
    AfterEnd { at: u64 },
    /// It could not be read.
    #[error("reading the bundle failed at byte {at}: {why}")]
    Read { at: u64, why: io::Error },
}

impl BadBundle {
    /// What whoever has the bundle can do.
    pub fn what_to_do(&self) -> &'static str {
        match self {
            BadBundle::Other => "pass a file that `anteroom export` wrote",
            BadBundle::Version(_) => "use a newer release, or export the bundle again with this one",
            BadBundle::CutOff { .. } => "run import again with the whole file; what was read before is kept",
            BadBundle::Kind { .. } => "use a newer release if one wrote the bundle; otherwise fetch the bundle again",
            BadBundle::Long { .. } | BadBundle::Short { .. } | BadBundle::Count { .. } | BadBundle::Checksum => {
                "the bundle is damaged: fetch or export it again and run import again; what was read before is kept"
            }
            BadBundle::AfterEnd { .. } => "import joined bundles one by one; what was read before is kept",
            BadBundle::Read { .. } => "check the file or the pipe, then run import again; what was read before is kept",
        }
    }
}

/// Writes a bundle.
#[derive(Debug)]
pub struct BundleWriter<W> {
    out: W,
    hasher: blake3::Hasher,
    records: u64,
    bytes: u64,
}

impl<W: Write> BundleWriter<W> {
    /// Begins a bundle.
    pub fn new(out: W) -> io::Result<BundleWriter<W>> {
        let mut writer = BundleWriter { out, hasher: blake3::Hasher::new(), records: 0, bytes: 0 };
        writer.put(MAGIC)?;
        writer.put(&[VERSION])?;
        Ok(writer)
    }

    /// How many bytes were written.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn record(&mut self, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.put(&[kind])?;
        self.put(&(length as u32).to_be_bytes())?;
        self.records += 1;
        parts.iter().try_for_each(|part| self.put(part))
    }

    /// Writes an event. Blobs and inline content that were kept are within the limits.
    pub fn event(&mut self, blob: &[u8], inline: &[u8]) -> io::Result<()> {
        self.record(EVENT, &[&(blob.len() as u32).to_be_bytes(), blob, inline])
    }

    /// Writes content, which must be at most [`CONTENT_RECORD_BYTES_MAX`] long.
    pub fn content(&mut self, space: &SpaceId, hash: &ContentHash, bytes: &[u8]) -> io::Result<()> {
        self.record(CONTENT, &[&space.0, &hash.0, bytes])
    }

    /// Writes keys of a space, which are sealed.
    pub fn keys(&mut self, sealed: &[u8]) -> io::Result<()> {
        self.record(KEYS, &[sealed])
    }

    /// Writes the end. Hands back what was written to.
    pub fn finish(mut self) -> io::Result<W> {
        let (records, hash) = (self.records, self.hasher.finalize());
        self.record(END, &[&records.to_be_bytes(), hash.as_bytes()])?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reads a bundle, one record at a time.
#[derive(Debug)]
pub struct BundleReader<R> {
    input: R,
    hasher: blake3::Hasher,
    records: u64,
    at: u64,
    is_over: bool,
}

impl<R: Read> BundleReader<R> {
    /// Reads the beginning of a bundle.
    pub fn new(input: R) -> Result<BundleReader<R>, BadBundle> {
        let mut reader = BundleReader { input, hasher: blake3::Hasher::new(), records: 0, at: 0, is_over: false };
        let head = reader.bytes(MAGIC.len() as u64 + 1)?;
        reader.hasher.update(&head);
        let known = head.len().min(MAGIC.len());
        if head.is_empty() || head[..known] != MAGIC[..known] {
            return Err(BadBundle::Other);
        }
        match head.get(MAGIC.len()) {
            Some(&VERSION) => Ok(reader),
            Some(other) => Err(BadBundle::Version(*other)),
            None => Err(BadBundle::CutOff { at: reader.at }),
        }
    }

    /// How many bytes were read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next record and the byte at which it begins; none after a proper end.
    pub fn next_record(&mut self) -> Result<Option<(u64, Record)>, BadBundle> {
        if self.is_over {
            return Ok(None);
        }
        let at = self.at;
        let head = self.exact(HEAD_BYTES as u64)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let (what, most) = match head[0] {
            EVENT => ("event", 4 + BLOB_BYTES_MAX + INLINE_WIRE_BYTES_MAX),
            CONTENT => ("content", CONTENT_HEAD_BYTES + CONTENT_RECORD_BYTES_MAX),
            KEYS => ("keys", KEYS_RECORD_BYTES_MAX),
            END => ("end", END_BYTES),
            kind => return Err(BadBundle::Kind { kind, at }),
        };
        if length as usize > most {
            return Err(BadBundle::Long { what, at, length, most });
        }
        let body = self.exact(u64::from(length))?;
        let short = BadBundle::Short { what, at };
        if head[0] == END {
            return self.end(body.try_into().map_err(|_| short)?).map(|()| None);
        }
        self.hasher.update(&head);
        self.hasher.update(&body);
        self.records += 1;
        let record = match head[0] {
            EVENT => split_event(body),
            KEYS => Some(Record::Keys { sealed: body }),
            _ => split_content(&body),
        };
        record.map(|record| Some((at, record))).ok_or(short)
    }

    fn end(&mut self, body: [u8; END_BYTES]) -> Result<(), BadBundle> {
        let (count, hash) = body.split_at(8);
        let said = count.try_into().map_or(0, u64::from_be_bytes);
        if said != self.records {
            return Err(BadBundle::Count { said, found: self.records });
        }
        if self.hasher.finalize().as_bytes() != hash {
            return Err(BadBundle::Checksum);
        }
        let at = self.at;
        if !self.bytes(1)?.is_empty() {
            return Err(BadBundle::AfterEnd { at });
        }
        self.is_over = true;
        Ok(())
    }

    /// So many bytes, no fewer.
    fn exact(&mut self, count: u64) -> Result<Vec<u8>, BadBundle> {
        let bytes = self.bytes(count)?;
        if bytes.len() as u64 == count { Ok(bytes) } else { Err(BadBundle::CutOff { at: self.at }) }
    }

    /// At most so many bytes: fewer only at the end. Memory grows with what comes, not with what was promised.
    fn bytes(&mut self, most: u64) -> Result<Vec<u8>, BadBundle> {
        let mut bytes = Vec::with_capacity(most.min(8192) as usize);
        let read = self.input.by_ref().take(most).read_to_end(&mut bytes);
        self.at += bytes.len() as u64;
        read.map_err(|why| BadBundle::Read { at: self.at, why })?;
        Ok(bytes)
    }
}

fn split_event(mut body: Vec<u8>) -> Option<Record> {
    let length = body.first_chunk::<4>().map(|length| u32::from_be_bytes(*length))?;
    let end = usize::try_from(length).ok()?.checked_add(4)?;
    if body.len() < end {
        return None;
    }
    let inline = body.split_off(end);
    body.drain(..4);
    Some(Record::Event { blob: body, inline })
}

fn split_content(body: &[u8]) -> Option<Record> {
    let (space, rest) = body.split_first_chunk()?;
    let (hash, bytes) = rest.split_first_chunk()?;
    Some(Record::Content { space: SpaceId(*space), hash: ContentHash(*hash), bytes: bytes.to_vec() })
}

#[cfg(test)]
mod tests;
