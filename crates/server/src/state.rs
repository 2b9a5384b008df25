//! What all requests share.

use crate::backups::{BackupPlan, Backups};
use crate::door::limits::RateLimiters;
use crate::door::signature::NonceCache;
use crate::live::StreamTickets;
use crate::metrics::RequestMetrics;
use crate::pages::plots::Plots;
use crate::pages::{OperatorLinks, PasswordSlots};
use crate::tls::Tls;
use crate::webhooks::WebhookDispatcher;
use ipnet::IpNet;
use node::Node;
use outbound::OutboundClient;
use queries::cache::RenderCache;
use queries::live::LiveHub;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use store::doors::ApiKey;
use tokio::sync::watch;

/// How often callers may ask, per second, and how many requests at once.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests of one API key.
    pub key_per_second: u32,
    /// Requests of one user through a frontend key or session.
    pub user_per_second: u32,
    /// Requests of one address (IPv6: of one /64) that no backend vouches for.
    pub address_per_second: u32,
    /// Connections at the same time.
    pub connections_max: usize,
    /// Connections of one address (IPv6: of one /64) at the same time; proxies may have as many as they like.
    pub address_connections_max: usize,
    /// How long the head of a request may take to arrive, and a new connection to say anything.
    pub header_timeout: Duration,
    /// How long a connection that has something to take may take nothing; it ends after at most twice as long.
    pub write_stall_timeout: Duration,
    /// Bytes of a request body.
    pub body_bytes_max: usize,
    /// Seconds until a request must have arrived and been answered.
    pub request_seconds: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            key_per_second: 20_000,
            user_per_second: 50,
            address_per_second: 100,
            connections_max: 20_000,
            address_connections_max: 4000,
            header_timeout: Duration::from_secs(10),
            write_stall_timeout: Duration::from_secs(60),
            body_bytes_max: 128 * 1024,
            request_seconds: 30,
        }
    }
}

/// How the server behaves.
#[derive(Clone, Debug, Default)]
pub struct ServerOptions {
    /// Limits.
    pub limits: Limits,
    /// Whether signatures without a date are refused.
    pub dated_signatures_only: bool,
    /// Origins that browsers may call from.
    pub origins: Vec<String>,
    /// Whether webhooks may lead to private addresses.
    pub private_webhooks: bool,
    /// Proxies whose word on addresses is taken.
    pub proxies: Vec<IpNet>,
    /// API keys that the configuration declares, by id. They are never stored.
    pub keys: BTreeMap<[u8; 8], ApiKey>,
    /// What the listener proves itself with; without it, it speaks in the clear.
    pub tls: Option<Arc<Tls>>,
    /// Backups by the clock, if there are any.
    pub backups: Option<BackupPlan>,
}

/// What all requests share.
pub struct ServerState {
    /// Messages that were rendered lately, as JSON and as HTML.
    pub(crate) rendered: RenderCache<Arc<str>>,
    /// Held by whoever checks the whole store: one at a time.
    pub(crate) verifying: Arc<tokio::sync::Mutex<()>>,
    pub(crate) node: Node,
    pub(crate) options: ServerOptions,
    /// The hash of the operator's token.
    pub(crate) operator: [u8; 32],
    pub(crate) nonces: NonceCache,
    pub(crate) rate_limiters: RateLimiters,
    pub(crate) tickets: StreamTickets,
    pub(crate) hub: LiveHub,
    pub(crate) request_metrics: Arc<RequestMetrics>,
    pub(crate) outbound: OutboundClient,
    pub(crate) backups: Backups,
    pub(crate) webhook_dispatcher: Arc<WebhookDispatcher>,
    /// Links by which the operator signs in.
    pub(crate) links: OperatorLinks,
    /// What browsers were asked to prove.
    #[cfg(feature = "passkeys")]
    pub(crate) challenges: crate::pages::Challenges,
    /// Turns to check or hash a password.
    pub(crate) passwords: PasswordSlots,
    /// Figures over time.
    pub(crate) plots: Plots,
    /// Search, if this node searches.
    #[cfg(feature = "search")]
    pub(crate) searching: std::sync::OnceLock<Arc<node::searching::SearchService>>,
    /// The latest journal number.
    pub(crate) position: watch::Receiver<u64>,
}

/// A handle to it.
#[derive(Clone)]
pub(crate) struct SharedState(pub(crate) Arc<ServerState>);

impl std::ops::Deref for SharedState {
    type Target = ServerState;

    fn deref(&self) -> &ServerState {
        &self.0
    }
}

impl std::fmt::Debug for ServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "House({:?})", self.node)
    }
}

impl ServerState {
    /// A house around a running node. The operator is whoever knows the token.
    pub fn new(node: Node, options: ServerOptions, operator_token: &str) -> Arc<ServerState> {
        let (sender, position) = watch::channel(0);
        node.on_commit(move |number| {
            // A receiver is kept by the house itself, so this fails only while it is taken down.
            let _ = sender.send(number);
        });
        let request_metrics = Arc::new(RequestMetrics::default());
        let outbound = OutboundClient::new(options.private_webhooks);
        let timer = request_metrics.clone();
        node.on_timed_commit(move |nanos| timer.committed(nanos));
        Arc::new(ServerState {
            rendered: RenderCache::default(),
            verifying: Arc::default(),
            node,
            rate_limiters: RateLimiters::new(&options.limits),
            options,
            operator: *blake3::hash(operator_token.as_bytes()).as_bytes(),
            nonces: NonceCache::default(),
            tickets: StreamTickets::default(),
            hub: LiveHub::default(),
            request_metrics,
            outbound,
            backups: Backups::default(),
            webhook_dispatcher: Arc::default(),
            links: OperatorLinks::default(),
            #[cfg(feature = "passkeys")]
            challenges: crate::pages::Challenges::default(),
            passwords: PasswordSlots::default(),
            plots: Plots::default(),
            #[cfg(feature = "search")]
            searching: std::sync::OnceLock::new(),
            position,
        })
    }

    /// The path of a new link by which the operator signs in, once.
    pub fn operator_link(&self) -> Result<String, crate::Problem> {
        Ok(format!("/in/{}", self.links.make(self.node.now())?))
    }

    /// An API key that is declared in the configuration, or stored.
    pub(crate) fn api_key<V: store::tables::TableReads>(
        &self,
        db: &store::Db<V>,
        id: &[u8; 8],
    ) -> Result<Option<ApiKey>, engine::StoreError> {
        match self.options.keys.get(id) {
            Some(declared) => Ok(Some(declared.clone())),
            None => db.api_key(id),
        }
    }

    /// Forgets what was kept in memory and in search of a space that nobody may read any more.
    pub(crate) fn forget(&self, space: &model::SpaceId) {
        self.rendered.clear();
        #[cfg(feature = "search")]
        if let Some(searching) = self.searching.get() {
            searching.forget(space);
        }
        #[cfg(not(feature = "search"))]
        let _ = space;
    }

    /// Answers searches with this, from now on; the first one stays.
    #[cfg(feature = "search")]
    pub fn search_with(&self, searching: Arc<node::searching::SearchService>) {
        let _ = self.searching.set(searching);
    }
}
