//! The search index of one space: opened or recreated, updated, committed with its journal position, and searched.

use crate::errors::{BadQuery, IndexError, REACH_MAX};
use crate::query::{Hit, IndexQuery, ParsedQuery};
use crate::schema::{Fields, IndexedMessage};
use crate::sealed_directory::SealedDirectory;
use crate::tokenizer::{TOKENIZER_NAME, analyzer};
use model::{Position, Seq};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::{IndexReader, IndexWriter, ReloadPolicy};

/// Written with every commit. It changes with the tokenizer or the schema; an index of another format is recreated.
const FORMAT: &str = "1";
/// The memory budget of the writer before it writes a segment.
const WRITER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// A segment with a larger share of removed messages is rewritten by the merge policy.
const REMOVED_SHARE_MAX: f32 = 0.3;

/// The index of one space. Searches and one writer run concurrently.
pub struct Index {
    index: tantivy::Index,
    fields: Fields,
    reader: IndexReader,
    writer_state: Mutex<WriterState>,
}

struct WriterState {
    /// `None` while nothing is written, because it has its own threads and memory.
    writer: Option<IndexWriter>,
    position: Option<Position>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Index({:?})", self.index.directory())
    }
}

impl Index {
    /// Opens the index in that folder. If it is missing, damaged, or of another version or key, an empty one is created.
    pub fn open(folder: &Path, key: &[u8; 32]) -> Result<Index, IndexError> {
        Index::open_existing_or_new(folder, key).or_else(|why| {
            tracing::warn!(%why, folder = %folder.display(), "a search index cannot be used and is recreated");
            Index::recreate(folder, key)
        })
    }

    /// Deletes the folder and creates an empty index in it.
    pub fn recreate(folder: &Path, key: &[u8; 32]) -> Result<Index, IndexError> {
        match fs::remove_dir_all(folder) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why.into()),
            _ => Index::open_existing_or_new(folder, key),
        }
    }

    fn open_existing_or_new(folder: &Path, key: &[u8; 32]) -> Result<Index, IndexError> {
        let folder = SealedDirectory::new(folder, key)?;
        let (fields, schema) = Fields::new();
        // Fails if the schema of the existing index differs.
        let index = tantivy::Index::open_or_create(folder, schema)?;
        index.tokenizers().register(TOKENIZER_NAME, analyzer());
        let position = index.load_metas()?.payload.map(|payload| parse_payload(&payload)).transpose()?;
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Index { index, fields, reader, writer_state: Mutex::new(WriterState { writer: None, position }) })
    }

    /// The journal position of the last commit.
    pub fn position(&self) -> Option<Position> {
        self.lock_writer().position
    }

    /// Adds a message, or replaces it.
    pub fn put(&self, message: &IndexedMessage) -> Result<(), IndexError> {
        let mut writing = self.lock_writer();
        let writer = writing.writer(&self.index)?;
        writer.delete_term(self.fields.seq_term(message.seq));
        writer.add_document(self.fields.to_document(message))?;
        Ok(())
    }

    /// Removes a message. Its words may stay in the files until [`Index::purge_removed`].
    pub fn remove(&self, seq: Seq) -> Result<(), IndexError> {
        self.lock_writer().writer(&self.index)?.delete_term(self.fields.seq_term(seq));
        Ok(())
    }

    /// Makes everything since the last commit durable and visible, together with the position it goes up to.
    pub fn commit(&self, position: Position) -> Result<(), IndexError> {
        let mut writing = self.lock_writer();
        let mut prepared = writing.writer(&self.index)?.prepare_commit()?;
        prepared.set_payload(&format!("{FORMAT} {position}"));
        prepared.commit()?;
        writing.position = Some(position);
        self.reader.reload()?;
        Ok(())
    }

    /// Ends the threads of the writer and frees its memory. Uncommitted changes are lost.
    pub fn release_writer(&self) -> Result<(), IndexError> {
        match self.lock_writer().writer.take() {
            Some(writer) => Ok(writer.wait_merging_threads()?),
            None => Ok(()),
        }
    }

    /// Whether the files still contain words of removed or replaced messages.
    pub fn has_removed_words(&self) -> Result<bool, IndexError> {
        Ok(self.index.searchable_segment_metas()?.iter().any(|segment| segment.num_deleted_docs() > 0))
    }

    /// Rewrites segments so that no file contains words of removed messages. Uncommitted changes are lost.
    pub fn purge_removed(&self) -> Result<(), IndexError> {
        // Running merges end first, because a segment can be in one merge only.
        self.release_writer()?;
        let mut writing = self.lock_writer();
        let writer = writing.writer(&self.index)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        for segment in self.index.searchable_segment_metas()? {
            if segment.num_deleted_docs() > 0 {
                writer.merge(&[segment.id()]).wait()?;
            }
        }
        // The reader releases the old files before they are deleted.
        self.reader.reload()?;
        writer.garbage_collect_files().wait()?;
        drop(writing);
        self.release_writer()
    }

    /// The best hits, without the first `skip`.
    pub fn search(&self, query: &IndexQuery, limit: usize, skip: usize) -> Result<Vec<Hit>, IndexError> {
        let parsed = ParsedQuery::new(query)?;
        match skip.saturating_add(limit) {
            reach if reach > REACH_MAX => Err(BadQuery::Far.into()),
            _ if limit == 0 => Ok(Vec::new()),
            _ => Ok(parsed.find_hits(&self.reader.searcher(), &self.fields, limit, skip)?),
        }
    }

    fn lock_writer(&self) -> MutexGuard<'_, WriterState> {
        self.writer_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriterState {
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

fn parse_payload(payload: &str) -> Result<Position, IndexError> {
    let written = payload.split_once(' ').filter(|(format, _)| *format == FORMAT);
    let position = written.and_then(|(_, position)| position.parse().ok());
    position.ok_or_else(|| IndexError::Damaged("it has another format version".to_owned()))
}

#[cfg(test)]
mod tests;
