//! Finding words, calls and bracketed groups in code whose comments and literals are blanked.

use std::ops::Range;

/// Whether the character can be part of a Rust name.
pub(crate) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Where `needle` occurs in `code` as whole words: `panic!` is not found in `my_panic!`, nor `fn` in `fnord`.
pub(crate) fn occurrences<'a>(code: &'a str, needle: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(needle).map(|(at, _)| at).filter(move |at| {
        let joins_before = needle.starts_with(is_word) && code[..*at].ends_with(is_word);
        let joins_after = needle.ends_with(is_word) && code[at + needle.len()..].starts_with(is_word);
        !joins_before && !joins_after
    })
}

/// The offset just behind the bracket that closes the one at `open`; the end of the code if none does.
pub(crate) fn group_end(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, character) in code[open..].char_indices() {
        match character {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => continue,
        }
        if depth == 0 {
            return open + at + 1;
        }
    }
    code.len()
}

/// Where the elements of the bracketed group at `open` start, those inside its inner groups not included.
pub(crate) fn group_elements(code: &str, open: usize) -> Vec<usize> {
    let end = group_end(code, open);
    let mut starts = vec![open + 1];
    let mut at = open + 1;
    while let Some(found) = code[at..end].find(['(', '[', '{', ',']) {
        let mark = at + found;
        at = if code[mark..].starts_with(',') { mark + 1 } else { group_end(code, mark) };
        if code[mark..].starts_with(',') {
            starts.push(at);
        }
    }
    starts.retain(|start| !code[*start..end].trim_start().starts_with([')', ']', '}']));
    starts
}

/// A module whose body stands in the file that declares it.
#[derive(Debug)]
pub(crate) struct InlineModule<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Where its body stands, braces included.
    pub(crate) body: Range<usize>,
}

/// The modules with a body, the outer ones before those inside them.
pub(crate) fn inline_modules(code: &str) -> Vec<InlineModule<'_>> {
    let named = occurrences(code, "mod").filter_map(|at| {
        let start = at + "mod".len();
        let name = leading_word(code[start..].trim_start());
        let after = start + spaces(&code[start..]) + name.len();
        let open = after + spaces(&code[after..]);
        let has_body = !name.is_empty() && code[open..].starts_with('{');
        has_body.then(|| InlineModule { name, body: open..group_end(code, open) })
    });
    named.collect()
}

/// How many bytes of white space the code starts with.
pub(crate) fn spaces(code: &str) -> usize {
    code.len() - code.trim_start().len()
}

/// The name at the start of `code`, empty if something else stands there.
pub(crate) fn leading_word(code: &str) -> &str {
    let end = code.find(|character| !is_word(character)).unwrap_or(code.len());
    &code[..end]
}

#[cfg(test)]
mod tests {
    use super::{group_elements, group_end, inline_modules, leading_word, occurrences};

    fn check(code: &str, needle: &str, expected: &[usize]) {
        assert_eq!(occurrences(code, needle).collect::<Vec<_>>(), expected, "`{needle}` in `{code}`");
    }

    #[test]
    fn only_whole_words_are_found() {
        check("panic! my_panic! core::panic!", "panic!", &[0, 23]);
        check("fn fnord() fn", "fn", &[0, 11]);
        check("x.unwrap().y.unwrap_or(1)", ".unwrap()", &[1]);
        check("eprintln! println!", "println!", &[10]);
        check("éfn fn", "fn", &[5]);
    }

    #[test]
    fn groups_end_at_their_own_bracket() {
        assert_eq!(group_end("f(a[1], {b})c", 1), 12);
        assert_eq!(group_end("{ never", 0), 7);
    }

    #[test]
    fn elements_are_those_of_the_outer_group() {
        let elements = |code: &str| -> String {
            let starts = group_elements(code, 0);
            starts.iter().map(|start| leading_word(code[*start..].trim_start())).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(elements("{a, b::{c, d}, e::f(g, h), i}, j"), "a b e i");
        assert_eq!(elements("{ a,\n b,\n}"), "a b");
        assert_eq!(elements("{}"), "");
    }

    #[test]
    fn modules_with_a_body_are_found() {
        let found = inline_modules("mod a; pub mod b { mod c {} fn mod_d() {} } mod e\n{ }");
        assert_eq!(found.iter().map(|module| module.name).collect::<Vec<_>>(), ["b", "c", "e"]);
    }

    #[test]
    fn names_are_read() {
        assert_eq!(leading_word("name_1: u8"), "name_1");
        assert_eq!(leading_word("(u8)"), "");
    }
}
