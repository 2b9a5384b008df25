//! Options nobody reads: each public field of the configuration and of the command line has a reader.
//!
//! A field counts as read where `.field` stands, other than as a call, or where a pattern takes it apart. That is a
//! search by name: an unread field can hide behind a read one of the same name, and we accept that.

use super::Violation;
use super::search::{group_end, leading_word, occurrences};
use super::source::Source;

/// Reports the options of `cli` that neither `cli` nor `node` reads outside its tests.
pub(crate) fn check(sources: &[Source]) -> Vec<Violation> {
    let readers: Vec<&Source> = sources.iter().filter(|source| may_read(&source.path)).collect();
    let mut violations = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with("crates/cli/src/")) {
        for (at, name) in options(source) {
            if !readers.iter().any(|reader| reads(reader, name)) {
                let what = format!("nobody reads the option `{name}`; use it or remove it");
                violations.push(Violation::new(&source.path, source.line_at(at), what));
            }
        }
    }
    violations
}

fn may_read(path: &str) -> bool {
    path.starts_with("crates/cli/src/") || path.starts_with("crates/node/src/")
}

/// The public fields of the file's structs that hold options, and where they are declared.
fn options(source: &Source) -> Vec<(usize, &str)> {
    let code = &source.code;
    let is_configuration = source.belongs_to("cli::config");
    let structs = occurrences(code, "struct").filter(|at| !source.is_test(*at));
    let holding_options = structs.filter(|at| is_configuration || derives_arguments(code, *at));
    holding_options.filter_map(|at| body(code, at)).flat_map(|(start, end)| fields(code, start, end)).collect()
}

/// Whether the attributes before a struct derive one of clap's readers of arguments.
fn derives_arguments(code: &str, at: usize) -> bool {
    let item_start = code[..at].rfind([';', '}', '{']).map_or(0, |end| end + 1);
    let attributes = &code[item_start..at];
    let derives = attributes.split("derive(").skip(1).filter_map(|derive| derive.split(')').next());
    derives.flat_map(|names| names.split(',')).any(|name| matches!(last_part(name), "Args" | "Parser"))
}

fn last_part(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path).trim()
}

/// The inside of the braces of a struct; `None` if it has no named fields.
fn body(code: &str, at: usize) -> Option<(usize, usize)> {
    let open = at + code[at..].find(['{', '(', ';'])?;
    code[open..].starts_with('{').then(|| (open + 1, group_end(code, open)))
}

fn fields(code: &str, start: usize, end: usize) -> Vec<(usize, &str)> {
    let visible = occurrences(&code[start..end], "pub").map(|at| start + at);
    let named = visible.map(|at| {
        let after = at + "pub".len();
        // `pub(crate)` is public enough to be an option.
        let after = if code[after..].starts_with('(') { group_end(code, after) } else { after };
        (at, leading_word(code[after..].trim_start()))
    });
    named.filter(|(_, name)| !name.is_empty()).collect()
}

fn reads(source: &Source, field: &str) -> bool {
    let mut mentions = occurrences(&source.code, field).filter(|at| !source.is_test(*at));
    mentions.any(|at| is_access(&source.code, at, field) || is_taken_apart(&source.code, at, field))
}

/// Whether the mention is `.field`, and not the call of a method of that name or the start of a range.
fn is_access(code: &str, at: usize, field: &str) -> bool {
    let before = code[..at].trim_end();
    before.ends_with('.') && !before.ends_with("..") && !code[at + field.len()..].starts_with('(')
}

/// Whether the mention stands in a struct pattern that gives the field a name.
fn is_taken_apart(code: &str, at: usize, field: &str) -> bool {
    let before = code[..at].trim_end();
    let before = before.strip_suffix("mut").unwrap_or(before).trim_end();
    let before = before.strip_suffix("ref").unwrap_or(before).trim_end();
    let after = code[at + field.len()..].trim_start();
    let dropped = after.strip_prefix(':').is_some_and(|name| leading_word(name.trim_start()) == "_");
    before.ends_with(['{', ',']) && after.starts_with([',', ':', '}']) && !dropped && is_in_pattern(code, at)
}

/// Whether the braces around the offset are those of a pattern, which only `=`, `=>`, `:` or `if` can follow.
fn is_in_pattern(code: &str, at: usize) -> bool {
    let Some(end) = enclosing_brace_end(code, at) else {
        return false;
    };
    let after = code[end..].trim_start_matches([')', '}', ']', ' ', '\n']);
    let assigns = after.starts_with('=') && !after.starts_with("==");
    assigns || after.starts_with(':') || leading_word(after) == "if"
}

/// The offset just behind the brace that closes the group around `at`; `None` if that group has other brackets.
fn enclosing_brace_end(code: &str, at: usize) -> Option<usize> {
    let mut at = at;
    loop {
        at += code[at..].find(['(', '[', '{', ')', ']', '}'])?;
        match code.as_bytes()[at] {
            b'(' | b'[' | b'{' => at = group_end(code, at),
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Source;

    /// Checks one file of options and one of readers; expects the unread options, separated by spaces.
    #[track_caller]
    fn check(declared_in: &str, declaration: &str, readers: &str, expected: &str) {
        let sources = [Source::new(declared_in, declaration), Source::new("crates/node/src/reader.rs", readers)];
        let found = super::check(&sources);
        let names = found.iter().map(|violation| violation.what.split('`').nth(1).unwrap_or_default());
        assert_eq!(names.collect::<Vec<_>>().join(" "), expected, "with readers `{readers}`");
    }

    #[track_caller]
    fn check_config(readers: &str, expected: &str) {
        let declaration =
            "//! Options.\npub struct Config {\n pub port: u16,\n pub(crate) peers: Vec<String>,\n own: u8,\n}";
        check("crates/cli/src/config.rs", declaration, readers, expected);
        check("crates/cli/src/config/network.rs", declaration, readers, expected);
        check("crates/cli/src/settings/config/network.rs", declaration, readers, expected);
    }

    #[test]
    fn a_field_is_read_where_it_is_accessed() {
        check_config("f(config.port); g(&config\n    .peers);", "");
        check_config("f(config.port)", "peers");
        check_config("f(config.port()); config.ports; // config.port\ng(\"config.peers\")", "port peers");
        check_config("#[cfg(test)]\nmod tests { f(config.port, config.peers) }", "port peers");
    }

    #[test]
    fn a_field_is_read_where_it_is_taken_apart() {
        check_config("let Config { port, peers: names, .. } = config;", "");
        check_config("let Config {\n    ref port,\n    mut peers,\n} = config;", "");
        check_config("match c { Some(Config { port, peers, .. }) if port > 1 => 2, _ => 3 }", "");
        check_config("fn f(Config { port, .. }: Config, x: X) {}", "peers");
        check_config("let Config { port, peers: _ } = config;", "peers");
    }

    #[test]
    fn building_a_struct_is_not_reading_it() {
        check_config("f(Config { port: 1, peers });", "port peers");
        check_config("let config = Config { port, peers };\nif a {}", "port peers");
        check_config("fn f(port: u16, peers: u8) {}\nlet x = 1..port;", "port peers");
        check_config("let (a, port, peers, b) = f();", "port peers");
    }

    #[test]
    fn arguments_are_options_and_other_structs_are_not() {
        let declaration = "use a;\n#[derive(Debug, clap::Args)]\n#[command(about)]\npub struct A {\n pub quick: bool,\n}\n\
                           #[derive(Parser)] struct B { pub slow: bool }\n\
                           #[derive(Debug)] struct C { pub other: bool }\n\
                           #[derive(Args)] struct D(pub u8);";
        check("crates/cli/src/bench.rs", declaration, "", "quick slow");
        check("crates/cli/src/bench.rs", declaration, "a.quick || b.slow", "");
        check("crates/store/src/bench.rs", declaration, "", "");
    }

    #[test]
    fn a_violation_names_the_declaration() {
        let source = Source::new("crates/cli/src/config.rs", "struct Config {\n    pub port: u16,\n}");
        let expected = "crates/cli/src/config.rs:2: nobody reads the option `port`; use it or remove it";
        super::super::tests::assert_violations(&super::check(&[source]), &[expected]);
    }
}
