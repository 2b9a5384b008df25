//! Limits are constants with a reason; the unit and the bound stand last in the name.

/// The version byte that every format of ours begins with.
pub const FORMAT_VERSION: u8 = 1;
/// Small data that decides validity; four kibibytes hold a membership or a key many times over.
pub const PAYLOAD_BYTES_MAX: usize = 4096;
/// References of one event: enough for a message with its attachments, few enough to check at once.
pub const REFERENCES_MAX: usize = 64;
/// Bytes of an envelope before payload, references and signature.
pub const ENVELOPE_FIXED_BYTES: usize = 1 + 1 + 2 + 8 + 16 + 32 + 16 + 16 + 16 + 16 + 8 + 32 + 2;
pub const SIGNATURE_BYTES: usize = 64;
/// The largest envelope there can be.
pub const ENVELOPE_BYTES_MAX: usize =
    ENVELOPE_FIXED_BYTES + PAYLOAD_BYTES_MAX + 1 + REFERENCES_MAX * 17 + SIGNATURE_BYTES;
/// The smallest envelope there can be.
pub const ENVELOPE_BYTES_MIN: usize = ENVELOPE_FIXED_BYTES + 1 + SIGNATURE_BYTES;
/// The largest blob: an envelope with the widest header and an authentication tag.
pub const BLOB_BYTES_MAX: usize = 1 + 16 + 16 + 32 + 16 + ENVELOPE_BYTES_MAX;
/// Content up to this travels beside its blob and rests in its event's own row.
pub const INLINE_BYTES_MAX: u64 = 1024;
/// One inline content as it travels: sealed, it grows by a nonce and a tag.
pub const INLINE_WIRE_BYTES_MAX: usize = INLINE_BYTES_MAX as usize;
/// Content of a sealed space is encrypted in pieces of this size, so that it can be read by ranges.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// What encryption adds to each chunk: its nonce and its tag.
pub const CHUNK_OVERHEAD_BYTES: usize = 24 + 16;
/// The largest content that a node takes: a file of 16 GiB, sealed.
pub const CONTENT_BYTES_MAX: u64 = (16 << 30) + ((16 << 30) / CHUNK_BYTES as u64) * CHUNK_OVERHEAD_BYTES as u64;
/// The largest message body; larger is told to attach a file.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// The largest packet between nodes.
pub const PACKET_BYTES_MAX: usize = 1 + 16 + 24 + 4 + BLOB_BYTES_MAX + INLINE_WIRE_BYTES_MAX + 16 + 32;
/// An event is held until the clock is this close to its time: clocks of honest people differ by minutes.
pub const FUTURE_NANOS_MAX: u64 = 5 * 60 * 1_000_000_000;
/// How long an event of a space waits for what it needs.
pub const HOLD_NANOS_MAX: u64 = 30 * 24 * 3600 * 1_000_000_000;
/// One transaction releases at most this many; the rest follow in the next.
pub const RELEASES_PER_TRANSACTION_MAX: usize = 1000;
/// Depth of nested JSON in a body; deeper is refused before it can exhaust a stack.
pub const JSON_DEPTH_MAX: usize = 64;
/// Identifier and author of a Nostr address, and names of repositories.
pub const IDENTIFIER_BYTES_MAX: usize = 256;

const _: () =
    assert!(BLOB_BYTES_MAX < u32::MAX as usize, "rows, packets and bundles write the length of a blob in four bytes");
const _: () = assert!(INLINE_BYTES_MAX < CHUNK_BYTES as u64, "inline content is one chunk");
const _: () = assert!(BODY_BYTES_MAX as u64 <= CONTENT_BYTES_MAX, "a body is content");
const _: () = assert!(ENVELOPE_BYTES_MIN < ENVELOPE_BYTES_MAX, "an envelope fits");
