//! The parts of keys: each has a fixed width and bytes that sort as it does.

use engine::rows::{DeleteTarget, Origin, Owner};
use model::nostr::{AddressName, NostrId};
use model::{
    AuthorNo, AuxKey, ContentHash, EventId, FileId, Identity, KeyId, LinkId, Nanos, NostrKey, ObjectName, PrekeyId,
    Seq, SpaceId, SpaceNo, Stamp, TransitId,
};

/// A part of a key, or a value of fixed width.
pub trait KeyField: Copy + Eq + std::fmt::Debug + 'static {
    /// The number of bytes.
    const WIDTH: usize;

    /// Writes it to exactly so many bytes.
    fn write(self, out: &mut [u8]);

    /// Reads it from exactly so many bytes.
    fn read(bytes: &[u8]) -> Self;
}

/// Writes a field to the front of these bytes. Gives back what comes after it.
pub(crate) fn put_field<F: KeyField>(field: F, out: &mut [u8]) -> &mut [u8] {
    let (front, rest) = out.split_at_mut(F::WIDTH);
    field.write(front);
    rest
}

impl<const N: usize> KeyField for [u8; N] {
    const WIDTH: usize = N;

    fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&self);
    }

    fn read(bytes: &[u8]) -> [u8; N] {
        let mut own = [0; N];
        own.copy_from_slice(bytes);
        own
    }
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl KeyField for $type {
            const WIDTH: usize = size_of::<$type>();

            fn write(self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_be_bytes());
            }

            fn read(bytes: &[u8]) -> $type {
                <$type>::from_be_bytes(KeyField::read(bytes))
            }
        }
    )*};
}

integers!(u8, u16, u32, u64);

macro_rules! wrapped {
    ($($type:ident($inner:ty)),* $(,)?) => {$(
        impl KeyField for $type {
            const WIDTH: usize = <$inner as KeyField>::WIDTH;

            fn write(self, out: &mut [u8]) {
                self.0.write(out);
            }

            fn read(bytes: &[u8]) -> $type {
                $type(KeyField::read(bytes))
            }
        }
    )*};
}

wrapped!(
    EventId([u8; 16]),
    SpaceId([u8; 16]),
    Identity([u8; 32]),
    KeyId([u8; 16]),
    PrekeyId([u8; 16]),
    TransitId([u8; 16]),
    ContentHash([u8; 32]),
    AuxKey([u8; 16]),
    UserHash([u8; 16]),
    ObjectName([u8; 16]),
    FileId([u8; 16]),
    LinkId([u8; 16]),
    AddressName([u8; 16]),
    DeleteTarget([u8; 16]),
    NostrKey([u8; 32]),
    NostrId([u8; 32]),
    SpaceNo(u32),
    AuthorNo(u32),
    Nanos(u64),
);

/// How many bytes the number of an event has in keys and rows: enough for a million events a second for nine years.
pub(crate) const SEQ_BYTES: usize = 6;
const SEQ_MAX: u64 = (1 << (8 * SEQ_BYTES)) - 1;

/// The bytes of the number of an event. Greater numbers than there can be end ranges.
pub(crate) fn seq_bytes(seq: Seq) -> [u8; SEQ_BYTES] {
    let [_, _, bytes @ ..] = seq.0.min(SEQ_MAX).to_be_bytes();
    bytes
}

pub(crate) fn seq_from([a, b, c, d, e, f]: [u8; SEQ_BYTES]) -> Seq {
    Seq(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

impl KeyField for Seq {
    const WIDTH: usize = SEQ_BYTES;

    fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&seq_bytes(self));
    }

    fn read(bytes: &[u8]) -> Seq {
        seq_from(KeyField::read(bytes))
    }
}

/// The keyed hash of a user id within a space: rows are found by it, so that the database shows no names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UserHash(pub [u8; 16]);

impl KeyField for Stamp {
    const WIDTH: usize = Stamp::LEN;

    fn write(self, out: &mut [u8]) {
        out.copy_from_slice(&self.to_bytes());
    }

    fn read(bytes: &[u8]) -> Stamp {
        Stamp::from_bytes(KeyField::read(bytes))
    }
}

/// One byte says whether an author or which door, four say which author or peer.
impl KeyField for Owner {
    const WIDTH: usize = 5;

    fn write(self, out: &mut [u8]) {
        let (code, number) = match self {
            Owner::Author(author) => (0, author.0),
            Owner::Door(Origin::Local) => (1, 0),
            Owner::Door(Origin::Import) => (2, 0),
            Owner::Door(Origin::Peer(peer)) => (3, peer),
            Owner::Door(Origin::Client) => (4, 0),
            Owner::Door(Origin::Relay) => (5, 0),
        };
        let rest = put_field::<u8>(code, out);
        put_field::<u32>(number, rest);
    }

    fn read(bytes: &[u8]) -> Owner {
        let number = u32::read(&bytes[1..]);
        match bytes[0] {
            0 => Owner::Author(AuthorNo(number)),
            1 => Owner::Door(Origin::Local),
            2 => Owner::Door(Origin::Import),
            4 => Owner::Door(Origin::Client),
            5 => Owner::Door(Origin::Relay),
            _ => Owner::Door(Origin::Peer(number)),
        }
    }
}
