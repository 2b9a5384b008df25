//! The listener: connections in, each with its own limits; an orderly end.

mod patience;
mod room;

use self::patience::{Pace, Paced, PacedBody};
use self::room::Room;
use crate::routes::{metrics_router, router};
use crate::state::{House, Limits};
use crate::{live, metrics, webhooks};
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
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
/// Connections to a listener that serves metrics only.
const METRICS_CONNECTIONS_MAX: usize = 64;
/// How long connections may take to end when the node stops.
const END_SECONDS: u64 = 5;

/// Why the server does not listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {why}")]
pub struct CannotListen {
    /// Where.
    pub address: SocketAddr,
    /// Why not.
    pub why: std::io::Error,
}

/// A server that listens.
#[derive(Debug)]
pub struct Running {
    /// Where.
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    /// Stops in order: no new connections, streams end, requests under way are answered.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// Listens on an address, and serves the house there.
pub async fn serve(house: Arc<House>, address: SocketAddr) -> Result<Running, CannotListen> {
    let router = router(&house);
    let begin = live::Begin::now(&house);
    listen(address, async move |listener, stopped| {
        let hub = tokio::spawn(live::run(Arc::downgrade(&house), house.position.clone(), begin));
        let tellers = tokio::spawn(webhooks::run(Arc::downgrade(&house), house.position.clone()));
        let upkeep = tokio::spawn(metrics::upkeep(Arc::downgrade(&house)));
        let connections = accept(&router, listener, stopped, &house.options.limits, Room::new(&house.options)).await;
        hub.abort();
        upkeep.abort();
        tellers.abort();
        house.hub.close();
        end(connections).await;
    })
    .await
}

/// Listens on an address, and serves metrics there to whoever asks, without a key.
pub async fn serve_metrics(house: Arc<House>, address: SocketAddr) -> Result<Running, CannotListen> {
    let router = metrics_router(&house);
    listen(address, async move |listener, stopped| {
        let room = Room::of(METRICS_CONNECTIONS_MAX);
        end(accept(&router, listener, stopped, &house.options.limits, room).await).await;
    })
    .await
}

async fn listen<F: Future<Output = ()> + Send + 'static>(
    address: SocketAddr,
    serve: impl FnOnce(TcpListener, oneshot::Receiver<()>) -> F,
) -> Result<Running, CannotListen> {
    let failed = |why| CannotListen { address, why };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(serve(listener, stopped));
    Ok(Running { address, stop, task })
}

/// Serves these bytes to whatever is asked, with nothing in the way: what benchmarks compare with.
pub async fn serve_bare(address: SocketAddr, page: bytes::Bytes) -> Result<Running, CannotListen> {
    let json = [(http::header::CONTENT_TYPE, "application/json")];
    let router = Router::new().fallback(move || async move { (json, page.clone()) });
    listen(address, async move |listener, stopped| {
        end(accept(&router, listener, stopped, &Limits::default(), Room::of(usize::MAX)).await).await;
    })
    .await
}

/// Tells every connection to end, and waits for them for a while.
async fn end(connections: watch::Sender<()>) {
    let _ = connections.send(());
    let _ = tokio::time::timeout(Duration::from_secs(END_SECONDS), connections.closed()).await;
}

/// Takes connections until it is told to stop; those under way are then left to end.
async fn accept(
    router: &Router,
    listener: TcpListener,
    mut stopped: oneshot::Receiver<()>,
    limits: &Limits,
    room: Arc<Room>,
) -> watch::Sender<()> {
    let connections = watch::Sender::new(());
    let protocols = Protocols::new(limits);
    let (head, taking) = (limits.head_patience, limits.taking_patience);
    loop {
        let connection = tokio::select! {
            _ = &mut stopped => return connections,
            connection = listener.accept() => connection,
        };
        let (stream, peer) = match connection {
            Ok(accepted) => accepted,
            Err(why) => {
                tracing::warn!(%why, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        // Without room the connection is closed at once: the client sees it and may come again.
        let Some(place) = room.enter(peer.ip()) else {
            tracing::debug!(%peer, "there is no room for a connection");
            continue;
        };
        let connection = Connection { stream, peer, pace: Arc::default(), router: router.clone() };
        let (protocols, ending, pace) = (protocols.clone(), connections.subscribe(), connection.pace.clone());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                ended = connection.serve(&protocols, ending) => if let Err(why) = ended {
                    tracing::debug!(%why, "a connection ended");
                },
                why = pace.runs_out(head, taking) => tracing::debug!(%peer, why, "a connection was closed"),
            }
            drop(place);
        });
    }
}

/// How connections are served.
struct Protocols {
    http1: http1::Builder,
    http2: http2::Builder<TokioExecutor>,
}

impl Protocols {
    fn new(limits: &Limits) -> Arc<Protocols> {
        let mut http1 = http1::Builder::new();
        http1
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head_patience)
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
struct Connection {
    stream: TcpStream,
    peer: SocketAddr,
    pace: Arc<Pace>,
    router: Router,
}

impl Connection {
    /// Serves until the connection ends. What is under way when all have to end is still answered.
    async fn serve(self, protocols: &Protocols, mut ending: watch::Receiver<()>) -> Result<(), hyper::Error> {
        let Connection { stream, peer, pace, router } = self;
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
        let stream = TokioIo::new(Paced { stream, pace: pace.clone() });
        let service = service_fn(move |request: http::Request<Incoming>| {
            pace.asked();
            let pace = pace.clone();
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            let answer = router.clone().oneshot(request);
            async move { answer.await.map(|answer| answer.map(|body| PacedBody::new(body, pace))) }
        });
        let service = TowerToHyperService::new(service);
        if &first[..length] == HTTP2_BEGINS {
            let mut connection = Box::pin(protocols.http2.serve_connection(stream, service));
            tokio::select! {
                ended = &mut connection => return ended,
                _ = ending.changed() => connection.as_mut().graceful_shutdown(),
            }
            return connection.await;
        }
        let mut connection = pin!(protocols.http1.serve_connection(stream, service));
        tokio::select! {
            ended = &mut connection => return ended,
            _ = ending.changed() => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    }
}
