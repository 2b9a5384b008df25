//! The application: the routes that other crates bring, behind authentication, and the tasks that run beside them.

use crate::auth::{Authentication, OnRefused, authenticate};
use crate::background::BackgroundTask;
use crate::problem::Problem;
use crate::routes::{Route, RouteTable};
use crate::state::{ServerState, SharedState};
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use http::{HeaderName, Method, header};
use std::sync::Arc;
use std::time::Duration;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// What one crate brings: a router whose routes are authenticated, and tasks.
#[derive(Debug, Default)]
pub struct AppPart {
    pub router: Router,
    pub tasks: Vec<BackgroundTask>,
}

/// Something that looks at requests before anything else does.
struct OutsideLayer(Box<dyn Fn(Router) -> Router + Send + Sync>);

impl std::fmt::Debug for OutsideLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OutsideLayer")
    }
}

/// All parts together, ready to be served.
#[derive(Debug)]
pub struct App {
    pub(crate) state: Arc<ServerState>,
    router: Router,
    outside: Vec<OutsideLayer>,
    pub(crate) tasks: Vec<BackgroundTask>,
}

impl App {
    /// Without any route: every path answers that there is none.
    pub fn new(state: Arc<ServerState>) -> App {
        let router = Router::new().fallback(|| async { Problem::not_found("there is no such path") });
        App { state, router, outside: Vec::new(), tasks: Vec::new() }
    }

    /// With the routes and tasks of a part. No two parts have the same path.
    pub fn with(mut self, part: AppPart) -> App {
        self.router = self.router.merge(part.router);
        self.tasks.extend(part.tasks);
        self
    }

    /// With a task beside the requests.
    pub fn with_task(mut self, task: BackgroundTask) -> App {
        self.tasks.push(task);
        self
    }

    /// With something that looks at requests before anything else does, also before what holds for every request.
    pub fn map_router(mut self, change: impl Fn(Router) -> Router + Send + Sync + 'static) -> App {
        self.outside.push(OutsideLayer(Box::new(change)));
        self
    }

    /// With another answer for a path that no part has.
    pub fn with_fallback<H: Handler<T, ()>, T: 'static>(mut self, handler: H) -> App {
        self.router = self.router.fallback(handler);
        self
    }

    /// The router, with what holds for every request.
    pub fn router(&self) -> Router {
        let limit = self.state.options.limits.body_bytes_max;
        let router = self.router.clone().layer(DefaultBodyLimit::max(limit)).layer(cors(&self.state.options.origins));
        self.outside.iter().fold(router, |router, layer| (layer.0)(router))
    }
}

/// A router of these routes, each behind authentication and the access check.
///
/// `inner` adds what runs after authentication and before the handlers; `on_refused` may add to the answer to a request
/// that was refused because nobody was proven.
pub fn authenticated<S: Clone + Send + Sync + 'static>(
    server: &SharedState,
    state: S,
    routes: Vec<Route<S>>,
    inner: impl FnOnce(Router<S>) -> Router<S>,
    on_refused: Option<OnRefused>,
) -> Router {
    let (router, table) = RouteTable::build(routes);
    let authentication = Authentication { state: server.clone(), routes: Arc::new(table), on_refused };
    let router = router.method_not_allowed_fallback(|| async { Problem::method("this path takes other methods") });
    inner(router).route_layer(from_fn_with_state(authentication, authenticate)).with_state(state)
}

/// Browsers may call from these origins. Nothing is reflected, and no cookies are taken along.
fn cors(origins: &[String]) -> CorsLayer {
    let origins = origins.iter().filter_map(|origin| origin.parse().ok());
    let headers = [
        "x-api-key",
        "x-user-id",
        "x-user-signature",
        "idempotency-key",
        "last-event-id",
        "if-match",
        "if-none-match",
        "content-digest",
        "range",
        "tus-resumable",
        "upload-length",
        "upload-metadata",
        "upload-offset",
    ];
    let headers = headers.map(HeaderName::from_static).into_iter().chain([header::AUTHORIZATION, header::CONTENT_TYPE]);
    let exposed = ["tus-resumable", "upload-length", "upload-offset", "upload-expires"].map(HeaderName::from_static);
    let exposed =
        exposed.into_iter().chain([header::RETRY_AFTER, header::ETAG, header::LOCATION, header::CONTENT_RANGE]);
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers(headers.collect::<Vec<_>>())
        .expose_headers(exposed.collect::<Vec<_>>())
        .max_age(Duration::from_secs(3600))
}
