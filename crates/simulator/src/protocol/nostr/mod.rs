//! The `nostr` protocol: [`world`] makes up events about git repositories and the git data that they wait for, and
//! [`mod@reference`] recomputes from the set alone what is served and which refs repositories have.

pub mod reference;
pub mod world;

use model::NostrKey;
use model::need::Oid;
use model::nostr::{NostrEvent, VerifiedNostr};
use std::sync::LazyLock;

/// The address of the simulated nodes, as announcements list it.
pub const URL: &str = "https://node.example";
/// The identifier of every repository: there are as many as there are authors.
pub const IDENTIFIER: &str = "tool";

/// An event of an author, at that second.
pub fn sign(author: u8, second: u64, kind: u16, tags: &[&[&str]]) -> VerifiedNostr {
    let tags = tags.iter().map(|tag| tag.iter().map(|value| (*value).to_owned()).collect()).collect();
    NostrEvent::sign(&[author; 32], second, kind, tags, "").expect("an event that can be signed")
}

/// The public key of an author.
pub fn key(author: u8) -> NostrKey {
    // Computing one costs as much as a signature.
    static KEYS: LazyLock<Vec<NostrKey>> =
        LazyLock::new(|| (1..10).map(|author| sign(author, 1, 1, &[]).author).collect());
    KEYS[usize::from(author) - 1]
}

/// A git object, by number.
pub fn oid(number: u8) -> Oid {
    [number; 20]
}

/// A git object, as events write it.
pub fn oid_text(number: u8) -> String {
    oid(number).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The address of an author's repository.
pub fn address(author: u8) -> String {
    format!("30617:{}:{IDENTIFIER}", key(author))
}

/// An announcement that lists the simulated nodes, or another server, and names maintainers.
pub fn announcement(author: u8, second: u64, is_here: bool, named: &[u8]) -> VerifiedNostr {
    let host = if is_here { URL } else { "https://elsewhere.example" };
    let named: Vec<String> = named.iter().map(|other| key(*other).to_string()).collect();
    let maintainers: Vec<&str> = ["maintainers"].into_iter().chain(named.iter().map(String::as_str)).collect();
    sign(author, second, 30617, &[&["d", IDENTIFIER], &["clone", host], &["relays", host], &maintainers])
}

/// A state with these branches, of which the first is `HEAD`.
pub fn state(author: u8, second: u64, refs: &[(&str, u8)]) -> VerifiedNostr {
    let refs: Vec<[String; 2]> =
        refs.iter().map(|(name, number)| [format!("refs/heads/{name}"), oid_text(*number)]).collect();
    let head = refs.first().map(|[name, _]| ["HEAD".to_owned(), format!("ref: {name}")]);
    let tags: Vec<Vec<&str>> =
        head.iter().chain(&refs).map(|entry| entry.iter().map(String::as_str).collect()).collect();
    let mut all: Vec<&[&str]> = vec![&["d", IDENTIFIER]];
    all.extend(tags.iter().map(Vec::as_slice));
    sign(author, second, 30618, &all)
}

/// A pull request with a commit, for an owner's repository.
pub fn pull_request(author: u8, second: u64, owner: u8, number: u8) -> VerifiedNostr {
    sign(author, second, 1618, &[&["a", &address(owner)], &["c", &oid_text(number)]])
}
