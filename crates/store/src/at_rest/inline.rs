//! Inline content beside a blob: as it travels, or as it rests.

use std::borrow::Cow;

/// Inline content beside a blob.
#[derive(Clone, Debug)]
pub(crate) struct Inline<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// Whether the bytes begin with a tag, rather than being those that travel.
    pub(crate) is_at_rest: bool,
}

impl Inline<'_> {
    /// As it travels.
    pub(crate) fn wire(bytes: Vec<u8>) -> Inline<'static> {
        Inline { bytes: Cow::Owned(bytes), is_at_rest: false }
    }

    pub(crate) fn borrowed(&self) -> Inline<'_> {
        Inline { bytes: Cow::Borrowed(&self.bytes), is_at_rest: self.is_at_rest }
    }

    pub(crate) fn into_owned(self) -> Inline<'static> {
        Inline { bytes: Cow::Owned(self.bytes.into_owned()), is_at_rest: self.is_at_rest }
    }
}
