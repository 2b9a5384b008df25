//! What somebody typed into a form is not lost when the form is refused: the page that says why shows it.

use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, Form, FromRequest as _, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{Method, header};
use maud::{Markup, html};
use server::problem::Problem;
use server::state::SharedState;
use std::pin::Pin;

/// The fields that people think about before they type. No secret is among them.
const FIELDS: [(&str, &str); 6] = [
    ("title", "Title"),
    ("text", "Message"),
    ("participants", "Participants"),
    ("note", "Note"),
    ("reason", "Reason"),
    ("display", "Display name"),
];

/// The longest form that is read for somebody who is not proven, only to be shown again.
const UNPROVEN_BYTES_MAX: usize = 16 * 1024;
/// Pages that take long texts; a form spells most letters of most languages with six or nine.
const LONG: [&str; 3] = ["/s/{space}", "/s/{space}/t/{thread}", "/s/{space}/m/{id}/edit"];

/// Fields of a form and what was typed into them.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormReplay(Vec<(&'static str, String)>);

fn is_form(request: &Request) -> bool {
    let media = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_page = !request.headers().contains_key("x-part");
    request.method() == Method::POST && is_page && media.starts_with("application/x-www-form-urlencoded")
}

/// Keeps what was typed beside an answer that is a problem.
pub(crate) async fn keep(State(state): State<SharedState>, mut request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
    if LONG.contains(&path) {
        DefaultBodyLimit::max(state.options.limits.body_bytes_max.saturating_mul(3)).apply(&mut request);
    }
    if !is_form(&request) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let bytes = match Bytes::from_request(Request::from_parts(parts.clone(), body), &()).await {
        Ok(bytes) => bytes,
        Err(why) => return Problem::from(why).into_response(),
    };
    let again = Request::from_parts(parts.clone(), Body::from(bytes.clone()));
    let mut response = next.run(again).await;
    if response.extensions().get::<Problem>().is_some() {
        let form = Request::from_parts(parts, Body::from(bytes));
        response.extensions_mut().insert(FormReplay::in_form(form).await);
    }
    response
}

/// Keeps what somebody typed whose session has ended: little enough to be read for nobody.
pub(crate) fn keep_of_refused(
    mut request: Request,
    mut response: Response,
) -> Pin<Box<dyn Future<Output = Response> + Send>> {
    Box::pin(async move {
        if is_form(&request) {
            DefaultBodyLimit::max(UNPROVEN_BYTES_MAX).apply(&mut request);
            response.extensions_mut().insert(FormReplay::in_form(request).await);
        }
        response
    })
}

impl FormReplay {
    async fn in_form(form: Request) -> FormReplay {
        let form = Form::<Vec<(String, String)>>::from_request(form, &()).await;
        let pairs = form.map(|Form(pairs)| pairs).unwrap_or_default();
        let known = |(name, value): (String, String)| {
            let (_, label) = FIELDS.iter().find(|(field, _)| *field == name)?;
            (!value.trim().is_empty()).then_some((*label, value))
        };
        FormReplay(pairs.into_iter().filter_map(known).collect())
    }
}

impl FormReplay {
    /// Something to copy from.
    pub(crate) fn markup(&self) -> Markup {
        html! {
            @if !self.0.is_empty() {
                h2 { "What you entered" }
                p.note { "Copy it before you leave this page." }
                @for (label, value) in &self.0 { label { (label) textarea readonly rows="3" { (value) } } }
            }
        }
    }
}
