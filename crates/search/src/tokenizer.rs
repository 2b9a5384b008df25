//! Words: how texts are taken apart, those that are searched and those that are searched for, by the same rule.
//!
//! A word is a run of letters and digits, in lower case and without accents. Scripts that are written without spaces
//! give a word per character. In a question, what stands between spaces belongs together: if it is more than one word,
//! such as `e-mail` or `東京`, it is a phrase, as is what stands between quotation marks.

use tantivy::tokenizer::{
    AsciiFoldingFilter, LowerCaser, RemoveLongFilter, TextAnalyzer, Token, TokenStream, Tokenizer,
};

/// Under which name the index knows this rule.
pub(crate) const WORDS: &str = "words";
/// Longer words are not kept: nobody types them, and hostile texts are full of them.
const WORD_BYTES_MAX: usize = 64;
/// The longest question.
const QUESTION_BYTES_MAX: usize = 512;
/// The most words in a question, which bounds what it costs.
const QUESTION_WORDS_MAX: usize = 16;

/// Why a question cannot be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    /// No words.
    #[error("there is no word to search for")]
    Empty,
    /// Too many bytes.
    #[error("the question is longer than {QUESTION_BYTES_MAX} bytes")]
    Long,
    /// Too many words.
    #[error("the question has more than {QUESTION_WORDS_MAX} words")]
    ManyWords,
    /// A phrase without an end.
    #[error("a quotation mark is not closed")]
    Quote,
    /// Too many pages.
    #[error("only the first {} answers can be listed; ask more precisely", crate::REACH_MAX)]
    Far,
}

/// A part of a question. All of them must be met.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum QueryPart {
    /// These words, one after the other.
    Exact(Vec<String>),
    /// The same, but the last one may go on.
    Begun(Vec<String>),
}

/// Takes a question apart.
pub(crate) fn parts(question: &str) -> Result<Vec<QueryPart>, BadQuery> {
    if question.len() > QUESTION_BYTES_MAX {
        return Err(BadQuery::Long);
    }
    let sections: Vec<&str> = question.split('"').collect();
    // Quotation marks come in pairs, so there is an odd number of sections, and every second one is a phrase.
    if sections.len().is_multiple_of(2) {
        return Err(BadQuery::Quote);
    }
    let mut analyzer = analyzer();
    let mut parts = Vec::new();
    for (number, section) in sections.iter().enumerate() {
        let pieces: Vec<&str> = if number % 2 == 1 { vec![section] } else { section.split_whitespace().collect() };
        let phrases = pieces.iter().map(|piece| words(&mut analyzer, piece)).filter(|words| !words.is_empty());
        let before = parts.len();
        parts.extend(phrases.map(QueryPart::Exact));
        // The last word may go on, unless it is between quotation marks.
        if number + 1 == sections.len() && parts.len() > before {
            let last = parts.pop();
            parts.extend(last.map(|part| QueryPart::Begun(part.into_words())));
        }
    }
    match parts.iter().map(|part| part.words().len()).sum::<usize>() {
        0 => Err(BadQuery::Empty),
        count if count > QUESTION_WORDS_MAX => Err(BadQuery::ManyWords),
        _ => Ok(parts),
    }
}

impl QueryPart {
    /// Its words.
    pub(crate) fn words(&self) -> &[String] {
        match self {
            QueryPart::Exact(words) | QueryPart::Begun(words) => words,
        }
    }

    fn into_words(self) -> Vec<String> {
        match self {
            QueryPart::Exact(words) | QueryPart::Begun(words) => words,
        }
    }
}

fn words(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
    let mut words = Vec::new();
    analyzer.token_stream(text).process(&mut |token| words.push(token.text.clone()));
    words
}

/// The rule, as the index takes it.
pub(crate) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(Words::default())
        .filter(RemoveLongFilter::limit(WORD_BYTES_MAX))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .build()
}

/// Finds the words of a text.
#[derive(Clone, Default)]
struct Words {
    token: Token,
}

struct WordStream<'a> {
    text: &'a str,
    at: usize,
    token: &'a mut Token,
}

impl Tokenizer for Words {
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
            Some(first) if stands_alone(first) => from + first.len_utf8(),
            _ => {
                from + rest.find(|letter: char| !letter.is_alphanumeric() || stands_alone(letter)).unwrap_or(rest.len())
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

/// Whether a character is of a script without spaces: Thai to Khmer, kana, and the ideographs.
fn stands_alone(letter: char) -> bool {
    matches!(letter,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(question: &str, expected: &str) {
        let shown = match parts(question) {
            Err(why) => format!("{why:?}"),
            Ok(parts) => parts.iter().map(show).collect::<Vec<_>>().join(" + "),
        };
        assert_eq!(shown, expected, "{question}");
    }

    fn show(part: &QueryPart) -> String {
        match part {
            QueryPart::Exact(words) => words.join(" "),
            QueryPart::Begun(words) => format!("{}*", words.join(" ")),
        }
    }

    #[test]
    fn questions_are_taken_apart() {
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
    fn bad_questions_are_told() {
        check("", "Empty");
        check(" ?! \"\" -", "Empty");
        check(&"x".repeat(100), "Empty");
        check("one \" two", "Quote");
        check(&"ab ".repeat(200), "Long");
        check(&"a ".repeat(17), "ManyWords");
        check(&"東".repeat(17), "ManyWords");
    }
}
