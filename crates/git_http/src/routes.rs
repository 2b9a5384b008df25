//! The table of git's routes, and what browsers of any origin may ask of them.

use crate::app::GitApp;
use crate::fetch::{tell_refs, upload_pack};
use crate::push::receive_pack;
use crate::request::CONTRIBUTIONS;
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use engine::access::Action::Look;
use http::{HeaderValue, Method, StatusCode, header};
use node::git::GitService;
use server::app::authenticated;
use server::routes::Route;
use server::{App, AppPart, ServerState, SharedState};
use std::sync::Arc;
use std::time::Duration;

/// How long a clone or a push may take.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(2 * 3600);

fn all() -> Vec<Route<Arc<GitApp>>> {
    Vec::from([
        Route::get("/{npub}/{repository}/info/refs", Look, tell_refs),
        Route::post("/{npub}/{repository}/git-upload-pack", Look, upload_pack).with_timeout(TRANSFER_TIMEOUT),
        Route::post("/{npub}/{repository}/git-receive-pack", Look, receive_pack).with_timeout(TRANSFER_TIMEOUT),
        Route::get("/prs/{npub}/{repository}/info/refs", Look, tell_refs),
        Route::post("/prs/{npub}/{repository}/git-upload-pack", Look, upload_pack).with_timeout(TRANSFER_TIMEOUT),
        Route::post("/prs/{npub}/{repository}/git-receive-pack", Look, receive_pack).with_timeout(TRANSFER_TIMEOUT),
    ])
}

/// An application that serves git repositories.
pub fn with_git(app: App, server: &Arc<ServerState>, service: Arc<GitService>) -> App {
    server.host_git(service.clone());
    let git = Arc::new(GitApp::new(service, server.clone()));
    let router = authenticated(&SharedState(server.clone()), git, all(), |router| router, None);
    app.with(AppPart { router, tasks: Vec::new() })
        .map_router(|router: Router| router.layer(from_fn(answer_any_origin)))
}

/// Whether a path is one of a repository.
fn is_git(path: &str) -> bool {
    let path = path.strip_prefix(CONTRIBUTIONS).unwrap_or(path);
    let mut parts = path.trim_start_matches('/').splitn(3, '/');
    let (owner, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    owner.starts_with("npub1") && name.ends_with(".git")
}

/// Web clients of any origin may fetch and push: nothing here depends on who asks.
async fn answer_any_origin(request: Request, next: Next) -> Response {
    if !is_git(request.uri().path()) {
        return next.run(request).await;
    }
    let mut response = match *request.method() {
        Method::OPTIONS => StatusCode::NO_CONTENT.into_response(),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    let allowed = HeaderValue::from_static("Content-Type, Content-Encoding, Git-Protocol");
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    response
}
