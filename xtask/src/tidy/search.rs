//! Finding words, calls and bracketed groups in code whose comments and literals are blanked.

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

/// The name at the start of `code`, empty if something else stands there.
pub(crate) fn leading_word(code: &str) -> &str {
    let end = code.find(|character| !is_word(character)).unwrap_or(code.len());
    &code[..end]
}

#[cfg(test)]
mod tests {
    use super::{group_end, leading_word, occurrences};

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
    fn names_are_read() {
        assert_eq!(leading_word("name_1: u8"), "name_1");
        assert_eq!(leading_word("(u8)"), "");
    }
}
