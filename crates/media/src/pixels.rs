//! Pixels, and fewer of them.

use crate::refusal::RenderRefusal;
use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::DynamicImage;

/// Pixels that renditions are made of, of three bytes, or of four if some of them can be seen through.
pub(crate) struct Pixels {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) has_alpha: bool,
}

impl Pixels {
    pub(crate) fn of(pixels: DynamicImage) -> Pixels {
        let (width, height) = (pixels.width(), pixels.height());
        if pixels.color().has_alpha() {
            let pixels = pixels.into_rgba8();
            // Most images that could be seen through cannot.
            if pixels.pixels().any(|pixel| pixel.0[3] != u8::MAX) {
                return Pixels { width, height, bytes: pixels.into_raw(), has_alpha: true };
            }
            let bytes = pixels.pixels().flat_map(|pixel| [pixel.0[0], pixel.0[1], pixel.0[2]]).collect();
            return Pixels { width, height, bytes, has_alpha: false };
        }
        Pixels { width, height, bytes: pixels.into_rgb8().into_raw(), has_alpha: false }
    }

    /// The same with a longer side of at most so many pixels. What is smaller stays.
    pub(crate) fn reduce(&self, edge_max: u16) -> Result<Pixels, RenderRefusal> {
        let (width, height) = fit(self.width, self.height, u32::from(edge_max));
        if (width, height) == (self.width, self.height) {
            let (bytes, has_alpha) = (self.bytes.clone(), self.has_alpha);
            return Ok(Pixels { width, height, bytes, has_alpha });
        }
        let kind = if self.has_alpha { PixelType::U8x4 } else { PixelType::U8x3 };
        let failed = |why: String| RenderRefusal::Failed(why);
        let from = ImageRef::new(self.width, self.height, &self.bytes, kind).map_err(|why| failed(why.to_string()))?;
        let mut to = Image::new(width, height, kind);
        let options = ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::CatmullRom));
        Resizer::new().resize(&from, &mut to, &options).map_err(|why| failed(why.to_string()))?;
        Ok(Pixels { width, height, bytes: to.into_vec(), has_alpha: self.has_alpha })
    }
}

/// A size with the same proportions whose longer side is at most so long. No side vanishes.
pub(crate) fn fit(width: u32, height: u32, edge_max: u32) -> (u32, u32) {
    let longer = width.max(height);
    if longer <= edge_max {
        return (width, height);
    }
    let reduce = |side: u32| {
        let rounded = (u64::from(side) * u64::from(edge_max) + u64::from(longer) / 2) / u64::from(longer);
        u32::try_from(rounded).unwrap_or(edge_max).max(1)
    };
    (reduce(width), reduce(height))
}
