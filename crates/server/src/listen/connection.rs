//! One connection: which HTTP it speaks, under TLS or in the clear, and its limits.

use super::activity::{ActivityBody, ActivitySocket, ConnectionActivity};
use super::heads::{HeadBytes, WatchedStream};
use crate::options::Limits;
use crate::tls::Tls;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::response::IntoResponse as _;
use http::header::CONNECTION;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tower::{ServiceExt as _, service_fn};

/// What a client that speaks HTTP/2 says first, in one piece; nobody else does.
const HTTP2_BEGINS: &[u8] = b"PRI";
/// The greatest head of a request.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// The most headers of a request.
const HEADERS_MAX: usize = 100;
/// The most requests at the same time on a connection of HTTP/2.
const STREAMS_PER_CONNECTION_MAX: u32 = 200;
/// A client that takes back more requests than this before they are looked at only wants to make work.
const RESETS_WAITING_MAX: usize = 20;
/// A client that breaks the protocol on more streams than this is told to go.
const BROKEN_STREAMS_MAX: usize = 256;
/// What an answer of HTTP/2 may hold back for a client that does not take it.
const SEND_BYTES_MAX: usize = 64 * 1024;
/// A connection of HTTP/2 that was quiet for so long is asked whether it lives, and must say so within the second time.
const PING_SECONDS: (u64, u64) = (30, 20);
/// What HTTP/2 is called in a handshake.
const HTTP2_NAME: &[u8] = b"h2";

/// Why a connection ended.
type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// How connections are served.
pub(super) struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Protocols {
    pub(super) fn new(limits: &Limits) -> Arc<Protocols> {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_timeout)
            .max_headers(HEADERS_MAX)
            .max_header_size(HEAD_BYTES_MAX)
            .max_buf_size(HEAD_BYTES_MAX);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        let (quiet, answered) = PING_SECONDS;
        http2
            .timer(TokioTimer::new())
            .max_header_list_size(HEAD_BYTES_MAX as u32)
            .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
            .max_pending_accept_reset_streams(RESETS_WAITING_MAX)
            .max_local_error_reset_streams(BROKEN_STREAMS_MAX)
            .max_send_buf_size(SEND_BYTES_MAX)
            .keep_alive_interval(Duration::from_secs(quiet))
            .keep_alive_timeout(Duration::from_secs(answered));
        Arc::new(Protocols { http1, http2 })
    }
}

/// A connection that was taken.
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) activity: Arc<ConnectionActivity>,
    pub(super) router: Router,
}

impl Connection {
    /// Serves until the connection ends. What is under way when all have to end is still answered.
    pub(super) async fn serve(
        self,
        protocols: &Protocols,
        tls: Option<&Tls>,
        mut ending: watch::Receiver<()>,
    ) -> Ended {
        let Connection { stream, peer, activity, router } = self;
        let _ = stream.set_nodelay(true);
        // Looked at and left where it is: the first read then takes the whole head, into a buffer that never grows.
        let mut first = [0; HTTP2_BEGINS.len()];
        let length = tokio::select! {
            peeked = stream.peek(&mut first) => peeked.unwrap_or(0),
            _ = ending.changed() => 0,
        };
        if length == 0 {
            return Ok(());
        }
        let socket = ActivitySocket { stream, activity: activity.clone() };
        let exchange = Exchange { protocols, peer, activity, router, ending };
        match tls {
            None => exchange.run(socket, &first[..length] == HTTP2_BEGINS).await,
            Some(tls) => {
                let stream = tls.shake_hands(socket).await?;
                let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2_NAME);
                exchange.run(stream, is_http2).await
            }
        }
    }
}

/// What is said on a connection once it is known how.
struct Exchange<'a> {
    protocols: &'a Protocols,
    peer: SocketAddr,
    activity: Arc<ConnectionActivity>,
    router: Router,
    ending: watch::Receiver<()>,
}

impl Exchange<'_> {
    async fn run<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(self, stream: S, is_http2: bool) -> Ended {
        let Exchange { protocols, peer, activity, router, mut ending } = self;
        // The heads of HTTP/2 cannot be ambiguous in these ways.
        let head = HeadBytes::new(if is_http2 { 0 } else { HEAD_BYTES_MAX });
        let stream = TokioIo::new(WatchedStream { stream, head: head.clone() });
        let service = service_fn(move |request: http::Request<Incoming>| {
            activity.note_request();
            let (activity, head) = (activity.clone(), head.clone());
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            let checked = head.check(&request);
            let answer = router.clone().oneshot(request);
            async move {
                let answer = match checked {
                    Ok(()) => answer.await,
                    Err(problem) => Ok(([(CONNECTION, "close")], problem).into_response()),
                };
                head.begin();
                answer.map(|answer| answer.map(|body| ActivityBody::new(body, activity)))
            }
        });
        let service = TowerToHyperService::new(service);
        if is_http2 {
            let mut connection = Box::pin(protocols.http2.serve_connection(stream, service));
            tokio::select! {
                ended = &mut connection => return Ok(ended?),
                _ = ending.changed() => connection.as_mut().graceful_shutdown(),
            }
            return Ok(connection.await?);
        }
        let mut connection = pin!(protocols.http1.serve_connection(stream, service).with_upgrades());
        tokio::select! {
            ended = &mut connection => return Ok(ended?),
            _ = ending.changed() => connection.as_mut().graceful_shutdown(),
        }
        Ok(connection.await?)
    }
}
