//! Colours of other profiles, as sRGB has them: whoever shows a rendition need not know a profile.

use moxcms::{ColorProfile, DataColorSpace, Layout, TransformOptions};

/// Brings pixels to sRGB. A profile that cannot be read, or is not about red, green and blue, changes nothing: wrong colours
/// are better than none.
pub(crate) fn to_srgb(pixels: &mut Vec<u8>, has_alpha: bool, profile: &[u8]) {
    let Some(profile) = ColorProfile::new_from_slice(profile).ok().filter(is_rgb) else { return };
    let layout = if has_alpha { Layout::Rgba } else { Layout::Rgb };
    let srgb = ColorProfile::new_srgb();
    let Ok(transform) = profile.create_transform_8bit(layout, &srgb, layout, TransformOptions::default()) else {
        return;
    };
    let mut changed = vec![0; pixels.len()];
    if transform.transform(pixels, &mut changed).is_ok() {
        *pixels = changed;
    }
}

fn is_rgb(profile: &ColorProfile) -> bool {
    profile.color_space == DataColorSpace::Rgb
}
