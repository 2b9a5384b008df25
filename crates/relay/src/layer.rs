//! Picks the requests of Nostr clients out of those to `/`: WebSockets, and the document about the relay. Everything else
//! goes on to whoever has the path.

use crate::gather::{Gathering, gather};
use crate::information;
use crate::journal::follow_journal;
use crate::messages::MESSAGE_BYTES_MAX;
use crate::socket;
use crate::state::RelayState;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use node::git::GitAccess;
use outbound::OutboundClient;
use server::background::{BackgroundTask, OnEnd};
use server::{App, ServerState};
use std::sync::Arc;

/// What asks for the document about the relay.
const INFORMATION_TYPE: &str = "application/nostr+json";

/// Where the names of this service are (NIP-05).
const WELL_KNOWN: &str = "/.well-known/nostr.json";

/// An application with a relay at `/`.
///
/// With a client, events about repositories here are gathered from other relays.
pub fn with_relay(
    app: App,
    server: &Arc<ServerState>,
    access: Arc<GitAccess>,
    gatherer: Option<OutboundClient>,
) -> App {
    let (state, end) = RelayState::new(server.clone(), access.clone());
    let follow = follow_journal(state.clone(), server.commits(), end);
    let mut app = app.with_task(BackgroundTask::new("nostr relay", OnEnd::StopServer, follow));
    if let Some(outbound) = gatherer {
        let shared = Arc::new(Gathering { server: server.clone(), access, outbound });
        app = app.with_task(BackgroundTask::new("gathering", OnEnd::GoOn, gather(shared, server.commits())));
    }
    app.map_router(move |router: Router| router.layer(from_fn_with_state(state.clone(), answer_nostr)))
}

async fn answer_nostr(State(state): State<Arc<RelayState>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if request.uri().path() == WELL_KNOWN
        && let Some(operator) = state.access.operator
    {
        return with_cors(Json(information::names(&operator)).into_response());
    }
    let is_root = request.uri().path() == "/";
    if is_root && request.method() == Method::OPTIONS {
        return with_cors(StatusCode::NO_CONTENT.into_response());
    }
    if !is_root || request.method() != Method::GET {
        return next.run(request).await;
    }
    if names(headers, header::UPGRADE, "websocket") {
        let (mut parts, _) = request.into_parts();
        return match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
            Ok(upgrade) => {
                let upgrade = upgrade.max_message_size(MESSAGE_BYTES_MAX).max_frame_size(MESSAGE_BYTES_MAX);
                with_cors(upgrade.on_upgrade(move |socket| socket::serve(state, socket)))
            }
            Err(why) => with_cors(why.into_response()),
        };
    }
    if names(headers, header::ACCEPT, INFORMATION_TYPE) {
        let body = information::document(&state.access, state.takes_contributions()).to_string();
        return with_cors(([(header::CONTENT_TYPE, INFORMATION_TYPE)], body).into_response());
    }
    next.run(request).await
}

/// Whether a header has that value among others.
fn names(headers: &HeaderMap, name: header::HeaderName, value: &str) -> bool {
    let values = headers.get_all(name);
    let mut texts = values.iter().filter_map(|text| text.to_str().ok());
    texts.any(|text| text.split([',', ';']).any(|part| part.trim().eq_ignore_ascii_case(value)))
}

/// Web clients of any origin may ask.
fn with_cors(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Content-Type"));
    response
}
