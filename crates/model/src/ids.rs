//! A type per identifier, so that none can stand where another is meant.
//!
//! Identifiers that travel are byte arrays and are written as hex; numbers that only this node gives
//! ([`Seq`], [`SpaceNo`], [`AuthorNo`]) are integers, written with a letter in front, and never leave the node.

use std::fmt;
use std::str::FromStr;

/// Why a text is not an identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{got:?} is not {what}, which is {want} hexadecimal digits in lower case")]
pub struct BadId {
    /// Which identifier was expected.
    pub what: &'static str,
    /// How many digits it has.
    pub want: usize,
    /// What was given, cut to a readable length.
    pub got: String,
}

macro_rules! byte_ids {
    ($($(#[$doc:meta])* $name:ident($len:literal, $word:literal, $article:literal);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub struct $name(pub [u8; $len]);

        impl $name {
            /// The number of bytes.
            pub const LEN: usize = $len;
            /// All bytes zero: none.
            pub const ZERO: $name = $name([0; $len]);

            /// Whether all bytes are zero, which stands for none.
            pub fn is_zero(&self) -> bool {
                self.0 == [0; $len]
            }

            /// The bytes.
            pub fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&hex::encode(self.0))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($word, ":{}"), hex::encode(self.0))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::ids::BadId;

            fn from_str(text: &str) -> Result<Self, $crate::ids::BadId> {
                let mut bytes = [0; $len];
                match hex::decode_to_slice(text, &mut bytes) {
                    Ok(()) if text.bytes().all(|b| !b.is_ascii_uppercase()) => Ok($name(bytes)),
                    _ => Err($crate::ids::BadId {
                        what: $article,
                        want: 2 * $len,
                        got: text.chars().take(80).collect(),
                    }),
                }
            }
        }
    )*};
}

pub(crate) use byte_ids;

byte_ids! {
    /// The id of an event: BLAKE2b-128 of its blob.
    EventId(16, "event", "an event id");
    /// The id of a space.
    SpaceId(16, "space", "a space id");
    /// An identity: an ed25519 public key.
    Identity(32, "identity", "an identity");
    /// The key of somebody in the `nostr` protocol: a secp256k1 public key, which is no [`Identity`].
    NostrKey(32, "nostr", "a Nostr public key");
    /// The id of a space key.
    KeyId(16, "key", "a key id");
    /// The id of a prekey.
    PrekeyId(16, "prekey", "a prekey id");
    /// The id of a transit secret.
    TransitId(16, "transit", "a transit id");
    /// BLAKE3 of content as it travels.
    ContentHash(32, "content", "a content hash");
    /// The id of a file on this node and, as the id that its author chose, elsewhere.
    FileId(16, "file", "a file id");
    /// The name of an object in which large content rests: random, so that it tells nothing.
    ObjectName(16, "object", "an object name");
    /// A link to a file: random, so that nobody guesses it.
    LinkId(16, "link", "the id of a link");
    /// The auxiliary key of an envelope; zero for none.
    AuxKey(16, "aux", "an auxiliary key");
}

impl SpaceId {
    /// The commons: the one space in which all events of protocols without spaces live. Ids of spaces are hashes, so none
    /// is like it.
    pub const COMMONS: SpaceId = SpaceId(*b"anteroom commons");
}

impl FileId {
    /// What the id of a file begins with where people meet it, so that it is taken neither for an event nor for a name.
    const PREFIX: &'static str = "file-";

    /// The id as people meet it.
    pub fn to_name(self) -> String {
        format!("{}{self}", FileId::PREFIX)
    }

    /// The id that people met.
    pub fn from_name(name: &str) -> Option<FileId> {
        name.strip_prefix(FileId::PREFIX)?.parse().ok()
    }
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($int:ty, $letter:literal);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $int);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

numbers! {
    /// The local number of an event, given when it is stored. Zero is never given.
    Seq(u64, "#");
    /// The local number of a space.
    SpaceNo(u32, "s");
    /// The local number of an identity.
    AuthorNo(u32, "a");
}

/// A moment, in Unix nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
pub struct Nanos(pub u64);

impl Nanos {
    /// One second.
    pub const SECOND: u64 = 1_000_000_000;

    /// This moment and so many nanoseconds, at most the last moment there is.
    pub fn plus(self, nanos: u64) -> Nanos {
        Nanos(self.0.saturating_add(nanos))
    }

    /// This moment less so many nanoseconds, at least the first.
    pub fn minus(self, nanos: u64) -> Nanos {
        Nanos(self.0.saturating_sub(nanos))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}", self.0)
    }
}

impl fmt::Debug for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// An event's place in the order of all events: its time, then its id. The greatest stamp wins a register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp {
    /// When the author says it was made.
    pub at: Nanos,
    /// The id, which decides between equal times.
    pub id: EventId,
}

impl Stamp {
    /// The number of bytes of its key form.
    pub const LEN: usize = 24;
    /// Before every event.
    pub const FIRST: Stamp = Stamp { at: Nanos(0), id: EventId::ZERO };
    /// After every event.
    pub const LAST: Stamp = Stamp { at: Nanos(u64::MAX), id: EventId([0xff; 16]) };

    /// The bytes, which sort as the stamps do.
    pub fn to_bytes(self) -> [u8; Stamp::LEN] {
        let mut bytes = [0; Stamp::LEN];
        bytes[..8].copy_from_slice(&self.at.0.to_be_bytes());
        bytes[8..].copy_from_slice(&self.id.0);
        bytes
    }

    /// The stamp of those bytes.
    pub fn from_bytes(bytes: [u8; Stamp::LEN]) -> Stamp {
        let mut at = [0; 8];
        let mut id = [0; 16];
        at.copy_from_slice(&bytes[..8]);
        id.copy_from_slice(&bytes[8..]);
        Stamp { at: Nanos(u64::from_be_bytes(at)), id: EventId(id) }
    }

    /// The greatest stamp that is smaller; the first one, of the first.
    pub fn just_before(self) -> Stamp {
        match u128::from_be_bytes(self.id.0).checked_sub(1) {
            Some(id) => Stamp { at: self.at, id: EventId(id.to_be_bytes()) },
            None if self.at.0 == 0 => self,
            None => Stamp { at: self.at.minus(1), id: EventId([0xff; 16]) },
        }
    }

    /// The smallest stamp that is greater; the last one, of the last.
    pub fn just_after(self) -> Stamp {
        match u128::from_be_bytes(self.id.0).checked_add(1) {
            Some(id) => Stamp { at: self.at, id: EventId(id.to_be_bytes()) },
            None if self.at.0 == u64::MAX => self,
            None => Stamp { at: self.at.plus(1), id: EventId::ZERO },
        }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at, self.id)
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A place in the journal, written `{epoch}-{number}`. The epoch is random, drawn when a data folder is made and at every
/// restore, so that a position of one journal is never taken for one of another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Position {
    /// Which journal.
    pub epoch: u64,
    /// The number of the entry.
    pub number: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.epoch, self.number)
    }
}

impl FromStr for Position {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Position, BadPosition> {
        let parse = || {
            let (epoch, number) = text.split_once('-')?;
            Some(Position { epoch: epoch.parse().ok()?, number: number.parse().ok()? })
        };
        parse().ok_or(BadPosition)
    }
}

/// Why a text is not a journal position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a journal position is written epoch-number, such as 1-42")]
pub struct BadPosition;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_what_they_write() {
        let id = EventId([0xab; 16]);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(format!("{id:?}"), format!("event:{id}"));
    }

    #[test]
    fn ids_refuse_other_lengths_and_uppercase() {
        for text in ["", "ab", &"a".repeat(31), &"a".repeat(33), &"A".repeat(32), &"g".repeat(32)] {
            assert!(text.parse::<EventId>().is_err(), "{text}");
        }
    }

    #[test]
    fn stamps_sort_as_their_bytes() {
        let early = Stamp { at: Nanos(5), id: EventId([9; 16]) };
        let late = Stamp { at: Nanos(256), id: EventId([1; 16]) };
        assert!(early < late && early.to_bytes() < late.to_bytes());
        assert_eq!(Stamp::from_bytes(late.to_bytes()), late);
    }

    #[test]
    fn positions_read_back() {
        let position = Position { epoch: 3, number: 99 };
        assert_eq!(position.to_string().parse(), Ok(position));
        assert!("3".parse::<Position>().is_err() && "x-1".parse::<Position>().is_err());
    }
}
