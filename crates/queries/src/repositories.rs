//! Git repositories as people see them: what announcements say, and what is discussed about them (NIP-34).
//!
//! Everything here is public, and comes from events that are served; an announcement that waits for its git data shows
//! nothing but that it waits. Texts are cut to what a page has room for.

use crate::error::QueryError;
use crate::nostr::{find_at, find_events};
use engine::protocol::nostr::maintainers::{announcement, confirmed};
use model::need::Oid;
use model::nostr::{
    ANNOUNCEMENT, Address, Announcement, NostrEvent, NostrFilter, NostrId, PULL_REQUEST, PULL_REQUEST_UPDATE,
    TagFilter, VerifiedNostr, tip_of,
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

/// The place of an event in a list, from which the next page goes on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EventPlace {
    /// Seconds.
    pub at: u64,
    pub id: NostrId,
}

impl EventPlace {
    fn of(event: &VerifiedNostr) -> EventPlace {
        EventPlace { at: event.created_at, id: event.id }
    }
}

impl std::fmt::Display for EventPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.at, self.id)
    }
}

impl std::str::FromStr for EventPlace {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<EventPlace, QueryError> {
        let parts = text.split_once('-').and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
        let (at, id) = parts.ok_or_else(|| QueryError::malformed("the cursor is not one that this list gave out"))?;
        Ok(EventPlace { at, id })
    }
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

    /// The events of a filter that stand behind a place, the latest first; and the place of the last one, if there are more.
    fn find_after(
        &self,
        filter: NostrFilter,
        after: Option<EventPlace>,
    ) -> Result<(Vec<VerifiedNostr>, Option<EventPlace>), QueryError> {
        let until = after.map(|after| after.at);
        let (mut events, has_more) = self.find(&NostrFilter { until, ..filter })?;
        let last = events.last().map(EventPlace::of).filter(|_| has_more);
        events.retain(|event| after.is_none_or(|after| EventPlace::of(event) < after));
        Ok((events, last))
    }

    /// The repositories of this node, those announced last first; and behind which place the next ones stand.
    pub fn list(
        &self,
        after: Option<EventPlace>,
        most: usize,
    ) -> Result<(Vec<RepositoryCard>, Option<EventPlace>), QueryError> {
        let kinds = Some(BTreeSet::from([ANNOUNCEMENT]));
        let (mut events, next) = self.find_after(NostrFilter { kinds, ..NostrFilter::default() }, after)?;
        events.retain(|event| Announcement::of(event).is_some_and(|own| self.is_hosted(&own)));
        let next = cut_page(&mut events, most, EventPlace::of).or(next);
        Ok((events.iter().filter_map(card_of).collect(), next))
    }

    /// A repository that is announced here, if it is.
    pub fn repository(&self, owner: &NostrKey, identifier: &str) -> Result<Option<ShownRepository>, QueryError> {
        let Some(announced) = announcement(self.db, owner, identifier)? else { return Ok(None) };
        if !self.is_hosted(&announced) {
            return Ok(None);
        }
        let address = Address { kind: ANNOUNCEMENT, author: *owner, identifier: identifier.to_owned() };
        let served = find_at(self.db, &address, &self.access.banned, self.now)?;
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
        let mut names = BTreeMap::new();
        for author in people.into_iter().collect::<BTreeSet<NostrKey>>().into_iter().take(PEOPLE_MAX) {
            let address = Address { kind: PROFILE, author, identifier: String::new() };
            let profile = find_at(self.db, &address, &self.access.banned, self.now)?;
            names.extend(profile.and_then(|event| profile_name(&event.content)).map(|name| (author, name)));
        }
        Ok(names)
    }
}

/// Cuts a list to a page. Says behind which place the next one begins, if something was cut off.
fn cut_page<T>(found: &mut Vec<T>, most: usize, place: impl Fn(&T) -> EventPlace) -> Option<EventPlace> {
    let has_more = found.len() > most;
    found.truncate(most);
    found.last().filter(|_| has_more).map(place)
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
    fn places_are_written_and_read_and_the_latest_is_the_greatest() {
        let place = |at, byte| EventPlace { at, id: NostrId([byte; 32]) };
        assert!(place(2, 1) > place(1, 9) && place(1, 9) > place(1, 1));
        assert_eq!(place(7, 0xab).to_string().parse::<EventPlace>().ok(), Some(place(7, 0xab)));
        for bad in ["", "7", "7-", "-ab", "x-00", "7-zz"] {
            assert!(bad.parse::<EventPlace>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_page_says_where_the_next_begins() {
        let place = |at: &u64| EventPlace { at: *at, id: NostrId([0; 32]) };
        let mut found = vec![9, 8, 8, 7];
        assert_eq!(cut_page(&mut found, 3, place), Some(place(&8)));
        assert_eq!((cut_page(&mut found, 3, place), found.len()), (None, 3));
    }

    #[test]
    fn text_is_cut_to_one_line() {
        assert_eq!(one_line("a\tb\n", 10), "a b");
        assert_eq!(one_line("abcdef", 3), "abc…");
        assert_eq!(one_line("äöü", 3), "äöü");
    }
}
