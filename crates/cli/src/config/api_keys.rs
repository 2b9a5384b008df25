//! API keys that the configuration file declares: `[[api_keys]]` with id, hash of the secret, role, space and label.

use crate::failure::Failure;
use engine::access::KeyRole;
use serde::Deserialize;
use toml::Spanned;

const WHAT_TO_DO: &str = "`anteroom key hash backend` prints a new key and the lines for the configuration file";
const LABEL_CHARS_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredKey {
    /// File and line, for error messages.
    pub(crate) location: String,
    pub(crate) id: [u8; 8],
    pub(crate) hash: [u8; 32],
    pub(crate) role: KeyRole,
    /// The name or id of its space.
    pub(crate) space: String,
    pub(crate) label: String,
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    api_keys: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: Spanned<String>,
    hash: Spanned<String>,
    role: Spanned<String>,
    space: Option<Spanned<String>>,
    label: Option<Spanned<String>>,
}

/// Error messages never repeat a value: it may be a secret that was pasted by mistake.
pub(super) fn parse_declared_keys(text: &str, file: &str) -> Result<Vec<DeclaredKey>, Failure> {
    let document: Document = toml::from_str(text).map_err(|why| {
        let line = why.span().map_or(1, |span| line_at(text, span.start));
        Failure::new(format!("{file}, line {line}: invalid entry in [[api_keys]]: {}", why.message()), WHAT_TO_DO)
    })?;
    let mut keys: Vec<DeclaredKey> = Vec::new();
    for row in document.api_keys {
        let key = parse_key(&row, text, file)?;
        if keys.iter().any(|other| other.id == key.id) {
            let what = format!("{}: another key has the same api_keys.id", key.location);
            return Err(Failure::new(what, "remove one of them"));
        }
        keys.push(key);
    }
    Ok(keys)
}

fn parse_key(row: &Row, text: &str, file: &str) -> Result<DeclaredKey, Failure> {
    let location = |field: &Spanned<String>| format!("{file}, line {}", line_at(text, field.span().start));
    let wrong = |field: &Spanned<String>, what: &str| Failure::new(format!("{}: {what}", location(field)), WHAT_TO_DO);
    let (mut id, mut hash) = ([0; 8], [0; 32]);
    hex::decode_to_slice(row.id.get_ref(), &mut id)
        .map_err(|_| wrong(&row.id, "api_keys.id must have 16 hexadecimal digits"))?;
    if row.hash.get_ref().starts_with("ark_") {
        let what = format!("{}: api_keys.hash contains the key itself instead of its hash", location(&row.hash));
        return Err(Failure::new(
            what,
            format!("make a new key, because this one is exposed in the file; {WHAT_TO_DO}"),
        ));
    }
    hex::decode_to_slice(row.hash.get_ref(), &mut hash)
        .map_err(|_| wrong(&row.hash, "api_keys.hash must have 64 hexadecimal digits"))?;
    let role = KeyRole::from_word(row.role.get_ref());
    let role = role.ok_or_else(|| wrong(&row.role, "api_keys.role must be frontend, backend or admin"))?;
    let label = row.label.as_ref().map(|label| label.get_ref().clone()).unwrap_or_default();
    if let Some(field) = row.label.as_ref().filter(|label| label.get_ref().chars().count() > LABEL_CHARS_MAX) {
        return Err(wrong(field, "api_keys.label has more than 200 characters"));
    }
    let space = row.space.as_ref().map_or("home", |space| space.get_ref()).to_owned();
    Ok(DeclaredKey { location: location(&row.id), id, hash, role, space, label })
}

fn line_at(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses one key with these lines, and compares the key or the error.
    fn check(lines: &str, expected: &str) {
        let text = format!("log = \"info\"\n[[api_keys]]\n{lines}\n");
        let said = match parse_declared_keys(&text, "a.toml") {
            Ok(keys) => keys.iter().map(|key| format!("{} of {} {}", key.role.word(), key.space, key.label)).collect(),
            Err(Failure::Reported { what, .. }) => what,
            Err(Failure::OutputClosed) => "closed".to_owned(),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn a_key_is_parsed_or_the_error_names_its_line() {
        let id = "id = \"0102030405060708\"\n";
        let hash = format!("hash = \"{}\"\n", "ab".repeat(32));
        let role = "role = \"backend\"\n";
        check(&format!("{id}{hash}{role}"), "backend of home ");
        check(&format!("{id}{hash}{role}space = \"den\"\nlabel = \"app\""), "backend of den app");
        check(&format!("id = \"01\"\n{hash}{role}"), "a.toml, line 3: api_keys.id must have 16 hexadecimal digits");
        check(&format!("{id}hash = \"xx\"\n{role}"), "a.toml, line 4: api_keys.hash must have 64 hexadecimal digits");
        check(
            &format!("{id}hash = \"ark_0102_0304\"\n{role}"),
            "a.toml, line 4: api_keys.hash contains the key itself instead of its hash",
        );
        check(
            &format!("{id}{hash}role = \"king\""),
            "a.toml, line 5: api_keys.role must be frontend, backend or admin",
        );
        check(&format!("{id}{role}"), "a.toml, line 2: invalid entry in [[api_keys]]: missing field `hash`");
        check(
            &format!("{id}{hash}{role}colour = \"red\""),
            "a.toml, line 6: invalid entry in [[api_keys]]: unknown field `colour`, expected one of `id`, `hash`, `role`, `space`, `label`",
        );
        check(
            &format!("{id}{hash}{role}[[api_keys]]\n{id}{hash}{role}"),
            "a.toml, line 7: another key has the same api_keys.id",
        );
    }
}
