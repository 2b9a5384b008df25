//! Objects: large content as it rests outside the database. A version, a form, then the content: as it travels, or in
//! chunks that are each encrypted under the key of the object.

/// The version that the bytes of an object begin with.
pub const OBJECT_VERSION: u8 = 1;
/// The content follows as it travels.
pub const TRAVELS_FORM: u8 = 0;
/// Chunks follow, encrypted under the key of the object and bound to its name, their place, and whether they are the last.
pub const ENCRYPTED_FORM: u8 = 1;
/// Bytes before the content.
pub const HEADER_BYTES: usize = 2;
