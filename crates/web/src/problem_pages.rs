//! Problems as pages that people can read.

use crate::form_replay::FormReplay;
use crate::shell::{self, PageFrame, respond, sentence};
use crate::sign_in;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use maud::html;
use server::Problem;
use server::auth::sessions;

/// Answers a path that nothing has: a page for people, a problem for programs.
pub async fn answer_unknown_path(headers: HeaderMap) -> Response {
    let problem = Problem::not_found("there is no such path");
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accepted.contains("text/html") {
        return problem.into_response();
    }
    let mut response = problem_page(&problem, &FormReplay::default());
    shell::set_security_headers(response.headers_mut());
    response
}

/// The path of the page that a form was on.
fn came_from(headers: &HeaderMap) -> Option<String> {
    let page: Uri = headers.get(header::REFERER)?.to_str().ok()?.parse().ok()?;
    Some(page.path().to_owned())
}

/// Tells the browser what it may do, and renders problems as pages; without a session the page to sign in is shown.
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
        let typed = response.extensions_mut().remove::<FormReplay>().unwrap_or_default();
        response = match problem.kind.as_str() {
            "/problems/unproven" => sign_in::ask_to_sign_in(&path, &typed),
            _ => problem_page(&problem, &typed),
        };
    }
    shell::set_security_headers(response.headers_mut());
    response
}

/// A problem as people read it.
fn problem_page(problem: &Problem, typed: &FormReplay) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = html! {
        section.card {
            h1 { (problem.title) }
            p { (sentence(&problem.detail)) }
            p.note {
                "What to do: " (action_for_people(problem))
                @if let Some(seconds) = problem.retry_after { " (" (seconds) @if seconds == 1 { " second" } @else { " seconds" } ")" } "."
            }
            (typed.markup())
            p { a href="/" { "Back to the beginning" } }
        }
    };
    let mut response = respond(status, PageFrame::bare(problem.title).page(&body).into_string());
    if let Some(seconds) = problem.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// What to do, for somebody at a page: where nothing in particular is said, the advice for programs helps nobody.
fn action_for_people(problem: &Problem) -> &'static str {
    let slug = problem.kind.trim_start_matches("/problems/");
    let is_general = Problem::ALL.iter().any(|(known, _, _, action)| *known == slug && *action == problem.action);
    match (is_general, slug) {
        (false, _) => problem.action,
        (true, "not-found") => "check the address, or go back to the beginning",
        (true, "forbidden") => "ask an admin of the space, if it should be otherwise",
        (true, "conflict" | "unprocessable" | "bad-request") => "go back, change it, and try again",
        (true, "too-large") => "make it shorter, or send it in parts",
        (true, "too-often" | "overloaded") => "wait a moment, and try again",
        (true, "media-type" | "method" | "slow") => "go back, and try again",
        (true, _) => problem.action,
    }
}
