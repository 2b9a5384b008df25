//! Without a command: the node runs until it is asked to stop.

use super::Done;
use super::init::{self, Initialised};
use crate::app::app;
use crate::configured_keys;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::home_space::{self, TokenFile};
use crate::huge_pages;
use crate::open_file_limit;
use crate::output;
use crate::signals::Signals;
use crate::welcome_thread;
use engine::reads::Reads as _;
use node::Node;
use node::fetch::hunter::NoSources;
use node::node_commands::Tick;
use serde::Serialize;
use server::{RunningServer, ServerState, Tls};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How often the node is asked whether it still writes.
const LOOK: Duration = Duration::from_secs(60);

/// What is said when the node runs.
#[derive(Debug, Serialize)]
struct Running {
    url: String,
    data_dir: String,
    /// Where the operator signs in, once.
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
        writeln!(f, "  data folder  {}", self.data_dir)?;
        writeln!(f, "  events       {} here, {} of them waiting", self.events, self.waiting)?;
        writeln!(f, "  reference    {}/docs", self.url)?;
        writeln!(f, "  sign in      {}", self.sign_in)?;
        writeln!(
            f,
            "               This link is for you, the operator: it is good once. `anteroom link` makes another."
        )?;
        writeln!(f, "It runs until you press Ctrl-C. In another terminal:")?;
        writeln!(f, "  anteroom key create backend   makes an API key for your application's server")?;
        write!(f, "  anteroom help                 lists everything else")
    }
}

/// Opens or creates the data folder and runs the node.
pub(super) fn run(context: &Context) -> Done {
    let signals = Signals::listen()?;
    let tls = load_tls(context)?;
    open_file_limit::raise();
    huge_pages::in_small_pages();
    let made = make_if_new(context)?;
    let (store, _lock) = data_folder::open(context, Access::Write)?;
    let clock = Arc::new(context.clock);
    let node = Node::start(store, clock, Arc::new(NoSources), context.loaded.config.node_options());
    let served = serve(context, &node, &signals, tls, made);
    node.stop();
    served?;
    if !context.json {
        output::complain("stopped\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// Serves until somebody asks to stop.
fn serve(
    context: &Context,
    node: &Node,
    signals: &Signals,
    tls: Option<Arc<Tls>>,
    made: Option<Initialised>,
) -> Result<(), Failure> {
    if home_space::found_home(node)? {
        welcome_thread::say(node)?;
    }
    home_space::go_on_rewrapping(node)?;
    let keys = configured_keys::keys(&context.loaded.keys, node)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|why| Failure::new(format!("cannot start the server: {why}"), "try again"))?;
    let token = hex::encode(home_space::random_bytes::<32>()?);
    let options = server::ServerOptions { keys, tls, ..context.loaded.server_options() };
    let state = ServerState::new(node.clone(), options, &token);
    #[cfg(feature = "search")]
    let searching = node::search::SearchService::start(node, context.data_dir().join("search"));
    #[cfg(feature = "search")]
    state.search_with(searching.clone());
    let taken = |why: server::ListenError| {
        let what_to_do = "stop what listens there, or pass another address: --listen 127.0.0.1:0 takes any free port";
        Failure::new(why.to_string(), what_to_do)
    };
    let server = runtime.block_on(server::serve(app(&state), context.loaded.listen)).map_err(taken)?;
    let metrics = context.loaded.metrics_listen.map(|address| server::serve_metrics(state.clone(), address));
    let metrics = metrics.map(|metrics| runtime.block_on(metrics)).transpose().map_err(taken)?;
    warn_if_in_the_clear(context, server.address);
    let _token_file = TokenFile::write(context, server.address, &token)?;
    let db = node.snapshot()?;
    let url = home_space::url(context, server.address);
    let link = state.operator_link().map_err(|why| Failure::new(why.detail, "try again"))?;
    let running = Running {
        sign_in: format!("{url}{link}"),
        url,
        data_dir: context.data_dir().display().to_string(),
        process: std::process::id(),
        events: super::status::table_rows(&db, "events_v1")?,
        waiting: db.held_total()?,
        made,
    };
    drop(db);
    let watched = context.show(&running).and_then(|()| watch(node, &server, signals));
    runtime.block_on(async {
        if let Some(metrics) = metrics {
            metrics.stop().await;
        }
        server.stop().await;
    });
    #[cfg(feature = "search")]
    searching.stop();
    watched
}

/// The certificate and its key, if there are any: whatever is wrong with them is said before anything is done.
fn load_tls(context: &Context) -> Result<Option<Arc<Tls>>, Failure> {
    let Some((certificate, key)) = context.loaded.tls.clone() else { return Ok(None) };
    Ok(Some(Arc::new(Tls::load(certificate, key)?)))
}

fn warn_if_in_the_clear(context: &Context, address: SocketAddr) {
    if context.loaded.tls.is_none() && !address.ip().is_loopback() {
        tracing::warn!(
            "the node listens on {address}, beyond this machine, without TLS: keys and messages can be read on the way; \
             set tls_certificate and tls_key, or listen on 127.0.0.1 behind a proxy that speaks HTTPS"
        );
    }
}

/// A folder without database and key is made ready first.
fn make_if_new(context: &Context) -> Result<Option<Initialised>, Failure> {
    let has_database = data_folder::database(context.data_dir()).exists();
    let place = &context.loaded.master_key;
    // A key that is handed to us is there before the folder is; a key file is made together with it.
    if has_database || place.own_file().is_some_and(Path::exists) {
        return Ok(None);
    }
    init::make(context, None).map(Some)
}

/// Waits for a signal, and notices if the writer or the server has stopped by itself.
fn watch(node: &Node, server: &RunningServer, signals: &Signals) -> Result<(), Failure> {
    while !signals.wait(LOOK) {
        if server.has_ended() {
            return Err(Failure::new(
                "the server has stopped by itself",
                "the log above names the task that ended; report it, then start again",
            ));
        }
        node.submit(Tick, |_| ()).or_else(|why| match why {
            // Too much to do is a sign of life.
            node::RequestError::Busy => Ok(()),
            other => Err(Failure::new(
                format!("the node has stopped by itself: {other}"),
                "the log above says why; check the disk, run `anteroom verify`, then start again",
            )),
        })?;
    }
    Ok(())
}
