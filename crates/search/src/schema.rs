//! The fields of the index: event number, filter fields, and words. The text of messages is not stored.

use crate::tokenizer::TOKENIZER_NAME;
use model::{Identity, Nanos, Seq};
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::RAW_TOKENIZER_NAME;
use tantivy::{TantivyDocument, Term};

/// Longer text of a message is not indexed. The limit of message bodies is lower.
const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// The name of the field with the event number, which is read as a column.
pub(crate) const SEQ_FIELD: &str = "seq";

/// The data of a message for the index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexedMessage {
    pub seq: Seq,
    pub thread: Seq,
    pub author: Identity,
    pub at: Nanos,
    /// May be empty. Words in the title get a higher score; `text` contains them too.
    pub title: String,
    /// All text of the message.
    pub text: String,
}

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
    pub(crate) fn new() -> (Fields, Schema) {
        let indexed = |tokenizer: &str, option| {
            let indexing = TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(option);
            TextOptions::default().set_indexing_options(indexing)
        };
        let mut schema = Schema::builder();
        let fields = Fields {
            seq: schema.add_u64_field(SEQ_FIELD, INDEXED | FAST),
            thread: schema.add_u64_field("thread", INDEXED),
            author: schema.add_text_field("author", indexed(RAW_TOKENIZER_NAME, IndexRecordOption::Basic)),
            at: schema.add_u64_field("at", FAST),
            title: schema.add_text_field("title", indexed(TOKENIZER_NAME, IndexRecordOption::WithFreqs)),
            text: schema.add_text_field("text", indexed(TOKENIZER_NAME, IndexRecordOption::WithFreqsAndPositions)),
        };
        (fields, schema.build())
    }

    /// The term that identifies a message.
    pub(crate) fn seq_term(&self, seq: Seq) -> Term {
        Term::from_field_u64(self.seq, seq.0)
    }

    pub(crate) fn to_document(self, message: &IndexedMessage) -> TantivyDocument {
        let mut row = TantivyDocument::new();
        row.add_u64(self.seq, message.seq.0);
        row.add_u64(self.thread, message.thread.0);
        row.add_text(self.author, message.author.to_string());
        row.add_u64(self.at, message.at.0);
        row.add_text(self.title, truncate(&message.title));
        row.add_text(self.text, truncate(&message.text));
        row
    }
}

fn truncate(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}
