//! The hunt for git data: where announcements say that it is, and fetching it from there.
//!
//! A group is all repositories of one identifier. Its sources are the clone URLs in announcements of confirmed maintainers
//! of those repositories here that wait for objects: a stranger who uses the same identifier adds nothing. A visit asks the
//! server for its refs, fetches what is wanted of them, and hands it to the function that takes over pushes: who may do
//! what is decided then, and every event is released as soon as its own objects are here.

use super::access::GitAccess;
use super::service::{GitFailure, GitService};
use super::visit::Visit;
use crate::fetch::hunter::{FetchError, Fetched, SourceClient, SourceDirectory};
use engine::Opened;
use engine::fetch::{SOURCES_PER_GROUP_MAX, Source};
use engine::protocol::nostr::maintainers::{self, Known, announcement, confirmed};
use engine::protocol::nostr::push::{NO_OBJECT, RefUpdate};
use engine::reads::{NostrReads as _, Reads as _, StoreResult};
use git::{RemoteServer, advertised_objects};
use http::HeaderMap;
use model::need::Oid;
use model::nostr::{ServiceName, named_repositories, tip_of};
use model::{Group, Nanos, Need, NostrKey};
use outbound::{OutboundAnswer, OutboundClient};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{OnceLock, Weak};
use store::Db;
use store::tables::Snapshot;

/// Owners of one identifier that are looked at in one hunt.
const OWNERS_MAX: usize = 64;
/// Clone URLs of one announcement that are used.
const CLONES_MAX: usize = 8;
/// Held events of one repository that are looked at.
const HELD_MAX: usize = 4096;
/// The longest list of refs of another server that is read.
const REFS_BYTES_MAX: usize = 16 << 20;
/// What is added to the URL of a repository to ask for its refs.
const REFS_PATH: &str = "/info/refs?service=git-upload-pack";
/// What a server says that has git's smart protocol.
const REFS_TYPE: &str = "application/x-git-upload-pack-advertisement";

/// What hunts for git data have come to since the start.
#[derive(Debug, Default)]
pub struct HuntCounts {
    /// Visits to sources.
    pub attempts: AtomicU64,
    /// Objects that refs and pull requests name and that came.
    pub objects: AtomicU64,
}

/// Where git data is fetched from, and who takes it over.
#[derive(Debug)]
pub struct GitSources {
    access: GitAccess,
    outbound: OutboundClient,
    service: OnceLock<Weak<GitService>>,
    pub counts: HuntCounts,
}

impl GitSources {
    /// Nobody is asked before [`GitSources::serve`] says who takes over what comes.
    pub fn new(access: GitAccess, outbound: OutboundClient) -> GitSources {
        GitSources { access, outbound, service: OnceLock::new(), counts: HuntCounts::default() }
    }

    /// The client by which this node asks others.
    pub fn outbound(&self) -> &OutboundClient {
        &self.outbound
    }

    /// From now on these repositories are hunted for.
    pub fn serve(&self, service: Weak<GitService>) {
        let _ = self.service.set(service);
    }

    fn find_places(&self, db: &Db<Snapshot>, identifier: &str) -> StoreResult<Vec<Source>> {
        let (Some(own), true) = (db.policy().service, self.service.get().is_some()) else { return Ok(Vec::new()) };
        let mut of_owners = Vec::new();
        for owner in self.owners(db, identifier)? {
            if !wanted(db, &owner, identifier)?.is_empty() {
                let urls = clone_urls(db, &owner, identifier)?;
                of_owners.push(urls.into_iter().filter_map(|url| self.place(&url, own)).collect::<Vec<_>>());
            }
        }
        // One of each in turn: only so many are used.
        let mut places: Vec<Source> = Vec::new();
        let most = of_owners.iter().map(Vec::len).max().unwrap_or_default();
        for place in (0..most).flat_map(|number| of_owners.iter().filter_map(move |places| places.get(number))) {
            if places.len() < SOURCES_PER_GROUP_MAX && !places.contains(place) {
                places.push(place.clone());
            }
        }
        Ok(places)
    }

    /// Owners of repositories here of that identifier for which something waits for objects. Where there are many, each
    /// attempt begins with another one, so that nobody crowds the others out.
    fn owners(&self, db: &Db<Snapshot>, identifier: &str) -> StoreResult<Vec<NostrKey>> {
        let mut hosted = Vec::new();
        let first = (turn(db, identifier)?.wrapping_mul(97) % 256) as u8;
        for owner in db.owners_waiting_for_objects(identifier, first, OWNERS_MAX)? {
            // A maintainer whose own repository is elsewhere speaks for those here as well.
            let others = confirmed(db, &owner, identifier)?.into_iter().filter(|other| *other != owner);
            for owner in std::iter::once(owner).chain(others) {
                if self.is_hosted(db, &owner, identifier)? {
                    hosted.extend(Some(owner).filter(|owner| !hosted.contains(owner)));
                    break;
                }
            }
        }
        Ok(hosted)
    }

    fn is_hosted(&self, db: &Db<Snapshot>, owner: &NostrKey, identifier: &str) -> StoreResult<bool> {
        let (announced, service) = (announcement(db, owner, identifier)?, db.policy().service);
        Ok(announced.is_some_and(|own| service.is_some_and(|service| self.access.hosts(&own, service))))
    }

    /// A clone URL as a source, if it is one: not of this node, and not where nothing may be sent to.
    fn place(&self, url: &str, own: ServiceName) -> Option<Source> {
        // A parser would take the first part of the path for a host that is missing.
        url.split_once("://").filter(|(_, rest)| !rest.starts_with('/'))?;
        let vetted = self.outbound.vet(url).ok()?;
        if ServiceName::of_url(url) == Some(own) || vetted.query().is_some() || vetted.fragment().is_some() {
            return None;
        }
        let domain = vetted.host_str()?.trim_end_matches('.').to_ascii_lowercase();
        Some(Source { url: vetted.as_str().trim_end_matches('/').to_owned(), domain })
    }

    /// Asks a server for its refs: where it is in the end, and the objects that they point at.
    fn visit(&self, url: &str, own: Option<ServiceName>) -> Result<(RemoteServer, BTreeSet<Oid>), FetchError> {
        let failed = |why: &dyn std::fmt::Display| FetchError(why.to_string());
        let answer = self.outbound.get_and_wait(&format!("{url}{REFS_PATH}"), &HeaderMap::new(), REFS_BYTES_MAX);
        let answer = answer.map_err(|why| failed(&why))?;
        let not_git = || FetchError("it does not speak git's smart protocol".to_owned());
        if answer.content_type != REFS_TYPE {
            return Err(not_git());
        }
        let server = server_of(&answer).ok_or_else(|| FetchError("it redirects to something else".to_owned()))?;
        if ServiceName::of_url(&server.url).is_some_and(|name| Some(name) == own) {
            return Err(FetchError("it redirects to this node".to_owned()));
        }
        Ok((server, advertised_objects(&answer.body).ok_or_else(not_git)?))
    }

    fn fetch_into(&self, service: &GitService, identifier: &str, url: &str) -> Result<usize, FetchError> {
        let failed = |why: GitFailure| FetchError(why.to_string());
        let db = service.node.snapshot().map_err(|why| failed(why.into()))?;
        let (own, turn) = (db.policy().service, turn(&db, identifier).map_err(|why| failed(why.into()))?);
        let mut owners = self.owners(&db, identifier).map_err(|why| failed(why.into()))?;
        // Whoever is not named by the announcement that has this URL gets nothing from it.
        owners.retain(|owner| {
            let urls = clone_urls(&db, owner, identifier).unwrap_or_default();
            urls.iter().any(|other| own.and_then(|own| self.place(other, own)).is_some_and(|place| place.url == url))
        });
        drop(db);
        if owners.is_empty() {
            return Err(FetchError("no announcement names it any more".to_owned()));
        }
        self.counts.attempts.fetch_add(1, Ordering::Relaxed);
        let (server, advertised) = self.visit(url, own)?;
        let mut visit = Visit::begin(service, server, advertised, turn);
        let (mut brought, mut why) = (0, None);
        for owner in owners {
            for fetch in [Visit::fetch_state, Visit::fetch_pull_requests] {
                match fetch(&mut visit, &owner, identifier) {
                    Ok(count) => brought += count,
                    // Others may still get what they need.
                    Err(failure) => why = Some(failed(failure)),
                }
            }
        }
        self.counts.objects.fetch_add(brought as u64, Ordering::Relaxed);
        match why {
            Some(why) if brought == 0 => Err(why),
            Some(_) | None => Ok(brought),
        }
    }
}

impl SourceDirectory for GitSources {
    fn places(&self, db: &Db<Snapshot>, group: &Group) -> Vec<Source> {
        let Group::Repository(identifier) = group else { return Vec::new() };
        self.find_places(db, identifier).unwrap_or_else(|why| {
            tracing::warn!(%why, identifier, "it could not be read where git data can be fetched from");
            Vec::new()
        })
    }
}

impl SourceClient for GitSources {
    fn fetch(
        &self,
        group: &Group,
        url: &str,
        _needs: &[Need],
        _deliver: &mut dyn FnMut(Fetched),
    ) -> Result<usize, FetchError> {
        let (Group::Repository(identifier), Some(service)) = (group, self.service.get().and_then(Weak::upgrade)) else {
            return Err(FetchError("no git repositories are served".to_owned()));
        };
        self.fetch_into(&service, identifier, url)
    }
}

/// The clone URLs in the announcements of an owner and of whoever maintains the repository with them, the owner's first.
fn clone_urls(db: &Db<Snapshot>, owner: &NostrKey, identifier: &str) -> StoreResult<Vec<String>> {
    let mut maintainers: Vec<NostrKey> = confirmed(db, owner, identifier)?.into_iter().collect();
    maintainers.sort_by_key(|other| other != owner);
    let mut urls = Vec::new();
    for maintainer in maintainers {
        let announced = announcement(db, &maintainer, identifier)?;
        urls.extend(announced.into_iter().flat_map(|own| own.clones.into_iter().take(CLONES_MAX)));
    }
    Ok(urls)
}

/// What a repository waits for that could be fetched, as if somebody pushed it: refs of the newest state, and commits of
/// pull requests.
pub(super) fn wanted(db: &Db<Snapshot>, owner: &NostrKey, identifier: &str) -> StoreResult<Vec<RefUpdate>> {
    let mut wanted = BTreeMap::new();
    let maintainers = confirmed(db, owner, identifier)?;
    let newest = maintainers::newest_state(db, &maintainers, identifier, Known::HeldOrApplied)?;
    for (name, oid) in newest.into_iter().flat_map(|(_, state)| state.refs) {
        wanted.insert(name, oid);
    }
    for seq in db.waiting_for_objects(owner, identifier, HELD_MAX)? {
        let Some(Opened::Nostr(event)) = db.open_event(seq)? else { continue };
        let is_for = named_repositories(&event, &["a"])
            .iter()
            .any(|address| address.author == *owner && address.identifier == identifier);
        if let Some(oid) = tip_of(&event).filter(|_| is_for) {
            wanted.insert(format!("refs/nostr/{}", event.id), oid);
        }
    }
    let mut missing = Vec::new();
    for (name, new) in wanted {
        if !db.is_git_present(owner, identifier, &new)? {
            missing.push(RefUpdate { name, old: NO_OBJECT, new });
        }
    }
    Ok(missing)
}

/// The repository that an answer about refs is of.
fn server_of(answer: &OutboundAnswer) -> Option<RemoteServer> {
    let url = answer.url.as_str().strip_suffix(REFS_PATH)?.to_owned();
    let host = answer.url.domain().map(str::to_owned);
    Some(RemoteServer { url, host, port: answer.url.port_or_known_default()?, address: answer.address.ip() })
}

/// A number that is another one in each hunt, whatever joins meanwhile: so nobody crowds others out for good.
fn turn(db: &Db<Snapshot>, identifier: &str) -> StoreResult<u64> {
    let row = db.schedule_row(&Group::Repository(identifier.to_owned()))?;
    Ok(row.and_then(|row| row.last).unwrap_or_default() / Nanos::SECOND)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use outbound::AllowedNetworks;

    #[test]
    fn sources_are_clone_urls_of_others() {
        let sources = GitSources::new(GitAccess::default(), OutboundClient::new(AllowedNetworks::public()));
        let own = ServiceName::of_url("https://here.example.org:8443").unwrap();
        let place = |url: &str| sources.place(url, own).map(|place| (place.url, place.domain));
        let there = |url: &str, domain: &str| Some((url.to_owned(), domain.to_owned()));
        assert_eq!(
            place("https://There.example.org/x.git/"),
            there("https://there.example.org/x.git", "there.example.org")
        );
        assert_eq!(
            place("http://there.example.org.:8080/x"),
            there("http://there.example.org.:8080/x", "there.example.org")
        );
        // The same host on another port is somebody else.
        assert_eq!(
            place("https://here.example.org/x.git"),
            there("https://here.example.org/x.git", "here.example.org")
        );
        for url in [
            "https://here.example.org:8443/x.git",
            "http://HERE.example.org.:8443/x.git",
            "https:///x.git",
            "/x.git",
            "ssh://there.example.org/x.git",
            "https://there.example.org/x.git?service=y",
            "https://there.example.org/x.git#y",
            "https://127.0.0.1/x.git",
        ] {
            assert_eq!(place(url), None, "{url}");
        }
    }

    #[test]
    fn the_repository_behind_a_redirect_is_the_one_that_is_fetched() {
        let answer = |url: &str| OutboundAnswer {
            url: url.parse().unwrap(),
            address: "192.0.2.1:443".parse().unwrap(),
            content_type: String::new(),
            body: Vec::new(),
        };
        let server = server_of(&answer(&format!("https://there.example.org/y{REFS_PATH}"))).unwrap();
        assert_eq!((server.url.as_str(), server.port), ("https://there.example.org/y", 443));
        assert_eq!((server.host.as_deref(), server.address), (Some("there.example.org"), "192.0.2.1".parse().unwrap()));
        let server = server_of(&answer(&format!("http://192.0.2.1:8080/y{REFS_PATH}"))).unwrap();
        assert_eq!((server.host, server.port), (None, 8080));
        assert_eq!(server_of(&answer("https://there.example.org/login")), None);
    }
}
