//! The reference of the API: the OpenAPI document, a page made from it, and what each problem means. All offline.

use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderName, header};
use serde_json::Value;
use server::extract::Path;
use server::problem::Problem;
use std::fmt::Write as _;
use std::sync::Arc;
use utoipa::openapi::OpenApi;

/// What is the same until another release is started.
const CONSTANT: (HeaderName, &str) = (header::CACHE_CONTROL, "public, max-age=3600");

/// The document and the page made from it.
#[derive(Debug)]
pub(crate) struct Reference {
    json: Bytes,
    html: Bytes,
}

impl Reference {
    pub(crate) fn new(document: &OpenApi) -> Reference {
        let json = document.to_json().unwrap_or_else(|_| "{}".to_owned());
        Reference { html: render_page(&json).into(), json: json.into() }
    }
}

pub(crate) async fn openapi(State(reference): State<Arc<Reference>>) -> Response {
    ([(header::CONTENT_TYPE, "application/json"), CONSTANT], reference.json.clone()).into_response()
}

pub(crate) async fn page(State(reference): State<Arc<Reference>>) -> Response {
    const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'";
    ([(header::CONTENT_SECURITY_POLICY, POLICY), CONSTANT], Html(reference.html.clone())).into_response()
}

pub(crate) async fn problem(Path(name): Path<String>) -> Result<Response, Problem> {
    let found = Problem::ALL.iter().find(|(slug, ..)| *slug == name);
    let (_, status, title, action) = found.ok_or_else(|| Problem::not_found("there is no such kind of problem"))?;
    let text = format!("{title} ({})\nWhat to do: {action}\n", status.as_u16());
    Ok(([CONSTANT], text).into_response())
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
    :root{color-scheme:light dark}a{color:LinkText}code,pre{font:14px/1.4 ui-monospace,monospace}h2{margin-top:2.5rem}details{margin:.3rem 0;\
    border:1px solid #8884;border-radius:.4rem;padding:.4rem .8rem}summary{cursor:pointer}summary b{display:inline-block;\
    width:4.5rem}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .8rem .2rem 0;\
    vertical-align:top;border-bottom:1px solid #8883}";

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The page: a section per tag, an entry per operation, a table per schema.
fn render_page(document: &str) -> String {
    let document: Value = serde_json::from_str(document).unwrap_or_default();
    let mut tags: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in item.as_object().into_iter().flatten() {
            let tag = operation["tags"][0].as_str().unwrap_or("other").to_owned();
            operation_text(tags.entry(tag).or_default(), method, path, operation);
        }
    }
    let mut page = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>Anteroom API</title><style>{STYLE}</style><h1>Anteroom API</h1><p>{}</p><p>The same for machines: \
         <a href=\"/v1/openapi.json\">openapi.json</a>. Send your key as <code>X-API-Key</code> or <code>Authorization: \
         Bearer</code>.</p>",
        escape(document["info"]["description"].as_str().unwrap_or_default())
    );
    for (tag, operations) in tags {
        let _ = write!(page, "<h2>{}</h2>{operations}", escape(&tag));
    }
    page.push_str("<h2>Shapes</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        schema_text(&mut page, name, schema);
    }
    page
}

fn operation_text(page: &mut String, method: &str, path: &str, operation: &Value) {
    let text = |value: &Value| escape(value.as_str().unwrap_or_default());
    let _ = write!(
        page,
        "<details><summary><b>{}</b> <code>{}</code> {}</summary><table>",
        escape(&method.to_uppercase()),
        escape(path),
        text(&operation["summary"])
    );
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let (name, place, what) = (&parameter["name"], &parameter["in"], &parameter["description"]);
        let _ = write!(page, "<tr><td><code>{}</code><td>{}<td>{}", text(name), text(place), text(what));
    }
    if let Some(schema) = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str() {
        let _ = write!(page, "<tr><td>body<td>JSON<td>{}", link(schema));
    }
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        let shapes = response["content"].as_object().into_iter().flatten();
        let shapes: Vec<String> = shapes
            .map(|(media, content)| content["schema"]["$ref"].as_str().map_or_else(|| escape(media), link))
            .collect();
        let _ = write!(page, "<tr><td>{}<td>answer<td>{}", escape(status), shapes.join(", "));
    }
    page.push_str("</table></details>");
}

fn link(reference: &str) -> String {
    let name = escape(reference.rsplit('/').next().unwrap_or_default());
    format!("<a href=\"#{name}\"><code>{name}</code></a>")
}

fn schema_text(page: &mut String, name: &str, schema: &Value) {
    let _ = write!(page, "<details id=\"{0}\" open><summary><code>{0}</code></summary><table>", escape(name));
    for (field, shape) in schema["properties"].as_object().into_iter().flatten() {
        let kind = shape["$ref"].as_str().map_or_else(|| escape(&shape["type"].to_string().replace('"', "")), link);
        let what = escape(shape["description"].as_str().unwrap_or_default());
        let _ = write!(page, "<tr><td><code>{}</code><td>{kind}<td>{what}", escape(field));
    }
    page.push_str("</table></details>");
}
