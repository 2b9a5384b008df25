//! Pixels as files: JPEG, or PNG for what can be seen through.

use crate::pixels::Pixels;
use crate::refusal::RenderRefusal;
use image::ImageEncoder as _;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

/// Hardly to be told from the original, at a tenth of its size.
const JPEG_QUALITY: u8 = 82;

/// The format of a rendition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RenditionFormat {
    Jpeg,
    Png,
}

impl RenditionFormat {
    pub fn media_type(self) -> &'static str {
        match self {
            RenditionFormat::Jpeg => "image/jpeg",
            RenditionFormat::Png => "image/png",
        }
    }
}

/// Writes pixels, and nothing else.
pub(crate) fn encode(pixels: &Pixels) -> Result<(RenditionFormat, Vec<u8>), RenderRefusal> {
    let failed = |why: String| RenderRefusal::Failed(why);
    let mut file = Vec::new();
    if pixels.has_alpha {
        PngEncoder::new_with_quality(&mut file, CompressionType::Default, FilterType::Adaptive)
            .write_image(&pixels.bytes, pixels.width, pixels.height, image::ExtendedColorType::Rgba8)
            .map_err(|why| failed(why.to_string()))?;
        return Ok((RenditionFormat::Png, file));
    }
    let mut encoder = Encoder::new(&mut file, JPEG_QUALITY);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    let side = |side: u32| u16::try_from(side).map_err(|why| failed(why.to_string()));
    let encoded = encoder.encode(&pixels.bytes, side(pixels.width)?, side(pixels.height)?, ColorType::Rgb);
    encoded.map_err(|why| failed(why.to_string()))?;
    Ok((RenditionFormat::Jpeg, file))
}
