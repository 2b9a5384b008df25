//! The web page: everything that people see in a browser. See docs/PAGES.md.
//!
//! Handlers look things up with the queries of the API and hand acts to the same writer; the door and the access function
//! are the same. What is here is HTML, and how people come in.

mod account;
mod assets;
mod entering;
mod html_messages;
mod inside;
mod markdown;
mod message;
mod one;
#[cfg(feature = "passkeys")]
mod passkeys;
mod passwords;
mod people;
pub(crate) mod plots;
mod reports;
mod searching;
mod shell;
mod talk;
mod threads;
pub(crate) mod typed;
mod waiting;

pub(crate) use entering::OperatorLinks;
#[cfg(feature = "passkeys")]
pub(crate) use passkeys::Challenges;
pub(crate) use passwords::PasswordSlots;

use crate::door::sessions;
use crate::problem::Problem;
use crate::state::SharedState;
use axum::Router;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use engine::access::Action;
use http::{HeaderMap, Method, Uri, header};

/// What every page does, as far as access is concerned. A page without a row does not exist.
pub(crate) const PAGES: &[(Method, &str, Action)] = &[
    (Method::GET, "/", Action::Look),
    (Method::GET, "/assets/{file}", Action::Look),
    (Method::GET, "/in", Action::Look),
    (Method::POST, "/in", Action::Look),
    (Method::GET, "/in/{link}", Action::Look),
    (Method::POST, "/in/{link}", Action::Look),
    (Method::GET, "/join/{link}", Action::Look),
    (Method::POST, "/join/{link}", Action::Look),
    (Method::POST, "/out", Action::Look),
    (Method::GET, "/me", Action::Own),
    (Method::POST, "/me/password", Action::Own),
    (Method::POST, "/me/profile", Action::Own),
    (Method::POST, "/me/picture", Action::Own),
    (Method::POST, "/me/sessions", Action::Own),
    #[cfg(feature = "passkeys")]
    (Method::POST, "/passkey", Action::Look),
    #[cfg(feature = "passkeys")]
    (Method::POST, "/passkey/begin", Action::Look),
    #[cfg(feature = "passkeys")]
    (Method::POST, "/join/{link}/passkey", Action::Look),
    #[cfg(feature = "passkeys")]
    (Method::POST, "/join/{link}/passkey/begin", Action::Look),
    #[cfg(feature = "passkeys")]
    (Method::POST, "/me/passkey", Action::Own),
    #[cfg(feature = "passkeys")]
    (Method::POST, "/me/passkey/begin", Action::Own),
    #[cfg(feature = "passkeys")]
    (Method::POST, "/me/passkey/forget", Action::Own),
    (Method::GET, "/s/{space}", Action::Read),
    (Method::POST, "/s/{space}", Action::Write),
    (Method::GET, "/s/{space}/picture/{user}", Action::Read),
    (Method::GET, "/s/{space}/search", Action::Read),
    (Method::GET, "/s/{space}/mentions", Action::Own),
    (Method::GET, "/s/{space}/reports", Action::Administer),
    (Method::POST, "/s/{space}/reports", Action::Administer),
    (Method::GET, "/s/{space}/t/{thread}", Action::Read),
    (Method::POST, "/s/{space}/t/{thread}", Action::Write),
    (Method::GET, "/s/{space}/t/{thread}/part", Action::Read),
    (Method::POST, "/s/{space}/t/{thread}/read", Action::Own),
    (Method::POST, "/s/{space}/t/{thread}/change", Action::Change),
    (Method::GET, "/s/{space}/m/{id}", Action::Read),
    (Method::GET, "/s/{space}/m/{id}/part", Action::Read),
    (Method::POST, "/s/{space}/m/{id}/edit", Action::Change),
    (Method::POST, "/s/{space}/m/{id}/delete", Action::Change),
    (Method::POST, "/s/{space}/m/{id}/pin", Action::Change),
    (Method::POST, "/s/{space}/m/{id}/react", Action::Write),
    (Method::POST, "/s/{space}/m/{id}/report", Action::Own),
    (Method::GET, "/s/{space}/people", Action::Read),
    (Method::POST, "/s/{space}/people/{user}/talk", Action::Write),
    (Method::POST, "/s/{space}/people/{user}/distance", Action::Own),
    (Method::POST, "/s/{space}/people/{user}/role", Action::Administer),
    (Method::POST, "/s/{space}/invite", Action::Administer),
    (Method::POST, "/s/{space}/uninvite", Action::Administer),
    (Method::GET, "/anteroom", Action::Operate),
    (Method::POST, "/anteroom", Action::Operate),
    (Method::GET, "/anteroom/{event}", Action::Operate),
    (Method::GET, "/inside", Action::Operate),
    (Method::GET, "/inside/keys", Action::Operate),
    (Method::GET, "/inside/event/{event}", Action::Operate),
    (Method::GET, "/inside/jobs", Action::Operate),
    (Method::GET, "/inside/audit", Action::Operate),
    (Method::GET, "/inside/settings", Action::Operate),
];

/// The router of the pages, without the door.
pub(crate) fn router() -> Router<SharedState> {
    by_passkey(Router::new())
        .route("/", get(entering::home))
        .route("/assets/{file}", get(assets::get))
        .route("/in", get(entering::form).post(entering::sign_in))
        .route("/in/{link}", get(entering::link).post(entering::use_link))
        .route("/join/{link}", get(entering::invitation).post(entering::join))
        .route("/out", post(entering::out))
        .route("/me", get(account::page))
        .route("/me/password", post(account::password))
        .route("/me/profile", post(account::profile))
        .route("/me/picture", post(account::picture))
        .route("/me/sessions", post(account::sessions))
        .route("/s/{space}", get(threads::page).post(threads::open))
        .route("/s/{space}/picture/{user}", get(account::picture_of))
        .route("/s/{space}/search", get(searching::page))
        .route("/s/{space}/mentions", get(searching::mentions))
        .route("/s/{space}/reports", get(reports::page).post(reports::settle))
        .route("/s/{space}/t/{thread}", get(talk::page).post(talk::post))
        .route("/s/{space}/t/{thread}/part", get(talk::part))
        .route("/s/{space}/t/{thread}/read", post(talk::read))
        .route("/s/{space}/t/{thread}/change", post(talk::change))
        .route("/s/{space}/m/{id}", get(one::page))
        .route("/s/{space}/m/{id}/part", get(one::part))
        .route("/s/{space}/m/{id}/edit", post(one::edit))
        .route("/s/{space}/m/{id}/delete", post(one::delete))
        .route("/s/{space}/m/{id}/pin", post(one::pin))
        .route("/s/{space}/m/{id}/react", post(one::react))
        .route("/s/{space}/m/{id}/report", post(one::report))
        .route("/s/{space}/people", get(people::page))
        .route("/s/{space}/people/{user}/talk", post(people::talk))
        .route("/s/{space}/people/{user}/distance", post(people::distance))
        .route("/s/{space}/people/{user}/role", post(people::role))
        .route("/s/{space}/invite", post(people::invite))
        .route("/s/{space}/uninvite", post(people::uninvite))
        .route("/anteroom", get(waiting::page).post(waiting::retry))
        .route("/anteroom/{event}", get(waiting::story))
        .route("/inside", get(inside::page))
        .route("/inside/keys", get(inside::keys))
        .route("/inside/event/{event}", get(inside::event))
        .route("/inside/jobs", get(inside::jobs))
        .route("/inside/audit", get(inside::audit))
        .route("/inside/settings", get(inside::settings))
}

#[cfg(not(feature = "passkeys"))]
fn by_passkey(router: Router<SharedState>) -> Router<SharedState> {
    router
}

#[cfg(feature = "passkeys")]
fn by_passkey(router: Router<SharedState>) -> Router<SharedState> {
    router
        .route("/passkey", post(passkeys::come_in))
        .route("/passkey/begin", post(passkeys::ask))
        .route("/join/{link}/passkey", post(passkeys::join))
        .route("/join/{link}/passkey/begin", post(passkeys::begin_joining))
        .route("/me/passkey", post(passkeys::add))
        .route("/me/passkey/begin", post(passkeys::begin_adding))
        .route("/me/passkey/forget", post(passkeys::forget))
}

/// There is no such path: a page for people, a problem for programs.
pub(crate) async fn nowhere(headers: HeaderMap) -> Response {
    let problem = Problem::not_found("there is no such path");
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accepted.contains("text/html") {
        return problem.into_response();
    }
    let mut response = shell::problem(&problem, &typed::FormReplay::default());
    shell::protect(response.headers_mut());
    response
}

/// The path of the page that a form was on.
fn came_from(headers: &HeaderMap) -> Option<String> {
    let page: Uri = headers.get(header::REFERER)?.to_str().ok()?.parse().ok()?;
    Some(page.path().to_owned())
}

/// Tells the browser what it may do, and dresses problems as pages; without a session the page to sign in is shown.
pub(crate) async fn render_problems_as_html(request: Request, next: Next) -> Response {
    // Where to go after signing in: a form is sent from the page before.
    let path = match *request.method() {
        Method::GET => request.uri().path_and_query().map(ToString::to_string).unwrap_or_default(),
        _ => came_from(request.headers()).unwrap_or_else(|| "/".to_owned()),
    };
    let wants_page = request.headers().get("x-part").is_none();
    // Also where nobody is signed in yet: whoever is made to sign in would write into somebody else's account.
    let is_foreign = request.method() == Method::POST && !sessions::is_from_here(request.headers(), request.uri());
    let mut response = match is_foreign {
        true => Problem::foreign("the request comes from another site").into_response(),
        false => next.run(request).await,
    };
    if wants_page && let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let typed = response.extensions_mut().remove::<typed::FormReplay>().unwrap_or_default();
        response = match problem.kind.as_str() {
            "/problems/unproven" => entering::asked(&path, &typed),
            _ => shell::problem(&problem, &typed),
        };
    }
    shell::protect(response.headers_mut());
    response
}
