//! API keys that the file declares: `[[keys]]` with an id, the hash of the secret, a role, a space and a label.

use crate::failure::Failure;
use engine::access::KeyRole;
use serde::Deserialize;
use toml::Spanned;

const WHAT_TO_DO: &str = "`anteroom key hash backend` prints a new key and the lines that declare it";
const LABEL_CHARS_MAX: usize = 200;

/// A key that the file declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeclaredKey {
    /// The line on which it begins to be wrong, if it is.
    pub(crate) place: String,
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
    keys: Vec<Row>,
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

/// The keys that a file declares. What stands in it is not repeated: it may be a secret that was put there by mistake.
pub(super) fn declared(text: &str, file: &str) -> Result<Vec<DeclaredKey>, Failure> {
    let document: Document = toml::from_str(text).map_err(|why| {
        let line = why.span().map_or(1, |span| line_at(text, span.start));
        Failure::new(format!("{file}, line {line}: a key in [[keys]]: {}", why.message()), WHAT_TO_DO)
    })?;
    let mut keys: Vec<DeclaredKey> = Vec::new();
    for row in document.keys {
        let key = read(&row, text, file)?;
        if keys.iter().any(|other| other.id == key.id) {
            let what = format!("{}: keys.id is declared twice", key.place);
            return Err(Failure::new(what, "remove one of them"));
        }
        keys.push(key);
    }
    Ok(keys)
}

fn read(row: &Row, text: &str, file: &str) -> Result<DeclaredKey, Failure> {
    let place = |field: &Spanned<String>| format!("{file}, line {}", line_at(text, field.span().start));
    let wrong = |field: &Spanned<String>, what: &str| Failure::new(format!("{}: {what}", place(field)), WHAT_TO_DO);
    let (mut id, mut hash) = ([0; 8], [0; 32]);
    hex::decode_to_slice(row.id.get_ref(), &mut id)
        .map_err(|_| wrong(&row.id, "keys.id does not have 16 hexadecimal digits"))?;
    if row.hash.get_ref().starts_with("ark_") {
        let what = format!("{}: keys.hash holds a key, not the hash of its secret", place(&row.hash));
        return Err(Failure::new(what, format!("use another key, since this one was written down here; {WHAT_TO_DO}")));
    }
    hex::decode_to_slice(row.hash.get_ref(), &mut hash)
        .map_err(|_| wrong(&row.hash, "keys.hash does not have 64 hexadecimal digits"))?;
    let role = KeyRole::from_word(row.role.get_ref());
    let role = role.ok_or_else(|| wrong(&row.role, "keys.role is not frontend, backend or admin"))?;
    let label = row.label.as_ref().map(|label| label.get_ref().clone()).unwrap_or_default();
    if let Some(field) = row.label.as_ref().filter(|label| label.get_ref().chars().count() > LABEL_CHARS_MAX) {
        return Err(wrong(field, "keys.label has more than 200 characters"));
    }
    let space = row.space.as_ref().map_or("home", |space| space.get_ref()).to_owned();
    Ok(DeclaredKey { place: place(&row.id), id, hash, role, space, label })
}

fn line_at(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads one key with these lines and says what is wrong, or what it is.
    fn check(lines: &str, expected: &str) {
        let text = format!("log = \"info\"\n[[keys]]\n{lines}\n");
        let said = match declared(&text, "a.toml") {
            Ok(keys) => keys.iter().map(|key| format!("{} of {} {}", key.role.word(), key.space, key.label)).collect(),
            Err(Failure::Named { what, .. }) => what,
            Err(Failure::Closed) => "closed".to_owned(),
        };
        assert_eq!(said, expected);
    }

    #[test]
    fn a_key_is_read_or_its_line_is_named() {
        let id = "id = \"0102030405060708\"\n";
        let hash = format!("hash = \"{}\"\n", "ab".repeat(32));
        let role = "role = \"backend\"\n";
        check(&format!("{id}{hash}{role}"), "backend of home ");
        check(&format!("{id}{hash}{role}space = \"den\"\nlabel = \"app\""), "backend of den app");
        check(&format!("id = \"01\"\n{hash}{role}"), "a.toml, line 3: keys.id does not have 16 hexadecimal digits");
        check(&format!("{id}hash = \"xx\"\n{role}"), "a.toml, line 4: keys.hash does not have 64 hexadecimal digits");
        check(
            &format!("{id}hash = \"ark_0102_0304\"\n{role}"),
            "a.toml, line 4: keys.hash holds a key, not the hash of its secret",
        );
        check(&format!("{id}{hash}role = \"king\""), "a.toml, line 5: keys.role is not frontend, backend or admin");
        check(&format!("{id}{role}"), "a.toml, line 2: a key in [[keys]]: missing field `hash`");
        check(
            &format!("{id}{hash}{role}colour = \"red\""),
            "a.toml, line 6: a key in [[keys]]: unknown field `colour`, expected one of `id`, `hash`, `role`, `space`, `label`",
        );
        check(&format!("{id}{hash}{role}[[keys]]\n{id}{hash}{role}"), "a.toml, line 7: keys.id is declared twice");
    }
}
