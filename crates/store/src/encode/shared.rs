//! A shared row: its version, and its value as it is stored.

use crate::row_value::RowValue;

/// The version of a shared row: greater with every write, and never given twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RowVersion(pub u64);

/// A shared row as it rests: its version, then its value, plain or encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedBytes<'a> {
    /// Which version it is.
    pub version: RowVersion,
    /// The value in the form in which it rests.
    pub stored: &'a [u8],
}

/// The values of shared tables.
#[derive(Debug)]
pub struct SharedValue;

impl RowValue for SharedValue {
    type Data<'a> = SharedBytes<'a>;
    const WIDTH: Option<usize> = None;
    const NAME: &'static str = "version and bytes";

    fn put(row: &SharedBytes<'_>, out: &mut Vec<u8>) {
        out.extend(row.version.0.to_be_bytes());
        out.extend_from_slice(row.stored);
    }

    fn get(bytes: &[u8]) -> Option<SharedBytes<'_>> {
        let (version, stored) = bytes.split_first_chunk::<8>()?;
        Some(SharedBytes { version: RowVersion(u64::from_be_bytes(*version)), stored })
    }
}
