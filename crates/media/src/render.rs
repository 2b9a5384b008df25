//! Renditions of an original.

use crate::colours::to_srgb;
use crate::encode::{RenditionFormat, encode};
use crate::open::OpenedImage;
use crate::pixels::Pixels;
use crate::refusal::RenderRefusal;
use crate::variant::Variant;

/// Large originals are reduced to this side once, and small variants are made of that: half the work, and hardly to be seen.
/// It is the same whatever variants are asked for.
const BASE_EDGE: u16 = 2048;
/// Variants of up to this side are made of the base.
const FROM_BASE_EDGE_MAX: u16 = 1024;

/// A rendition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rendition {
    pub variant: Variant,
    pub width: u32,
    pub height: u32,
    pub format: RenditionFormat,
    pub bytes: Vec<u8>,
}

impl OpenedImage {
    /// Makes these renditions.
    pub fn render(self, variants: &[Variant]) -> Result<Vec<Rendition>, RenderRefusal> {
        let original = Pixels::of(self.pixels);
        let is_large = original.width.max(original.height) > u32::from(BASE_EDGE);
        let needs_base = is_large && variants.iter().any(|variant| variant.edge_max() <= FROM_BASE_EDGE_MAX);
        let base = if needs_base { Some(original.reduce(BASE_EDGE)?) } else { None };
        let mut renditions = Vec::new();
        for variant in variants {
            let source = base.as_ref().filter(|_| variant.edge_max() <= FROM_BASE_EDGE_MAX).unwrap_or(&original);
            let mut reduced = source.reduce(variant.edge_max())?;
            if let Some(profile) = &self.profile {
                to_srgb(&mut reduced.bytes, reduced.has_alpha, profile);
            }
            let (format, bytes) = encode(&reduced)?;
            let (variant, width, height) = (variant.clone(), reduced.width, reduced.height);
            renditions.push(Rendition { variant, width, height, format, bytes });
        }
        Ok(renditions)
    }
}
