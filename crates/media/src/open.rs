//! An original: recognised by its content, measured by its header, then decoded once. Of a document it is the first page.

use crate::limits::DecodeLimits;
use crate::refusal::RenderRefusal;
use crate::{pdf, text};
use image::{DynamicImage, ImageDecoder as _, ImageFormat, ImageReader, Limits};
use std::io::Cursor;

/// The kinds of files that renditions are made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OriginalKind {
    Jpeg,
    Png,
    WebP,
    Gif,
    Pdf,
    Text,
}

impl OriginalKind {
    /// What the first bytes say, whatever the name of the file does.
    pub fn of(bytes: &[u8]) -> Option<OriginalKind> {
        match image::guess_format(bytes) {
            Ok(ImageFormat::Jpeg) => Some(OriginalKind::Jpeg),
            Ok(ImageFormat::Png) => Some(OriginalKind::Png),
            Ok(ImageFormat::WebP) => Some(OriginalKind::WebP),
            Ok(ImageFormat::Gif) => Some(OriginalKind::Gif),
            Ok(_) => None,
            Err(_) if bytes.starts_with(pdf::BEGINNING) => Some(OriginalKind::Pdf),
            Err(_) => text::is_text(bytes).then_some(OriginalKind::Text),
        }
    }
}

/// An original with its pixels, turned the way it was taken. Of an animation it is the first frame.
#[derive(Clone, Debug)]
pub struct OpenedImage {
    pub(crate) pixels: DynamicImage,
    /// The colours that the numbers stand for, if the image says so.
    pub(crate) profile: Option<Vec<u8>>,
}

impl OpenedImage {
    /// Decodes an image, if its header asks for no more than it may.
    pub fn open(bytes: &[u8], limits: &DecodeLimits) -> Result<OpenedImage, RenderRefusal> {
        let format = match OriginalKind::of(bytes).ok_or(RenderRefusal::NotSupported)? {
            OriginalKind::Jpeg => ImageFormat::Jpeg,
            OriginalKind::Png => ImageFormat::Png,
            OriginalKind::WebP => ImageFormat::WebP,
            OriginalKind::Gif => ImageFormat::Gif,
            OriginalKind::Pdf => return OpenedImage::of_page(bytes),
            OriginalKind::Text => return OpenedImage::of_page(&text::page_of(bytes)),
        };
        let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
        let mut of_decoder = Limits::default();
        of_decoder.max_alloc = Some(limits.decoder_bytes_max);
        reader.limits(of_decoder);
        let mut decoder = reader.into_decoder()?;
        let (width, height) = decoder.dimensions();
        check_size(width, height, limits)?;
        let profile = decoder.icc_profile().unwrap_or_default();
        let orientation = decoder.orientation().unwrap_or(image::metadata::Orientation::NoTransforms);
        let mut pixels = DynamicImage::from_decoder(decoder)?;
        pixels.apply_orientation(orientation);
        Ok(OpenedImage { pixels, profile })
    }

    /// The first page of a PDF.
    fn of_page(bytes: &[u8]) -> Result<OpenedImage, RenderRefusal> {
        Ok(OpenedImage { pixels: DynamicImage::ImageRgb8(pdf::first_page(bytes)?), profile: None })
    }

    /// Width and height, turned the way it was taken.
    pub fn size(&self) -> (u32, u32) {
        (self.pixels.width(), self.pixels.height())
    }
}

fn check_size(width: u32, height: u32, limits: &DecodeLimits) -> Result<(), RenderRefusal> {
    let &DecodeLimits { pixels_max, side_max, .. } = limits;
    if width == 0 || height == 0 {
        return Err(RenderRefusal::Empty);
    }
    if u64::from(width) * u64::from(height) > pixels_max || width > side_max || height > side_max {
        return Err(RenderRefusal::TooLarge { width, height, pixels_max, side_max });
    }
    Ok(())
}
