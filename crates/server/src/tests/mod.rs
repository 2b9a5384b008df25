//! A real node in a folder of its own, asked through a router or over a socket: for tests of the crates that bring routes.

#![allow(clippy::expect_used, clippy::panic, missing_docs, reason = "a test that cannot begin has failed")]

mod wire;

pub use wire::{Client, Wire};

use crate::app::App;
use crate::auth::keys::NewKey;
use crate::auth::signature::sign;
use crate::options::{Limits, ServerOptions};
use crate::secrets::{Secret, write_secret};
use crate::state::ServerState;
use axum::body::Body;
use axum::extract::ConnectInfo;
use engine::access::KeyRole;
use http::{HeaderMap, Method, Request, StatusCode};
use model::{Nanos, SpaceId};
use node::commands::accounts::{AccountCommand, AccountRequest, NewSession};
use node::commands::{AdminCommand, AdminRequest, AdminResult};
use node::fetch::hunter::NoSources;
use node::{Clock, Node, NodeOptions};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use store::shared::accounts::{Session, session_id};
use store::{FolderDisk, MasterKey, Store};
use tower::ServiceExt as _;

/// A clock that moves when it is told to, and a little whenever it is asked.
#[derive(Debug)]
pub struct HandClock {
    now: AtomicU64,
    /// Whether it is also the clock that nobody sets, by which waiting is measured.
    is_steady: AtomicBool,
}

impl HandClock {
    fn new(now: u64) -> HandClock {
        HandClock { now: AtomicU64::new(now), is_steady: AtomicBool::new(false) }
    }

    pub fn advance(&self, seconds: u64) {
        self.now.fetch_add(seconds * Nanos::SECOND, Ordering::Relaxed);
    }

    /// From now on waiting is measured by it.
    pub fn be_steady(&self) {
        self.is_steady.store(true, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Nanos {
        Nanos(self.now.fetch_add(1000, Ordering::Relaxed))
    }

    fn uptime(&self) -> Option<Nanos> {
        self.is_steady.load(Ordering::Relaxed).then(|| Nanos(self.now.load(Ordering::Relaxed)))
    }
}

/// A node with a home space and a key of each role.
pub struct TestServer {
    /// The application of the crate under test, and its router, which keeps its state between requests.
    make_app: fn(Arc<ServerState>) -> App,
    router: axum::Router,
    pub state: Arc<ServerState>,
    pub clock: Arc<HandClock>,
    pub space: SpaceId,
    pub frontend: String,
    pub backend: String,
    pub admin: String,
    _folder: tempfile::TempDir,
}

pub const OPERATOR: &str = "a token for tests";

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub media: String,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Answer {
    /// A header, as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl TestServer {
    /// Limits that no test reaches by accident.
    pub fn generous_options() -> ServerOptions {
        let (address_per_second, user_per_second, backend_user_per_second) = (1_000_000, 1_000_000, 1_000_000);
        let limits = Limits { address_per_second, user_per_second, backend_user_per_second, ..Limits::default() };
        ServerOptions { limits, ..ServerOptions::default() }
    }

    pub fn new(
        make_app: fn(Arc<ServerState>) -> App,
        options: ServerOptions,
        stored: store::StoreOptions,
    ) -> TestServer {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = FolderDisk::new(folder.path()).expect("a disk");
        let store = Store::open(Arc::new(disk), MasterKey::new(&[5; 32]), stored).expect("a store");
        let clock = Arc::new(HandClock::new(1_800_000_000 * Nanos::SECOND));
        let node = Node::start(store, clock.clone(), Arc::new(NoSources), NodeOptions::default());
        let space = found(&node, "home", 1);
        let key = |role, number| make_key(&node, space, role, number);
        let (frontend, backend, admin) = (key(KeyRole::Frontend, 1), key(KeyRole::Backend, 2), key(KeyRole::Admin, 3));
        let state = ServerState::new(node, options, OPERATOR);
        let router = make_app(state.clone()).router();
        TestServer { make_app, router, state, clock, space, frontend, backend, admin, _folder: folder }
    }

    /// The application, to be served.
    pub fn app(&self) -> App {
        (self.make_app)(self.state.clone())
    }

    pub fn router(&self) -> axum::Router {
        self.router.clone()
    }

    /// Sends a request with these headers.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&Value>) -> Answer {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let bytes = match body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                body.to_string()
            }
            None => String::new(),
        };
        self.raw(request.body(Body::from(bytes)).expect("a request")).await
    }

    pub async fn raw(&self, mut request: Request<Body>) -> Answer {
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 7], 4711))));
        let response = self.router().oneshot(request).await.expect("an answer");
        let status = response.status();
        let media = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (media, headers) = (media.to_owned(), response.headers().clone());
        if media.starts_with("text/event-stream") {
            return Answer { status, media, headers, body: Value::Null };
        }
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 24).await.expect("a body");
        Answer { status, media, headers, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) }
    }

    /// The same with one more header.
    pub async fn by_with(
        &self,
        user: &str,
        method: &str,
        path: &str,
        header: (&str, &str),
        body: Option<Value>,
    ) -> Answer {
        let headers = [("x-api-key", self.backend.as_str()), ("x-user-id", user), header];
        self.send(method, path, &headers, body.as_ref()).await
    }

    /// Asks with the backend key for a user.
    pub async fn by(&self, user: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        let headers = [("x-api-key", self.backend.as_str()), ("x-user-id", user)];
        self.send(method, path, &headers, body.as_ref()).await
    }

    /// As if the threads that serve requests were late by so much.
    pub fn be_late(&self, lag: std::time::Duration) {
        self.state.load.be_late(lag);
    }

    /// As if the writer answered so many writes in a second.
    pub fn be_slow(&self, writes_per_second: u64) {
        self.state.load.be_slow(writes_per_second);
    }

    /// The plain signature of a user.
    pub fn signature(&self, text: &str) -> String {
        let keys = self.state.node.snapshot().expect("a snapshot").signing_keys(&self.space).expect("keys");
        sign(&keys[0].1.secret, text)
    }

    /// What a browser sends that somebody signed in with.
    pub fn session(&self, user: &str, is_operator: bool) -> Vec<(&'static str, String)> {
        let secret = Secret::random().expect("chance");
        if is_operator {
            let browser = NewSession { hash: [0; 32], agent: String::new() };
            let what = AccountCommand::SignInOperator(user.to_owned(), browser, Box::new([9; 32]));
            let request = AccountRequest { space: self.space, what };
            self.state.node.ask(request).expect("a session");
        }
        let now = self.state.node.now();
        let session = Session { user: user.to_owned(), is_operator, since: now, seen: now, agent: String::new() };
        let front = self.state.node.snapshot().expect("a snapshot").session_prefix(&self.space, user);
        let id = session_id(&front, &secret.hash);
        // As if they had signed in before whatever happened to them since.
        let kept = self.state.node.store().write(now, |batch| batch.keep_session(&id, &session));
        kept.expect("a session");
        let cookie = format!("anteroom={}", write_secret(&front, &secret));
        vec![("cookie", cookie), ("sec-fetch-site", "same-origin".to_owned())]
    }

    pub fn administer(&self, what: AdminCommand) -> AdminResult {
        administer(&self.state.node, what)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.state.node.stop();
    }
}

pub fn administer(node: &Node, what: AdminCommand) -> AdminResult {
    node.ask(AdminRequest::by("a test", what)).expect("a result")
}

pub fn found(node: &Node, name: &str, random: u8) -> SpaceId {
    let random = Box::new([random; 80]);
    match administer(node, AdminCommand::FoundSpace { name: name.to_owned(), sealed: true, random }) {
        AdminResult::Founded(space) => space,
        other => panic!("{other:?}"),
    }
}

pub fn make_key(node: &Node, space: SpaceId, role: KeyRole, number: u8) -> String {
    let key = NewKey::new([number; 8], &[number; 32]);
    administer(node, AdminCommand::AddKey { id: key.id, role, space, hash: key.hash, label: String::new() });
    key.text
}
