//! What clients send, checked: JSON bodies, and texts of limited length.

use crate::problem::Problem;
use axum::body::Bytes;
use http::HeaderMap;
use node::commands::names::check_name;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// What bodies are sent as.
const JSON_TYPE: &str = "application/json";
/// People in one thread.
const PARTICIPANTS_MAX: usize = 500;
/// The longest title or slug, label, reaction, and role of an author, in characters.
pub const TITLE_CHARS_MAX: usize = 256;
pub const LABEL_CHARS_MAX: usize = 200;
pub const REACTION_CHARS_MAX: usize = 64;
pub const ROLE_CHARS_MAX: usize = 64;

/// Whether a text has at most so many characters.
pub fn fits(text: &str, most: usize) -> bool {
    // A text of so many bytes has no more characters.
    text.len() <= most || text.chars().count() <= most
}

/// Reads a JSON body into a struct.
pub fn json<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T, Problem> {
    let read = json_of_parts(headers, body)?;
    std::str::from_utf8(body).map_or(Ok(()), refuse_inexact)?;
    Ok(read)
}

/// Reads a JSON body with parts that are read by themselves afterwards, each with [`json_part`].
pub fn json_of_parts<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T, Problem> {
    let media = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case(JSON_TYPE) {
        return Err(Problem::media_type(format!("the content type is {media:?}")));
    }
    read_object(body)
}

/// Reads a part of a JSON body as if it were the body.
pub fn json_part<T: DeserializeOwned>(part: &RawValue) -> Result<T, Problem> {
    let read = read_object(part.get().as_bytes())?;
    refuse_inexact(part.get())?;
    Ok(read)
}

fn read_object<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // Fields by name, never by their order in a list.
    if !body.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() {
        return Err(Problem::unprocessable("the body is JSON, but not an object"));
    }
    serde_json::from_slice(body).map_err(|why| {
        if why.is_data() {
            Problem::unprocessable(format!("the body does not fit: {why}"))
        } else {
            Problem::bad_request(format!("the body is not JSON: {why}"))
        }
    })
}

/// Refuses numbers that would be kept as others than were sent.
fn refuse_inexact(text: &str) -> Result<(), Problem> {
    match model::body::find_inexact(text) {
        None => Ok(()),
        Some(why) => Err(Problem::unprocessable(why.to_string())),
    }
}

/// Whether a title or slug is short enough.
pub fn check_title(text: &str) -> Result<(), Problem> {
    match fits(text, TITLE_CHARS_MAX) {
        true => Ok(()),
        false => Err(Problem::over_limit(format!("a title or slug has at most {TITLE_CHARS_MAX} characters"))),
    }
}

/// Whether so many may take part in a thread, and each is named by a name or a public key.
pub fn check_participants(users: &[String]) -> Result<(), Problem> {
    match users.len() > PARTICIPANTS_MAX {
        true => Err(Problem::over_limit(format!("a thread has at most {PARTICIPANTS_MAX} participants"))),
        false => users
            .iter()
            .filter(|user| user.parse::<model::Identity>().is_err())
            .try_for_each(|user| check_name(user).map_err(Problem::from)),
    }
}
