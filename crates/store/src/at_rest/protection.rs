//! What of a space's content is encrypted at rest.

use serde::{Deserialize, Serialize};

/// What of a space's content is encrypted at rest. Rows about its users and keys always are.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Protection {
    /// All of it.
    #[default]
    Whole,
    /// Only these fields of JSON content; content that is not JSON, or has none of them, wholly.
    Fields(Vec<String>),
    /// Nothing: it rests as it came.
    Nothing,
}

/// Why a text does not name a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a path is made of names or * with dots between them, such as body.text or body.*.secret")]
pub struct BadPath;

impl Protection {
    /// Named fields, such as `body.text`; `*` stands for any name and any place of a list.
    pub fn fields(paths: &[&str]) -> Result<Protection, BadPath> {
        let is_bad = |path: &&str| path.split('.').any(str::is_empty);
        if paths.is_empty() || paths.iter().any(is_bad) {
            return Err(BadPath);
        }
        Ok(Protection::Fields(paths.iter().map(|path| (*path).to_owned()).collect()))
    }
}
