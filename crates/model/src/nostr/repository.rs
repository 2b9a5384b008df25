//! What events about git repositories say: announcements, states, and the tips of pull requests (NIP-34).

use super::address::Address;
use super::contribution::CONTRIBUTIONS;
use super::event::{NostrEvent, NostrId};
use crate::crypto::event_id;
use crate::ids::NostrKey;
use crate::limits::IDENTIFIER_BYTES_MAX;
use crate::need::Oid;
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a repository announcement.
pub const ANNOUNCEMENT: u16 = 30_617;
/// The kind of a repository state.
pub const STATE: u16 = 30_618;
/// The kind of a pull request.
pub const PULL_REQUEST: u16 = 1618;
/// The kind of a new version of a pull request.
pub const PULL_REQUEST_UPDATE: u16 = 1619;
/// The kind of a deletion (NIP-09).
pub const DELETION: u16 = 5;
/// The kind of a request to delete everything of an author (NIP-62).
pub const VANISH: u16 = 62;

/// Maintainers that one announcement may name: more are left out.
const MAINTAINERS_MAX: usize = 64;
/// Repositories that one event may name: more are left out.
const REPOSITORIES_MAX: usize = 64;
/// A ref's name, with room for `.lock` within what file systems take.
const REF_BYTES_MAX: usize = 240;

/// The name of this service, as others write it in URLs: the hash of host and port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceName([u8; 16]);

impl ServiceName {
    /// The service that a URL names. The ports of HTTP and HTTPS are one: a proxy may stand between.
    pub fn of_url(url: &str) -> Option<ServiceName> {
        let url = url::Url::parse(url).ok()?;
        if !matches!(url.scheme(), "http" | "https" | "ws" | "wss") {
            return None;
        }
        let host = url.host_str()?.trim_end_matches('.').to_ascii_lowercase();
        let port = url.port_or_known_default().filter(|port| !matches!(port, 80 | 443)).unwrap_or(0);
        Some(ServiceName(event_id(format!("{host}:{port}").as_bytes()).0))
    }
}

/// A repository announcement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Announcement {
    pub owner: NostrKey,
    pub identifier: String,
    /// Where it can be cloned from.
    pub clones: Vec<String>,
    /// Where events about it are.
    pub relays: Vec<String>,
    /// Whom its owner names as maintainers, without the owner.
    pub maintainers: BTreeSet<NostrKey>,
}

impl Announcement {
    /// The announcement in an event; none if it is another kind, or names no repository.
    pub fn of(event: &NostrEvent) -> Option<Announcement> {
        let identifier = event.value("d").filter(|_| event.kind == ANNOUNCEMENT)?;
        if !is_identifier(identifier) {
            return None;
        }
        let urls = |name| event.tags_of(name).flatten().cloned().collect();
        let maintainers = event.tags_of("maintainers").flatten().filter_map(|key| key.parse().ok());
        Some(Announcement {
            owner: event.author,
            identifier: identifier.to_owned(),
            clones: urls("clone"),
            relays: urls("relays"),
            maintainers: maintainers.filter(|key| *key != event.author).take(MAINTAINERS_MAX).collect(),
        })
    }

    /// Whether it lists this service, both as git server and as relay.
    pub fn lists(&self, service: ServiceName) -> bool {
        let names = |urls: &[String]| urls.iter().any(|url| ServiceName::of_url(url) == Some(service));
        names(&self.clones) && names(&self.relays)
    }
}

/// Whether a repository can be called so.
pub(super) fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= IDENTIFIER_BYTES_MAX
        && !text.chars().any(char::is_control)
        && !text.starts_with(CONTRIBUTIONS)
}

/// Where the refs of a repository point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepositoryState {
    pub author: NostrKey,
    pub identifier: String,
    /// Branches and tags. Names that git would not take are left out.
    pub refs: BTreeMap<String, Oid>,
    /// The branch that is checked out after a clone.
    pub head: Option<String>,
}

impl RepositoryState {
    /// The state in an event; none if it is another kind, or names no repository.
    pub fn of(event: &NostrEvent) -> Option<RepositoryState> {
        let identifier = event.value("d").filter(|_| event.kind == STATE)?;
        if !is_identifier(identifier) {
            return None;
        }
        let mut refs = BTreeMap::new();
        for tag in &event.tags {
            let [name, oid, ..] = tag.as_slice() else { continue };
            if let (true, Some(oid)) = (is_branch_or_tag(name), parse_oid(oid)) {
                refs.entry(name.clone()).or_insert(oid);
            }
        }
        let head = event.value("HEAD").and_then(|head| head.strip_prefix("ref: "));
        let head = head.filter(|name| name.starts_with("refs/heads/") && is_branch_or_tag(name)).map(str::to_owned);
        Some(RepositoryState {
            author: event.author,
            identifier: identifier.to_owned(),
            refs: without_conflicts(refs),
            head,
        })
    }
}

/// A ref cannot be a folder of other refs: of two such the shorter stays.
fn without_conflicts(refs: BTreeMap<String, Oid>) -> BTreeMap<String, Oid> {
    let names: BTreeSet<String> = refs.keys().cloned().collect();
    let is_below = |name: &str| name.match_indices('/').any(|(at, _)| names.contains(&name[..at]));
    refs.into_iter().filter(|(name, _)| !is_below(name)).collect()
}

/// Whether a name is one of a branch or tag, as git takes them.
fn is_branch_or_tag(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with(".lock");
    let is_bad = |c: char| c.is_control() || matches!(c, ' ' | '~' | '^' | ':' | '?' | '*' | '[' | '\\' | '\u{7f}');
    let Some(rest) = name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/")) else { return false };
    name.len() <= REF_BYTES_MAX
        && rest.split('/').all(is_part)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
        && rest != "HEAD"
        && !name.contains(is_bad)
}

fn parse_oid(text: &str) -> Option<Oid> {
    let mut oid = [0; 20];
    let is_lower = text.bytes().all(|byte| !byte.is_ascii_uppercase());
    hex::decode_to_slice(text, &mut oid).ok()?;
    (is_lower && oid != [0; 20]).then_some(oid)
}

/// The commit that a pull request, or a new version of one, is about.
pub fn tip_of(event: &NostrEvent) -> Option<Oid> {
    if !matches!(event.kind, PULL_REQUEST | PULL_REQUEST_UPDATE) {
        return None;
    }
    parse_oid(event.value("c")?)
}

/// The repositories that an event names with these tags, each once.
pub fn named_repositories(event: &NostrEvent, tags: &[&str]) -> Vec<Address> {
    let mut named: Vec<Address> = Vec::new();
    for value in tags.iter().flat_map(|tag| event.tags_of(tag)).filter_map(|values| values.first()) {
        if let Ok(address) = value.parse::<Address>()
            && address.kind == ANNOUNCEMENT
            && is_identifier(&address.identifier)
            && !named.contains(&address)
            && named.len() < REPOSITORIES_MAX
        {
            named.push(address);
        }
    }
    named
}

/// The events that an event names with these tags, each once.
pub fn event_ids(event: &NostrEvent, tags: &[&str]) -> Vec<NostrId> {
    let values = tags.iter().flat_map(|tag| event.tags_of(tag)).filter_map(|values| values.first());
    let ids: BTreeSet<NostrId> = values.filter_map(|value| value.parse().ok()).take(REPOSITORIES_MAX).collect();
    ids.into_iter().collect()
}
