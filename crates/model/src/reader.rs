//! Reading fixed layouts from bytes that anyone may have sent: never past the end, never more than is there.

use crate::ids::Nanos;

/// The bytes ended before the layout did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ends too early")]
pub struct TooShort;

/// A cursor over a byte slice. Integers are big-endian.
#[derive(Clone, Copy, Debug)]
pub struct ByteReader<'a> {
    rest: &'a [u8],
}

impl<'a> ByteReader<'a> {
    pub fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader { rest: bytes }
    }

    /// The bytes that were not read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], TooShort> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(TooShort)?;
        self.rest = rest;
        Ok(head)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], TooShort> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(TooShort)?;
        self.rest = rest;
        Ok(*head)
    }

    pub fn u8(&mut self) -> Result<u8, TooShort> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub fn u16(&mut self) -> Result<u16, TooShort> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, TooShort> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, TooShort> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub fn nanos(&mut self) -> Result<Nanos, TooShort> {
        Ok(Nanos(self.u64()?))
    }
}
