//! The server as clients meet it: a real node in a folder of its own, asked through the router.

mod access;
mod backups;
mod conversations;
mod declared;
mod elsewhere;
mod explorer;
mod hostile;
mod hostile_http1;
mod hostile_http2;
mod live;
mod metrics;
mod pages;
#[cfg(feature = "passkeys")]
mod passkeys;
mod people;
mod repeating;
#[cfg(feature = "search")]
mod search;
mod tls;
mod upkeep;
mod webhooks;
mod wire;

use crate::door::keys::NewKey;
use crate::door::sessions::{SessionSecret, written};
use crate::door::signature::sign;
use crate::routes::router;
use crate::state::{Limits, ServerOptions, ServerState};
use axum::body::Body;
use axum::extract::ConnectInfo;
use engine::access::KeyRole;
use http::{Method, Request, StatusCode};
use model::{Nanos, SpaceId};
use node::commands::accounts::{AccountCommand, AccountRequest, NewSession};
use node::commands::{AdminCommand, AdminRequest, AdminResult};
use node::fetch::hunter::NoSources;
use node::{Clock, Node, NodeOptions};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::shared::accounts::{Session, session_id};
use store::{FolderDisk, MasterKey, Store};
use tower::ServiceExt as _;

/// A clock that moves when it is told to, and a little whenever it is asked.
#[derive(Debug)]
pub(super) struct HandClock(AtomicU64);

impl HandClock {
    pub(super) fn advance(&self, seconds: u64) {
        self.0.fetch_add(seconds * Nanos::SECOND, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(1000, Ordering::Relaxed))
    }
}

/// A node with a home space and a key of each role.
pub(super) struct Home {
    pub(super) state: Arc<ServerState>,
    pub(super) clock: Arc<HandClock>,
    pub(super) space: SpaceId,
    pub(super) frontend: String,
    pub(super) backend: String,
    pub(super) admin: String,
    _folder: tempfile::TempDir,
}

pub(super) const OPERATOR: &str = "a token for tests";

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) media: String,
    pub(super) body: Value,
}

impl Home {
    pub(super) fn new() -> Home {
        Home::with(ServerOptions {
            limits: Limits { address_per_second: 1_000_000, user_per_second: 1_000_000, ..Limits::default() },
            ..ServerOptions::default()
        })
    }

    pub(super) fn with(options: ServerOptions) -> Home {
        Home::on(options, store::StoreOptions::default())
    }

    pub(super) fn on(options: ServerOptions, stored: store::StoreOptions) -> Home {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = FolderDisk::new(folder.path()).expect("a disk");
        let store = Store::open(Arc::new(disk), MasterKey::new(&[5; 32]), stored).expect("a store");
        let clock = Arc::new(HandClock(AtomicU64::new(1_800_000_000 * Nanos::SECOND)));
        let node = Node::start(store, clock.clone(), Arc::new(NoSources), NodeOptions::default());
        let space = found(&node, "home", 1);
        let key = |role, number| make_key(&node, space, role, number);
        let (frontend, backend, admin) = (key(KeyRole::Frontend, 1), key(KeyRole::Backend, 2), key(KeyRole::Admin, 3));
        let state = ServerState::new(node, options, OPERATOR);
        Home { state, clock, space, frontend, backend, admin, _folder: folder }
    }

    /// Sends a request with these headers.
    pub(super) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Answer {
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

    pub(super) async fn raw(&self, mut request: Request<Body>) -> Answer {
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([192, 0, 2, 7], 4711))));
        let response = router(&self.state).oneshot(request).await.expect("an answer");
        let status = response.status();
        let media = response.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media = media.to_owned();
        if media.starts_with("text/event-stream") {
            return Answer { status, media, body: Value::Null };
        }
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 24).await.expect("a body");
        Answer { status, media, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) }
    }

    /// Asks with the backend key for a user.
    pub(super) async fn by(&self, user: &str, method: &str, path: &str, body: Option<Value>) -> Answer {
        let headers = [("x-api-key", self.backend.as_str()), ("x-user-id", user)];
        self.send(method, path, &headers, body.as_ref()).await
    }

    /// The plain signature of a user.
    pub(super) fn signature(&self, text: &str) -> String {
        let keys = self.state.node.snapshot().expect("a snapshot").signing_keys(&self.space).expect("keys");
        sign(&keys[0].1.secret, text)
    }

    /// What a browser sends that somebody signed in with.
    pub(super) fn session(&self, user: &str, is_operator: bool) -> Vec<(&'static str, String)> {
        let secret = SessionSecret::random().expect("chance");
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
        let cookie = format!("anteroom={}", written(&front, &secret));
        vec![("cookie", cookie), ("sec-fetch-site", "same-origin".to_owned())]
    }

    pub(super) fn administer(&self, what: AdminCommand) -> AdminResult {
        administer(&self.state.node, what)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.state.node.stop();
    }
}

pub(super) fn administer(node: &Node, what: AdminCommand) -> AdminResult {
    node.ask(AdminRequest::by("a test", what)).expect("a result")
}

pub(super) fn found(node: &Node, name: &str, random: u8) -> SpaceId {
    let random = Box::new([random; 80]);
    match administer(node, AdminCommand::FoundSpace { name: name.to_owned(), sealed: true, random }) {
        AdminResult::Founded(space) => space,
        other => panic!("{other:?}"),
    }
}

pub(super) fn make_key(node: &Node, space: SpaceId, role: KeyRole, number: u8) -> String {
    let key = NewKey::new([number; 8], &[number; 32]);
    administer(node, AdminCommand::AddKey { id: key.id, role, space, hash: key.hash, label: String::new() });
    key.text
}
