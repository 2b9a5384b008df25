//! The listener: connections in, each with its own limits, under TLS if there is a certificate; an orderly end.

mod connection;
mod patience;
mod room;

use self::connection::{Connection, Protocols};
use crate::listen::room::ConnectionLimiter;
use crate::routes::{metrics_router, router};
use crate::state::{Limits, ServerState};
use crate::tls::{self, Tls};
use crate::{backups, live_feed, metrics, pages, webhooks};
use axum::Router;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Connections to a listener that serves metrics only.
const METRICS_CONNECTIONS_MAX: usize = 64;
/// How long connections may take to end when the node stops.
const END_SECONDS: u64 = 5;

/// Why the server does not listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {why}")]
pub struct ListenError {
    /// Where.
    pub address: SocketAddr,
    /// Why not.
    pub why: std::io::Error,
}

/// A server that listens.
#[derive(Debug)]
pub struct RunningServer {
    /// Where.
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RunningServer {
    /// Stops in order: no new connections, streams end, requests under way are answered.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// Listens on an address, and serves the house there.
pub async fn serve(state: Arc<ServerState>, address: SocketAddr) -> Result<RunningServer, ListenError> {
    let router = router(&state);
    let begin = live_feed::FeedStart::now(&state);
    listen(address, async move |listener, stopped| {
        let hub = tokio::spawn(live_feed::run(Arc::downgrade(&state), state.position.clone(), begin));
        let webhook_dispatcher = tokio::spawn(webhooks::run(Arc::downgrade(&state), state.position.clone()));
        let plots = tokio::spawn(pages::plots::run(Arc::downgrade(&state)));
        let upkeep = tokio::spawn(metrics::upkeep(Arc::downgrade(&state)));
        let scheduled = tokio::spawn(backups::scheduled::run(Arc::downgrade(&state)));
        let keeper = state.options.tls.clone().map(|tls| tokio::spawn(tls::keep_fresh(tls)));
        let (tls, room) = (state.options.tls.clone(), ConnectionLimiter::new(&state.options));
        let welcome = Welcome { router, tls, limits: state.options.limits, room };
        let connections = accept(&welcome, listener, stopped).await;
        for task in [hub, upkeep, webhook_dispatcher, scheduled, plots].into_iter().chain(keeper) {
            task.abort();
        }
        state.backups.stop();
        state.hub.close();
        end(connections).await;
    })
    .await
}

/// Listens on an address, and serves metrics there to whoever asks, without a key.
pub async fn serve_metrics(state: Arc<ServerState>, address: SocketAddr) -> Result<RunningServer, ListenError> {
    let router = metrics_router(&state);
    listen(address, async move |listener, stopped| {
        let room = ConnectionLimiter::of(METRICS_CONNECTIONS_MAX);
        let welcome = Welcome { router, tls: None, limits: state.options.limits, room };
        end(accept(&welcome, listener, stopped).await).await;
    })
    .await
}

async fn listen<F: Future<Output = ()> + Send + 'static>(
    address: SocketAddr,
    serve: impl FnOnce(TcpListener, oneshot::Receiver<()>) -> F,
) -> Result<RunningServer, ListenError> {
    let failed = |why| ListenError { address, why };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(serve(listener, stopped));
    Ok(RunningServer { address, stop, task })
}

/// Serves these bytes to whatever is asked, with nothing in the way: what benchmarks compare with.
pub async fn serve_bare(address: SocketAddr, page: bytes::Bytes) -> Result<RunningServer, ListenError> {
    let json = [(http::header::CONTENT_TYPE, "application/json")];
    let router = Router::new().fallback(move || async move { (json, page.clone()) });
    listen(address, async move |listener, stopped| {
        let welcome = Welcome { router, tls: None, limits: Limits::default(), room: ConnectionLimiter::of(usize::MAX) };
        end(accept(&welcome, listener, stopped).await).await;
    })
    .await
}

/// Tells every connection to end, and waits for them for a while.
async fn end(connections: watch::Sender<()>) {
    let _ = connections.send(());
    let _ = tokio::time::timeout(Duration::from_secs(END_SECONDS), connections.closed()).await;
}

/// What connections meet.
struct Welcome {
    router: Router,
    /// Without it they speak in the clear.
    tls: Option<Arc<Tls>>,
    limits: Limits,
    room: Arc<ConnectionLimiter>,
}

/// Takes connections until it is told to stop; those under way are then left to end.
async fn accept(welcome: &Welcome, listener: TcpListener, mut stopped: oneshot::Receiver<()>) -> watch::Sender<()> {
    let connections = watch::Sender::new(());
    let protocols = Protocols::new(&welcome.limits);
    let (head, taking) = (welcome.limits.header_timeout, welcome.limits.write_stall_timeout);
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
        let Some(place) = welcome.room.enter(peer.ip()) else {
            tracing::debug!(%peer, "there is no room for a connection");
            continue;
        };
        let connection = Connection { stream, peer, pace: Arc::default(), router: welcome.router.clone() };
        let (protocols, tls) = (protocols.clone(), welcome.tls.clone());
        let (ending, pace) = (connections.subscribe(), connection.pace.clone());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                ended = connection.serve(&protocols, tls.as_deref(), ending) => if let Err(why) = ended {
                    tracing::debug!(%why, "a connection ended");
                },
                why = pace.runs_out(head, taking) => tracing::debug!(%peer, why, "a connection was closed"),
            }
            drop(place);
        });
    }
}
