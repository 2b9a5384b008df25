//! What somebody typed into a form is not lost when the form is refused: the page that says why shows it.

use crate::problem::Problem;
use axum::body::{Body, Bytes};
use axum::extract::{Form, FromRequest as _, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{Method, header};
use maud::{Markup, html};

/// The fields that people think about before they type. No secret is among them.
const FIELDS: [(&str, &str); 6] = [
    ("title", "Title"),
    ("text", "Message"),
    ("participants", "Participants"),
    ("note", "Note"),
    ("reason", "Reason"),
    ("display", "What to call you"),
];

/// The longest form that is kept: it is read before anybody was asked who they are.
const KEPT_BYTES_MAX: usize = 16 * 1024;

/// Fields of a form and what was typed into them.
#[derive(Clone, Debug, Default)]
pub(super) struct Typed(Vec<(&'static str, String)>);

/// Keeps what was typed beside an answer that is a problem.
pub(crate) async fn keep(request: Request, next: Next) -> Response {
    let media = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_form = media.starts_with("application/x-www-form-urlencoded");
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let is_short = length.is_some_and(|length: usize| length <= KEPT_BYTES_MAX);
    if request.method() != Method::POST || !is_form || !is_short || request.headers().contains_key("x-part") {
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
        let form = Form::<Vec<(String, String)>>::from_request(form, &()).await;
        let pairs = form.map(|Form(pairs)| pairs).unwrap_or_default();
        let known = |(name, value): (String, String)| {
            let (_, label) = FIELDS.iter().find(|(field, _)| *field == name)?;
            (!value.trim().is_empty()).then_some((*label, value))
        };
        response.extensions_mut().insert(Typed(pairs.into_iter().filter_map(known).collect()));
    }
    response
}

impl Typed {
    /// Something to copy from.
    pub(super) fn markup(&self) -> Markup {
        html! {
            @if !self.0.is_empty() {
                h2 { "What you had typed" }
                @for (label, value) in &self.0 { label { (label) textarea readonly rows="3" { (value) } } }
            }
        }
    }
}
