//! Calls that only some crates and modules may make, such as reading the clock or starting a thread.

use super::Violation;
use super::search::occurrences;
use super::source::Source;

/// Calls that are forbidden outside some places.
struct Rule {
    calls: &'static [&'static str],
    /// The crates, and the modules of a crate wherever they lie in it, that may make the calls.
    allowed_in: &'static [&'static str],
    tests: Tests,
    excuse: Excuse,
    /// What to do instead.
    instead: &'static str,
}

#[derive(PartialEq, Eq)]
enum Tests {
    Free,
    Bound,
}

/// Whether a line may excuse itself with a comment that gives its reason.
#[derive(PartialEq, Eq)]
enum Excuse {
    Comment,
    Never,
}

const RULES: &[Rule] = &[
    Rule {
        calls: &["SystemTime::now", "Instant::now"],
        allowed_in: &["cli", "simulator", "xtask"],
        tests: Tests::Free,
        excuse: Excuse::Never,
        instead: "take the time as an argument; only cli makes a real clock",
    },
    Rule {
        calls: &["thread::spawn", "tokio::spawn", "thread::Builder", "thread::scope"],
        allowed_in: &["node", "server::listen", "simulator", "cli::bench", "xtask"],
        tests: Tests::Free,
        excuse: Excuse::Never,
        instead: "let node run it; only node starts threads, and the listener a task per connection",
    },
    Rule {
        calls: &[".unwrap()", ".expect(", "panic!", "todo!", "unimplemented!", "unreachable!"],
        allowed_in: &["simulator", "xtask"],
        tests: Tests::Free,
        excuse: Excuse::Comment,
        instead: "return an error, or end the line with `// tidy: allow(<why it cannot fail>)`",
    },
    Rule {
        calls: &["process::exit"],
        allowed_in: &["cli", "xtask"],
        tests: Tests::Free,
        excuse: Excuse::Never,
        instead: "return an error; only cli exits",
    },
    Rule {
        calls: &["print!", "println!", "eprint!", "eprintln!", "dbg!"],
        allowed_in: &["cli", "simulator", "xtask"],
        tests: Tests::Free,
        excuse: Excuse::Never,
        instead: "return the text or use `tracing`; only cli prints",
    },
    Rule {
        calls: &["thread::sleep"],
        allowed_in: &[],
        tests: Tests::Bound,
        excuse: Excuse::Never,
        instead: "wait for what should happen, with a timeout, or move the virtual clock",
    },
    Rule {
        calls: &["#[ignore"],
        allowed_in: &[],
        tests: Tests::Bound,
        excuse: Excuse::Never,
        instead: "make the test pass or remove it; a test that never runs tells nothing",
    },
];

/// Finds the forbidden calls of one file.
pub(crate) fn check(source: &Source) -> Vec<Violation> {
    RULES.iter().filter(|rule| !rule.allows(source)).flat_map(|rule| rule.check(source)).collect()
}

impl Rule {
    fn allows(&self, source: &Source) -> bool {
        self.allowed_in.iter().any(|owner| source.belongs_to(owner))
    }

    fn check(&self, source: &Source) -> Vec<Violation> {
        let found = self.calls.iter().flat_map(|call| occurrences(&source.code, call).map(move |at| (*call, at)));
        found
            .filter(|(_, at)| self.tests == Tests::Bound || !source.is_test(*at))
            .filter(|(_, at)| self.excuse == Excuse::Never || !is_excused(source.comments_at(*at)))
            .map(|(call, at)| Violation::new(&source.path, source.line_at(at), self.message(call)))
            .collect()
    }

    fn message(&self, call: &str) -> String {
        format!("`{call}` does not belong here; {}", self.instead)
    }
}

/// Whether the comment excuses its line and gives a reason.
fn is_excused(comment: &str) -> bool {
    let reason = comment.split_once("// tidy: allow(").and_then(|(_, after)| after.rsplit_once(')'));
    reason.is_some_and(|(reason, _)| !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_violations;
    use crate::tidy::source::Source;

    /// Expects violations as `line call`, separated by commas.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &str) {
        let mut found = super::check(&Source::new(path, text));
        found.sort();
        let short = found.iter().map(|violation| {
            let call = violation.what.split('`').nth(1).unwrap_or_default();
            format!("{} {call}", violation.line)
        });
        assert_eq!(short.collect::<Vec<_>>().join(", "), expected, "in {path}");
    }

    #[test]
    fn clocks_belong_to_cli() {
        let text = "let a = SystemTime::now();\nlet b = std::time::Instant::now();";
        check("crates/engine/src/a.rs", text, "1 SystemTime::now, 2 Instant::now");
        check("crates/node/src/a.rs", text, "1 SystemTime::now, 2 Instant::now");
        check("crates/cli/src/a.rs", text, "");
        check("crates/simulator/src/a.rs", text, "");
    }

    #[test]
    fn threads_belong_to_node() {
        let text = "std::thread::spawn(f);\nthread::Builder::new();\nthread::scope(|s| ());\ntokio::spawn(f);";
        check("crates/store/src/a.rs", text, "1 thread::spawn, 2 thread::Builder, 3 thread::scope, 4 tokio::spawn");
        check("crates/cli/src/serve.rs", "thread::spawn(f);", "1 thread::spawn");
        check("crates/cli/src/bench/ingest.rs", text, "");
        check("crates/cli/src/bench.rs", text, "");
        check("crates/node/src/a.rs", text, "");
        check("crates/server/src/listen.rs", text, "");
        check("crates/server/src/connections/listen/accept.rs", text, "");
        check("crates/server/src/state.rs", "tokio::spawn(f);", "1 tokio::spawn");
    }

    #[test]
    fn nothing_panics_outside_tests() {
        check(
            "crates/cli/src/a.rs",
            "a.unwrap();\nb.expect(\"b\");\npanic!(\"c\");",
            "1 .unwrap(), 2 .expect(, 3 panic!",
        );
        check(
            "crates/cli/src/a.rs",
            "todo!();\nunimplemented!();\nunreachable!()",
            "1 todo!, 2 unimplemented!, 3 unreachable!",
        );
        check("crates/cli/src/a.rs", "a.unwrap_or(1).expect_err(2); // b.unwrap()\nf(\"panic!(\")", "");
        check("crates/cli/src/a.rs", "#[cfg(test)]\nmod tests {\n a.unwrap();\n}\nb.unwrap()", "5 .unwrap()");
        check("crates/cli/tests/a.rs", "a.unwrap()", "");
        check("crates/simulator/src/a.rs", "a.unwrap()", "");
    }

    #[test]
    fn an_excuse_needs_a_reason() {
        check("crates/model/src/a.rs", "a.unwrap() // tidy: allow(thirty-two bytes by type)", "");
        check("crates/model/src/a.rs", "a.unwrap() // tidy: allow()", "1 .unwrap()");
        check("crates/model/src/a.rs", "a.unwrap() // tidy: allow( )", "1 .unwrap()");
        check("crates/model/src/a.rs", "a(\"// tidy: allow(b)\").unwrap()", "1 .unwrap()");
        check("crates/model/src/a.rs", "// tidy: allow(b)\na.unwrap()", "2 .unwrap()");
        check("crates/model/src/a.rs", "Instant::now() // tidy: allow(b)", "1 Instant::now");
    }

    #[test]
    fn only_cli_exits_and_prints() {
        let text = "std::process::exit(1);\nprintln!();\neprintln!();\ndbg!(a);";
        check("crates/store/src/a.rs", text, "1 process::exit, 2 println!, 3 eprintln!, 4 dbg!");
        check("crates/simulator/src/a.rs", text, "1 process::exit");
        check("crates/cli/src/a.rs", text, "");
    }

    #[test]
    fn nobody_sleeps_and_no_test_is_ignored() {
        let text = "#[ignore]\nfn a() {}\n#[ignore = \"slow\"]\nfn b() { thread::sleep(c) }";
        check("crates/node/tests/a.rs", text, "1 #[ignore, 3 #[ignore, 4 thread::sleep");
        check("xtask/src/a.rs", text, "1 #[ignore, 3 #[ignore, 4 thread::sleep");
    }

    #[test]
    fn a_violation_says_what_to_do() {
        let found = super::check(&Source::new("crates/model/src/a.rs", "\nprocess::exit(1)"));
        let expected = "crates/model/src/a.rs:2: `process::exit` does not belong here; return an error; only cli exits";
        assert_violations(&found, &[expected]);
    }
}
