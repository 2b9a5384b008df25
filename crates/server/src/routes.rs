//! One row for each route: method, path, what it does as far as access is concerned, and its handler.
//!
//! A router is made of rows and of nothing else, so there is no route that the access check does not know, and no row
//! without a route.

use crate::problem::Problem;
use axum::Router;
use axum::handler::Handler;
use axum::routing::{self, MethodRouter};
use engine::access::Action;
use http::Method;
use std::collections::HashMap;
use std::time::Duration;

/// As much of the name of an unknown parameter is repeated.
const NAMED_CHARS_MAX: usize = 64;

/// Which conditional requests a route takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RouteConditions {
    /// None: there is no tag to compare with, and `If-Match` is refused.
    #[default]
    Untagged,
    /// Its answers have an `ETag`, and `If-None-Match` is honoured (304).
    Tagged,
    /// It changes what the `GET` of its path shows, and honours `If-Match` (412).
    Compared,
}

/// What is asked of a request before its handler runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteRule {
    pub method: Method,
    pub path: &'static str,
    pub action: Action,
    /// How long a request may take, where that is not what the settings say.
    pub timeout: Option<Duration>,
    /// How many times as large as others its bodies may be.
    pub body_factor: usize,
    /// The parameters that its query string may have; any, if nothing is said.
    pub query: Option<Vec<String>>,
    pub conditions: RouteConditions,
}

impl RouteRule {
    /// Refuses a parameter that nobody would read: whoever sends it expects something of it. Sessions name their space
    /// with one, on any path.
    pub(crate) fn check_query(&self, query: &str, is_session: bool) -> Result<(), Problem> {
        let Some(known) = &self.query else { return Ok(()) };
        let unknown = form_urlencoded::parse(query.as_bytes())
            .find(|(name, _)| !(known.iter().any(|other| other == name) || is_session && name == "space"));
        let Some((name, _)) = unknown else { return Ok(()) };
        let name: String = name.chars().take(NAMED_CHARS_MAX).collect();
        let takes = if known.is_empty() { "no parameters".to_owned() } else { known.join(", ") };
        Err(Problem::bad_request(format!("there is no query parameter {name:?} here; this path takes {takes}")))
    }
}

/// A rule and the handler behind it.
#[derive(Debug)]
pub struct Route<S> {
    pub rule: RouteRule,
    handler: MethodRouter<S>,
}

impl<S: Clone + Send + Sync + 'static> Route<S> {
    fn new(method: Method, path: &'static str, action: Action, handler: MethodRouter<S>) -> Route<S> {
        let conditions = RouteConditions::default();
        let rule = RouteRule { method, path, action, timeout: None, body_factor: 1, query: None, conditions };
        Route { rule, handler }
    }

    pub fn get<H: Handler<T, S>, T: 'static>(path: &'static str, action: Action, handler: H) -> Route<S> {
        Route::new(Method::GET, path, action, routing::get(handler))
    }

    pub fn post<H: Handler<T, S>, T: 'static>(path: &'static str, action: Action, handler: H) -> Route<S> {
        Route::new(Method::POST, path, action, routing::post(handler))
    }

    pub fn put<H: Handler<T, S>, T: 'static>(path: &'static str, action: Action, handler: H) -> Route<S> {
        Route::new(Method::PUT, path, action, routing::put(handler))
    }

    pub fn patch<H: Handler<T, S>, T: 'static>(path: &'static str, action: Action, handler: H) -> Route<S> {
        Route::new(Method::PATCH, path, action, routing::patch(handler))
    }

    pub fn delete<H: Handler<T, S>, T: 'static>(path: &'static str, action: Action, handler: H) -> Route<S> {
        Route::new(Method::DELETE, path, action, routing::delete(handler))
    }

    /// A route whose query string may have these parameters, and no others.
    pub fn with_query(mut self, names: Vec<String>) -> Route<S> {
        self.rule.query = Some(names);
        self
    }

    /// A route whose bodies may be so many times as large as others.
    pub fn with_body_factor(mut self, factor: usize) -> Route<S> {
        self.rule.body_factor = factor;
        self
    }

    /// A route that takes these conditional requests.
    pub fn with_conditions(mut self, conditions: RouteConditions) -> Route<S> {
        self.rule.conditions = conditions;
        self
    }

    /// A route whose requests may take longer than others.
    pub fn with_timeout(mut self, timeout: Duration) -> Route<S> {
        self.rule.timeout = Some(timeout);
        self
    }
}

/// The rules of a router, by path.
#[derive(Debug, Default)]
pub struct RouteTable(HashMap<&'static str, Vec<RouteRule>>);

impl RouteTable {
    /// A router of these routes, and their rules.
    pub fn build<S: Clone + Send + Sync + 'static>(routes: Vec<Route<S>>) -> (Router<S>, RouteTable) {
        let mut table: HashMap<&'static str, Vec<RouteRule>> = HashMap::new();
        let mut router = Router::new();
        for Route { rule, handler } in routes {
            router = router.route(rule.path, handler);
            table.entry(rule.path).or_default().push(rule);
        }
        (router, RouteTable(table))
    }

    /// The rule of a route; a `HEAD` is as its `GET`.
    pub fn rule(&self, method: &Method, path: &str) -> Option<&RouteRule> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.0.get(path)?.iter().find(|rule| rule.method == method)
    }

    /// The methods that a path takes, as `Allow` lists them.
    pub fn allowed_methods(&self, path: &str) -> String {
        let rules = self.0.get(path).map(Vec::as_slice).unwrap_or_default();
        rules.iter().map(|rule| rule.method.as_str()).collect::<Vec<_>>().join(", ")
    }
}
