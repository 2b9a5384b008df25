//! Heads of HTTP/1 that say two things at once. Servers and proxies disagree about them, which is how requests are
//! smuggled past a proxy: no `Host` or two of them, or a length beside chunks. They are refused, and the connection ends.
//!
//! The HTTP library reads a request with both as chunked, and does not say that there was a length. So the bytes of a head
//! are kept until it was read. Of requests that come before the last one was answered the library has the bytes already:
//! there such a length is passed over, and the connection is closed after it all the same.

use crate::problem::Problem;
use http::{HeaderMap, Request, Version, header};
use queries::sync::lock;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What came of the head that is being read; nothing while a request is under way.
#[derive(Clone, Debug)]
pub(super) struct HeadBytes {
    bytes: Arc<Mutex<Option<Vec<u8>>>>,
    bytes_max: usize,
}

impl HeadBytes {
    pub(super) fn new(bytes_max: usize) -> HeadBytes {
        HeadBytes { bytes: Arc::new(Mutex::new(Some(Vec::new()))), bytes_max }
    }

    fn add(&self, read: &[u8]) {
        if let Some(bytes) = &mut *lock(&self.bytes) {
            let room = self.bytes_max.saturating_sub(bytes.len()).min(read.len());
            bytes.extend_from_slice(&read[..room]);
        }
    }

    /// The next head begins.
    pub(super) fn begin(&self) {
        *lock(&self.bytes) = Some(Vec::new());
    }

    /// Whether the head of a request says one thing only.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Problem> {
        let bytes = lock(&self.bytes).take().unwrap_or_default();
        if request.version() >= Version::HTTP_2 {
            return Ok(());
        }
        let hosts = request.headers().get_all(header::HOST).iter().count();
        if hosts > 1 || hosts == 0 && request.version() == Version::HTTP_11 {
            return Err(Problem::bad_request(format!("a request has one Host header, and this one has {hosts}")));
        }
        match is_chunked(request.headers()) && has_length(&bytes) {
            true => Err(Problem::bad_request("a request has a Content-Length or chunks, and this one has both")),
            false => Ok(()),
        }
    }
}

fn is_chunked(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING)
}

/// Whether the first head among these bytes has a length.
fn has_length(bytes: &[u8]) -> bool {
    let name = header::CONTENT_LENGTH.as_str().as_bytes();
    let is_empty = |line: &&[u8]| line.trim_ascii().is_empty();
    // Empty lines before a request are passed over.
    let lines = bytes.split(|byte| *byte == b'\n').skip_while(is_empty).take_while(|line| !is_empty(line));
    let names = lines.map(|line| line.split(|byte| *byte == b':').next().unwrap_or_default());
    names.into_iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// A stream whose heads are kept while they are read.
pub(super) struct WatchedStream<S> {
    pub(super) stream: S,
    pub(super) head: HeadBytes,
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Poll::Ready(Ok(())) = &polled {
            self.head.add(&buffer.filled()[before..]);
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_found_in_the_head_and_not_in_the_body() {
        assert!(has_length(b"POST / HTTP/1.1\r\nhost: a\r\nContent-LENGTH: 3\r\n\r\n"));
        assert!(has_length(b"\r\n\r\nPOST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n"));
        assert!(!has_length(b"POST / HTTP/1.1\r\nx-content-length: 3\r\n\r\ncontent-length: 3\r\n"));
        assert!(!has_length(b"POST / HTTP/1.1\r\nhost: a\r\n"));
    }

    #[test]
    fn no_more_of_a_head_is_kept_than_fits_and_nothing_of_a_body() {
        let head = HeadBytes::new(4);
        head.add(b"abc");
        head.add(b"def");
        assert_eq!(lock(&head.bytes).as_deref(), Some(b"abcd".as_slice()));
        let request = Request::builder().header("host", "a").body(()).expect("a request");
        assert!(head.check(&request).is_ok());
        head.add(b"body");
        assert_eq!(*lock(&head.bytes), None);
        head.begin();
        head.add(b"n");
        assert_eq!(lock(&head.bytes).as_deref(), Some(b"n".as_slice()));
    }
}
