//! The renditions that are made of an image, by name.

use std::fmt;
use std::str::FromStr;

/// The longest side that a variant may have.
const EDGE_MAX: u16 = 8192;
/// The shortest one that anything could be seen on.
const EDGE_MIN: u16 = 16;
const NAME_BYTES_MAX: usize = 64;

/// A rendition by name: what it is for, and its longest side, such as `thumbnail_256`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Variant {
    name: String,
    edge_max: u16,
}

impl Variant {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The most pixels of its longer side. A smaller image stays as small as it is.
    pub fn edge_max(&self) -> u16 {
        self.edge_max
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Why a text is no variant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is no variant: write small letters, an underscore, and the longest side from 16 to 8192, as in thumbnail_256"
)]
pub struct BadVariant(String);

impl FromStr for Variant {
    type Err = BadVariant;

    fn from_str(text: &str) -> Result<Variant, BadVariant> {
        let read = || {
            let (word, edge) = text.rsplit_once('_')?;
            let is_word = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            // One variant has one name.
            let is_canonical = edge.bytes().all(|byte| byte.is_ascii_digit()) && !edge.starts_with('0');
            let edge_max = edge.parse().ok().filter(|edge| (EDGE_MIN..=EDGE_MAX).contains(edge))?;
            (is_word && is_canonical && text.len() <= NAME_BYTES_MAX)
                .then(|| Variant { name: text.to_owned(), edge_max })
        };
        read().ok_or_else(|| BadVariant(text.chars().take(NAME_BYTES_MAX).collect()))
    }
}
