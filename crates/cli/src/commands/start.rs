//! Without a command: runs the node until a shutdown signal.

use super::CommandResult;
use super::in_node;
use super::init::{self, Initialised};
use crate::app::{app, app_with_git};
use crate::configured_keys;
use crate::context::Context;
use crate::data_folder;
use crate::failure::Failure;
use crate::home_space;
use crate::huge_pages;
use crate::open_file_limit;
use crate::operator_token::{TokenFile, node_url, public_url};
use crate::output;
use crate::random::random_bytes;
use crate::render_process::RenderProcess;
use crate::signals::ShutdownSignals;
use crate::welcome_thread;
use engine::reads::Reads as _;
use git::GitFolder;
use model::nostr::ServiceName;
use node::Node;
use node::fetch::hunter::{NoSources, SourceClient};
use node::git::{GitService, GitSources};
use node::node_commands::Tick;
use outbound::{AllowedNetworks, OutboundClient};
use serde::Serialize;
use server::backups::GitToBackUp;
use server::{Listener, RunningServer, ServerState, Tls};
use std::cell::Cell;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How often to check that the writer and the server still run.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long commands that run inside the node may take to end when it stops.
const COMMANDS_TIMEOUT: Duration = Duration::from_secs(1);
/// After how many checks the writer is asked to do something.
const CHECKS_PER_TICK: u32 = 60;

/// Printed when the node is ready.
#[derive(Debug, Serialize)]
struct Running {
    /// What links begin with: `public_url`, if it is set.
    url: String,
    /// Where the node itself is reached.
    listens_on: String,
    data_dir: String,
    /// The one-time sign-in link of the operator.
    sign_in: String,
    process: u32,
    events: u64,
    waiting: u64,
    made: Option<Initialised>,
}

impl fmt::Display for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(made) = &self.made {
            writeln!(f, "{made}")?;
        }
        writeln!(f, "anteroom {} is running at {}", env!("CARGO_PKG_VERSION"), self.url)?;
        if self.listens_on != self.url {
            writeln!(f, "  listens on   {}", self.listens_on)?;
        }
        writeln!(f, "  data folder  {}", self.data_dir)?;
        writeln!(f, "  events       {} stored, {} held", self.events, self.waiting)?;
        writeln!(f, "  API docs     {}/docs", self.url)?;
        writeln!(f, "  sign in      {}", self.sign_in)?;
        writeln!(
            f,
            "               This link signs you in as the operator and works once; `anteroom link` creates another."
        )?;
        writeln!(f, "Press Ctrl-C to stop. In another terminal:")?;
        writeln!(f, "  anteroom key create backend   creates an API key for your application's server")?;
        write!(f, "  anteroom help                 lists all commands")
    }
}

/// Creates the data folder if needed, and runs the node.
pub(super) fn run(context: &Context) -> CommandResult {
    let signals = ShutdownSignals::listen()?;
    let tls = load_tls(context)?;
    open_file_limit::raise_open_file_limit();
    huge_pages::disable_huge_pages();
    // A port that is taken is noticed before a folder and its key are made.
    let listeners = Listeners::bind(context)?;
    let made = create_folder_if_new(context)?;
    let is_shown = Cell::new(false);
    start_and_serve(context, &signals, tls, listeners, (made.as_ref(), &is_shown)).inspect_err(|_| {
        // The recovery text was made with the folder: whatever went wrong before it was shown, it is.
        if let Some(made) = made.as_ref().filter(|_| !is_shown.get()) {
            output::write_stderr(&format!("{made}\n"));
        }
    })?;
    if !context.json {
        output::write_stderr("stopped\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// The addresses the node listens on, taken before anything else is done.
struct Listeners {
    main: Listener,
    metrics: Option<Listener>,
}

impl Listeners {
    fn bind(context: &Context) -> Result<Listeners, Failure> {
        let cannot_listen = |why: server::ListenError| {
            let what_to_do = "stop the process that listens there, or pass another address: --listen 127.0.0.1:0 takes any free port";
            Failure::new(why.to_string(), what_to_do)
        };
        let main = Listener::bind(context.settings.listen).map_err(cannot_listen)?;
        let metrics = context.settings.metrics_listen.map(Listener::bind).transpose().map_err(cannot_listen)?;
        Ok(Listeners { main, metrics })
    }
}

fn start_and_serve(
    context: &Context,
    signals: &ShutdownSignals,
    tls: Option<Arc<Tls>>,
    listeners: Listeners,
    (made, is_shown): (Option<&Initialised>, &Cell<bool>),
) -> Result<(), Failure> {
    name_service(context, &listeners);
    let (store, _lock) = data_folder::open_compacted(context)?;
    let clock = Arc::new(context.clock);
    let sources = git_sources(context);
    let source: Arc<dyn SourceClient> = match &sources {
        Some(sources) => sources.clone(),
        None => Arc::new(NoSources),
    };
    let node = Node::start(store, clock, source, context.settings.config.node_options());
    let workers = context.settings.config.files.workers;
    node.start_workers(workers, &Arc::new(RenderProcess), &context.settings.renditions);
    let served = start_git(context, &node, sources).and_then(|git| {
        let served = serve(context, &node, signals, tls, listeners, (made, is_shown), git.clone());
        if let Some(git) = git {
            git.stop();
        }
        served
    });
    node.stop();
    served
}

/// Announcements of repositories list the node by its URL.
fn name_service(context: &Context, listeners: &Listeners) {
    let local = listeners.main.local_address().map(|address| node_url(context, address));
    let url = context.settings.public_url.clone().or(local);
    if let Some(name) = url.as_deref().and_then(ServiceName::of_url) {
        let _ = context.service.set(name);
    }
}

/// Where git data is fetched from, if this node hosts any.
fn git_sources(context: &Context) -> Option<Arc<GitSources>> {
    let allowed = AllowedNetworks::with_private(context.settings.sync_private_networks.clone());
    let sources = || GitSources::new(context.settings.git_access.clone(), OutboundClient::new(allowed));
    (context.settings.config.git.enabled == 1).then(|| Arc::new(sources()))
}

/// Opens the git repositories, if this node hosts any.
fn start_git(
    context: &Context,
    node: &Node,
    sources: Option<Arc<GitSources>>,
) -> Result<Option<Arc<GitService>>, Failure> {
    let Some(sources) = sources else { return Ok(None) };
    let (limits, access) = (context.settings.config.git_limits(), context.settings.git_access.clone());
    let started = GitService::start(node, context.data_dir().join("git"), limits, access, sources);
    let what_to_do = "install git, or set git.enabled to 0";
    started.map(Some).map_err(|why| Failure::new(why.to_string(), what_to_do))
}

/// Serves until shutdown is requested.
fn serve(
    context: &Context,
    node: &Node,
    signals: &ShutdownSignals,
    tls: Option<Arc<Tls>>,
    listeners: Listeners,
    (made, is_shown): (Option<&Initialised>, &Cell<bool>),
    git: Option<Arc<GitService>>,
) -> Result<(), Failure> {
    if home_space::create_home_space(node)? {
        welcome_thread::create_welcome_thread(node)?;
    }
    home_space::resume_rewrap(node)?;
    let keys = configured_keys::resolve_keys(&context.settings.declared_keys, node)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("cannot start the server: {why}"), "try again"))?;
    let token = hex::encode(random_bytes::<32>()?);
    let options = server::ServerOptions { keys, tls, ..context.settings.server_options() };
    let state = ServerState::new(node.clone(), options, &token);
    // Repositories that are not served are kept, and so they are part of backups.
    if let (None, Some(folder)) = (&git, GitFolder::open_existing(context.data_dir().join("git"))) {
        state.backups.take_along(GitToBackUp::Kept(folder));
    }
    in_node::delete_spools(context.data_dir());
    state.run_commands_with(in_node::runner(context.settings.clone(), node.clone()));
    #[cfg(feature = "search")]
    let searching = node::search::SearchService::start(node, context.data_dir().join("search"));
    #[cfg(feature = "search")]
    state.search_with(searching.clone());
    let cannot_listen = |why: server::ListenError| Failure::new(why.to_string(), "start the node again");
    let app = match git {
        Some(git) => app_with_git(&state, git, context.settings.config.sync.gather == 1),
        None => app(&state),
    };
    let server = runtime.block_on(server::serve_on(app, listeners.main)).map_err(cannot_listen)?;
    let metrics = listeners.metrics.map(|listener| server::serve_metrics_on(state.clone(), listener));
    let metrics = metrics.map(|metrics| runtime.block_on(metrics)).transpose().map_err(cannot_listen)?;
    warn_if_not_encrypted(context, server.address);
    warn_if_links_are_local(context, server.address);
    let _token_file = TokenFile::write(context, server.address, &token)?;
    let db = node.snapshot()?;
    let listens_on = node_url(context, server.address);
    let url = public_url(context, &listens_on);
    let link = state.operator_link().map_err(|why| Failure::new(why.detail, "try again"))?;
    let running = Running {
        sign_in: format!("{url}{link}"),
        url,
        listens_on,
        data_dir: context.data_dir().display().to_string(),
        process: std::process::id(),
        events: super::status::count_table_rows(&db, "events_v1")?,
        waiting: db.held_total()?,
        made: made.cloned(),
    };
    drop(db);
    let printed = context.print(&running).inspect(|()| is_shown.set(true));
    let ended = printed.and_then(|()| wait_for_shutdown(node, &server, signals));
    runtime.block_on(async {
        if let Some(metrics) = metrics {
            metrics.stop().await;
        }
        server.stop().await;
    });
    // Commands that run inside the node end with it.
    runtime.shutdown_timeout(COMMANDS_TIMEOUT);
    #[cfg(feature = "search")]
    searching.stop();
    ended
}

/// Loads the certificate and its key before anything else is done, so that an error changes nothing.
fn load_tls(context: &Context) -> Result<Option<Arc<Tls>>, Failure> {
    let Some((certificate, key)) = context.settings.tls.clone() else { return Ok(None) };
    Ok(Some(Arc::new(Tls::load(certificate, key)?)))
}

fn warn_if_not_encrypted(context: &Context, address: SocketAddr) {
    if context.settings.tls.is_none() && !address.ip().is_loopback() {
        tracing::warn!(
            "the node listens on {address}, which other machines can reach, without TLS: keys and messages are sent \
             unencrypted; set tls_certificate and tls_key, or listen on 127.0.0.1 behind a proxy that serves HTTPS"
        );
    }
}

/// Whoever listens for others wants links that others can follow.
fn warn_if_links_are_local(context: &Context, address: SocketAddr) {
    if context.settings.public_url.is_none() && !address.ip().is_loopback() {
        let shown = node_url(context, address);
        tracing::warn!("links begin with {shown}, which other machines may not reach; set public_url");
    }
}

/// Does nothing if the folder has a database or a key file.
fn create_folder_if_new(context: &Context) -> Result<Option<Initialised>, Failure> {
    let has_database = data_folder::has_database(context.data_dir())?;
    let source = &context.settings.master_key;
    // A key from the environment or systemd exists before the folder; a key file is created with it.
    let was_interrupted = init::first_start_marker(context.data_dir()).exists();
    if !was_interrupted && (has_database || source.key_file().is_some_and(Path::exists)) {
        return Ok(None);
    }
    init::create_folder_and_key(context, None).map(Some)
}

/// Waits for a shutdown signal. Fails if the writer or the server stops because of an error.
fn wait_for_shutdown(node: &Node, server: &RunningServer, signals: &ShutdownSignals) -> Result<(), Failure> {
    let mut checks = 0_u32;
    while !signals.wait(CHECK_INTERVAL) {
        if server.has_ended() {
            return Err(Failure::new(
                "the server has stopped by itself",
                "the log above names the task that ended; report it, then start again",
            ));
        }
        checks = checks.wrapping_add(1);
        if !node.has_stopped() && !checks.is_multiple_of(CHECKS_PER_TICK) {
            continue;
        }
        node.submit(Tick, |_| ()).or_else(|why| match why {
            // A full queue shows that the writer is running.
            node::RequestError::Busy => Ok(()),
            other => Err(Failure::new(
                format!("the writer stopped: {other}"),
                "see the log for the reason; check the disk, run `anteroom verify`, then start the node again",
            )),
        })?;
    }
    Ok(())
}
