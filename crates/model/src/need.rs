//! Needs: everything that can be missing, in one enum. Holding, fetching, explaining and testing all speak of it.

use crate::ids::{ContentHash, EventId, Identity, KeyId, Nanos, NostrKey, SpaceId};
use crate::limits::IDENTIFIER_BYTES_MAX;
use crate::reader::{ByteReader, TooShort};
use std::fmt;
use std::str::FromStr;

/// A git object name: SHA-1.
pub type Oid = [u8; 20];

/// Something that must be here before an event, or its content's effects, can be applied.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Need {
    /// That event is applied.
    Event(EventId),
    /// The key event that carries it is applied and unsealed.
    Key(KeyId),
    /// An event at that Nostr address is applied.
    Address {
        /// The Nostr kind.
        kind: u16,
        /// The author.
        author: NostrKey,
        /// The `d` tag.
        identifier: String,
    },
    /// The object and all it reaches are in that owner's repository.
    GitObject {
        /// Whose repository.
        owner: NostrKey,
        /// Its identifier.
        identifier: String,
        /// Which object.
        oid: Oid,
    },
    /// That owner's repository has its first authorised refs.
    GitData {
        /// Whose repository.
        owner: NostrKey,
        /// Its identifier.
        identifier: String,
    },
    /// The clock has passed it.
    Time(Nanos),
    /// The bytes are verified and stored.
    Content(SpaceId, ContentHash),
    /// A value of that author under that name is applied.
    #[cfg(feature = "simulation")]
    Probe { author: crate::probe::ProbeKey, name: String },
}

/// Why a text or a row is not a need.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a need is written event:ID, key:ID, content:SPACE:HASH, time:NANOSECONDS, address:KIND:AUTHOR:IDENTIFIER, \
     git:OID:OWNER:IDENTIFIER or repository:OWNER:IDENTIFIER"
)]
pub struct BadNeed;

impl From<TooShort> for BadNeed {
    fn from(_: TooShort) -> BadNeed {
        BadNeed
    }
}

/// The first bytes of the key forms of needs about repositories. The identifier comes next, so that those of one identifier
/// stand together, whoever owns them.
const ADDRESS: u8 = 3;
const GIT_OBJECT: u8 = 4;
const GIT_DATA: u8 = 5;

impl Need {
    /// The owner of the git repository that it is about, if it is about one.
    pub fn repository_owner(&self) -> Option<&NostrKey> {
        match self {
            Need::GitObject { owner, .. } | Need::GitData { owner, .. } => Some(owner),
            Need::Address { author, .. } => Some(author),
            _ => None,
        }
    }

    /// What the key forms of all needs about repositories of an identifier begin with.
    pub fn keys_of_repository(identifier: &str) -> [Vec<u8>; 3] {
        let length = (identifier.len() as u16).to_be_bytes();
        [ADDRESS, GIT_OBJECT, GIT_DATA].map(|tag| tagged(tag, &[&length, identifier.as_bytes()]))
    }

    /// What the key forms of all needs for the first data of a repository begin with.
    pub fn keys_of_data() -> Vec<u8> {
        vec![GIT_DATA]
    }

    /// What the key forms of all needs for objects of a repository begin with.
    pub fn keys_of_objects(owner: &NostrKey, identifier: &str) -> Vec<u8> {
        tagged(GIT_OBJECT, &[&(identifier.len() as u16).to_be_bytes(), identifier.as_bytes(), &owner.0])
    }

    /// The first byte of the key form of a time need: these sort by time.
    pub const TIME_TAG: u8 = 6;

    /// The key form. No need's key is the beginning of another's, so that a row key may go on after it.
    pub fn to_key(&self) -> Vec<u8> {
        match self {
            Need::Event(id) => tagged(1, &[&id.0]),
            Need::Key(id) => tagged(2, &[&id.0]),
            Need::Address { kind, author, identifier } => {
                let length = (identifier.len() as u16).to_be_bytes();
                tagged(ADDRESS, &[&length, identifier.as_bytes(), &kind.to_be_bytes(), &author.0])
            }
            Need::GitObject { owner, identifier, oid } => {
                let length = (identifier.len() as u16).to_be_bytes();
                tagged(GIT_OBJECT, &[&length, identifier.as_bytes(), &owner.0, oid])
            }
            Need::GitData { owner, identifier } => {
                let length = (identifier.len() as u16).to_be_bytes();
                tagged(GIT_DATA, &[&length, identifier.as_bytes(), &owner.0])
            }
            Need::Time(at) => tagged(Need::TIME_TAG, &[&at.0.to_be_bytes()]),
            Need::Content(space, hash) => tagged(7, &[&space.0, &hash.0]),
            #[cfg(feature = "simulation")]
            Need::Probe { author, name } => {
                tagged(crate::probe::PROBE_FORM, &[&author.0, &(name.len() as u16).to_be_bytes(), name.as_bytes()])
            }
        }
    }

    /// Reads a key form from the beginning of a row key, leaving what comes after it.
    pub fn read_key(reader: &mut ByteReader<'_>) -> Result<Need, BadNeed> {
        Ok(match reader.u8()? {
            1 => Need::Event(EventId(reader.array()?)),
            2 => Need::Key(KeyId(reader.array()?)),
            ADDRESS => {
                let identifier = read_identifier(reader)?;
                Need::Address { kind: reader.u16()?, author: NostrKey(reader.array()?), identifier }
            }
            GIT_OBJECT => {
                let identifier = read_identifier(reader)?;
                Need::GitObject { owner: NostrKey(reader.array()?), identifier, oid: reader.array()? }
            }
            GIT_DATA => {
                let identifier = read_identifier(reader)?;
                Need::GitData { owner: NostrKey(reader.array()?), identifier }
            }
            Need::TIME_TAG => Need::Time(reader.nanos()?),
            7 => Need::Content(SpaceId(reader.array()?), ContentHash(reader.array()?)),
            #[cfg(feature = "simulation")]
            crate::probe::PROBE_FORM => {
                let author = crate::probe::ProbeKey(reader.array()?);
                Need::Probe { author, name: read_identifier(reader)? }
            }
            _ => return Err(BadNeed),
        })
    }

    /// Whether an event waits for it before it is applied. Content never holds an event.
    pub fn holds(&self) -> bool {
        match self {
            Need::Content(..) => false,
            Need::Event(_) | Need::Key(_) | Need::Address { .. } | Need::Time(_) => true,
            Need::GitObject { .. } | Need::GitData { .. } => true,
            #[cfg(feature = "simulation")]
            Need::Probe { .. } => true,
        }
    }

    /// Whether the peers of the space are asked for it, together with all that events of that space wait for.
    pub fn is_hunted_by_space(&self) -> bool {
        match self {
            Need::Event(_) | Need::Key(_) => true,
            Need::Address { .. } | Need::GitObject { .. } | Need::GitData { .. } => false,
            Need::Time(_) | Need::Content(..) => false,
            #[cfg(feature = "simulation")]
            Need::Probe { .. } => true,
        }
    }

    /// A word for what kind of need it is.
    pub fn word(&self) -> &'static str {
        match self {
            Need::Event(_) => "event",
            Need::Key(_) => "key",
            Need::Address { .. } => "address",
            Need::GitObject { .. } => "git",
            Need::GitData { .. } => "repository",
            Need::Time(_) => "time",
            Need::Content(..) => "content",
            #[cfg(feature = "simulation")]
            Need::Probe { .. } => "probe",
        }
    }
}

fn tagged(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::with_capacity(1 + parts.iter().map(|part| part.len()).sum::<usize>());
    key.push(tag);
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

fn read_identifier(reader: &mut ByteReader<'_>) -> Result<String, BadNeed> {
    let length = usize::from(reader.u16()?);
    if length > IDENTIFIER_BYTES_MAX {
        return Err(BadNeed);
    }
    String::from_utf8(reader.bytes(length)?.to_vec()).map_err(|_| BadNeed)
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Need::Event(id) => write!(f, "event:{id}"),
            Need::Key(id) => write!(f, "key:{id}"),
            Need::Address { kind, author, identifier } => write!(f, "address:{kind}:{author}:{identifier}"),
            Need::GitObject { owner, identifier, oid } => write!(f, "git:{}:{owner}:{identifier}", hex::encode(oid)),
            Need::GitData { owner, identifier } => write!(f, "repository:{owner}:{identifier}"),
            Need::Time(at) => write!(f, "time:{}", at.0),
            Need::Content(space, hash) => write!(f, "content:{space}:{hash}"),
            #[cfg(feature = "simulation")]
            Need::Probe { author, name } => write!(f, "probe:{author}:{name}"),
        }
    }
}

impl FromStr for Need {
    type Err = BadNeed;

    fn from_str(text: &str) -> Result<Need, BadNeed> {
        let (word, rest) = text.split_once(':').ok_or(BadNeed)?;
        let need = match word {
            "event" => Need::Event(rest.parse().map_err(|_| BadNeed)?),
            "key" => Need::Key(rest.parse().map_err(|_| BadNeed)?),
            "time" => Need::Time(Nanos(rest.parse().map_err(|_| BadNeed)?)),
            "repository" => {
                let (owner, identifier) = parse_repository(rest)?;
                Need::GitData { owner, identifier }
            }
            "content" => {
                let (space, hash) = rest.split_once(':').ok_or(BadNeed)?;
                Need::Content(space.parse().map_err(|_| BadNeed)?, hash.parse().map_err(|_| BadNeed)?)
            }
            "git" => {
                let (oid, repository) = rest.split_once(':').ok_or(BadNeed)?;
                let mut bytes = [0; 20];
                hex::decode_to_slice(oid, &mut bytes).map_err(|_| BadNeed)?;
                let (owner, identifier) = parse_repository(repository)?;
                Need::GitObject { owner, identifier, oid: bytes }
            }
            "address" => parse_address(rest)?,
            _ => return Err(BadNeed),
        };
        Ok(need)
    }
}

fn parse_repository(text: &str) -> Result<(NostrKey, String), BadNeed> {
    let (owner, identifier) = text.split_once(':').ok_or(BadNeed)?;
    Ok((owner.parse().map_err(|_| BadNeed)?, bounded(identifier)?))
}

fn parse_address(rest: &str) -> Result<Need, BadNeed> {
    let mut parts = rest.splitn(3, ':');
    let (Some(kind), Some(author), Some(identifier)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(BadNeed);
    };
    Ok(Need::Address {
        kind: kind.parse().map_err(|_| BadNeed)?,
        author: author.parse().map_err(|_| BadNeed)?,
        identifier: bounded(identifier)?,
    })
}

fn bounded(text: &str) -> Result<String, BadNeed> {
    if text.is_empty() || text.len() > IDENTIFIER_BYTES_MAX { Err(BadNeed) } else { Ok(text.to_owned()) }
}

/// What the fetcher works on: all needs that one hunt can meet together.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Group {
    /// Events and keys of a space: its peers are asked for all of them at once.
    Space(SpaceId),
    /// Gaps in the parents of an author in a space: hints, fetched but never held on.
    Author(SpaceId, Identity),
    /// One content.
    Content(SpaceId, ContentHash),
    /// All repositories of one identifier, whoever owns them: their announcements, objects and first refs.
    Repository(String),
}

impl Group {
    /// The group in which a need of an event of that space is hunted; none for what only time brings.
    pub fn of(need: &Need, space: SpaceId) -> Option<Group> {
        match need {
            Need::Event(_) | Need::Key(_) => Some(Group::Space(space)),
            Need::Address { identifier, .. }
            | Need::GitObject { identifier, .. }
            | Need::GitData { identifier, .. } => Some(Group::Repository(identifier.clone())),
            Need::Time(_) => None,
            Need::Content(space, hash) => Some(Group::Content(*space, *hash)),
            #[cfg(feature = "simulation")]
            Need::Probe { .. } => Some(Group::Space(space)),
        }
    }

    /// The key form.
    pub fn to_key(&self) -> Vec<u8> {
        match self {
            Group::Space(space) => tagged(1, &[&space.0]),
            Group::Author(space, author) => tagged(2, &[&space.0, &author.0]),
            Group::Content(space, hash) => tagged(3, &[&space.0, &hash.0]),
            Group::Repository(name) => tagged(4, &[&(name.len() as u16).to_be_bytes(), name.as_bytes()]),
        }
    }

    /// Reads a key form.
    pub fn from_key(key: &[u8]) -> Result<Group, BadNeed> {
        let mut reader = ByteReader::new(key);
        let group = match reader.u8()? {
            1 => Group::Space(SpaceId(reader.array()?)),
            2 => Group::Author(SpaceId(reader.array()?), Identity(reader.array()?)),
            3 => Group::Content(SpaceId(reader.array()?), ContentHash(reader.array()?)),
            4 => Group::Repository(read_identifier(&mut reader)?),
            _ => return Err(BadNeed),
        };
        if reader.rest().is_empty() { Ok(group) } else { Err(BadNeed) }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Group::Space(space) => write!(f, "space:{space}"),
            Group::Author(space, author) => write!(f, "author:{space}:{author}"),
            Group::Content(space, hash) => write!(f, "content:{space}:{hash}"),
            Group::Repository(name) => write!(f, "repository:{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn examples() -> Vec<Need> {
        vec![
            Need::Event(EventId([1; 16])),
            Need::Key(KeyId([2; 16])),
            Need::Address { kind: 30617, author: NostrKey([3; 32]), identifier: "a:b".into() },
            Need::GitObject { owner: NostrKey([8; 32]), identifier: "r".into(), oid: [4; 20] },
            Need::GitData { owner: NostrKey([8; 32]), identifier: "re:po".into() },
            Need::Time(Nanos(77)),
            Need::Content(SpaceId([5; 16]), ContentHash([6; 32])),
        ]
    }

    #[test]
    fn needs_read_back_from_text_and_key() {
        for need in examples() {
            assert_eq!(need.to_string().parse::<Need>().as_ref(), Ok(&need));
            let key = [need.to_key(), vec![9; 8]].concat();
            let mut reader = ByteReader::new(&key);
            assert_eq!(Need::read_key(&mut reader).as_ref(), Ok(&need));
            assert_eq!(reader.rest(), [9; 8]);
        }
    }

    #[test]
    fn groups_read_back() {
        let space = SpaceId([5; 16]);
        for need in examples() {
            if let Some(group) = Group::of(&need, space) {
                assert_eq!(Group::from_key(&[group.to_key(), vec![0]].concat()), Err(BadNeed), "a byte too many");
                assert_eq!(Group::from_key(&group.to_key()), Ok(group));
            }
        }
        let author = Group::Author(space, Identity([1; 32]));
        assert_eq!(Group::from_key(&author.to_key()), Ok(author));
    }

    #[test]
    fn nonsense_is_not_a_need() {
        for text in
            ["", "event", "event:zz", "time:-1", "content:aa", "git:aa:x", "repository:", "repository:x", "moon:1"]
        {
            assert_eq!(text.parse::<Need>(), Err(BadNeed), "{text}");
        }
    }
}
