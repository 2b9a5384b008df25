//! The table of all routes: from it come the router, the OpenAPI document, and what the door asks the access function.

use crate::messages::in_thread;
use crate::pages::{self, PAGES};
use crate::problem::Problem;
use crate::state::{ServerState, SharedState};
use crate::{
    admin, door, elsewhere, export, health, live, messages, metrics, people, presence, reactions, reading, reference,
    signing, threads,
};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use engine::access::Action;
use http::{HeaderName, Method, header};
use std::sync::Arc;
use std::time::Duration;
use tower_http::cors::{AllowOrigin, CorsLayer};
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Where live streams are.
pub(crate) const EVENTS: &str = "/v1/events";

/// Where backups are asked for.
const BACKUPS: &str = "/admin/backups";

/// How long a backup may take: as long as it takes to write a great node to a slow disk.
const BACKUP_SECONDS_MAX: u64 = 24 * 3600;

/// Where the store is checked.
const VERIFY: &str = "/admin/verify";

/// Where metrics are.
const METRICS: &str = "/metrics";

/// What every route does, as far as access is concerned. A route without a row does not exist.
pub(crate) const ACTIONS: &[(Method, &str, Action)] = &[
    (Method::GET, "/healthz", Action::Look),
    (Method::GET, "/readyz", Action::Look),
    (Method::GET, "/docs", Action::Look),
    (Method::GET, "/v1/openapi.json", Action::Look),
    (Method::GET, "/problems/{name}", Action::Look),
    (Method::GET, "/v1/threads", Action::Read),
    (Method::POST, "/v1/threads", Action::Write),
    (Method::GET, "/v1/threads/{thread}", Action::Read),
    (Method::PUT, "/v1/threads/{thread}", Action::Change),
    (Method::DELETE, "/v1/threads/{thread}", Action::Change),
    (Method::PUT, "/v1/threads/{thread}/read", Action::Own),
    (Method::GET, "/v1/threads/{thread}/messages", Action::Read),
    (Method::POST, "/v1/threads/{thread}/messages", Action::Write),
    (Method::GET, "/v1/threads/{thread}/messages/{id}", Action::Read),
    (Method::PUT, "/v1/threads/{thread}/messages/{id}", Action::Change),
    (Method::DELETE, "/v1/threads/{thread}/messages/{id}", Action::Change),
    (Method::GET, "/v1/threads/{thread}/messages/{id}/versions", Action::Read),
    (Method::GET, "/v1/threads/{thread}/messages/{id}/replies", Action::Read),
    (Method::GET, "/v1/threads/{thread}/messages/{id}/reactions", Action::Read),
    (Method::POST, "/v1/threads/{thread}/messages/{id}/reactions", Action::Write),
    (Method::DELETE, "/v1/threads/{thread}/messages/{id}/reactions/{identity}", Action::Write),
    (Method::GET, "/v1/messages", Action::Read),
    (Method::POST, "/v1/messages", Action::Write),
    (Method::GET, "/v1/messages/{id}", Action::Read),
    (Method::PUT, "/v1/messages/{id}", Action::Change),
    (Method::DELETE, "/v1/messages/{id}", Action::Change),
    (Method::GET, "/v1/messages/{id}/versions", Action::Read),
    (Method::GET, "/v1/messages/{id}/replies", Action::Read),
    (Method::GET, "/v1/messages/{id}/reactions", Action::Read),
    (Method::POST, "/v1/messages/{id}/reactions", Action::Write),
    (Method::DELETE, "/v1/messages/{id}/reactions/{identity}", Action::Write),
    (Method::POST, "/v1/threads/{thread}/typing", Action::Own),
    (Method::PUT, "/v1/presence", Action::Own),
    #[cfg(feature = "search")]
    (Method::GET, "/v1/search", Action::Read),
    (Method::GET, EVENTS, Action::Read),
    (Method::POST, "/v1/tickets", Action::Read),
    (Method::POST, "/v1/prepare", Action::Read),
    (Method::POST, "/v1/submit", Action::Read),
    (Method::GET, "/v1/mentions", Action::Own),
    (Method::GET, "/v1/blocks", Action::Own),
    (Method::PUT, "/v1/blocks/{user}", Action::Own),
    (Method::DELETE, "/v1/blocks/{user}", Action::Own),
    (Method::POST, "/v1/reports", Action::Own),
    (Method::DELETE, "/v1/members/{user}", Action::Own),
    (Method::GET, "/v1/export", Action::Own),
    (Method::POST, "/v1/_sign", Action::Vouch),
    (Method::GET, METRICS, Action::Operate),
    (Method::GET, "/admin/health", Action::Vouch),
    (Method::GET, "/admin/stats", Action::Vouch),
    (Method::GET, "/admin/api-keys", Action::Administer),
    (Method::POST, "/admin/api-keys", Action::Administer),
    (Method::DELETE, "/admin/api-keys/{id}", Action::Administer),
    (Method::POST, "/admin/api-keys/{id}/rotate", Action::Administer),
    (Method::GET, "/admin/signing-keys", Action::Administer),
    (Method::POST, "/admin/signing-keys", Action::Administer),
    (Method::DELETE, "/admin/signing-keys/{number}", Action::Administer),
    (Method::GET, "/admin/users", Action::Administer),
    (Method::PUT, "/admin/users/{user}", Action::Administer),
    (Method::DELETE, "/admin/users/{user}", Action::Administer),
    (Method::PUT, "/admin/identities/{identity}", Action::Administer),
    (Method::GET, "/admin/audit", Action::Administer),
    (Method::GET, "/admin/keys", Action::Administer),
    (Method::GET, "/admin/keys/{key}", Action::Administer),
    (Method::GET, "/admin/webhooks", Action::Administer),
    (Method::POST, "/admin/webhooks", Action::Administer),
    (Method::DELETE, "/admin/webhooks/{id}", Action::Administer),
    (Method::POST, "/admin/webhooks/{id}/test", Action::Administer),
    (Method::POST, "/admin/webhooks/{id}/rotate", Action::Administer),
    (Method::GET, "/admin/users/{user}/export", Action::Administer),
    (Method::POST, "/admin/users/{user}/erase", Action::Administer),
    (Method::GET, "/admin/jobs", Action::Administer),
    (Method::POST, "/admin/jobs", Action::Administer),
    (Method::GET, "/admin/jobs/{number}", Action::Administer),
    (Method::GET, "/admin/retention", Action::Administer),
    (Method::PUT, "/admin/retention", Action::Administer),
    (Method::DELETE, "/admin/retention", Action::Administer),
    (Method::GET, "/admin/retention/preview", Action::Administer),
    (Method::POST, "/admin/purge", Action::Administer),
    (Method::GET, "/admin/reports", Action::Administer),
    (Method::PUT, "/admin/reports/{number}", Action::Administer),
    (Method::POST, "/admin/retry", Action::Operate),
    (Method::POST, VERIFY, Action::Operate),
    (Method::DELETE, "/admin/spaces/{space}", Action::Operate),
    (Method::DELETE, "/admin/spaces/{space}/keys", Action::Operate),
    (Method::PUT, "/admin/spaces/{space}/protection", Action::Operate),
    (Method::GET, "/admin/spaces", Action::Operate),
    (Method::POST, "/admin/spaces", Action::Operate),
    (Method::POST, "/admin/links", Action::Operate),
    (Method::GET, BACKUPS, Action::Operate),
    (Method::POST, BACKUPS, Action::Operate),
];

/// What a route does; a `HEAD` is as its `GET`.
pub(crate) fn action(method: &Method, path: &str) -> Option<Action> {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let all = || ACTIONS.iter().chain(PAGES);
    all().find(|(other, route, _)| other == method && *route == path).map(|(.., action)| *action)
}

/// How long a request may take, where that is not what the settings say.
pub(crate) fn patience(method: &Method, path: &str) -> Option<Duration> {
    let is_long = method == Method::POST && [BACKUPS, VERIFY].contains(&path);
    is_long.then(|| Duration::from_secs(BACKUP_SECONDS_MAX))
}

/// The methods that a path takes, as `Allow` lists them.
pub(crate) fn methods(path: &str) -> String {
    let methods =
        ACTIONS.iter().chain(PAGES).filter(|(_, route, _)| *route == path).map(|(method, ..)| method.as_str());
    methods.collect::<Vec<_>>().join(", ")
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Anteroom", description = "Conversations on a node of your own: threads, messages, versions, \
        reactions, live streams. Writes answer when they are durable."),
    security(("key" = []), ("bearer" = [])),
    components(schemas(Problem, threads::Sort))
)]
struct Document;

fn documented() -> OpenApiRouter<SharedState> {
    let router = OpenApiRouter::with_openapi(Document::openapi());
    #[cfg(feature = "search")]
    let router = router.routes(routes!(crate::search::search));
    router
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(reference::page))
        .routes(routes!(reference::openapi))
        .routes(routes!(reference::problem))
        .routes(routes!(threads::list, threads::create))
        .routes(routes!(threads::get, threads::update, threads::delete))
        .routes(routes!(reading::mark))
        .routes(routes!(in_thread::list, in_thread::create))
        .routes(routes!(in_thread::get, in_thread::edit, in_thread::delete))
        .routes(routes!(in_thread::versions))
        .routes(routes!(in_thread::replies))
        .routes(routes!(reactions::list_in_thread, reactions::add_in_thread))
        .routes(routes!(reactions::remove_in_thread))
        .routes(routes!(messages::list, messages::create))
        .routes(routes!(messages::get, messages::edit, messages::delete))
        .routes(routes!(messages::versions))
        .routes(routes!(messages::replies))
        .routes(routes!(reactions::list, reactions::add))
        .routes(routes!(reactions::remove))
        .routes(routes!(presence::typing))
        .routes(routes!(presence::presence))
        .routes(routes!(live::events))
        .routes(routes!(live::ticket))
        .routes(routes!(elsewhere::prepare))
        .routes(routes!(elsewhere::submit))
        .routes(routes!(people::mentions))
        .routes(routes!(people::blocks))
        .routes(routes!(people::block, people::unblock))
        .routes(routes!(people::report))
        .routes(routes!(people::leave))
        .routes(routes!(export::own))
        .routes(routes!(signing::sign))
        .merge(administered())
}

/// The routes of those who administer.
fn administered() -> OpenApiRouter<SharedState> {
    OpenApiRouter::new()
        .routes(routes!(metrics::metrics))
        .routes(routes!(admin::health))
        .routes(routes!(admin::stats))
        .routes(routes!(admin::keys::list, admin::keys::create))
        .routes(routes!(admin::keys::end))
        .routes(routes!(admin::keys::rotate))
        .routes(routes!(admin::signing_keys::list, admin::signing_keys::create))
        .routes(routes!(admin::signing_keys::end))
        .routes(routes!(admin::users::list))
        .routes(routes!(admin::users::put, admin::users::remove))
        .routes(routes!(admin::identities::put))
        .routes(routes!(admin::audit))
        .routes(routes!(admin::explorer::list))
        .routes(routes!(admin::explorer::get))
        .routes(routes!(admin::webhooks::list, admin::webhooks::create))
        .routes(routes!(admin::webhooks::end))
        .routes(routes!(admin::webhooks::test))
        .routes(routes!(admin::webhooks::rotate))
        .routes(routes!(export::of_user))
        .routes(routes!(admin::upkeep::erase))
        .routes(routes!(admin::jobs::list, admin::jobs::create))
        .routes(routes!(admin::jobs::get))
        .routes(routes!(admin::retention::list, admin::retention::put, admin::retention::lift))
        .routes(routes!(admin::retention::preview))
        .routes(routes!(admin::upkeep::purge))
        .routes(routes!(admin::upkeep::reports))
        .routes(routes!(admin::upkeep::settle))
        .routes(routes!(admin::upkeep::retry))
        .routes(routes!(admin::upkeep::verify))
        .routes(routes!(admin::upkeep::end_space))
        .routes(routes!(admin::upkeep::destroy_keys))
        .routes(routes!(admin::upkeep::protect))
        .routes(routes!(admin::spaces::list, admin::spaces::found))
        .routes(routes!(admin::links::create))
        .routes(routes!(admin::backups::status, admin::backups::create))
}

/// The OpenAPI document.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = documented().split_for_parts().1;
    let components = document.components.get_or_insert_default();
    let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key")));
    let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    components.security_schemes.insert("key".to_owned(), key.into());
    components.security_schemes.insert("bearer".to_owned(), bearer.into());
    for (path, item) in &mut document.paths.paths {
        let operations = [("get", &mut item.get), ("post", &mut item.post), ("put", &mut item.put)];
        for (method, operation) in operations.into_iter().chain([("delete", &mut item.delete)]) {
            if let Some(operation) = operation {
                operation.operation_id = Some(operation_id(method, path));
            }
        }
    }
    document
}

/// A name for an operation that generated clients can use: `get_threads_thread_messages`.
fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    std::iter::once(method).chain(words.filter(|word| *word != "v1")).collect::<Vec<_>>().join("_")
}

/// Browsers may call from these origins. Nothing is reflected, and no cookies are taken along.
fn cors(origins: &[String]) -> CorsLayer {
    let origins = origins.iter().filter_map(|origin| origin.parse().ok());
    let headers = ["x-api-key", "x-user-id", "x-user-signature", "idempotency-key", "last-event-id"];
    let headers = headers.map(HeaderName::from_static).into_iter().chain([header::AUTHORIZATION, header::CONTENT_TYPE]);
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers(headers.collect::<Vec<_>>())
        .expose_headers([header::RETRY_AFTER])
        .max_age(Duration::from_secs(3600))
}

/// The router, with the door in front of every route.
pub(crate) fn router(state: &Arc<ServerState>) -> Router {
    let shared = SharedState(state.clone());
    let limit = state.options.limits.body_bytes_max;
    let pages = pages::router()
        .method_not_allowed_fallback(|| async { Problem::method("this page takes other methods") })
        .route_layer(from_fn_with_state(shared.clone(), pages::typed::keep))
        .route_layer(from_fn_with_state(shared.clone(), door::enter))
        .layer(from_fn(pages::render_problems_as_html));
    documented()
        .split_for_parts()
        .0
        .method_not_allowed_fallback(|| async { Problem::method("this path takes other methods") })
        .route_layer(from_fn_with_state(shared.clone(), door::enter))
        .merge(pages)
        .fallback(pages::nowhere)
        .layer(DefaultBodyLimit::max(limit))
        .layer(cors(&state.options.origins))
        .with_state(shared)
}

/// The router of a listener that serves metrics and nothing else, to whoever reaches it.
pub(crate) fn metrics_router(state: &Arc<ServerState>) -> Router {
    Router::new().route(METRICS, axum::routing::get(metrics::metrics)).with_state(SharedState(state.clone()))
}
