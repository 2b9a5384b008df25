//! Whom the operator wants here, and whom not.

use model::NostrKey;
use model::nostr::{ANNOUNCEMENT, Announcement, STATE, ServiceName, VerifiedNostr, announced_identifier};
use std::collections::BTreeSet;

/// The lists of the operator.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GitAccess {
    /// Only these may announce repositories; anybody, if there are none.
    pub owners: BTreeSet<NostrKey>,
    /// Only these may publish, after they have authenticated; anybody, if there are none.
    pub writers: BTreeSet<NostrKey>,
    /// Nothing of these is taken or served.
    pub banned: BTreeSet<NostrKey>,
    /// Repositories that are not served, nor pushed to.
    pub banned_repositories: BTreeSet<(NostrKey, String)>,
    /// Who runs the node.
    pub operator: Option<NostrKey>,
    /// All repositories of these are mirrored here (GRASP-05), wherever they are announced.
    pub archived: BTreeSet<NostrKey>,
    /// The same, of single repositories.
    pub archived_repositories: BTreeSet<(NostrKey, String)>,
    /// Relays that are asked for what is mirrored.
    pub archive_relays: BTreeSet<String>,
}

impl GitAccess {
    /// Why an event is turned away, if it is: a word that programs know, and a reason.
    pub fn why_not(&self, event: &VerifiedNostr) -> Option<(&'static str, &'static str)> {
        if self.banned.contains(&event.author) {
            return Some(("blocked", "the operator of this node has banned the author"));
        }
        let is_about_own = matches!(event.kind, ANNOUNCEMENT | STATE);
        let identifier = event.value("d").unwrap_or_default();
        if is_about_own && self.banned_repositories.contains(&(event.author, identifier.to_owned())) {
            return Some(("blocked", "the operator of this node has banned the repository"));
        }
        if is_about_own && !self.is_owner(&event.author) && !self.is_archived(&event.author, identifier) {
            return Some(("restricted", "only listed owners have repositories here; ask the operator of this node"));
        }
        None
    }

    /// Whether a repository is served and pushed to, as far as the operator is concerned.
    pub(super) fn allows(&self, owner: &NostrKey, identifier: &str) -> bool {
        self.is_owner(owner) && !self.is_banned(owner, identifier)
    }

    /// Whether a repository is mirrored here: fetched from where it is announced, and not pushed to.
    pub fn is_archived(&self, owner: &NostrKey, identifier: &str) -> bool {
        self.archived.contains(owner) || self.archived_repositories.contains(&(*owner, identifier.to_owned()))
    }

    /// Whether anything is mirrored here.
    pub fn archives(&self) -> bool {
        !self.archived.is_empty() || !self.archived_repositories.is_empty()
    }

    /// The relays that are asked for a repository because it is mirrored.
    pub fn archive_relays_of(&self, owner: &NostrKey, identifier: &str) -> BTreeSet<String> {
        if self.is_archived(owner, identifier) { self.archive_relays.clone() } else { BTreeSet::new() }
    }

    /// Whether a repository is here: its announcement lists this service, or it is mirrored, and it is not banned.
    pub fn hosts(&self, announced: &Announcement, service: ServiceName) -> bool {
        let (owner, identifier) = (&announced.owner, announced.identifier.as_str());
        let is_mirrored = self.is_archived(owner, identifier) && !self.is_banned(owner, identifier);
        is_mirrored || announced.lists(service) && self.allows(owner, identifier)
    }

    /// Whether the operator has banned an owner or a repository of theirs, with what they contribute under its name.
    pub fn is_banned(&self, owner: &NostrKey, identifier: &str) -> bool {
        let announced = announced_identifier(identifier).to_owned();
        self.banned.contains(owner) || self.banned_repositories.contains(&(*owner, announced))
    }

    /// Whether the operator chooses who has repositories here.
    pub fn is_restricted(&self) -> bool {
        !self.owners.is_empty()
    }

    fn is_owner(&self, key: &NostrKey) -> bool {
        self.owners.is_empty() || self.owners.contains(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::nostr::NostrEvent;

    fn event(author: u8, kind: u16, identifier: &str) -> VerifiedNostr {
        NostrEvent::sign(&[author; 32], 1, kind, vec![vec!["d".into(), identifier.into()]], "").expect("signed")
    }

    #[test]
    fn lists_decide_about_owners_repositories_and_authors() {
        let key = |author: u8| event(author, 1, "").author;
        let anybody = GitAccess::default();
        assert_eq!(anybody.why_not(&event(1, ANNOUNCEMENT, "tool")), None);
        assert!(anybody.allows(&key(1), "tool") && !anybody.is_restricted());
        let listed = GitAccess { owners: [key(1), key(2)].into(), ..GitAccess::default() };
        assert_eq!(listed.why_not(&event(1, ANNOUNCEMENT, "tool")), None);
        assert!(listed.why_not(&event(3, ANNOUNCEMENT, "tool")).is_some_and(|(word, _)| word == "restricted"));
        assert!(listed.why_not(&event(3, STATE, "tool")).is_some());
        assert_eq!(listed.why_not(&event(3, 1621, "tool")), None, "anybody may write issues");
        assert!(listed.allows(&key(2), "tool") && !listed.allows(&key(3), "tool") && listed.is_restricted());
        let (banned, banned_repositories) = ([key(4)].into(), [(key(1), "tool".to_owned())].into());
        let banning = GitAccess { banned, banned_repositories, ..GitAccess::default() };
        assert!(banning.why_not(&event(4, 1621, "")).is_some_and(|(word, _)| word == "blocked"));
        assert!(banning.why_not(&event(1, STATE, "tool")).is_some_and(|(word, _)| word == "blocked"));
        assert_eq!(banning.why_not(&event(1, STATE, "other")), None);
        assert!(banning.is_banned(&key(1), "prs/tool") && !banning.is_banned(&key(1), "prs/other"));
        // What is mirrored is here wherever it is announced, unless it is banned.
        let service = ServiceName::of_url("https://here.example.org").expect("a name");
        let announced = |author: u8, identifier: &str, clone: &str| {
            let tag = |name: &str, value: &str| vec![name.to_owned(), value.to_owned()];
            let tags = vec![tag("d", identifier), tag("clone", clone), tag("relays", clone)];
            let event = NostrEvent::sign(&[author; 32], 1, ANNOUNCEMENT, tags, "").expect("signed");
            Announcement::of(&event).expect("an announcement")
        };
        let (here, there) = ("https://here.example.org", "https://there.example.org");
        assert!(
            anybody.hosts(&announced(1, "tool", here), service)
                && !anybody.hosts(&announced(1, "tool", there), service)
        );
        assert!(!listed.hosts(&announced(3, "tool", here), service) && !anybody.archives());
        let archived_repositories = [(key(6), "tool".to_owned())].into();
        let mirroring = GitAccess { archived: [key(4), key(5)].into(), archived_repositories, ..banning.clone() };
        assert!(mirroring.archives() && mirroring.hosts(&announced(5, "x", there), service));
        assert!(mirroring.hosts(&announced(6, "tool", there), service));
        assert!(
            !mirroring.hosts(&announced(6, "x", there), service)
                && !mirroring.hosts(&announced(4, "x", there), service)
        );
        assert!(!banning.allows(&key(4), "x") && !banning.allows(&key(1), "tool") && banning.allows(&key(1), "other"));
    }
}
