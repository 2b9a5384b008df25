//! Source text as HTML, in which comments, texts, numbers and keywords can be told apart.
//!
//! One pass over the text, in time that grows with its length and nothing else, whatever somebody wrote. The grammars that
//! libraries bring are either read by code in C, backtrack, or come with dependencies that nobody keeps any more; what
//! people need to read code at a glance needs no grammar.

use super::languages::{Language, Quote};
use pulldown_cmark_escape::escape_html;

/// The longest line that is coloured; longer ones are data.
const LINE_BYTES_MAX: usize = 2000;

/// What a part of a text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    Plain,
    Comment,
    Quoted,
    Number,
    Keyword,
}

impl Token {
    /// The class that style sheets know it by.
    fn class(self) -> Option<&'static str> {
        match self {
            Token::Plain => None,
            Token::Comment => Some("c"),
            Token::Quoted => Some("q"),
            Token::Number => Some("n"),
            Token::Keyword => Some("k"),
        }
    }
}

/// Each line of a file as HTML, coloured as far as its language is known.
pub(super) fn highlight(path: &str, text: &str) -> Vec<String> {
    let mut lines = HtmlLines { lines: vec![String::new()] };
    let is_data = text.lines().any(|line| line.len() > LINE_BYTES_MAX);
    match Language::of_path(path).filter(|_| !is_data) {
        None => lines.push(Token::Plain, text),
        Some(language) => {
            let mut rest = text;
            while !rest.is_empty() {
                let (token, length) = next_token(language, rest);
                let (part, after) = rest.split_at(length);
                lines.push(token, part);
                rest = after;
            }
        }
    }
    // What ends with a line ends there.
    if lines.lines.len() > 1 && lines.lines.last().is_some_and(String::is_empty) {
        lines.lines.pop();
    }
    lines.lines
}

/// Lines of HTML, each whole by itself.
struct HtmlLines {
    lines: Vec<String>,
}

impl HtmlLines {
    fn push(&mut self, token: Token, text: &str) {
        for (number, part) in text.split('\n').enumerate() {
            if number > 0 {
                self.lines.push(String::new());
            }
            let part = part.trim_end_matches('\r');
            let Some(line) = self.lines.last_mut().filter(|_| !part.is_empty()) else { continue };
            match token.class() {
                Some(class) => {
                    line.push_str("<i class=\"");
                    line.push_str(class);
                    line.push_str("\">");
                    let _ = escape_html(&mut *line, part);
                    line.push_str("</i>");
                }
                None => drop(escape_html(&mut *line, part)),
            }
        }
    }
}

/// What stands at the beginning of a text, and how long it is: at least one letter.
fn next_token(language: &Language, text: &str) -> (Token, usize) {
    if let Some((start, end)) = language.block_comment
        && text.starts_with(start)
    {
        let length = text[start.len()..].find(end).map_or(text.len(), |at| start.len() + at + end.len());
        return (Token::Comment, length);
    }
    if language.line_comments.iter().any(|mark| text.starts_with(mark)) {
        return (Token::Comment, text.find('\n').unwrap_or(text.len()));
    }
    if let Some(quote) = language.quotes.iter().find(|quote| text.starts_with(quote.mark)) {
        return (Token::Quoted, quoted_length(quote, text));
    }
    let first = text.chars().next().unwrap_or_default();
    let is_of_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let word = &text[..text.find(|letter| !is_of_word(letter)).unwrap_or(text.len())];
    match first {
        _ if word.is_empty() => (Token::Plain, first.len_utf8()),
        '0'..='9' => (Token::Number, word.len()),
        _ if language.is_keyword(word) => (Token::Keyword, word.len()),
        _ => (Token::Plain, word.len()),
    }
}

/// How long a quoted text is, its marks included. One that does not end goes to the end of its line, or of everything.
fn quoted_length(quote: &Quote, text: &str) -> usize {
    let mut at = quote.mark.len();
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(quote.mark) {
            return at + quote.mark.len();
        }
        let mut letters = rest.chars();
        let letter = letters.next().unwrap_or_default();
        match letter {
            '\n' if !quote.has_lines => return at,
            '\\' if quote.has_escapes => {
                let after = letters.next().filter(|after| *after != '\n');
                at += 1 + after.map_or(0, char::len_utf8);
            }
            _ => at += letter.len_utf8(),
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(path: &str, text: &str) -> String {
        highlight(path, text).join("\n")
    }

    #[test]
    fn comments_texts_numbers_and_keywords_are_told_apart() {
        for (path, text, expected) in [
            ("a.rs", "let x = 1; // hm", "<i class=\"k\">let</i> x = <i class=\"n\">1</i>; <i class=\"c\">// hm</i>"),
            ("a.rs", "\"a\\\"b\" c", "<i class=\"q\">~a\\~b~</i> c"),
            ("a.rs", "/* a\nb */ fn", "<i class=\"c\">/* a</i>\n<i class=\"c\">b */</i> <i class=\"k\">fn</i>"),
            (
                "a.py",
                "\"\"\"a\n\"b\"\"\" 'c",
                "<i class=\"q\">~~~a</i>\n<i class=\"q\">~b~~~</i> <i class=\"q\">&#39;c</i>",
            ),
            ("a.c", "\"x\nint", "<i class=\"q\">~x</i>\n<i class=\"k\">int</i>"),
            ("a.rs", "letter", "letter"),
            ("a.unknown", "let <x>", "let &lt;x&gt;"),
            ("a.rs", "/* open", "<i class=\"c\">/* open</i>"),
        ] {
            assert_eq!(shown(path, text).replace("&quot;", "~"), expected, "{text}");
        }
    }

    #[test]
    fn lines_are_those_of_the_file() {
        assert_eq!(highlight("a.rs", "a\r\n\nb\n"), ["a", "", "b"]);
        assert_eq!(highlight("a", ""), [""]);
        let data = format!("let x = 1;\n{}", "x".repeat(LINE_BYTES_MAX + 1));
        assert_eq!(highlight("a.rs", &data)[0], "let x = 1;", "data is not coloured");
    }

    /// The text that HTML shows.
    fn text_of(html: &str) -> String {
        let mut text = String::new();
        for (number, part) in html.split('<').enumerate() {
            text.push_str(if number == 0 { part } else { part.split_once('>').map_or("", |(_, after)| after) });
        }
        text.replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"")
            .replace("&#39;", "'")
            .replace("&amp;", "&")
    }

    proptest::proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_added(
            name in proptest::sample::select(vec!["a.rs", "a.py", "a.js", "a.html", "a.sql", "Makefile", "a"]),
            text in "([a-z0-9 \"'`/*#<>&\\\\\n_-]|é|\"\"\"|<!--|-->){0,120}",
        ) {
            let lines: Vec<String> = highlight(name, &text).iter().map(|line| text_of(line)).collect();
            let expected: Vec<&str> = text.strip_suffix('\n').unwrap_or(&text).split('\n').collect();
            proptest::prop_assert_eq!(lines, expected);
        }
    }
}
