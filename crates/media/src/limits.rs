//! What an image may ask for before it is decoded.

/// What an image may ask for. A header of a few bytes can promise any number of pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DecodeLimits {
    /// Pixels of the whole image: a decoded one takes up to eight bytes for each.
    pub pixels_max: u64,
    /// Pixels of one side.
    pub side_max: u32,
    /// Bytes that the decoder may keep in memory, beside the pixels themselves.
    pub decoder_bytes_max: u64,
}

impl Default for DecodeLimits {
    fn default() -> DecodeLimits {
        // The largest photographs of phones have 50 megapixels, with some above; a scan of a poster has 64.
        DecodeLimits { pixels_max: 64_000_000, side_max: 32_767, decoder_bytes_max: 640 << 20 }
    }
}
