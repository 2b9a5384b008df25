//! Shapes that the OpenAPI document shares: what can be said of a text before it is sent.

use utoipa::ToSchema;

/// An id that a client or an application chooses.
#[derive(ToSchema)]
#[schema(
    value_type = String,
    pattern = r"^(?!([0-9a-fA-F]{32}|[0-9a-fA-F]{64}|\.|\.\.|me)$)[!$&'()*+,.0-9:;=@A-Z\[\]^_`a-z{|}~-]{1,128}$",
    example = "msg-1"
)]
#[allow(dead_code, reason = "only its shape is used")]
pub(crate) struct ChosenId(String);

/// The id of an event.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = "^[0-9a-f]{32}$", example = "3be9f54074dbd655150de80e02aedb4e")]
#[allow(dead_code, reason = "only its shape is used")]
pub(crate) struct EventIdText(String);

/// The longest title, slug, label or reaction, in characters.
pub(crate) const TITLE_CHARS_MAX: usize = 256;
pub(crate) const LABEL_CHARS_MAX: usize = 200;
pub(crate) const REACTION_CHARS_MAX: usize = 64;

/// Whether a text has at most so many characters.
pub(crate) fn fits(text: &str, most: usize) -> bool {
    // A text of so many bytes has no more characters.
    text.len() <= most || text.chars().count() <= most
}
