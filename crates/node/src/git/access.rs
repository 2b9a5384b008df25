//! Whom the operator wants here, and whom not.

use model::NostrKey;
use model::nostr::{ANNOUNCEMENT, STATE, VerifiedNostr, announced_identifier};
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
        if is_about_own && !self.is_owner(&event.author) {
            return Some(("restricted", "only listed owners have repositories here; ask the operator of this node"));
        }
        None
    }

    /// Whether a repository is served and pushed to, as far as the operator is concerned.
    pub fn allows(&self, owner: &NostrKey, identifier: &str) -> bool {
        self.is_owner(owner) && !self.is_banned(owner, identifier)
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
        assert!(!banning.allows(&key(4), "x") && !banning.allows(&key(1), "tool") && banning.allows(&key(1), "other"));
    }
}
