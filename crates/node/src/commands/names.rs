//! Names that clients give: bounded, printable, and never to be mistaken for an id that the node gives.

use crate::commands::accounts::OPERATOR;
use model::{EventId, Identity};
use std::fmt;

/// The longest id that a client or user may have.
pub const NAME_BYTES_MAX: usize = 128;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadName {
    /// Nothing, or too much of it.
    #[error("an id has 1 to {NAME_BYTES_MAX} characters")]
    Length,
    /// A character that is not allowed.
    #[error("an id is made of ASCII letters, digits and signs other than / \\ ? # % \" < >, without spaces")]
    Character,
    /// It would be mistaken for the operator.
    #[error("this name is the operator's, or looks like it")]
    Reserved,
    /// It would be mistaken for something else.
    #[error("an id must not look like an event id, a public key, or a dot")]
    Mistakable,
}

/// Checks a name that somebody chose for a thread, a message or a user.
pub fn check_name(text: &str) -> Result<(), BadName> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX {
        return Err(BadName::Length);
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic() && !br#"/\?#%"<>"#.contains(&byte)) {
        return Err(BadName::Character);
    }
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_id = is_hex && (text.len() == 2 * EventId::LEN || text.len() == 2 * Identity::LEN);
    if is_id || text == "." || text == ".." || text == "me" {
        return Err(BadName::Mistakable);
    }
    Ok(())
}

/// Checks a name that a new user is to have.
pub fn check_user_name(text: &str) -> Result<(), BadName> {
    check_name(text)?;
    if is_operator_like(text) || text.eq_ignore_ascii_case("me") { Err(BadName::Reserved) } else { Ok(()) }
}

/// Whether people would take this name for the operator's, whatever its case, signs and digits.
pub fn is_operator_like(text: &str) -> bool {
    let seen = text.chars().filter_map(|letter| match letter.to_ascii_lowercase() {
        '0' => Some('o'),
        '3' => Some('e'),
        '4' | '@' => Some('a'),
        '7' | '+' => Some('t'),
        letter if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    seen.eq(OPERATOR.chars())
}

/// A thread or message as a client names it: by the id that a client chose, or by its event id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NameOrId {
    /// By event id.
    Event(EventId),
    /// By the id that a client chose.
    Chosen(String),
}

impl std::str::FromStr for NameOrId {
    type Err = BadName;

    fn from_str(text: &str) -> Result<NameOrId, BadName> {
        if let Ok(id) = text.parse() {
            return Ok(NameOrId::Event(id));
        }
        check_name(text).map(|()| NameOrId::Chosen(text.to_owned()))
    }
}

impl fmt::Display for NameOrId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameOrId::Event(id) => id.fmt(f),
            NameOrId::Chosen(text) => f.write_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_printable_and_not_ids() {
        for good in ["a", "alice@example.org", "auth0|12", "msg-1700000000-1", "x:y_z.~!*'()", &"n".repeat(128)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("", BadName::Length),
            (&"n".repeat(129), BadName::Length),
            ("a b", BadName::Character),
            ("a/b", BadName::Character),
            ("../x", BadName::Character),
            ("é", BadName::Character),
            ("a\u{0}", BadName::Character),
            ("%2e", BadName::Character),
            ("..", BadName::Mistakable),
            ("00112233445566778899aabbccddeeff", BadName::Mistakable),
            ("00112233445566778899AABBCCDDEEFF", BadName::Mistakable),
            (&"ab".repeat(32), BadName::Mistakable),
        ] {
            assert_eq!(check_name(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn nobody_is_called_as_the_operator() {
        for bad in
            ["operator", "Operator", "OPERATOR", "0perator", "oper@tor", "op.era-tor", "_operator_", "0p3r470r", "ME"]
        {
            assert_eq!(check_user_name(bad), Err(BadName::Reserved), "{bad}");
        }
        for good in ["operators", "co-operator", "opera", "meg", "tom"] {
            assert_eq!(check_user_name(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn an_event_id_names_an_event() {
        let id = "00112233445566778899aabbccddeeff";
        assert!(matches!(id.parse(), Ok(NameOrId::Event(_))));
        assert!(matches!("thread-1".parse(), Ok(NameOrId::Chosen(_))));
    }
}
