//! What all requests share.

use crate::backups::{Backups, GitToBackUp};
use crate::command_runner::{CommandRunner, RUNNING_MAX};
use crate::file_counts::FileCounts;
use crate::git_programs::GitPrograms;
use crate::load::LoadMeter;
use crate::nonces::NonceCache;
use crate::operator_links::OperatorLinks;
use crate::options::ServerOptions;
use crate::problem::Problem;
use crate::rate_limits::RateLimiters;
use crate::relay_reports::GatherReports;
use crate::request_metrics::RequestMetrics;
use crate::tickets::StreamTickets;
use crate::transfers::FileTransfers;
use crate::webhooks::WebhookDispatcher;
use node::Node;
use node::git::GitService;
use outbound::{AllowedNetworks, OutboundClient};
use queries::cache::RenderCache;
use queries::live::LiveHub;
use std::sync::Arc;
use store::shared::api_keys::ApiKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// What all requests share.
pub struct ServerState {
    pub node: Node,
    pub options: ServerOptions,
    /// The hash of the operator's token.
    pub(crate) operator: [u8; 32],
    pub(crate) nonces: NonceCache,
    pub rate_limiters: RateLimiters,
    pub(crate) load: Arc<LoadMeter>,
    /// Single-use credentials of live streams.
    pub tickets: StreamTickets,
    /// Links by which the operator signs in to the pages.
    pub operator_links: OperatorLinks,
    pub hub: Arc<LiveHub>,
    /// Messages that were rendered lately, in whichever format.
    pub rendered: RenderCache<Arc<str>>,
    pub request_metrics: Arc<RequestMetrics>,
    pub outbound: OutboundClient,
    pub backups: Arc<Backups>,
    pub webhook_dispatcher: Arc<WebhookDispatcher>,
    /// Search, if this node searches.
    #[cfg(feature = "search")]
    pub(crate) search: std::sync::OnceLock<Arc<node::search::SearchService>>,
    /// The git repositories, if this node hosts any.
    git: std::sync::OnceLock<Arc<GitService>>,
    pub git_programs: GitPrograms,
    /// How gathering from other relays goes.
    pub gather_reports: Arc<GatherReports>,
    /// What runs commands of the command line.
    command_runner: std::sync::OnceLock<CommandRunner>,
    command_permits: Arc<Semaphore>,
    /// Files on their way in and out.
    pub(crate) transfers: FileTransfers,
    pub(crate) file_counts: FileCounts,
    /// The latest journal number.
    position: watch::Receiver<u64>,
}

/// A handle to it.
#[derive(Clone)]
pub struct SharedState(pub Arc<ServerState>);

impl std::ops::Deref for SharedState {
    type Target = ServerState;

    fn deref(&self) -> &ServerState {
        &self.0
    }
}

impl std::fmt::Debug for SharedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::fmt::Debug for ServerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ServerState({:?})", self.node)
    }
}

impl ServerState {
    /// Around a running node. The operator is whoever knows the token.
    pub fn new(node: Node, options: ServerOptions, operator_token: &str) -> Arc<ServerState> {
        let (sender, position) = watch::channel(0);
        node.on_commit(move |number| {
            // The state itself keeps a receiver, so this fails only while it is dropped.
            let _ = sender.send(number);
        });
        let request_metrics = Arc::new(RequestMetrics::default());
        let timer = request_metrics.clone();
        node.on_timed_commit(move |nanos| timer.committed(nanos));
        let private = if options.private_webhooks { AllowedNetworks::all() } else { AllowedNetworks::public() };
        let outbound = OutboundClient::new(private);
        Arc::new(ServerState {
            rate_limiters: RateLimiters::new(&options.limits),
            load: Arc::new(LoadMeter::new(options.limits.wait_max)),
            operator: *blake3::hash(operator_token.as_bytes()).as_bytes(),
            nonces: NonceCache::default(),
            tickets: StreamTickets::default(),
            operator_links: OperatorLinks::default(),
            hub: Arc::default(),
            rendered: RenderCache::default(),
            request_metrics,
            backups: Arc::new(Backups::new(node.clone(), options.backups.clone())),
            webhook_dispatcher: Arc::new(WebhookDispatcher::new(node.clone(), outbound.clone())),
            outbound,
            #[cfg(feature = "search")]
            search: std::sync::OnceLock::new(),
            git: std::sync::OnceLock::new(),
            git_programs: GitPrograms::default(),
            gather_reports: Arc::default(),
            command_runner: std::sync::OnceLock::new(),
            transfers: FileTransfers::default(),
            file_counts: FileCounts::default(),
            command_permits: Arc::new(Semaphore::new(RUNNING_MAX)),
            position,
            node,
            options,
        })
    }

    /// The number of the latest journal entry, anew after every commit.
    pub fn commits(&self) -> watch::Receiver<u64> {
        self.position.clone()
    }

    /// Takes these git repositories into backups and metrics, from now on.
    pub fn host_git(&self, git: Arc<GitService>) {
        self.backups.take_along(GitToBackUp::Served(git.clone()));
        let _ = self.git.set(git);
    }

    /// The git repositories, if this node hosts any.
    pub fn git(&self) -> Option<&Arc<GitService>> {
        self.git.get()
    }

    /// Runs commands of the command line with this, from now on; the first one stays.
    pub fn run_commands_with(&self, runner: CommandRunner) {
        let _ = self.command_runner.set(runner);
    }

    /// What runs a command, and the right to run one.
    pub fn command_runner(&self) -> Result<(CommandRunner, OwnedSemaphorePermit), Problem> {
        let runner = self.command_runner.get().cloned();
        let runner = runner.ok_or_else(|| Problem::unprocessable("this node runs no commands"))?;
        let permit = self.command_permits.clone().try_acquire_owned();
        let permit = permit.map_err(|_| Problem::overloaded("too many commands are running").after(1))?;
        Ok((runner, permit))
    }

    /// The path of a new link by which the operator signs in, once.
    pub fn operator_link(&self) -> Result<String, Problem> {
        Ok(format!("/in/{}", self.operator_links.issue(self.node.now())?))
    }

    /// An API key that is declared in the configuration, or stored.
    pub fn api_key<V: store::tables::TableReads>(
        &self,
        db: &store::Db<V>,
        id: &[u8; 8],
    ) -> Result<Option<ApiKey>, engine::StoreError> {
        match self.options.keys.get(id) {
            Some(declared) => Ok(Some(declared.clone())),
            None => db.api_key(id),
        }
    }

    /// Forgets what is kept in memory and in search of a space that nobody may read any more.
    pub fn forget_space(&self, space: &model::SpaceId) {
        self.rendered.clear();
        #[cfg(feature = "search")]
        if let Some(search) = self.search.get() {
            search.forget(space);
        }
        #[cfg(not(feature = "search"))]
        let _ = space;
    }

    /// Answers searches with this, from now on; the first one stays.
    #[cfg(feature = "search")]
    pub fn search_with(&self, search: Arc<node::search::SearchService>) {
        let _ = self.search.set(search);
    }
}
