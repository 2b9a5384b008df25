//! Values of tables: what a row says beside its key, and how that is written.

use crate::checksum::CHECKSUM_BYTES;
use crate::keys::KeyField;
use std::fmt::Debug;
use std::marker::PhantomData;

/// A value of a table.
pub trait RowValue: Debug + 'static {
    /// What is written and read: the value itself, or bytes borrowed from the database.
    type Data<'a>;

    /// The number of bytes, where all values have the same.
    const WIDTH: Option<usize>;

    /// What it is called in the database, which refuses to open a table under another name.
    const NAME: &'static str;

    /// Appends the bytes of a value.
    fn put(data: &Self::Data<'_>, out: &mut Vec<u8>);

    /// Reads a value from all of these bytes; none if no value has them.
    fn get(bytes: &[u8]) -> Option<Self::Data<'_>>;
}

/// A value that is read as itself, without borrowing.
pub trait OwnedValue: for<'a> RowValue<Data<'a> = Self> + Sized {}

impl<V: for<'a> RowValue<Data<'a> = V>> OwnedValue for V {}

/// Bytes whose form the reader knows: event rows, content, what rests encrypted.
#[derive(Debug)]
pub struct Bytes;

impl RowValue for Bytes {
    type Data<'a> = &'a [u8];
    const WIDTH: Option<usize> = None;
    const NAME: &'static str = "bytes";

    fn put(data: &&[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(data);
    }

    fn get(bytes: &[u8]) -> Option<&[u8]> {
        Some(bytes)
    }
}

/// A row that says all in its key.
impl RowValue for () {
    type Data<'a> = ();
    const WIDTH: Option<usize> = Some(0);
    const NAME: &'static str = "nothing";

    fn put((): &(), _: &mut Vec<u8>) {}

    fn get(bytes: &[u8]) -> Option<()> {
        bytes.is_empty().then_some(())
    }
}

macro_rules! field_values {
    ($($type:ty = $name:literal),* $(,)?) => {$(
        impl RowValue for $type {
            type Data<'a> = $type;
            const WIDTH: Option<usize> = Some(<$type as KeyField>::WIDTH);
            const NAME: &'static str = $name;

            fn put(data: &$type, out: &mut Vec<u8>) {
                let at = out.len();
                out.resize(at + <$type as KeyField>::WIDTH, 0);
                KeyField::write(*data, &mut out[at..]);
            }

            fn get(bytes: &[u8]) -> Option<$type> {
                (bytes.len() == <$type as KeyField>::WIDTH).then(|| <$type as KeyField>::read(bytes))
            }
        }
    )*};
}

field_values!(
    u32 = "number of four bytes",
    u64 = "number of eight bytes",
    model::Seq = "event number",
    model::SpaceNo = "space number",
    model::AuthorNo = "identity number",
    model::Nanos = "moment",
    model::EventId = "event id",
    model::FileId = "file id",
    model::SpaceId = "space id",
    model::KeyId = "key id",
);

/// The code of the protocol, then the key.
impl RowValue for model::AuthorKey {
    type Data<'a> = model::AuthorKey;
    const WIDTH: Option<usize> = Some(33);
    const NAME: &'static str = "author";

    fn put(author: &model::AuthorKey, out: &mut Vec<u8>) {
        let (protocol, key) = author.to_code();
        out.push(protocol);
        out.extend(key);
    }

    fn get(bytes: &[u8]) -> Option<model::AuthorKey> {
        let (protocol, key) = bytes.split_first()?;
        model::AuthorKey::from_code(*protocol, key.try_into().ok()?)
    }
}

/// What the database keeps of a value: its bytes, then their checksum.
#[derive(Debug)]
pub struct Stored<V>(PhantomData<V>);

impl<V: RowValue> redb::Value for Stored<V> {
    type SelfType<'a> = &'a [u8];
    type AsBytes<'a> = &'a [u8];

    fn fixed_width() -> Option<usize> {
        V::WIDTH.map(|width| width + CHECKSUM_BYTES)
    }

    fn from_bytes<'a>(data: &'a [u8]) -> &'a [u8]
    where
        Self: 'a,
    {
        data
    }

    fn as_bytes<'a, 'b: 'a>(value: &'a &'b [u8]) -> &'a [u8]
    where
        Self: 'b,
    {
        value
    }

    fn type_name() -> redb::TypeName {
        redb::TypeName::new(&format!("anteroom value {}", V::NAME))
    }
}
