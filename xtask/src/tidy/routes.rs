//! A route is declared where the crate keeps its table of routes, `routes.rs` or a folder of that name, and nowhere else.
//!
//! One row there says method, path, action and handler, so that what a server answers can be read in one place. The
//! crates that still declare routes elsewhere stand in `tidy/routes.txt`. Test code may build routers as it likes.

use super::Violation;
use super::search::{group_end, occurrences};
use super::source::Source;
use super::tolerated::Tolerated;
use std::collections::BTreeSet;

/// The list of crates that may declare routes anywhere for now.
pub(crate) const PATH: &str = "tidy/routes.txt";

/// The crates that answer requests.
const CRATES: [&str; 5] = ["server", "api", "web", "relay", "git_http"];

/// The calls that declare a route.
const CALLS: [&str; 5] = [".route(", ".route_service(", ".nest(", ".nest_service(", "routes!("];

/// The attribute that declares one if it holds a path.
const ATTRIBUTE: &str = "#[utoipa::path";

/// Reports the routes that are declared outside the table of their crate.
pub(crate) fn check(sources: &[Source], tolerated: &str) -> Vec<Violation> {
    let tolerated = Tolerated::read(PATH, tolerated);
    let mut breaking = BTreeSet::new();
    let mut violations = Vec::new();
    for source in sources {
        let Some((name, inside)) = source.in_crate().filter(|(name, _)| CRATES.contains(name)) else {
            continue;
        };
        for (at, call) in declared_routes(source).into_iter().filter(|_| !is_table(inside)) {
            breaking.insert(name);
            if !tolerated.contains(name) {
                let what = format!("`{call}` declares a route outside the table; enter it as a row of routes.rs");
                violations.push(Violation::new(&source.path, source.line_at(at), what));
            }
        }
    }
    violations.extend(tolerated.check_needed(&breaking));
    violations
}

/// Whether a file of `src` belongs to the crate's table of routes.
fn is_table(inside: &str) -> bool {
    inside == "routes.rs" || inside.starts_with("routes/")
}

fn declared_routes(source: &Source) -> Vec<(usize, &'static str)> {
    let calls = CALLS.iter().flat_map(|call| occurrences(&source.code, call).map(move |at| (at, *call)));
    let attributes = source.code.match_indices(ATTRIBUTE).map(|(at, _)| (at, ATTRIBUTE));
    let attributes = attributes.filter(|(at, _)| has_literal_path(source, *at));
    calls.chain(attributes).filter(|(at, _)| !source.is_test(*at)).collect()
}

/// Whether the attribute at `at` says `path = "…"`.
fn has_literal_path(source: &Source, at: usize) -> bool {
    let attribute = at + 1..group_end(&source.code, at + 1);
    let inside = &source.code[attribute.start..attribute.end];
    let mut mentions = occurrences(inside, "path").map(|found| attribute.start + found + "path".len());
    mentions.any(|after| {
        let value = source.text[after..attribute.end].trim_start().strip_prefix('=').map(str::trim_start);
        value.is_some_and(|value| ["\"", "r\"", "r#"].iter().any(|quote| value.starts_with(quote)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::assert_violations;
    use super::Source;

    /// Expects the lines with routes outside the table, each with what declares it.
    #[track_caller]
    fn check(path: &str, text: &str, expected: &str) {
        let found = super::check(&[Source::new(path, text)], "");
        let short = found
            .iter()
            .map(|violation| format!("{} {}", violation.line, violation.what.split('`').nth(1).unwrap_or_default()));
        assert_eq!(short.collect::<Vec<_>>().join(", "), expected, "in {path}");
    }

    const CALLS: &str =
        "Router::new()\n.route(\"/a\", get(a))\n.nest(\"/b\", b)\n.route_service(\"/c\", c)\n.layer(d);\nroutes!(e)";

    #[test]
    fn routes_stand_in_the_table() {
        check("crates/api/src/routes.rs", CALLS, "");
        check("crates/api/src/routes/people.rs", CALLS, "");
        check("crates/api/src/people.rs", CALLS, "2 .route(, 4 .route_service(, 3 .nest(, 6 routes!(");
        check("crates/web/src/people/routes.rs", CALLS, "2 .route(, 4 .route_service(, 3 .nest(, 6 routes!(");
    }

    #[test]
    fn an_attribute_with_a_path_is_a_route() {
        let attribute = "#[utoipa::path(get, path = \"/a\")]\nfn a() {}\n#[utoipa::path(\n    put,\n    path=\"/b\",\n)]\nfn b() {}";
        check("crates/server/src/a.rs", attribute, "1 #[utoipa::path, 3 #[utoipa::path");
        check("crates/server/src/a.rs", "#[utoipa::path(get, responses((status = 200)))]\nfn a(path: &str) {}", "");
        check("crates/server/src/a.rs", "#[utoipa::path(get, path = routes::PATH, tag = \"a\")]", "");
    }

    #[test]
    fn other_crates_and_tests_are_free() {
        check("crates/cli/src/a.rs", CALLS, "");
        check("crates/api/tests/a.rs", CALLS, "");
        check("crates/api/src/a.rs", "#[cfg(test)]\nmod tests { fn f() { r.route(\"/a\", b) } }", "");
        check("crates/api/src/a.rs", "// .route(\"/a\")\nself.route_of(a); x.route_layer(b);", "");
    }

    #[test]
    fn a_crate_can_be_tolerated_while_it_needs_that() {
        let source = [Source::new("crates/server/src/a.rs", CALLS)];
        assert_violations(&super::check(&source, "# still\nserver"), &[]);
        let unneeded = "tidy/routes.txt:1: `server` keeps to the rule; remove this line";
        assert_violations(&super::check(&[Source::new("crates/server/src/routes.rs", CALLS)], "server"), &[unneeded]);
    }

    #[test]
    fn a_violation_says_what_to_do() {
        let expected =
            "crates/web/src/a.rs:1: `.route(` declares a route outside the table; enter it as a row of routes.rs";
        assert_violations(&super::check(&[Source::new("crates/web/src/a.rs", "a.route(b, c)")], ""), &[expected]);
    }
}
