//! Images and documents in, renditions out.
//!
//! An original is decoded once ([`OpenedImage::open`]), within limits that are checked against its header before any pixel is
//! read; it is turned the way it was taken, reduced for each [`Variant`], brought to sRGB and encoded. Nothing of the
//! original's metadata is written: no place, no camera, no comment. The same original and variant give the same bytes,
//! whatever other variants are made beside it.
//!
//! What strangers upload is decoded here, so callers run this in a process of its own with limits of memory and time: the
//! limits here keep honest mistakes cheap, and bound what a header may ask for.
//!
//! Deliberately absent: files, jobs, statuses, processes, clocks.

mod colours;
mod encode;
mod limits;
mod open;
mod pdf;
mod pixels;
mod refusal;
mod render;
#[cfg(test)]
mod tests;
mod text;
mod variant;

pub use encode::RenditionFormat;
pub use limits::DecodeLimits;
pub use open::{OpenedImage, OriginalKind};
pub use refusal::RenderRefusal;
pub use render::Rendition;
pub use text::BEGINNING_BYTES;
pub use variant::{BadVariant, Variant};
