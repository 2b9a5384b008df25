//! What is found in a source, and what becomes of it.

use super::super::weave::weave;
use super::{code_without_tests, modules_for_tests, places};

/// What each mistake makes of a source.
fn mistakes(source: &str) -> String {
    let mut told = String::new();
    for place in places(source).expect("a source") {
        let shown = source.get(place.range.clone()).expect("a range");
        told += &format!("{} `{shown}` {}\n", place.line, place.mistake.describe());
    }
    told
}

fn woven(source: &str) -> String {
    let edits: Vec<_> = places(source)
        .expect("a source")
        .iter()
        .enumerate()
        .flat_map(|(number, place)| place.edits(number + 1).into_iter().map(move |edit| (number + 1, edit)))
        .collect();
    weave(source, &edits).0.replace("::model::mutants::", "")
}

#[test]
fn conditions_hold_always_or_never_and_comparisons_are_others() {
    let source = "fn f(a: u8) -> u8 {\n    if a < 3 && g(a) { return 1; }\n    2\n}\n";
    assert_eq!(
        mistakes(source),
        "1 `` answers 0\n2 `a < 3 && g(a)` always holds\n2 `a < 3 && g(a)` never holds\n\
         2 `a < 3` always holds\n2 `g(a)` always holds\n2 `a < 3` compares otherwise\n"
    );
    assert!(syn::parse_file(&woven(source)).is_ok(), "{}", woven(source));
    assert_eq!(
        woven(source),
        "fn f(a: u8) -> u8 { if is_on(1) { return 0; }\n    if (is_on(2) || ((!is_on(3) && ((is_on(4) || (less(6, \
         &(a), &(3)))) && (is_on(5) || (g(a))))))) { return 1; }\n    2\n}\n"
    );
}

#[test]
fn statements_are_left_out_and_sums_are_one_too_much() {
    let source = "fn f(a: &mut u64) {\n    g(*a + 1);\n    *a = (*a).max(4);\n    let b = 3;\n}\n";
    assert_eq!(
        woven(source),
        "fn f(a: &mut u64) { if is_on(1) { return ; }\n    if !is_on(2) { g(off(3, *a + 1)); }\n    if !is_on(4) { *a = \
         max(5, (*a), 4); }\n    let b = 3;\n}\n"
    );
}

#[test]
fn what_binds_a_name_stays_and_what_stands_beside_it_does_not() {
    let source = "fn f(a: Option<u8>) -> Tree {\n    if let Some(b) = a && b != 2 { g() } else { h() }\n}\n";
    assert_eq!(mistakes(source), "2 `b != 2` always holds\n2 `b != 2` compares otherwise\n");
}

#[test]
fn tests_and_what_runs_in_the_compiler_are_left_alone() {
    let none = [
        "const fn f(a: u8) -> bool { a < 3 }",
        "const A: bool = 1 < 2;",
        "static B: [u8; 3 + 4] = [0; 7];",
        "#[test]\nfn f() { g(); }",
        "#[cfg(test)]\nmod tests { fn f() { g(); } }",
        "impl Debug for T { fn fmt(&self) -> Result<(), E> { g(); } }",
        "fn main() { g(); }",
    ];
    for source in none {
        assert_eq!(mistakes(source), "", "{source}");
    }
}

#[test]
fn functions_answer_what_their_type_allows() {
    let answers = |written: &str| mistakes(&format!("fn f() -> {written} {{ g() }}"));
    assert_eq!(answers("bool"), "1 `` answers true\n1 `` answers false\n");
    assert_eq!(answers("StoreResult<()>"), "1 `` answers Ok(())\n");
    assert_eq!(answers("Result<Option<u8>, E>"), "1 `` answers Ok(None)\n");
    assert_eq!(answers("Vec<u8>"), "1 `` answers Vec::new()\n");
    assert_eq!(answers("Tree"), "");
}

#[test]
fn places_of_the_same_extent_close_in_the_order_in_which_they_opened() {
    let source = "fn f(a: u8) -> Tree { v.retain(|x| x.y); if v.is_empty() { 1 } else { 2 } }";
    assert!(syn::parse_file(&woven(source)).is_ok(), "{}", woven(source));
}

#[test]
fn what_is_planted_is_left_alone() {
    let source = "fn f(a: u8) {\n    if is_planted(X) { g(); } else { h(); }\n    match a { 1 if is_planted(Y) => g(), _ => {} }\n    \
                  if a == 1 || is_planted(Z) { h(); }\n}\n";
    let told = mistakes(source);
    assert!(!told.contains("g()") && !told.contains("is_planted"), "{told}");
    assert_eq!(told.matches("`h();` is left out").count(), 2, "{told}");
}

#[test]
fn modules_for_tests_are_known() {
    let source = "mod a;\n#[cfg(test)]\nmod tests;\n#[cfg(feature = \"search\")]\nmod search;\n#[cfg(any(test, feature = \
                  \"simulation\"))]\npub mod driver;\n#[cfg(test)]\nmod here {}\n";
    assert_eq!(modules_for_tests(source), ["tests", "driver"]);
}

#[test]
fn tests_are_no_part_of_the_code() {
    let code = "use a::b;\nfn f() {}\nmod inner {\n    fn g() {}\n}\n#[cfg(feature = \"x\")]\nfn h() {}";
    let tested = "use a::b;\n#[cfg(test)]\nuse c::d;\n\nfn f() {}\nmod inner {\n    fn g() {}\n    #[cfg(test)]\n    mod tests {\n        \
                  #[test]\n        fn t() {}\n    }\n}\n\n#[cfg(feature = \"x\")]\nfn h() {}\n\n/// Tests.\n#[cfg(test)]\nmod tests;\n";
    assert_eq!(code_without_tests(tested).as_deref(), Some(code));
    assert_eq!(code_without_tests(code).as_deref(), Some(code));
}
