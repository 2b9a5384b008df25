//! The listener: connections in, each with its own limits, under TLS if there is a certificate; an orderly end.

use crate::routes::{metrics_router, router};
use crate::state::House;
use crate::tls::{self, Tls};
use crate::{backups, live, metrics, webhooks};
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tower::{ServiceExt as _, service_fn};

/// How long the head of a request may take to arrive.
const HEAD_SECONDS: u64 = 10;
/// The greatest head of a request.
const HEAD_BYTES_MAX: usize = 32 * 1024;
const STREAMS_PER_CONNECTION_MAX: u32 = 200;
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
    listen(address, async move |listener, stopped| {
        let hub = tokio::spawn(live::run(Arc::downgrade(&house), house.position.clone()));
        let tellers = tokio::spawn(webhooks::run(Arc::downgrade(&house), house.position.clone()));
        let upkeep = tokio::spawn(metrics::upkeep(Arc::downgrade(&house)));
        let scheduled = tokio::spawn(backups::scheduled::run(Arc::downgrade(&house)));
        let keeper = house.options.tls.clone().map(|tls| tokio::spawn(tls::keep_fresh(tls)));
        let welcome =
            Welcome { router, tls: house.options.tls.clone(), connections_max: house.options.limits.connections_max };
        let graceful = accept(&welcome, listener, stopped).await;
        for task in [hub, upkeep, tellers, scheduled].into_iter().chain(keeper) {
            task.abort();
        }
        house.backups.stop();
        house.hub.close();
        end(graceful).await;
    })
    .await
}

/// Listens on an address, and serves metrics there to whoever asks, without a key.
pub async fn serve_metrics(house: Arc<House>, address: SocketAddr) -> Result<Running, CannotListen> {
    let router = metrics_router(&house);
    listen(address, async move |listener, stopped| {
        let welcome = Welcome { router, tls: None, connections_max: METRICS_CONNECTIONS_MAX };
        end(accept(&welcome, listener, stopped).await).await;
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
        let welcome = Welcome { router, tls: None, connections_max: Semaphore::MAX_PERMITS };
        end(accept(&welcome, listener, stopped).await).await;
    })
    .await
}

async fn end(graceful: GracefulShutdown) {
    let _ = tokio::time::timeout(Duration::from_secs(END_SECONDS), graceful.shutdown()).await;
}

/// What connections meet.
struct Welcome {
    router: Router,
    /// Without it they speak in the clear.
    tls: Option<Arc<Tls>>,
    connections_max: usize,
}

/// Takes connections until it is told to stop; those under way are then left to end.
async fn accept(welcome: &Welcome, listener: TcpListener, mut stopped: oneshot::Receiver<()>) -> GracefulShutdown {
    let graceful = GracefulShutdown::new();
    let room = Arc::new(Semaphore::new(welcome.connections_max));
    loop {
        let connection = tokio::select! {
            _ = &mut stopped => return graceful,
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
        let Ok(permit) = room.clone().try_acquire_owned() else { continue };
        let (router, tls, watcher) = (welcome.router.clone(), welcome.tls.clone(), graceful.watcher());
        tokio::spawn(async move {
            if let Err(why) = converse(router, tls, stream, peer, watcher).await {
                tracing::debug!(%why, "a connection ended");
            }
            drop(permit);
        });
    }
}

/// Everything on one connection, beginning with the handshake, so that a slow one keeps nobody else waiting.
async fn converse(
    router: Router,
    tls: Option<Arc<Tls>>,
    stream: TcpStream,
    peer: SocketAddr,
    watcher: Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let _ = stream.set_nodelay(true);
    match tls {
        Some(tls) => watcher.watch(connect(router, tls.shake_hands(stream).await?, peer)).await,
        None => watcher.watch(connect(router, stream, peer)).await,
    }
}

fn connect<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    router: Router,
    stream: S,
    peer: SocketAddr,
) -> impl hyper_util::server::graceful::GracefulConnection<Error = Box<dyn std::error::Error + Send + Sync>> + use<S> {
    let service = service_fn(move |request: http::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(HEAD_SECONDS))
        .max_buf_size(HEAD_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_BYTES_MAX as u32)
        .max_concurrent_streams(STREAMS_PER_CONNECTION_MAX)
        .keep_alive_interval(Duration::from_secs(30));
    builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).into_owned()
}
