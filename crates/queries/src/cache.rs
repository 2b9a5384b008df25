//! Rendered messages, kept between requests.
//!
//! The same pages are asked for again and again. A message that nobody has edited, answered or reacted to is rendered from
//! one row of the timeline, so what was rendered from these very bytes is still true: nothing has to be invalidated
//! when something is written. Only an id that a client chose may come to belong to an earlier message; it is looked up
//! each time, and so is how the thread is called. Messages of which there is more are rendered anew.
//!
//! What a message is rendered to is up to the caller: each format has a name, and its texts stand beside those of others
//! within one bound.

use model::{Seq, Stamp};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How much is kept, counted in bytes of rows and rendered values.
const BYTES_MAX: u64 = 32 << 20;
/// What an entry takes beside them, about.
const ENTRY_BYTES: u64 = 120;
/// How many messages that may be, about.
const MESSAGES: usize = 50_000;

/// Something that a message was rendered to.
pub trait Rendered: Clone + Send + Sync + 'static {
    /// How many bytes it takes.
    fn bytes(&self) -> usize;
}

impl Rendered for Arc<str> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

/// A message as it was rendered, and from what.
#[derive(Debug)]
pub struct CachedMessage<R> {
    /// Of the snapshot that it was read from: see [`RenderCache::generation`].
    pub generation: u64,
    /// Where it stands.
    pub stamp: Stamp,
    /// The row it was rendered from, with its checksum: whoever finds these bytes again need not compute that.
    pub row: Box<[u8]>,
    /// How its thread was called.
    pub thread: Box<str>,
    /// The id that its author chose, and whether it leads to this message.
    pub chosen: Option<(Box<str>, bool)>,
    pub rendered: R,
    /// The hash of what it was rendered to.
    pub hash: [u8; 16],
}

/// A message, and the name of the format that it was rendered in.
type CacheKey = (Seq, &'static str);

#[derive(Clone)]
struct ByBytes;

impl<R: Rendered> Weighter<CacheKey, Arc<CachedMessage<R>>> for ByBytes {
    fn weight(&self, _: &CacheKey, cached: &Arc<CachedMessage<R>>) -> u64 {
        ENTRY_BYTES + (cached.row.len() + cached.thread.len() + cached.rendered.bytes()) as u64
    }
}

/// Messages that were rendered lately.
pub struct RenderCache<R: Rendered> {
    cache: Cache<CacheKey, Arc<CachedMessage<R>>, ByBytes>,
    /// What was rendered before the last change of it is not used: whoever read an older snapshot may still keep it.
    generation: AtomicU64,
}

impl<R: Rendered> std::fmt::Debug for RenderCache<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RenderCache({} entries)", self.cache.len())
    }
}

impl<R: Rendered> Default for RenderCache<R> {
    fn default() -> RenderCache<R> {
        RenderCache { cache: Cache::with_weighter(MESSAGES, BYTES_MAX, ByBytes), generation: AtomicU64::new(0) }
    }
}

impl<R: Rendered> RenderCache<R> {
    /// What is rendered from a snapshot that is taken from now on belongs to this generation.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// A message in a format, if it was rendered from this row.
    pub fn get(&self, seq: Seq, format: &'static str, stamp: Stamp, row: &[u8]) -> Option<Arc<CachedMessage<R>>> {
        let generation = self.generation();
        let found = self.cache.get(&(seq, format));
        found.filter(|cached| cached.generation == generation && cached.stamp == stamp && *cached.row == *row)
    }

    /// Keeps a message in a format.
    pub fn insert(&self, seq: Seq, format: &'static str, cached: CachedMessage<R>) {
        self.cache.insert((seq, format), Arc::new(cached));
    }

    /// Forgets everything, because what rests can no longer be opened, or somebody has another name.
    pub fn clear(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.cache.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cached(row: &[u8], text: &str) -> CachedMessage<Arc<str>> {
        let (stamp, row, rendered) = (Stamp::FIRST, row.into(), text.into());
        CachedMessage { generation: 0, stamp, row, thread: "t".into(), chosen: None, rendered, hash: [0; 16] }
    }

    #[test]
    fn what_was_rendered_from_another_row_is_not_used() {
        let cache = RenderCache::default();
        cache.insert(Seq(1), "json", cached(b"row", "{}"));
        let get = |seq, format, stamp, row: &[u8]| {
            cache.get(Seq(seq), format, stamp, row).map(|cached| cached.rendered.clone())
        };
        assert_eq!(get(1, "json", Stamp::FIRST, b"row").as_deref(), Some("{}"));
        assert_eq!(get(1, "json", Stamp::FIRST, b"other"), None);
        assert_eq!(get(1, "json", Stamp::LAST, b"row"), None);
        assert_eq!(get(2, "json", Stamp::FIRST, b"row"), None);
        assert_eq!(get(1, "html", Stamp::FIRST, b"row"), None);
        cache.clear();
        assert_eq!(get(1, "json", Stamp::FIRST, b"row"), None);
        cache.insert(Seq(1), "json", cached(b"row", "{}"));
        assert_eq!(get(1, "json", Stamp::FIRST, b"row"), None, "rendered before it was cleared");
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let cache = RenderCache::default();
        for seq in 0..2000 {
            cache.insert(Seq(seq), "json", cached(b"row", &"x".repeat(64 * 1024)));
        }
        assert!(cache.cache.weight() <= BYTES_MAX, "{}", cache.cache.weight());
        assert!(cache.cache.len() > 100);
    }
}
