//! The files that pages name: each is served under the hash of this version and under no other address.

use super::Home;
use super::pages::{Page, browse};
use serde_json::json;
use std::collections::BTreeSet;

/// A longer module usually has two subjects.
const MODULE_LINES_MAX: usize = 150;

/// The addresses of assets in a page.
fn assets_in(html: &str) -> BTreeSet<String> {
    html.split('"').filter(|part| part.starts_with("/assets/")).map(ToOwned::to_owned).collect()
}

/// What a module imports, at once (`from "./…"`) or when it is needed (`import("./…")`).
fn imports<'a>(module: &'a str, before: &str) -> Vec<&'a str> {
    module.split(&format!("{before}\"./")).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The pages of a node: to sign in, and a conversation.
async fn pages(home: &Home) -> [Page; 2] {
    home.by("alice", "POST", "/v1/threads/t1/messages", Some(json!({ "body": "hello" }))).await;
    let session = home.session("alice", false);
    let pages = [browse(home, "/in", &[], None).await, browse(home, "/s/home/t/t1", &session, None).await];
    assert!(pages.iter().all(|page| page.status == 200));
    pages
}

async fn fetch(home: &Home, address: &str) -> Page {
    let file = browse(home, address, &[], None).await;
    assert_eq!(file.status, 200, "{address}: {}", file.text);
    let media = match address.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/javascript; charset=utf-8",
    };
    assert_eq!(file.header("content-type"), media, "{address}");
    assert_eq!(file.header("cache-control"), "public, max-age=31536000, immutable", "{address}");
    assert_eq!(file.header("x-content-type-options"), "nosniff", "{address}");
    file
}

#[tokio::test]
async fn every_module_that_is_imported_is_served_and_no_module_is_left_over() {
    let home = Home::new();
    let mut reached = BTreeSet::new();
    for page in pages(&home).await {
        let named = assets_in(&page.text);
        let mut to_fetch: Vec<String> = named.iter().cloned().collect();
        let mut fetched = BTreeSet::new();
        while let Some(address) = to_fetch.pop() {
            if !fetched.insert(address.clone()) {
                continue;
            }
            let file = fetch(&home, &address).await;
            let (folder, name) = address.rsplit_once('/').expect("a folder");
            if !name.ends_with(".js") {
                continue;
            }
            assert!(file.text.lines().count() <= MODULE_LINES_MAX, "{name} is longer than {MODULE_LINES_MAX} lines");
            let at_once: Vec<String> =
                imports(&file.text, " from ").iter().map(|import| format!("{folder}/{import}")).collect();
            let later = imports(&file.text, "import(").into_iter().map(|import| format!("{folder}/{import}"));
            // Otherwise a browser finds it only after it has fetched what imports it.
            for import in at_once.iter().filter(|_| named.contains(&address)) {
                assert!(named.contains(import), "the page does not name {import}, which {name} imports");
            }
            to_fetch.extend(at_once.into_iter().chain(later));
            reached.insert(name.to_owned());
        }
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/assets/script");
    let files = std::fs::read_dir(folder).expect("the modules").map(|entry| entry.expect("a file").file_name());
    let files: BTreeSet<String> = files.map(|name| name.into_string().expect("text")).collect();
    assert_eq!(reached, files);
}

#[tokio::test]
async fn an_asset_has_one_address() {
    let home = Home::new();
    let [sign_in, _] = pages(&home).await;
    let main = assets_in(&sign_in.text).into_iter().find(|address| address.ends_with("/main.js")).expect("an entry");
    let hash = main.split('/').nth(2).expect("a hash").to_owned();
    let other_hash: String = hash.chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    for wrong in [
        format!("/assets/{other_hash}/main.js"),
        format!("/assets/{}/main.js", &hash[..11]),
        format!("/assets/{hash}0/main.js"),
        format!("/assets/{hash}/nothing.js"),
        format!("/assets/{hash}/Main.js"),
        format!("/assets/{hash}/main.js/"),
        format!("/assets/{hash}/script/main.js"),
        format!("/assets/{hash}/..%2Fmain.js"),
        format!("/assets/{hash}/../{hash}/main.js"),
        format!("/assets/{hash}/"),
        format!("/assets/{hash}"),
        "/assets/main.js".to_owned(),
        "/assets/".to_owned(),
    ] {
        let answer = browse(&home, &wrong, &[], None).await;
        assert_eq!(answer.status, 404, "{wrong}");
        assert!(!answer.header("cache-control").contains("immutable"), "{wrong} is kept");
    }
}

#[tokio::test]
async fn a_page_runs_one_module_of_this_node_and_nothing_inline() {
    let home = Home::new();
    for page in pages(&home).await {
        assert!(page.header("content-security-policy").contains("script-src 'self';"));
        assert_eq!(page.text.matches("<script").count(), 1);
        assert_eq!(page.text.matches("<script type=\"module\" src=\"/assets/").count(), 1);
        assert_eq!(page.text.matches("/main.js\"></script>").count(), 1);
        assert!(!page.text.contains("/passkeys.js"), "it is loaded when it is needed");
    }
}
