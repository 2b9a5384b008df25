//! How the system gives this process its memory.

/// Asks for memory in small pages.
///
/// Every connection has two buffers of eight KiB, of which it touches a few hundred bytes. In huge pages all of it counts
/// as used.
pub(crate) fn in_small_pages() {
    #[cfg(target_os = "linux")]
    if let Err(why) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%why, "memory comes as the system likes");
    }
}
