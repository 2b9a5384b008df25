//! The first page of a PDF, as pixels.

use crate::refusal::RenderRefusal;
use hayro::hayro_interpret::InterpreterSettings;
use hayro::hayro_syntax::{LoadPdfError, Pdf};
use hayro::vello_cpu::color::palette::css::WHITE;
use hayro::{PixmapSettings, RenderCache, RenderSettings, render};
use image::RgbImage;

/// The longer side of the page in pixels: what the largest usual rendition has.
const EDGE: f32 = 2048.0;
/// What a PDF begins with.
pub(crate) const BEGINNING: &[u8] = b"%PDF-";

/// Draws the first page on white.
pub(crate) fn first_page(bytes: &[u8]) -> Result<RgbImage, RenderRefusal> {
    let pdf = Pdf::new(bytes.to_vec()).map_err(|why| match why {
        LoadPdfError::Decryption(_) => RenderRefusal::Locked,
        LoadPdfError::Invalid => RenderRefusal::Damaged("it is no PDF that can be read".to_owned()),
    })?;
    let page = pdf.pages().first().ok_or(RenderRefusal::Empty)?;
    let (width, height) = page.render_dimensions();
    let scale = EDGE / width.max(height);
    // A page of a hair's breadth has no pixels either; nor has one whose size is no number.
    if !(scale.is_finite() && width * scale >= 1.0 && height * scale >= 1.0) {
        return Err(RenderRefusal::Empty);
    }
    let settings = PixmapSettings { x_scale: scale, y_scale: scale, bg_color: WHITE };
    let cache = RenderCache::new();
    let drawn = render(page, &cache, &InterpreterSettings::default(), &RenderSettings::default(), &settings);
    let (width, height) = (u32::from(drawn.width()), u32::from(drawn.height()));
    let pixels = drawn.data_as_u8_slice().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    RgbImage::from_raw(width, height, pixels).ok_or(RenderRefusal::Empty)
}
