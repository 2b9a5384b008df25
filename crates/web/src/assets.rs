//! The style sheet, the icon and the script: embedded in the binary, and served under `/assets/{hash}/`. The hash covers all
//! of them, so that browsers may keep them for ever and never mix two versions.
//!
//! The script is ES modules without a build step. They import each other by relative paths, which stay within the folder of
//! their version. Pages name the modules that the entry module imports as well, so that browsers fetch them all at once.

use axum::response::{IntoResponse, Response};
use http::header;
use server::extract::Path;
use server::problem::Problem;
use std::sync::LazyLock;

macro_rules! embed {
    ($($folder:literal: $($name:literal)+;)+) => {
        &[$($(($name, include_str!(concat!("../assets/", $folder, $name))),)+)+]
    };
}

/// Every file, by the name that it is served under.
const FILES: &[(&str, &str)] = embed! {
    "": "style.css" "icon.svg";
    "script/":
        "banners.js" "compose.js" "conversation.js" "draft.js" "event-stream.js" "forms.js" "lightbox.js" "live-pages.js" "main.js"
        "message-list.js" "message-tools.js" "message-updates.js" "outbox.js" "page.js" "passkeys.js" "personalise.js"
        "read-marker.js" "scrolling.js" "typing.js" "uploads.js";
};

static HASH: LazyLock<String> = LazyLock::new(|| {
    let mut hasher = blake3::Hasher::new();
    for (name, text) in FILES {
        for part in [name, text] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
    }
    hex::encode(&hasher.finalize().as_bytes()[..6])
});

/// The entry module, and after it everything that it imports, directly or not.
static MODULES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut found = vec!["main.js"];
    let mut next = 0;
    while let Some(module) = found.get(next) {
        next += 1;
        for name in text_of(module).into_iter().flat_map(imports) {
            if !found.contains(&name) {
                found.push(name);
            }
        }
    }
    found.into_iter().map(address).collect()
});

pub(crate) fn entry_module() -> &'static str {
    &MODULES[0]
}

pub(crate) fn imported_modules() -> &'static [String] {
    &MODULES[1..]
}

pub(crate) fn style() -> String {
    address("style.css")
}

pub(crate) fn icon() -> String {
    address("icon.svg")
}

fn address(name: &str) -> String {
    format!("/assets/{}/{name}", *HASH)
}

fn text_of(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// What a module imports at once; `import("./…")` waits until it is needed.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    text.split(" from \"./").skip(1).filter_map(|rest| rest.split('"').next())
}

fn media_type(name: &str) -> &'static str {
    match name.rsplit_once('.') {
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "svg")) => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    }
}

/// A file. One that changed has another address, so it is kept for as long as a browser likes.
pub(crate) async fn get(Path((hash, name)): Path<(String, String)>) -> Result<Response, Problem> {
    let text = text_of(&name).filter(|_| hash == *HASH);
    let text = text.ok_or_else(|| Problem::not_found("there is no such file; load the page again"))?;
    let kept = "public, max-age=31536000, immutable";
    Ok(([(header::CONTENT_TYPE, media_type(&name)), (header::CACHE_CONTROL, kept)], text).into_response())
}
