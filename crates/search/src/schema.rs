//! What is kept of a message: its number, what it can be narrowed down by, and its words. Nothing is kept to be shown.

use crate::tokenizer::WORDS;
use model::{Identity, Nanos, Seq};
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::RAW_TOKENIZER_NAME;
use tantivy::{TantivyDocument, Term};

/// More text than this of one message is not looked at. Bodies have a lower bound of their own.
const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// The number of the message, by name since answers read it as a column.
pub(crate) const SEQ: &str = "seq";

/// A message as it is searched for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexedMessage {
    /// The number of the message.
    pub seq: Seq,
    /// The thread it is in.
    pub thread: Seq,
    /// Who wrote it.
    pub author: Identity,
    /// When.
    pub at: Nanos,
    /// Its title, if it has one: words in it weigh more. The text has them too.
    pub title: String,
    /// Everything it says.
    pub text: String,
}

/// The fields of the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) seq: Field,
    pub(crate) thread: Field,
    pub(crate) author: Field,
    pub(crate) at: Field,
    pub(crate) title: Field,
    pub(crate) text: Field,
}

impl Fields {
    /// The fields and the schema they are of.
    pub(crate) fn new() -> (Fields, Schema) {
        let indexed = |tokenizer: &str, option| {
            let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(option);
            TextOptions::default().set_indexing_options(indexing)
        };
        let mut schema = Schema::builder();
        let fields = Fields {
            seq: schema.add_u64_field(SEQ, INDEXED | FAST),
            thread: schema.add_u64_field("thread", INDEXED),
            author: schema.add_text_field("author", indexed(RAW_TOKENIZER_NAME, IndexRecordOption::Basic)),
            at: schema.add_u64_field("at", FAST),
            title: schema.add_text_field("title", indexed(WORDS, IndexRecordOption::WithFreqs)),
            text: schema.add_text_field("text", indexed(WORDS, IndexRecordOption::WithFreqsAndPositions)),
        };
        (fields, schema.build())
    }

    /// By which a message is found again.
    pub(crate) fn key(&self, seq: Seq) -> Term {
        Term::from_field_u64(self.seq, seq.0)
    }

    /// A message as the index takes it.
    pub(crate) fn document(&self, document: &IndexedMessage) -> TantivyDocument {
        let mut row = TantivyDocument::new();
        row.add_u64(self.seq, document.seq.0);
        row.add_u64(self.thread, document.thread.0);
        row.add_text(self.author, document.author.to_string());
        row.add_u64(self.at, document.at.0);
        row.add_text(self.title, cut(&document.title));
        row.add_text(self.text, cut(&document.text));
        row
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}
