//! Splits messages and queries into words, by the same rule.
//!
//! A word is a run of letters and digits, in lower case and without accents. In scripts that are written without spaces
//! every character is a word. In a query, text in quotation marks is a phrase, and so is text between spaces that has
//! more than one word, such as `e-mail` or `東京`.

use crate::errors::{BadQuery, QUERY_BYTES_MAX, QUERY_WORDS_MAX};
use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, RemoveLongFilter, TextAnalyzer, Token, TokenStream, Tokenizer,
};

/// The name under which the tokenizer is registered in the index.
pub(crate) const TOKENIZER_NAME: &str = "words";
/// Longer words are not indexed: nobody searches for them, and malicious text may contain many.
const WORD_BYTES_MAX: usize = 64;

/// A part of a query. A message must match all of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum QueryPart {
    /// These words, in this order.
    Exact(Vec<String>),
    /// The same, but the last word is a prefix.
    Prefix(Vec<String>),
}

pub(crate) fn parse_query(query: &str) -> Result<Vec<QueryPart>, BadQuery> {
    if query.len() > QUERY_BYTES_MAX {
        return Err(BadQuery::Long);
    }
    let sections: Vec<&str> = query.split('"').collect();
    // Quotation marks come in pairs, so there is an odd number of sections, and every second one is a phrase.
    if sections.len().is_multiple_of(2) {
        return Err(BadQuery::Quote);
    }
    let mut analyzer = analyzer();
    let mut parts = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        let pieces: Vec<&str> = if number % 2 == 1 { vec![section] } else { section.split_whitespace().collect() };
        let phrases = pieces.iter().map(|piece| split_words(&mut analyzer, piece)).filter(|words| !words.is_empty());
        let before = parts.len();
        parts.extend(phrases.map(QueryPart::Exact));
        // The last word is a prefix unless it is in quotation marks.
        if number + 1 == sections.len() && parts.len() > before {
            let last = parts.pop();
            parts.extend(last.map(|part| QueryPart::Prefix(part.into_words())));
        }
    }
    match parts.iter().map(|part| part.words().len()).sum::<usize>() {
        0 => Err(BadQuery::Empty),
        count if count > QUERY_WORDS_MAX => Err(BadQuery::ManyWords),
        _ => Ok(parts),
    }
}

impl QueryPart {
    pub(crate) fn words(&self) -> &[String] {
        match self {
            QueryPart::Exact(words) | QueryPart::Prefix(words) => words,
        }
    }

    fn into_words(self) -> Vec<String> {
        match self {
            QueryPart::Exact(words) | QueryPart::Prefix(words) => words,
        }
    }
}

fn split_words(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    analyzer.token_stream(text).process(&mut |token| words.push(token.text.clone()));
    words
}

/// The tokenizer with its filters, for the index.
pub(crate) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(WordTokenizer::default())
        .filter(RemoveLongFilter::limit(WORD_BYTES_MAX))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .build()
}

#[derive(Clone, Default)]
struct WordTokenizer {
    token: Token,
}

struct WordStream<'a> {
    text: &'a str,
    at: usize,
    token: &'a mut Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        self.token.reset();
        WordStream { text, at: 0, token: &mut self.token }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(skipped) = self.text[self.at..].find(char::is_alphanumeric) else { return false };
        let from = self.at + skipped;
        let rest = &self.text[from..];
        let to = match rest.chars().next() {
            Some(first) if is_word_by_itself(first) => from + first.len_utf8(),
            _ => {
                from + rest
                    .find(|letter: char| !letter.is_alphanumeric() || is_word_by_itself(letter))
                    .unwrap_or(rest.len())
            }
        };
        self.at = to;
        self.token.position = self.token.position.wrapping_add(1);
        (self.token.offset_from, self.token.offset_to) = (from, to);
        self.token.text.clear();
        self.token.text.push_str(&self.text[from..to]);
        true
    }

    fn token(&self) -> &Token {
        self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

/// Whether a character belongs to a script without spaces: Thai to Khmer, kana, ideographs.
fn is_word_by_itself(letter: char) -> bool {
    matches!(letter,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(query: &str, expected: &str) {
        let shown = match parse_query(query) {
            Err(why) => format!("{why:?}"),
            Ok(parts) => parts.iter().map(show).collect::<Vec<_>>().join(" + "),
        };
        assert_eq!(shown, expected, "{query}");
    }

    fn show(part: &QueryPart) -> String {
        match part {
            QueryPart::Exact(words) => words.join(" "),
            QueryPart::Prefix(words) => format!("{}*", words.join(" ")),
        }
    }

    #[test]
    fn queries_are_parsed() {
        check("Hello", "hello*");
        check("hello  Wörld", "hello + world*");
        check("\"to be\" or not", "to be + or + not*");
        check("be \"or not\"", "be + or not");
        check("be \"or not\" ...", "be + or not");
        check("an e-mail", "an + e mail*");
        check("mail a@b.example now", "mail + a b example + now*");
        check("東京 x東y", "東 京 + x 東 y*");
        check("title:x AND (y OR *) ~2 ^3", "title x + and + y + or + 2 + 3*");
    }

    #[test]
    fn bad_queries_are_refused() {
        check("", "Empty");
        check(" ?! \"\" -", "Empty");
        check(&"x".repeat(100), "Empty");
        check("one \" two", "Quote");
        check(&"ab ".repeat(200), "Long");
        check(&"a ".repeat(17), "ManyWords");
        check(&"東".repeat(17), "ManyWords");
    }
}
