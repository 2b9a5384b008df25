//! The listener: connections in, each with its own limits, under TLS if there is a certificate; an orderly end.

mod activity;
mod connection;
mod heads;
mod limiter;

use self::connection::{Connection, Protocols};
use self::limiter::ConnectionLimiter;
use crate::app::App;
use crate::background::{BackgroundTask, OnEnd, Supervisor};
use crate::live_feed::LiveFeed;
use crate::load;
use crate::metrics;
use crate::options::Limits;
use crate::request_metrics::fold_samples;
use crate::routes::{Route, RouteTable};
use crate::state::{ServerState, SharedState};
use crate::tls::{self, Tls};
use axum::Router;
use engine::access::Action;
use engine::reads::StoreResult;
use futures_util::FutureExt as _;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// Connections to a listener that serves metrics only.
const METRICS_CONNECTIONS_MAX: usize = 64;
/// How many connections may wait to be accepted.
const CONNECTIONS_QUEUED_MAX: u32 = 1024;
/// How long connections may take to end when the node stops.
const END_SECONDS: u64 = 5;

/// Why the server does not listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {why}")]
pub struct ListenError {
    pub address: SocketAddr,
    pub why: std::io::Error,
}

/// An address that was taken, before anything is served there.
#[derive(Debug)]
pub struct Listener {
    socket: TcpSocket,
    address: SocketAddr,
}

impl Listener {
    /// Takes an address, if nobody listens there.
    pub fn bind(address: SocketAddr) -> Result<Listener, ListenError> {
        let bind = || {
            let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            Ok(Listener { socket, address })
        };
        bind().map_err(|why| ListenError { address, why })
    }
}

impl Listener {
    /// The address with the port that was taken.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }
}

/// A server that listens.
#[derive(Debug)]
pub struct RunningServer {
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl RunningServer {
    /// Whether it has ended by itself, because a task that it cannot do without did. The log says which.
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Stops in order: no new connections, streams end, requests under way are answered.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// Listens on an address, and serves an application there with its background tasks.
pub async fn serve(app: App, address: SocketAddr) -> Result<RunningServer, ListenError> {
    serve_on(app, Listener::bind(address)?).await
}

/// Serves an application with its background tasks on an address that was taken.
pub async fn serve_on(app: App, listener: Listener) -> Result<RunningServer, ListenError> {
    let router = app.router();
    let App { state, tasks, .. } = app;
    let feed = LiveFeed::new(state.node.clone(), state.hub.clone());
    listen(listener, async move |listener, stopped| {
        let mut supervisor = Supervisor::start(own_tasks(&state, feed).into_iter().chain(tasks).collect());
        let (tls, limiter) = (state.options.tls.clone(), ConnectionLimiter::new(&state.options));
        let acceptor = Acceptor { router, tls, limits: state.options.limits, limiter };
        let stopped = async {
            tokio::select! {
                _ = stopped => {}
                () = supervisor.vital_task_ended() => {}
            }
        };
        let connections = acceptor.accept(listener, stopped).await;
        supervisor.stop().await;
        state.backups.stop();
        state.hub.close();
        end(connections).await;
    })
    .await
}

/// What the server itself does beside the requests.
fn own_tasks(state: &Arc<ServerState>, feed: StoreResult<LiveFeed>) -> Vec<BackgroundTask> {
    let commits = state.commits();
    let feed = async move {
        match feed {
            Ok(feed) => feed.run(commits).await,
            Err(why) => tracing::error!(%why, "the journal could not be read"),
        }
    };
    let webhooks = state.webhook_dispatcher.clone().run(state.commits());
    let metrics = fold_samples(state.request_metrics.clone());
    let mut tasks = vec![
        BackgroundTask::new("live feed", OnEnd::StopServer, feed),
        BackgroundTask::new("webhooks", OnEnd::StopServer, webhooks),
        BackgroundTask::new("metrics", OnEnd::GoOn, metrics),
        BackgroundTask::new("load", OnEnd::GoOn, load::measure(state.load.clone(), state.node.clone())),
    ];
    if state.backups.is_scheduled() {
        let backups = state.backups.clone().run_schedule();
        tasks.push(BackgroundTask::new("scheduled backups", OnEnd::StopServer, backups));
    }
    if let Some(tls) = state.options.tls.clone() {
        tasks.push(BackgroundTask::new("certificate", OnEnd::GoOn, tls::keep_fresh(tls)));
    }
    tasks
}

/// Serves metrics to whoever asks, without a key, on an address that was taken.
pub async fn serve_metrics_on(state: Arc<ServerState>, listener: Listener) -> Result<RunningServer, ListenError> {
    let router = metrics_router(&state);
    listen(listener, async move |listener, stopped| {
        let limiter = ConnectionLimiter::of(METRICS_CONNECTIONS_MAX);
        let acceptor = Acceptor { router, tls: None, limits: state.options.limits, limiter };
        end(acceptor.accept(listener, stopped.map(drop)).await).await;
    })
    .await
}

/// The router of a listener that serves metrics and nothing else.
pub fn metrics_router(state: &Arc<ServerState>) -> Router {
    // Whoever reaches that listener may read it: nothing asks the rule.
    let (router, _) = RouteTable::build(vec![Route::get("/metrics", Action::Operate, metrics::scrape)]);
    router.with_state(SharedState(state.clone()))
}

async fn listen<F: Future<Output = ()> + Send + 'static>(
    Listener { socket, address }: Listener,
    serve: impl FnOnce(TcpListener, oneshot::Receiver<()>) -> F,
) -> Result<RunningServer, ListenError> {
    let failed = |why| ListenError { address, why };
    let listener = socket.listen(CONNECTIONS_QUEUED_MAX).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(serve(listener, stopped));
    Ok(RunningServer { address, stop, task })
}

/// Serves these bytes to whatever is asked, with nothing in the way: what benchmarks compare with.
pub async fn serve_bare(address: SocketAddr, page: bytes::Bytes) -> Result<RunningServer, ListenError> {
    let json = [(http::header::CONTENT_TYPE, "application/json")];
    let router = Router::new().fallback(move || async move { (json, page.clone()) });
    listen(Listener::bind(address)?, async move |listener, stopped| {
        let limiter = ConnectionLimiter::of(usize::MAX);
        let acceptor = Acceptor { router, tls: None, limits: Limits::default(), limiter };
        end(acceptor.accept(listener, stopped.map(drop)).await).await;
    })
    .await
}

/// Tells every connection to end, and waits for them for a while.
async fn end(connections: watch::Sender<()>) {
    let _ = connections.send(());
    let _ = tokio::time::timeout(Duration::from_secs(END_SECONDS), connections.closed()).await;
}

/// What connections are accepted with.
struct Acceptor {
    router: Router,
    /// Without it the connections are plain HTTP.
    tls: Option<Arc<Tls>>,
    limits: Limits,
    limiter: Arc<ConnectionLimiter>,
}

impl Acceptor {
    /// Accepts connections until it is told to stop; those under way are then left to end.
    async fn accept(&self, listener: TcpListener, stopped: impl Future<Output = ()>) -> watch::Sender<()> {
        let connections = watch::Sender::new(());
        let protocols = Protocols::new(&self.limits);
        let mut stopped = pin!(stopped);
        loop {
            let connection = tokio::select! {
                () = &mut stopped => return connections,
                connection = listener.accept() => connection,
            };
            match connection {
                Ok((stream, peer)) => self.serve(stream, peer, &protocols, connections.subscribe()),
                Err(why) => {
                    tracing::warn!(%why, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// Serves one connection, if there is room for it.
    fn serve(&self, stream: TcpStream, peer: SocketAddr, protocols: &Arc<Protocols>, ending: watch::Receiver<()>) {
        // Without a permit the connection is closed at once: the client sees it and may come again.
        let Some(permit) = self.limiter.enter(peer.ip()) else {
            tracing::debug!(%peer, "a connection was refused: there are too many");
            return;
        };
        let connection = Connection { stream, peer, activity: Arc::default(), router: self.router.clone() };
        let (protocols, tls, activity) = (protocols.clone(), self.tls.clone(), connection.activity.clone());
        let Limits { header_timeout, write_stall_timeout, .. } = self.limits;
        tokio::spawn(async move {
            tokio::select! {
                biased;
                ended = connection.serve(&protocols, tls.as_deref(), ending) => if let Err(why) = ended {
                    tracing::debug!(%why, "a connection ended");
                },
                why = activity.stalls(header_timeout, write_stall_timeout) => {
                    tracing::debug!(%peer, why, "a connection was closed");
                }
            }
            drop(permit);
        });
    }
}
