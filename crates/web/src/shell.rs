//! What surrounds every page: head, navigation, and the headers that say what a browser may do.

use crate::assets;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, html};
use server::context::{PageSession, RequestContext};

/// Nothing but what this node serves, no frames, no plugins, forms to this node only.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'; manifest-src 'self'",
);

/// Sets the headers that say what a browser may do with a page.
pub(crate) fn set_security_headers(headers: &mut HeaderMap) {
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ];
    for (name, value) in fixed {
        headers.entry(name).or_insert(value);
    }
    // What one person sees is in no cache for the next.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// Where a page is, in the navigation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum NavItem {
    Threads,
    People,
    Files,
    Waiting,
    Inside,
    Code,
    You,
    Elsewhere,
}

/// What a page says around its body.
pub(crate) struct PageFrame<'a> {
    pub(crate) title: &'a str,
    pub(crate) here: NavItem,
    /// The space that it is about.
    pub(crate) space: Option<&'a str>,
    pub(crate) session: Option<&'a PageSession>,
    /// The journal position that it was read at, for the script.
    pub(crate) position: Option<String>,
    /// The thread that it shows, for the script.
    pub(crate) thread: Option<&'a str>,
}

impl<'a> PageFrame<'a> {
    pub(crate) fn new(title: &'a str, here: NavItem, context: &'a RequestContext) -> PageFrame<'a> {
        PageFrame { title, here, space: None, session: context.session.as_ref(), position: None, thread: None }
    }

    pub(crate) fn bare(title: &'a str) -> PageFrame<'a> {
        PageFrame { title, here: NavItem::Elsewhere, space: None, session: None, position: None, thread: None }
    }

    pub(crate) fn of(mut self, space: &'a str) -> PageFrame<'a> {
        self.space = Some(space);
        self
    }

    fn link(&self, here: NavItem, to: &str, text: &str) -> Markup {
        html! { a href=(to) aria-current=[(self.here == here).then_some("page")] { (text) } }
    }

    fn navigation(&self) -> Markup {
        let Some(session) = self.session else {
            return html! {
                header.top {
                    a.brand href="/" { "Anteroom" }
                    @if self.here == NavItem::Code {
                        nav aria-label="Main" { (self.link(NavItem::Code, "/repositories", "Code")) }
                    }
                }
            };
        };
        let own = self.space.unwrap_or_default();
        html! {
            header.top {
                a.brand href="/" { "Anteroom" }
                nav aria-label="Main" {
                    @if !own.is_empty() {
                        (self.link(NavItem::Threads, &format!("/s/{own}"), "Threads"))
                        (self.link(NavItem::People, &format!("/s/{own}/people"), "People"))
                        (self.link(NavItem::Files, &format!("/s/{own}/files"), "Files"))
                    } @else {
                        (self.link(NavItem::Threads, "/", "Threads"))
                    }
                    @if session.hosts_git { (self.link(NavItem::Code, "/repositories", "Code")) }
                    @if session.is_operator {
                        (self.link(NavItem::Waiting, "/anteroom", "Waiting"))
                        (self.link(NavItem::Inside, "/inside", "Inside"))
                    }
                    (self.link(NavItem::You, "/me", "You"))
                }
                @if !own.is_empty() {
                    form.find role="search" aria-label="Messages" action={ "/s/" (own) "/search" } {
                        input type="search" name="q" aria-label="Search messages" placeholder="Search" required;
                    }
                }
            }
        }
    }

    /// The whole page.
    pub(crate) fn page(&self, body: &Markup) -> Markup {
        let user = self.session.map(|session| session.user.as_str());
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Anteroom" }
                    link rel="stylesheet" href=(assets::style());
                    link rel="icon" href=(assets::icon());
                    @for module in assets::imported_modules() { link rel="modulepreload" href=(module); }
                    script type="module" src=(assets::entry_module()) {}
                }
                body data-user=[user] data-space=[self.space] data-position=[self.position.as_deref()]
                    data-thread=[self.thread] {
                    a.skip href="#main" { "Skip to content" }
                    (self.navigation())
                    main #main tabindex="-1" { (body) }
                }
            }
        }
    }

    pub(crate) fn respond(&self, body: &Markup) -> Response {
        respond(StatusCode::OK, self.page(body).into_string())
    }
}

/// HTML as an answer.
pub(crate) fn respond(status: StatusCode, text: String) -> Response {
    (status, [(header::CONTENT_TYPE, "text/html; charset=utf-8")], text).into_response()
}

/// Sends the browser to another page, after something was done.
pub(crate) fn redirect_to(path: &str) -> Response {
    let place = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, place)]).into_response()
}

/// A detail as a sentence.
pub(crate) fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// Names and values as a query string.
pub(crate) fn query_string(pairs: &[(&str, &str)]) -> String {
    pairs.iter().map(|(name, value)| format!("{name}={}", percent_encode(value))).collect::<Vec<_>>().join("&")
}

/// A text as a part of an address.
pub(crate) fn percent_encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let part = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(part).collect()
}
