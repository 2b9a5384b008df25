//! The index of one space: opened or begun anew, changed, committed with the position it has reached, and asked.

use crate::query::{Hit, IndexQuery, ParsedQuery, REACH_MAX};
use crate::schema::{Fields, IndexedMessage};
use crate::sealed_directory::Folder;
use crate::tokenizer::{BadQuery, WORDS, analyzer};
use model::{Position, Seq};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, TantivyError};

/// What the words of a commit begin with. Another one means another way of taking texts apart, or of keeping them.
const FORMAT: &str = "1";
/// What the writer keeps in memory before it writes a segment.
const WRITER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A segment with more than this share of removed messages is written anew on occasion.
const REMOVED_SHARE_MAX: f32 = 0.3;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The question is at fault.
    #[error(transparent)]
    Bad(#[from] BadQuery),
    /// The index is: it should be begun anew.
    #[error("the search index cannot be used: {0}")]
    Damaged(String),
}

impl From<TantivyError> for IndexError {
    fn from(why: TantivyError) -> IndexError {
        IndexError::Damaged(why.to_string())
    }
}

impl From<io::Error> for IndexError {
    fn from(why: io::Error) -> IndexError {
        IndexError::Damaged(why.to_string())
    }
}

/// The index of one space. Anyone may ask while one writes.
pub struct Index {
    index: tantivy::Index,
    fields: Fields,
    reader: IndexReader,
    writing: Mutex<Writing>,
}

struct Writing {
    /// There while something is being written; it has threads and memory of its own.
    writer: Option<IndexWriter>,
    position: Option<Position>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Index({:?})", self.index.directory())
    }
}

impl Index {
    /// Opens the index in that folder. One that is missing, damaged, of another version or under another key is begun
    /// anew.
    pub fn open(folder: &Path, key: &[u8; 32]) -> Result<Index, IndexError> {
        Index::open_as_it_is(folder, key).or_else(|why| {
            tracing::warn!(%why, folder = %folder.display(), "a search index is begun anew");
            Index::begin(folder, key)
        })
    }

    /// Begins an empty index in that folder, whatever is there.
    pub fn begin(folder: &Path, key: &[u8; 32]) -> Result<Index, IndexError> {
        match fs::remove_dir_all(folder) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why.into()),
            _ => Index::open_as_it_is(folder, key),
        }
    }

    fn open_as_it_is(folder: &Path, key: &[u8; 32]) -> Result<Index, IndexError> {
        let folder = Folder::new(folder, key)?;
        let (fields, schema) = Fields::new();
        // Says so where the schema is another.
        let index = tantivy::Index::open_or_create(folder, schema)?;
        index.tokenizers().register(WORDS, analyzer());
        let position = index.load_metas()?.payload.map(|payload| position_in(&payload)).transpose()?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Index { index, fields, reader, writing: Mutex::new(Writing { writer: None, position }) })
    }

    /// The position that was reached with the last commit; none if nothing was committed yet.
    pub fn position(&self) -> Option<Position> {
        self.writing().position
    }

    /// Puts a message into the place of what was known of it.
    pub fn put(&self, document: &IndexedMessage) -> Result<(), IndexError> {
        let mut writing = self.writing();
        let writer = writing.writer(&self.index)?;
        writer.delete_term(self.fields.key(document.seq));
        writer.add_document(self.fields.document(document))?;
        Ok(())
    }

    /// Removes a message. Its words leave the files with [`Index::cleanse`], or sooner.
    pub fn remove(&self, seq: Seq) -> Result<(), IndexError> {
        self.writing().writer(&self.index)?.delete_term(self.fields.key(seq));
        Ok(())
    }

    /// Makes everything since the last commit durable and visible, together with the position it goes up to.
    pub fn commit(&self, position: Position) -> Result<(), IndexError> {
        let mut writing = self.writing();
        let mut prepared = writing.writer(&self.index)?.prepare_commit()?;
        prepared.set_payload(&format!("{FORMAT} {position}"));
        prepared.commit()?;
        writing.position = Some(position);
        self.reader.reload()?;
        Ok(())
    }

    /// Ends the writer's threads and gives back its memory. What was not committed is lost.
    pub fn rest(&self) -> Result<(), IndexError> {
        match self.writing().writer.take() {
            Some(writer) => Ok(writer.wait_merging_threads()?),
            None => Ok(()),
        }
    }

    /// Whether the files still have words of messages that were removed or replaced.
    pub fn has_remains(&self) -> Result<bool, IndexError> {
        Ok(self.index.searchable_segment_metas()?.iter().any(|segment| segment.num_deleted_docs() > 0))
    }

    /// Writes anew whatever has remains, so that no file has words of removed messages. What was not committed is lost.
    pub fn cleanse(&self) -> Result<(), IndexError> {
        // Merges under way end first: a segment is in one merge at a time.
        self.rest()?;
        let mut writing = self.writing();
        let writer = writing.writer(&self.index)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for segment in self.index.searchable_segment_metas()? {
            if segment.num_deleted_docs() > 0 {
                writer.merge(&[segment.id()]).wait()?;
            }
        }
        // The reader lets go of the old files before they are collected.
        self.reader.reload()?;
        writer.garbage_collect_files().wait()?;
        drop(writing);
        self.rest()
    }

    /// The messages that fit best, after the first so many.
    pub fn search(&self, query: &IndexQuery, most: usize, skip: usize) -> Result<Vec<Hit>, IndexError> {
        let asked = ParsedQuery::new(query)?;
        match skip.saturating_add(most) {
            reach if reach > REACH_MAX => Err(BadQuery::Far.into()),
            _ if most == 0 => Ok(Vec::new()),
            _ => Ok(asked.hits(&self.reader.searcher(), &self.fields, most, skip)?),
        }
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writing {
    fn writer(&mut self, index: &tantivy::Index) -> Result<&mut IndexWriter, IndexError> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let options = IndexWriterOptions::builder()
                    .num_worker_threads(1)
                    .num_merge_threads(1)
                    .memory_budget_per_thread(WRITER_BYTES_MAX)
                    .build();
                let writer = index.writer_with_options(options)?;
                let mut policy = LogMergePolicy::default();
                policy.set_del_docs_ratio_before_merge(REMOVED_SHARE_MAX);
                writer.set_merge_policy(Box::new(policy));
                writer
            }
        };
        Ok(self.writer.insert(writer))
    }
}

fn position_in(payload: &str) -> Result<Position, IndexError> {
    let written = payload.split_once(' ').filter(|(format, _)| *format == FORMAT);
    let position = written.and_then(|(_, position)| position.parse().ok());
    position.ok_or_else(|| IndexError::Damaged("it is of another version".to_owned()))
}

#[cfg(test)]
mod tests;
