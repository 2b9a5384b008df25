//! Which relays are asked for which events: those that announcements of repositories here name, for what concerns these.

use engine::protocol::nostr::maintainers::{announcement, confirmed};
use engine::reads::StoreResult;
use model::nostr::{ANNOUNCEMENT, AddressName, NostrFilter, STATE, ServiceName, TagFilter};
use model::{Nanos, NostrKey, Stamp};
use node::git::GitAccess;
use outbound::OutboundClient;
use std::collections::{BTreeMap, BTreeSet};
use store::Db;
use store::nostr::NostrIndex;
use store::tables::Snapshot;

/// Repositories that events are gathered for.
const REPOSITORIES_MAX: usize = 10_000;
/// Relays of one announcement that are asked.
const RELAYS_PER_ANNOUNCEMENT_MAX: usize = 8;
/// Relays that are asked at the same time.
const RELAYS_MAX: usize = 256;
/// Of these, so many on one host and port.
const RELAYS_PER_HOST_MAX: usize = 4;
/// Values of one filter; what is beyond is asked for by another.
const VALUES_MAX: usize = 100;
/// Issues, pull requests and patches of one repository whose discussions are gathered, the latest.
const DISCUSSIONS_MAX: usize = 200;
/// Kinds of profiles and lists of relays.
const OF_PARTICIPANTS: [u16; 3] = [0, 10_002, 10_317];

/// What is asked of each relay.
pub(super) type GatherPlan = BTreeMap<String, Vec<NostrFilter>>;

/// What concerns the repositories of one relay.
#[derive(Default)]
struct Concerns {
    identifiers: BTreeSet<String>,
    maintainers: BTreeSet<NostrKey>,
    addresses: BTreeSet<String>,
    discussions: BTreeSet<String>,
    participants: BTreeSet<NostrKey>,
}

/// The plan as of now.
pub(super) fn gather_plan(db: &Db<Snapshot>, access: &GitAccess, outbound: &OutboundClient) -> StoreResult<GatherPlan> {
    let Some(own) = db.policy().service else { return Ok(GatherPlan::new()) };
    let mut repositories = Vec::new();
    for (owner, identifier) in hosted(db, access, own)? {
        let maintainers = confirmed(db, &owner, &identifier)?;
        let mut named = maintainers.clone();
        let mut relays = BTreeSet::new();
        for maintainer in &maintainers {
            let Some(announced) = announcement(db, maintainer, &identifier)? else { continue };
            named.extend(announced.maintainers);
            relays.extend(announced.relays.into_iter().take(RELAYS_PER_ANNOUNCEMENT_MAX));
        }
        let relays = relays.iter().filter_map(|relay| relay_url(relay, own, outbound));
        let relays: BTreeSet<String> = relays.chain(access.archive_relays_of(&owner, &identifier)).collect();
        repositories.push((owner, identifier, named, relays));
    }
    let chosen = choose_relays(repositories.iter().map(|(_, _, _, relays)| relays));
    let mut concerns: BTreeMap<String, Concerns> = BTreeMap::new();
    for (owner, identifier, named, relays) in repositories {
        let discussed = discussions(db, &owner, &identifier)?;
        for relay in relays.into_iter().filter(|relay| chosen.contains(relay)) {
            let concern = concerns.entry(relay).or_default();
            concern.identifiers.insert(identifier.clone());
            concern.maintainers.extend(&named);
            concern.addresses.extend(named.iter().map(|key| format!("{ANNOUNCEMENT}:{key}:{identifier}")));
            concern.discussions.extend(discussed.0.iter().cloned());
            concern.participants.extend(named.iter().chain(&discussed.1));
        }
    }
    let mut plan: GatherPlan = concerns.into_iter().map(|(relay, concern)| (relay, concern.filters())).collect();
    for relay in &access.archive_relays {
        plan.entry(relay.clone()).or_default().extend(archive_filters(access));
    }
    Ok(plan)
}

/// The relays that are asked: one of each repository in turn, as many as there is room for, and not too many on one host.
fn choose_relays<'a>(repositories: impl Iterator<Item = &'a BTreeSet<String>>) -> BTreeSet<String> {
    let repositories: Vec<Vec<&String>> = repositories.map(|relays| relays.iter().collect()).collect();
    let most = repositories.iter().map(Vec::len).max().unwrap_or_default();
    let (mut chosen, mut hosts) = (BTreeSet::new(), BTreeMap::<&str, usize>::new());
    for relay in (0..most).flat_map(|number| repositories.iter().filter_map(move |relays| relays.get(number))) {
        let host = relay.split('/').nth(2).unwrap_or_default();
        let on_host = hosts.get(host).copied().unwrap_or_default();
        if chosen.len() < RELAYS_MAX && on_host < RELAYS_PER_HOST_MAX && chosen.insert((*relay).clone()) {
            *hosts.entry(host).or_default() += 1;
        }
    }
    chosen
}

/// What is asked of the relays that the operator names, for what is mirrored here.
fn archive_filters(access: &GitAccess) -> Vec<NostrFilter> {
    let mut filters = Vec::new();
    let kinds = || Some([ANNOUNCEMENT, STATE].into());
    if !access.archived.is_empty() {
        filters.push(NostrFilter { kinds: kinds(), authors: Some(access.archived.clone()), ..NostrFilter::default() });
    }
    if !access.archived_repositories.is_empty() {
        let authors = access.archived_repositories.iter().map(|(owner, _)| *owner).collect();
        let identifiers = access.archived_repositories.iter().map(|(_, identifier)| identifier.clone()).collect();
        let tags = vec![TagFilter { letter: 'd', values: identifiers }];
        filters.push(NostrFilter { kinds: kinds(), authors: Some(authors), tags, ..NostrFilter::default() });
    }
    filters
}

/// Repositories that are announced here, whether their data is here or not.
fn hosted(db: &Db<Snapshot>, access: &GitAccess, own: ServiceName) -> StoreResult<BTreeSet<(NostrKey, String)>> {
    let mut announced = BTreeSet::new();
    announced.extend(db.repositories_waiting_for_data(REPOSITORIES_MAX)?);
    for (_, seq) in db.nostr_events(NostrIndex::Kind(ANNOUNCEMENT), Nanos(0), Stamp::LAST, REPOSITORIES_MAX)? {
        if let Some((event, _)) = db.shown_nostr_event(seq)? {
            announced.extend(event.value("d").map(|identifier| (event.author, identifier.to_owned())));
        }
    }
    let mut hosted = BTreeSet::new();
    for (owner, identifier) in announced {
        let listing = announcement(db, &owner, &identifier)?;
        let is_here = listing.is_some_and(|listing| access.hosts(&listing, own));
        if is_here {
            hosted.insert((owner, identifier));
        }
    }
    Ok(hosted)
}

/// A relay that may be asked: not this one, and not where nothing may be sent to.
fn relay_url(relay: &str, own: ServiceName, outbound: &OutboundClient) -> Option<String> {
    let is_relay = |rest: &&str| rest.starts_with("://") || rest.starts_with("s://");
    let as_http = relay.strip_prefix("ws").filter(is_relay).map(|rest| format!("http{rest}"))?;
    let vetted = outbound.vet(&as_http).ok()?;
    let is_own = ServiceName::of_url(relay) == Some(own);
    (!is_own).then(|| vetted.as_str().replacen("http", "ws", 1).trim_end_matches('/').to_owned())
}

/// The latest events that name a repository, and who wrote them.
fn discussions(
    db: &Db<Snapshot>,
    owner: &NostrKey,
    identifier: &str,
) -> StoreResult<(BTreeSet<String>, BTreeSet<NostrKey>)> {
    let (mut ids, mut authors) = (BTreeSet::new(), BTreeSet::new());
    let address = AddressName::of(&format!("{ANNOUNCEMENT}:{owner}:{identifier}"));
    for (_, seq) in db.nostr_events(NostrIndex::Tag(b'a', address), Nanos(0), Stamp::LAST, DISCUSSIONS_MAX)? {
        if let Some((event, _)) = db.shown_nostr_event(seq)? {
            ids.insert(event.id.to_string());
            authors.insert(event.author);
        }
    }
    Ok((ids, authors))
}

impl Concerns {
    fn filters(self) -> Vec<NostrFilter> {
        let mut filters = Vec::new();
        for (identifiers, authors) in
            parts(&self.identifiers).flat_map(|part| parts(&self.maintainers).map(move |keys| (part.clone(), keys)))
        {
            let (kinds, tags) = ([ANNOUNCEMENT, STATE].into(), vec![TagFilter { letter: 'd', values: identifiers }]);
            filters.push(NostrFilter { kinds: Some(kinds), authors: Some(authors), tags, ..NostrFilter::default() });
        }
        for (letters, values) in [(['a', 'A', 'q'].as_slice(), &self.addresses), (&['e', 'E', 'q'], &self.discussions)]
        {
            for (letter, values) in letters.iter().flat_map(|letter| parts(values).map(move |part| (*letter, part))) {
                filters.push(NostrFilter { tags: vec![TagFilter { letter, values }], ..NostrFilter::default() });
            }
        }
        for authors in parts(&self.participants) {
            let kinds = Some(OF_PARTICIPANTS.into());
            filters.push(NostrFilter { kinds, authors: Some(authors), ..NostrFilter::default() });
        }
        filters
    }
}

/// A set in parts that fit into a filter.
fn parts<T: Ord + Clone>(all: &BTreeSet<T>) -> impl Iterator<Item = BTreeSet<T>> {
    let all: Vec<T> = all.iter().cloned().collect();
    let parts: Vec<BTreeSet<T>> = all.chunks(VALUES_MAX).map(|part| part.iter().cloned().collect()).collect();
    parts.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_into_a_filter_is_asked_for_by_another() {
        let mut concerns = Concerns::default();
        concerns.identifiers.insert("tool".to_owned());
        concerns.maintainers.insert(NostrKey([1; 32]));
        concerns.addresses.extend((0..250).map(|number| number.to_string()));
        let filters = concerns.filters();
        assert_eq!(filters.len(), 1 + 3 * 3);
        let asked = filters.iter().flat_map(|filter| &filter.tags).filter(|tag| tag.letter == 'A');
        assert_eq!(asked.map(|tag| tag.values.len()).collect::<Vec<_>>(), [100, 100, 50]);
    }

    #[test]
    fn every_repository_has_its_turn_and_no_host_gets_all() {
        let of = |host: &str, count: usize| (0..count).map(|n| format!("wss://{host}/{n}")).collect::<BTreeSet<_>>();
        let greedy: Vec<BTreeSet<String>> = (0..100).map(|n| of(&format!("h{n}.example"), 8)).collect();
        let all: Vec<BTreeSet<String>> =
            greedy.into_iter().chain([of("last.example", 1), of("victim.example", 8)]).collect();
        let chosen = choose_relays(all.iter());
        assert_eq!(chosen.len(), RELAYS_MAX);
        assert!(chosen.contains("wss://last.example/0"));
        let on_victim = choose_relays([of("victim.example", 8)].iter());
        assert_eq!(on_victim.len(), RELAYS_PER_HOST_MAX);
    }

    #[test]
    fn relays_are_vetted_and_this_one_is_none_of_them() {
        let outbound = OutboundClient::new(outbound::AllowedNetworks::public());
        let own = ServiceName::of_url("https://here.example.org").expect("a name");
        let url = |relay| relay_url(relay, own, &outbound);
        assert_eq!(url("wss://there.example.org/"), Some("wss://there.example.org".to_owned()));
        for relay in ["wss://here.example.org", "ws://127.0.0.1:80", "https://there.example.org", "ws:x", ""] {
            assert_eq!(url(relay), None, "{relay}");
        }
    }
}
