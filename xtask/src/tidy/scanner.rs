//! Tells code from comments and literals in a Rust source, without parsing it.
//!
//! The text is cut into pieces from left to right. Words are taken whole, so that the `r` of `for` is never mistaken
//! for the start of a raw string. What is blanked becomes spaces, byte for byte, and line ends stay: offsets and line
//! numbers are the same in the text and in both results.

/// A source in two layers, each as long as the text they were made from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// The text with comments, strings and character literals blanked.
    pub(crate) code: String,
    /// The text with all but the comments blanked.
    pub(crate) comments: String,
}

enum Kind {
    Code,
    Comment,
    Literal,
}

/// Separates the layers of a text. A comment or literal without an end reaches to the end of the text.
pub(crate) fn scan(text: &str) -> Scanned {
    let mut scanned = Scanned { code: String::with_capacity(text.len()), comments: String::with_capacity(text.len()) };
    let mut rest = text;
    while !rest.is_empty() {
        let (kind, length) = piece(rest);
        let (taken, after) = rest.split_at(length);
        match kind {
            Kind::Code => scanned.push(taken, &blank(taken)),
            Kind::Comment => scanned.push(&blank(taken), taken),
            Kind::Literal => scanned.push(&blank(taken), &blank(taken)),
        }
        rest = after;
    }
    scanned
}

impl Scanned {
    fn push(&mut self, code: &str, comments: &str) {
        self.code.push_str(code);
        self.comments.push_str(comments);
    }
}

fn blank(text: &str) -> String {
    text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
}

fn piece(rest: &str) -> (Kind, usize) {
    if let Some(length) = comment(rest) {
        (Kind::Comment, length)
    } else if let Some(length) = raw_string(rest).or_else(|| string(rest)).or_else(|| character(rest)) {
        (Kind::Literal, length)
    } else {
        (Kind::Code, word(rest))
    }
}

fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(found) = rest[at..].find(['/', '*']) {
        let mark = &rest[at + found..];
        if mark.starts_with("/*") {
            depth += 1;
            at += found + 2;
        } else if mark.starts_with("*/") {
            depth -= 1;
            at += found + 2;
        } else {
            at += found + 1;
        }
        if depth == 0 {
            return Some(at);
        }
    }
    Some(rest.len())
}

/// `r"…"`, `r#"…"#` and their `b` and `c` forms; not a raw identifier such as `r#type`.
fn raw_string(rest: &str) -> Option<usize> {
    let unprefixed = rest.strip_prefix(['b', 'c']).unwrap_or(rest).strip_prefix('r')?;
    let quoted = unprefixed.trim_start_matches('#');
    let hashes = unprefixed.len() - quoted.len();
    let inside = quoted.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = rest.len() - inside.len();
    Some(inside.find(&end).map_or(rest.len(), |found| start + found + end.len()))
}

fn string(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('"')?;
    let mut characters = inside.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some(at + 2),
            '\\' => _ = characters.next(),
            _ => {}
        }
    }
    Some(rest.len())
}

/// A character literal; `None` for a lifetime, which has no quote behind its first character.
fn character(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let mut characters = inside.char_indices();
    match characters.next()?.1 {
        '\'' => None,
        '\\' => {
            let (escaped_at, escaped) = characters.next()?;
            let after = 1 + escaped_at + escaped.len_utf8();
            Some(rest[after..].find('\'').map_or(rest.len(), |found| after + found + 1))
        }
        _ => characters.next().filter(|(_, quote)| *quote == '\'').map(|(at, _)| at + 2),
    }
}

fn word(rest: &str) -> usize {
    let after = rest.find(|character: char| !super::search::is_word(character)).unwrap_or(rest.len());
    if after > 0 { after } else { rest.chars().next().map_or(0, char::len_utf8) }
}

#[cfg(test)]
mod tests {
    use super::scan;

    /// Compares the code layer; a dot stands for each byte that was blanked and was not a space before.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let scanned = scan(text);
        assert_eq!(scanned.code.len(), text.len());
        assert_eq!(scanned.comments.len(), text.len());
        let visible: String = text
            .bytes()
            .zip(scanned.code.bytes())
            .map(|(before, after)| if before == after { char::from(after) } else { '.' })
            .collect();
        assert_eq!(visible, expected);
    }

    #[test]
    fn comments_are_blanked() {
        check("a // b\nc", "a .. .\nc");
        check("a /* b /* c */ d */ e", "a .. . .. . .. . .. e");
        check("a /*\n*/ b", "a ..\n.. b");
        check("a / b * c", "a / b * c");
        check("a /* never ends", "a .. ..... ....");
    }

    #[test]
    fn strings_are_blanked() {
        check(r#"f("{") + "#, "f(...) + ");
        check(r#"f("\"}\\") + 1"#, "f(.......) + 1");
        check(r##"f(r#"a"b"#)"##, "f(........)");
        check(r#"f(br"\")"#, "f(.....)");
        check(r#"f(b"{")"#, "f(b...)");
        check("f(\"//\") // x", "f(....) .. .");
    }

    #[test]
    fn raw_identifiers_and_words_before_a_quote_are_code() {
        check("let r#type = for_r;", "let r#type = for_r;");
        check("attr\"x\"", "attr...");
    }

    #[test]
    fn characters_are_blanked_and_lifetimes_are_not() {
        check("match c { '{' => 1, '\\'' => 2, '\\u{7d}' => 3 }", "match c { ... => 1, .... => 2, ........ => 3 }");
        check("fn f<'a>(x: &'a str, y: &'static str)", "fn f<'a>(x: &'a str, y: &'static str)");
        check("'outer: loop { break 'outer; }", "'outer: loop { break 'outer; }");
        check("b'{' '\"' \"'\"", "b... ... ...");
    }

    #[test]
    fn non_ascii_text_keeps_its_length() {
        check("'é' \"ü{\" x", ".... ..... x");
        check("/* ◄─ */ y", ".. ...... .. y");
    }

    #[test]
    fn comments_are_kept_in_their_own_layer() {
        assert_eq!(scan("a(\"// no\"); // yes").comments, "            // yes");
        assert_eq!(scan("a /* b */ c").comments, "  /* b */  ");
    }
}
