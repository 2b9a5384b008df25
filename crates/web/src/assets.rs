//! The style sheet, the script and the icon: embedded, and named by what is in them, so that browsers keep them.

use axum::response::{IntoResponse, Response};
use http::header;
use server::extract::Path;
use server::problem::Problem;
use std::sync::LazyLock;

const STYLE: &str = include_str!("../assets/style.css");
const SCRIPT: &str = include_str!("../assets/script.js");
const ICON: &str = include_str!("../assets/icon.svg");

/// A file with the address that it is found at.
struct Asset {
    address: String,
    media: &'static str,
    text: &'static str,
}

fn asset(name: &str, ending: &str, media: &'static str, text: &'static str) -> Asset {
    let hash = hex::encode(&blake3::hash(text.as_bytes()).as_bytes()[..6]);
    Asset { address: format!("/assets/{name}-{hash}.{ending}"), media, text }
}

static ALL: LazyLock<[Asset; 3]> = LazyLock::new(|| {
    [
        asset("style", "css", "text/css; charset=utf-8", STYLE),
        asset("script", "js", "text/javascript; charset=utf-8", SCRIPT),
        asset("icon", "svg", "image/svg+xml", ICON),
    ]
});

pub(crate) fn style() -> &'static str {
    &ALL[0].address
}

pub(crate) fn script() -> &'static str {
    &ALL[1].address
}

pub(crate) fn icon() -> &'static str {
    &ALL[2].address
}

/// A file. One that changed has another address, so it is kept for as long as a browser likes.
pub(crate) async fn get(Path(file): Path<String>) -> Result<Response, Problem> {
    let found = ALL.iter().find(|asset| asset.address.strip_prefix("/assets/") == Some(&file));
    let asset = found.ok_or_else(|| Problem::not_found("there is no such file; load the page again"))?;
    let kept = "public, max-age=31536000, immutable";
    Ok(([(header::CONTENT_TYPE, asset.media), (header::CACHE_CONTROL, kept)], asset.text).into_response())
}
