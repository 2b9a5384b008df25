//! What people may say of a file.

use super::FileError;
use model::files::{FILE_NAME_CHARS_MAX, MEDIA_TYPE_BYTES_MAX};

/// The longest metadata of a file.
const METADATA_BYTES_MAX: usize = 16 * 1024;

/// Names are shown to people and sent in headers.
pub(super) fn check_name(name: &str) -> Result<(), FileError> {
    let is_plain = |letter: char| !letter.is_control() && !matches!(letter, '/' | '\\' | '\u{202a}'..='\u{202e}');
    match name.chars().count() {
        1..=FILE_NAME_CHARS_MAX if name.chars().all(is_plain) && !matches!(name, "." | "..") => Ok(()),
        1..=FILE_NAME_CHARS_MAX => Err(FileError::Bad("the name of a file has no slashes and no control characters")),
        _ => Err(FileError::Bad("the name of a file has 1 to 255 characters")),
    }
}

pub(super) fn check_media_type(media_type: &str) -> Result<(), FileError> {
    let is_token = |letter: u8| letter.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&letter);
    let fits = media_type
        .split_once('/')
        .is_some_and(|(family, kind)| [family, kind].iter().all(|part| !part.is_empty() && part.bytes().all(is_token)));
    match media_type.is_empty() || fits && media_type.len() <= MEDIA_TYPE_BYTES_MAX {
        true => Ok(()),
        false => Err(FileError::Bad("a media type looks like image/png, without parameters")),
    }
}

pub(super) fn check_metadata(metadata: &str) -> Result<(), FileError> {
    if metadata.len() > METADATA_BYTES_MAX {
        return Err(FileError::Bad("the metadata of a file has at most 16 KiB"));
    }
    let is_object = metadata.is_empty()
        || model::body::decode(metadata.as_bytes()).is_ok_and(|value| value.is_object())
        || serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(metadata).is_ok();
    if is_object { Ok(()) } else { Err(FileError::Bad("the metadata of a file is a JSON object")) }
}
