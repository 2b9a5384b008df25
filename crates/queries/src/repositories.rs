//! Git repositories as people see them: what announcements say, and what is discussed about them (NIP-34).
//!
//! Everything here is public, and comes from events that are served; an announcement that waits for its git data shows
//! nothing but that it waits. Texts are cut to what a page has room for.

use crate::error::QueryError;
use crate::nostr::find_events;
use engine::protocol::nostr::maintainers::{announcement, confirmed};
use model::need::Oid;
use model::nostr::{
    ANNOUNCEMENT, Announcement, NostrEvent, NostrFilter, NostrId, PULL_REQUEST, PULL_REQUEST_UPDATE, TagFilter,
    VerifiedNostr, tip_of,
};
use model::{Nanos, NostrKey};
use node::git::GitAccess;
use std::collections::{BTreeMap, BTreeSet};
use store::Db;
use store::tables::TableReads;

mod discussion;

pub use discussion::{
    Discussion, DiscussionEntry, DiscussionKind, DiscussionList, DiscussionStatus, DiscussionThread, EntryKind,
};

/// The kind of a profile.
const PROFILE: u16 = 0;
/// How much of a name is shown.
const NAME_CHARS_MAX: usize = 80;
/// How much of a description is shown.
const DESCRIPTION_CHARS_MAX: usize = 500;
/// Topics, links and addresses of a repository that are shown.
const VALUES_MAX: usize = 16;
/// Names of people that are looked up for one page.
const PEOPLE_MAX: usize = 200;

/// What an announcement says of a repository, short.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RepositoryCard {
    pub owner: NostrKey,
    pub identifier: String,
    /// What people call it.
    pub name: String,
    pub description: String,
    pub topics: Vec<String>,
    /// Seconds.
    pub announced_at: u64,
}

/// A repository that is announced here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownRepository {
    pub owner: NostrKey,
    pub identifier: String,
    /// What its announcement says; nothing while that waits for git data.
    pub card: Option<RepositoryCard>,
    /// Where it can be cloned from.
    pub clones: Vec<String>,
    pub relays: Vec<String>,
    /// Pages about it.
    pub links: Vec<String>,
    /// Who is confirmed, its owner included.
    pub maintainers: BTreeSet<NostrKey>,
    /// Whether it is mirrored here, and pushed to elsewhere.
    pub is_mirror: bool,
}

/// Reads of repositories, as of one moment.
pub struct RepositoryReader<'a, V> {
    pub db: &'a Db<V>,
    pub access: &'a GitAccess,
    pub now: Nanos,
}

/// Text of somebody in one line, cut.
fn one_line(text: &str, chars_max: usize) -> String {
    let line = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut shown: String = line.take(chars_max + 1).collect();
    if let Some((end, _)) = shown.char_indices().nth(chars_max) {
        shown.truncate(end);
        shown.push('…');
    }
    shown.trim().to_owned()
}

fn values(event: &NostrEvent, tag: &str) -> Vec<String> {
    let all = event.tags_of(tag).flatten();
    all.take(VALUES_MAX).map(|value| one_line(value, DESCRIPTION_CHARS_MAX)).collect()
}

fn card_of(event: &VerifiedNostr) -> Option<RepositoryCard> {
    let announced = Announcement::of(event)?;
    let name = event.value("name").map(|name| one_line(name, NAME_CHARS_MAX)).filter(|name| !name.is_empty());
    Some(RepositoryCard {
        owner: announced.owner,
        name: name.unwrap_or_else(|| one_line(&announced.identifier, NAME_CHARS_MAX)),
        identifier: announced.identifier,
        description: event.value("description").map(|text| one_line(text, DESCRIPTION_CHARS_MAX)).unwrap_or_default(),
        topics: values(event, "t"),
        announced_at: event.created_at,
    })
}

impl<V: TableReads> RepositoryReader<'_, V> {
    fn find(&self, filter: &NostrFilter) -> Result<(Vec<VerifiedNostr>, bool), QueryError> {
        let found = find_events(self.db, filter, &self.access.banned, self.now)?;
        Ok((found.events.into_iter().map(|served| served.event).collect(), found.has_more))
    }

    fn is_hosted(&self, announced: &Announcement) -> bool {
        self.db.policy().service.is_some_and(|service| self.access.hosts(announced, service))
    }

    /// The repositories of this node, those announced last first, from a moment (in seconds) on back; and from when on to
    /// read the next ones.
    pub fn list(&self, until: Option<u64>, most: usize) -> Result<(Vec<RepositoryCard>, Option<u64>), QueryError> {
        let kinds = Some(BTreeSet::from([ANNOUNCEMENT]));
        let (events, has_more) = self.find(&NostrFilter { kinds, until, ..NostrFilter::default() })?;
        let last = events.last().map(|event| event.created_at);
        let is_here = |event: &&VerifiedNostr| Announcement::of(event).is_some_and(|own| self.is_hosted(&own));
        let mut cards: Vec<RepositoryCard> = events.iter().filter(is_here).filter_map(card_of).collect();
        let next = next_page(cards.get(most).map(|left| left.announced_at), last.filter(|_| has_more), until);
        cards.truncate(most);
        Ok((cards, next))
    }

    /// A repository that is announced here, if it is.
    pub fn repository(&self, owner: &NostrKey, identifier: &str) -> Result<Option<ShownRepository>, QueryError> {
        let Some(announced) = announcement(self.db, owner, identifier)? else { return Ok(None) };
        if !self.is_hosted(&announced) {
            return Ok(None);
        }
        let filter = NostrFilter {
            kinds: Some([ANNOUNCEMENT].into()),
            authors: Some([*owner].into()),
            tags: vec![TagFilter { letter: 'd', values: [identifier.to_owned()].into() }],
            ..NostrFilter::default()
        };
        let served = self.find(&filter)?.0.into_iter().next();
        // While a newer announcement waits, the one before it is shown.
        let shown = served.as_ref().and_then(|event| Announcement::of(event));
        let addresses =
            |urls: Vec<String>| urls.iter().take(VALUES_MAX).map(|url| one_line(url, DESCRIPTION_CHARS_MAX)).collect();
        let (clones, relays) = shown.map(|own| (own.clones, own.relays)).unwrap_or_default();
        Ok(Some(ShownRepository {
            owner: *owner,
            identifier: identifier.to_owned(),
            card: served.as_ref().and_then(card_of),
            clones: addresses(clones),
            relays: addresses(relays),
            links: served.as_ref().map(|event| values(event, "web")).unwrap_or_default(),
            maintainers: confirmed(self.db, owner, identifier)?,
            is_mirror: self.access.is_archived(owner, identifier),
        }))
    }

    /// What people call themselves, of those who do.
    pub fn names(&self, people: impl IntoIterator<Item = NostrKey>) -> Result<BTreeMap<NostrKey, String>, QueryError> {
        let authors: BTreeSet<NostrKey> = people.into_iter().take(PEOPLE_MAX).collect();
        if authors.is_empty() {
            return Ok(BTreeMap::new());
        }
        let kinds = Some(BTreeSet::from([PROFILE]));
        let (profiles, _) = self.find(&NostrFilter { kinds, authors: Some(authors), ..NostrFilter::default() })?;
        let named = profiles.iter().filter_map(|event| Some((event.author, profile_name(&event.content)?)));
        Ok(named.collect())
    }
}

/// From when on the next page is read: with what this one has no room for, or before the last that was looked at.
fn next_page(left: Option<u64>, last_looked_at: Option<u64>, until: Option<u64>) -> Option<u64> {
    match left {
        // More of one second than a page has room for: the others of that second are passed over.
        Some(left) if Some(left) == until => left.checked_sub(1),
        Some(left) => Some(left),
        None => last_looked_at?.checked_sub(1),
    }
}

/// The name in a profile.
fn profile_name(content: &str) -> Option<String> {
    let profile: serde_json::Map<String, serde_json::Value> = serde_json::from_str(content).ok()?;
    let text = |field: &str| Some(one_line(profile.get(field)?.as_str()?, NAME_CHARS_MAX));
    ["display_name", "name"].into_iter().filter_map(text).find(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_a_name_if_it_says_one() {
        assert_eq!(profile_name(r#"{"name":"ann","display_name":"Ann B."}"#).as_deref(), Some("Ann B."));
        assert_eq!(profile_name(r#"{"name":"ann","display_name":" "}"#).as_deref(), Some("ann"));
        assert_eq!(profile_name(r#"{"name":"a\nb"}"#).as_deref(), Some("a b"));
        for nothing in [r#"{"name":7}"#, "{}", "[]", "x", r#"{"name":""}"#] {
            assert_eq!(profile_name(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn pages_follow_each_other_and_end() {
        assert_eq!(next_page(Some(7), Some(3), Some(9)), Some(7));
        assert_eq!(next_page(Some(9), Some(3), Some(9)), Some(8), "all of one second");
        assert_eq!(next_page(None, Some(3), Some(9)), Some(2));
        assert_eq!(next_page(None, Some(0), None), None);
        assert_eq!(next_page(None, None, None), None);
    }

    #[test]
    fn text_is_cut_to_one_line() {
        assert_eq!(one_line("a\tb\n", 10), "a b");
        assert_eq!(one_line("abcdef", 3), "abc…");
        assert_eq!(one_line("äöü", 3), "äöü");
    }
}
