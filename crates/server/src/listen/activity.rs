//! How long a connection may stand still.
//!
//! Three things can stand still: a client that opened a connection and does not ask, a socket that takes no more bytes,
//! and a stream of HTTP/2 whose client leaves no window while its socket goes on. Nothing here reads a clock: a
//! connection is looked at every so often, and what stood still at two looks in a row ends it.

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use queries::sync::lock;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// With fewer bytes than this it is not even known which HTTP a client speaks.
const PREFACE_BYTES: usize = 24;
/// What an answer gives at a time.
const PIECE_BYTES_MAX: usize = 64 * 1024;

/// How one connection moves.
#[derive(Debug, Default)]
pub(super) struct ConnectionActivity {
    /// How often it was looked at.
    looks: AtomicU32,
    heard_bytes: AtomicUsize,
    has_request: AtomicBool,
    /// The tick after which the socket took nothing more, plus one; zero while it takes.
    stuck_since: AtomicU32,
    /// Answers of which a part was given and the next was not asked for yet, each with the tick before that.
    given: Mutex<Vec<(u32, u32)>>,
    answers: AtomicU32,
}

impl ConnectionActivity {
    /// A request has arrived.
    pub(super) fn note_request(&self) {
        self.has_request.store(true, Ordering::Relaxed);
    }

    /// Comes back when the connection stood still for too long, with the reason.
    pub(super) async fn stalls(&self, header_timeout: Duration, write_stall_timeout: Duration) -> &'static str {
        tokio::time::sleep(header_timeout).await;
        if !self.has_request.load(Ordering::Relaxed) && self.heard_bytes.load(Ordering::Relaxed) < PREFACE_BYTES {
            return "the client sent no request";
        }
        loop {
            tokio::time::sleep(write_stall_timeout).await;
            if self.stood_still() {
                return "the client reads nothing";
            }
        }
    }

    /// Looks once, and says whether something stood still since before the last tick.
    fn stood_still(&self) -> bool {
        let tick = self.looks.fetch_add(1, Ordering::Relaxed);
        let stuck_since = self.stuck_since.load(Ordering::Relaxed);
        let given = lock(&self.given);
        (stuck_since > 0 && stuck_since <= tick) || given.iter().any(|(_, since)| *since < tick)
    }

    fn wrote<T>(&self, polled: Poll<T>) -> Poll<T> {
        if polled.is_ready() {
            self.stuck_since.store(0, Ordering::Relaxed);
        } else if self.stuck_since.load(Ordering::Relaxed) == 0 {
            self.stuck_since.store(self.looks.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        }
        polled
    }

    fn gave(&self, answer: u32) {
        let tick = self.looks.load(Ordering::Relaxed);
        lock(&self.given).push((answer, tick));
    }

    fn took(&self, answer: u32) {
        lock(&self.given).retain(|(other, _)| *other != answer);
    }
}

/// A socket whose reads and writes are noted.
#[derive(Debug)]
pub(super) struct ActivitySocket {
    pub(super) stream: TcpStream,
    pub(super) activity: Arc<ConnectionActivity>,
}

impl AsyncRead for ActivitySocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.activity.heard_bytes.fetch_add(buf.filled().len() - before, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for ActivitySocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.activity.wrote(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.activity.wrote(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The body of an answer; what the client reads of it is noted.
///
/// What was given is known to be taken when more is asked for. So an answer that has given something never says that
/// this was all: it waits to be asked. It gives no more at a time than even a slow client takes within its timeout.
pub(super) struct ActivityBody {
    body: Body,
    /// What the body gave and was not passed on yet.
    rest: Bytes,
    activity: Arc<ConnectionActivity>,
    number: u32,
    has_given: bool,
}

impl ActivityBody {
    pub(super) fn new(body: Body, activity: Arc<ConnectionActivity>) -> ActivityBody {
        let number = activity.answers.fetch_add(1, Ordering::Relaxed);
        ActivityBody { body, rest: Bytes::new(), activity, number, has_given: false }
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return Poll::Ready(other),
            }
        }
        let length = self.rest.len().min(PIECE_BYTES_MAX);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }
}

impl HttpBody for ActivityBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if std::mem::take(&mut self.has_given) {
            self.activity.took(self.number);
        }
        let polled = self.poll_body(cx);
        if let Poll::Ready(Some(Ok(_))) = &polled {
            self.has_given = true;
            self.activity.gave(self.number);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        !self.has_given && self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (mut hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let (lower, upper) = (hint.lower() + rest, hint.upper().map(|upper| upper + rest));
        if let Some(upper) = upper {
            hint.set_upper(upper);
        }
        hint.set_lower(lower);
        hint
    }
}

impl Drop for ActivityBody {
    fn drop(&mut self) {
        self.activity.took(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_between_two_looks_did_not_stand_still() {
        let activity = ConnectionActivity::default();
        assert!(!activity.stood_still());
        let _ = activity.wrote(Poll::<()>::Pending);
        activity.gave(1);
        assert!(!activity.stood_still());
        let _ = activity.wrote(Poll::Ready(()));
        activity.took(1);
        let _ = activity.wrote(Poll::<()>::Pending);
        activity.gave(1);
        assert!(!activity.stood_still());
        let _ = activity.wrote(Poll::<()>::Pending);
        assert!(activity.stood_still());
    }

    #[test]
    fn one_answer_that_nobody_takes_is_enough() {
        let activity = ConnectionActivity::default();
        activity.gave(1);
        assert!(!activity.stood_still());
        activity.gave(2);
        activity.took(2);
        assert!(activity.stood_still());
        activity.took(1);
        assert!(!activity.stood_still());
    }
}
