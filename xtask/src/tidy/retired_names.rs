//! Names that were replaced by words of the field and must not come back, as types, functions or files.

use super::Violation;
use super::search::{leading_word, occurrences};
use super::source::Source;
use super::type_names::declarations;

/// Whether the check is on.
pub(crate) const IS_CHECKED: bool = true;

/// Types, each with the name that took its place.
const TYPES: [(&str, &str); 21] = [
    ("House", "ServerState"),
    ("Guest", "RequestContext"),
    ("Seen", "Viewer"),
    ("Deed", "UserCommand"),
    ("Act", "CommandRequest"),
    ("Acted", "CommandResult"),
    ("Scene", "CommandContext"),
    ("Hand", "Signer"),
    ("Room", "ConnectionLimiter"),
    ("Pace", "ConnectionActivity"),
    ("Told", "LiveEvent"),
    ("Tellers", "WebhookDispatcher"),
    ("Telling", "WebhookPayload"),
    ("Entrance", "AccountRequest"),
    ("Way", "Credential"),
    ("Once", "IdempotencyKey"),
    ("Distance", "BlockKind"),
    ("Passage", "EventInPost"),
    ("Work", "EventDraft"),
    ("Turn", "RowChange"),
    ("Bounty", "Fetched"),
];

/// Functions, likewise.
const FUNCTIONS: [(&str, &str); 7] = [
    ("look", "read_as"),
    ("head_patience", "header_timeout"),
    ("taking_patience", "write_stall_timeout"),
    ("dress", "render_problems_as_html"),
    ("of_nobody", "form_replay"),
    ("company", "participants_update"),
    ("beside", "message_references"),
];

/// Files, likewise.
const FILES: [(&str, &str); 4] = [
    ("elsewhere.rs", "external_signing.rs"),
    ("one.rs", "message.rs"),
    ("talk.rs", "thread.rs"),
    ("inside.rs", "operator.rs"),
];

/// Finds the retired names that a file of a crate declares.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    if source.in_crate().is_none() {
        return Vec::new();
    }
    let types = declarations(source).into_iter().map(|declared| (declared.at, declared.name));
    let types = types.filter_map(|(at, name)| Some((at, message(name, &TYPES)?)));
    let functions = occurrences(&source.code, "fn").filter(|at| !source.is_test(*at));
    let functions = functions
        .filter_map(|at| Some((at, message(leading_word(source.code[at + "fn".len()..].trim_start()), &FUNCTIONS)?)));
    let file = source
        .path
        .rsplit('/')
        .next()
        .filter(|_| !source.is_test(0))
        .and_then(|name| Some((0, message(name, &FILES)?)));
    let found = types.chain(functions).chain(file);
    found.map(|(at, what)| Violation::new(&source.path, source.line_at(at), what)).collect()
}

fn message(name: &str, retired: &[(&str, &str)]) -> Option<String> {
    let (_, instead) = retired.iter().find(|(old, _)| *old == name)?;
    Some(format!("`{name}` is a retired name, it stood for `{instead}`; use a word that a reader would search for"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_violations;
    use super::Source;

    /// Expects the retired names of a text as `line name`, separated by commas.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &str) {
        let found = super::check(&Source::new(path, text));
        let short = found
            .iter()
            .map(|violation| format!("{} {}", violation.line, violation.what.split('`').nth(1).unwrap_or_default()));
        assert_eq!(short.collect::<Vec<_>>().join(", "), expected, "in {path}");
    }

    #[test]
    fn declarations_with_a_retired_name_are_found() {
        check("crates/server/src/a.rs", "pub struct House;\npub(crate) enum Seen {}", "1 House, 2 Seen");
        check("crates/server/src/a.rs", "impl A {\n    pub fn look(&self) {}\n    fn looks() {}\n}", "2 look");
        check("crates/server/src/pages/talk.rs", "", "1 talk.rs");
    }

    #[test]
    fn private_types_other_mentions_and_tests_are_free() {
        check("crates/server/src/a.rs", "struct House;\npub struct Houses;\nlet x = House::look();", "");
        check("crates/server/src/a.rs", "#[cfg(test)]\nmod tests { pub struct House; fn look() {} }", "");
        check("xtask/src/a.rs", "pub struct House;", "");
    }

    #[test]
    fn a_violation_says_what_to_do() {
        let found = super::check(&Source::new("crates/node/src/a.rs", "pub struct Bounty;"));
        let expected = "crates/node/src/a.rs:1: `Bounty` is a retired name, it stood for `Fetched`; \
                        use a word that a reader would search for";
        assert_violations(&found, &[expected]);
    }
}
