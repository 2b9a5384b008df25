//! Transparent huge pages.

/// Every connection has two buffers of 8 KiB and touches a few hundred bytes of each. With huge pages the whole buffers
/// count as resident memory.
pub(crate) fn disable_huge_pages() {
    #[cfg(target_os = "linux")]
    if let Err(why) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%why, "could not disable huge pages");
    }
}
