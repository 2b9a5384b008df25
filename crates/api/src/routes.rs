//! The table of all routes of the API.
//!
//! A row says: method, path, what it does as far as access is concerned, which handler answers, and what the OpenAPI
//! document says of it. The router, the access check, `Allow` headers, timeouts and the document are made from it.

mod administration;
mod conversations;

use crate::documentation::Doc;
use crate::reference::Reference;
use crate::state::ApiState;
use crate::{health, reference};
use axum::middleware::from_fn;
use server::app::authenticated;
use server::conditional::conditional;
use server::routes::{Route, RouteRule};
use server::{AppPart, Problem, ServerState, SharedState};
use std::sync::Arc;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme,
};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Paths};
use utoipa::{PartialSchema as _, ToSchema as _};

const TITLE: &str = "Anteroom";
const DESCRIPTION: &str = "Conversations on a node of your own: threads, messages, versions, reactions, live streams. \
    Writes answer when they are durable.";

/// A row of the table.
struct ApiRoute {
    route: Route<ApiState>,
    doc: Doc,
}

impl ApiRoute {
    /// The route, whose query string may have what its documentation says, and which takes the conditions that it says.
    fn into_route(self) -> Route<ApiState> {
        let conditions = self.doc.conditions(&self.route.rule.method);
        let route = self.route.with_body_factor(self.doc.body_factor).with_conditions(conditions);
        match self.doc.query_names() {
            Some(names) => route.with_query(names),
            None => route,
        }
    }
}

/// Rows under one heading of the reference: method, path, action, handler, and perhaps in brackets how long it may take;
/// then a summary, and what [`Doc`] is told of parameters, body and answers.
macro_rules! api_routes {
    ($tag:literal; $(
        $(#[$cfg:meta])*
        $method:ident $path:literal $action:ident $handler:path $([$timeout:expr])?,
        $summary:literal $(, $said:ident $(::<$type:ty>)? ($($argument:expr),*))*;
    )*) => {
        Vec::from([$(
            $(#[$cfg])*
            crate::routes::ApiRoute {
                route: server::routes::Route::$method($path, engine::access::Action::$action, $handler)
                    $(.with_timeout($timeout))?,
                doc: crate::documentation::doc($tag, $summary)$(.$said$(::<$type>)?($($argument),*))*,
            }
        ),*])
    };
}
use api_routes;

fn health() -> Vec<ApiRoute> {
    api_routes! { "health";
        get "/healthz" Look health::live,
            "Whether the process answers", answers::<health::Health>(200), without_key();
        get "/readyz" Look health::ready,
            "Whether the node reads and writes", answers::<health::Health>(200), problem("503"), without_key();
    }
}

fn reference() -> Vec<ApiRoute> {
    api_routes! { "reference";
        get "/docs" Look reference::page,
            "This reference as a page", answers_media("A page", "text/html"), without_key();
        get "/v1/openapi.json" Look reference::openapi,
            "The OpenAPI document", answers_media("OpenAPI 3.1", "application/json"), without_key();
        get "/problems/{name}" Look reference::problem,
            "What a problem means", answers_media("Text", "text/plain"), problem("404"), without_key();
    }
}

fn all() -> Vec<ApiRoute> {
    let tables = [health(), reference(), conversations::routes(), administration::routes()];
    tables.into_iter().flatten().collect()
}

/// The routes of the API, behind authentication.
pub fn part(state: &Arc<ServerState>) -> AppPart {
    let server = SharedState(state.clone());
    let reference = Arc::new(Reference::new(&openapi()));
    let api = ApiState { server: server.clone(), reference, verifying: Default::default() };
    let (bytes, json): (Vec<_>, Vec<_>) = all().into_iter().partition(|row| row.doc.is_uncompressed);
    let router = |rows: Vec<ApiRoute>| {
        let routes = rows.into_iter().map(ApiRoute::into_route).collect();
        authenticated(&server, api.clone(), routes, |router| router.layer(from_fn(conditional)), None)
    };
    let compression = CompressionLayer::new().quality(CompressionLevel::Fastest);
    AppPart { router: router(json).layer(compression).merge(router(bytes)), tasks: Vec::new() }
}

/// What is asked of a request to each route before its handler runs.
pub fn rules() -> Vec<RouteRule> {
    all().into_iter().map(|row| row.into_route().rule).collect()
}

/// The OpenAPI document.
pub fn openapi() -> OpenApi {
    let key = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-API-Key")));
    let bearer = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    let components = ComponentsBuilder::new().security_scheme("key", key).security_scheme("bearer", bearer);
    let components = components.schema(Problem::name(), Problem::schema());
    let sort = crate::threads::Sort::schema();
    let (mut components, mut paths) = (
        components.schema("Sort", sort).schema("SortField", crate::progressdb::SortField::schema()).build(),
        Paths::new(),
    );
    for ApiRoute { route, doc } in all() {
        doc.enter(&route.rule.method, route.rule.path, &mut paths, &mut components);
    }
    let info = InfoBuilder::new().title(TITLE).version(env!("CARGO_PKG_VERSION")).description(Some(DESCRIPTION));
    let security = ["key", "bearer"].map(|name| SecurityRequirement::new(name, [] as [&str; 0]));
    let document = OpenApiBuilder::new().info(info.build()).paths(paths).components(Some(components));
    document.security(Some(security)).build()
}
