//! Rendered messages, kept between requests.
//!
//! The same pages are asked for again and again. A message that nobody has edited, answered or reacted to is told by
//! one row of the timeline, so what was rendered from these very bytes is still true: nothing has to be invalidated
//! when something is written. Only an id that a client chose may come to belong to an earlier message; it is looked up
//! each time, and so is how the thread is called. Messages of which there is more are rendered anew.

use model::Seq;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much is kept, counted in bytes of rows and texts.
const BYTES_MAX: u64 = 32 << 20;
/// What an entry takes beside them, about.
const ENTRY_BYTES: u64 = 120;
/// How many messages that may be, about.
const MESSAGES: usize = 50_000;

/// A message as it was rendered.
#[derive(Debug)]
pub(crate) struct RenderedMessage {
    /// Since when: see [`RenderCache::generation`].
    pub(crate) generation: u64,
    /// The row it was rendered from.
    pub(crate) row: Box<[u8]>,
    /// How its thread was called.
    pub(crate) thread: Box<str>,
    /// The id that its author chose, and whether it leads to this message.
    pub(crate) chosen: Option<(Box<str>, bool)>,
    /// Its JSON, if that was asked for.
    pub(crate) json: Option<Arc<str>>,
    /// Its HTML, if that was asked for.
    pub(crate) html: Option<Arc<str>>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Seq, Arc<RenderedMessage>> for Bytes {
    fn weight(&self, _: &Seq, rendered: &Arc<RenderedMessage>) -> u64 {
        let texts: usize = [&rendered.json, &rendered.html].into_iter().flatten().map(|text| text.len()).sum();
        ENTRY_BYTES + (rendered.row.len() + rendered.thread.len() + texts) as u64
    }
}

/// Messages that were rendered lately.
pub(crate) struct RenderCache {
    cache: Cache<Seq, Arc<RenderedMessage>, Bytes>,
    /// What was rendered before the last change of it is not used: whoever read an older snapshot may still keep it.
    generation: AtomicU64,
}

impl Default for RenderCache {
    fn default() -> RenderCache {
        RenderCache { cache: Cache::with_weighter(MESSAGES, BYTES_MAX, Bytes), generation: AtomicU64::new(0) }
    }
}

impl RenderCache {
    /// What is rendered from a snapshot that is taken from now on belongs to this.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// A message, if it was rendered from this row.
    pub(crate) fn get(&self, seq: Seq, row: &[u8]) -> Option<Arc<RenderedMessage>> {
        let generation = self.generation();
        self.cache.get(&seq).filter(|rendered| rendered.generation == generation && *rendered.row == *row)
    }

    /// Keeps a message.
    pub(crate) fn keep(&self, seq: Seq, rendered: RenderedMessage) {
        self.cache.insert(seq, Arc::new(rendered));
    }

    /// Forgets everything, because what rests can no longer be opened, or somebody has another name.
    pub(crate) fn clear(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.cache.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(row: &[u8], json: &str) -> RenderedMessage {
        RenderedMessage {
            generation: 0,
            row: row.into(),
            thread: "t".into(),
            chosen: None,
            json: Some(json.into()),
            html: None,
        }
    }

    #[test]
    fn what_was_rendered_from_another_row_is_not_used() {
        let kept = RenderCache::default();
        kept.keep(Seq(1), rendered(b"row", "{}"));
        assert_eq!(kept.get(Seq(1), b"row").and_then(|rendered| rendered.json.clone()).as_deref(), Some("{}"));
        assert!(kept.get(Seq(1), b"other").is_none());
        assert!(kept.get(Seq(2), b"row").is_none());
        kept.clear();
        assert!(kept.get(Seq(1), b"row").is_none());
        kept.keep(Seq(1), rendered(b"row", "{}"));
        assert!(kept.get(Seq(1), b"row").is_none(), "rendered before it was cleared");
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let kept = RenderCache::default();
        for seq in 0..2000 {
            kept.keep(Seq(seq), rendered(b"row", &"x".repeat(64 * 1024)));
        }
        assert!(kept.cache.weight() <= BYTES_MAX, "{}", kept.cache.weight());
        assert!(kept.cache.len() > 100);
    }
}
