//! What is made of uploaded images.

use crate::failure::Failure;
use media::Variant;

/// For lists, for messages, and for looking closely.
pub(super) const RENDITIONS_DEFAULT: &str = "thumbnail_256, preview_1024, full_2048";
/// More of them would only fill the disk.
const RENDITIONS_MAX: usize = 16;

pub(super) fn parse_renditions(names: &[String]) -> Result<Vec<Variant>, Failure> {
    let bad = |what: String| Failure::new(what, "list them as in \"thumbnail_256, preview_1024\"");
    if names.len() > RENDITIONS_MAX {
        return Err(bad(format!("renditions has {} entries, and {RENDITIONS_MAX} is the most", names.len())));
    }
    let parse = |name: &String| name.parse::<Variant>().map_err(|why| bad(format!("renditions: {why}")));
    names.iter().map(parse).collect()
}
