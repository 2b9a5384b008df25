//! Who may do what through the HTTP API and the pages: one function, which denies by default.
//!
//! A door proves a [`Principal`]; every request is an [`Action`]; what it touches is told by [`Facts`]. The door asks
//! with no facts before a handler runs; whoever reads or writes asks again with what the snapshot or the transaction
//! sees. What a caller may not see is answered as if it did not exist.

use model::SpaceId;
use model::payload::MemberRole;

/// What an API key is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum KeyRole {
    /// In the hands of users: acts only for a user who is proven.
    Frontend,
    /// An application's server: names the users it acts for, and reads the whole space.
    Backend,
    /// As a backend, and administers the space.
    Admin,
}

impl KeyRole {
    /// Every role, with its word and code.
    pub const ALL: [(KeyRole, &'static str, u8); 3] =
        [(KeyRole::Frontend, "frontend", 1), (KeyRole::Backend, "backend", 2), (KeyRole::Admin, "admin", 3)];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            KeyRole::Frontend => "frontend",
            KeyRole::Backend => "backend",
            KeyRole::Admin => "admin",
        }
    }

    /// The byte that stands for it.
    pub fn code(self) -> u8 {
        match self {
            KeyRole::Frontend => 1,
            KeyRole::Backend => 2,
            KeyRole::Admin => 3,
        }
    }

    /// The role of that word.
    pub fn from_word(word: &str) -> Option<KeyRole> {
        KeyRole::ALL.iter().find(|(_, other, _)| *other == word).map(|(role, ..)| *role)
    }

    /// The role of that byte.
    pub fn from_code(code: u8) -> Option<KeyRole> {
        KeyRole::ALL.iter().find(|(.., other)| *other == code).map(|(role, ..)| *role)
    }
}

/// How a user stands in the space, as far as access is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserStanding {
    /// Not seen yet: their first write admits them.
    New,
    /// A member with that role.
    Member(MemberRole),
    /// Removed or erased.
    Gone,
}

/// What a door could prove about a caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Principal {
    /// Nothing.
    Nobody,
    /// An API key, with how the user it acts for stands.
    Key {
        /// What the key is for.
        role: KeyRole,
        /// The space it is bound to.
        space: SpaceId,
        /// The user it acts for.
        user: Option<UserStanding>,
    },
    /// A person who signed in to the pages.
    Session {
        /// The space they are in.
        space: SpaceId,
        /// How they stand there.
        user: UserStanding,
    },
    /// Whoever can read the data folder.
    Operator,
}

/// What is asked for. One per route; several routes may share one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Action {
    /// Whether the node lives, and what its API is.
    Look,
    /// Lists and single things that members may read.
    Read,
    /// Something new under the user's name.
    Write,
    /// An event that was signed elsewhere: its signature says whose it is, and the rules of the space whether it is valid.
    Submit,
    /// A change of what somebody wrote: its author, or an admin of the space.
    Change,
    /// What concerns the caller alone: markers, blocks, own export.
    Own,
    /// Signing for users, and what else only the application's server does.
    Vouch,
    /// Administration of the space.
    Administer,
    /// Administration of the node.
    Operate,
}

/// What an action touches, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Facts {
    /// It is in a thread that only its participants see, and the caller is not among them.
    pub is_closed_to_caller: bool,
    /// The caller wrote it.
    pub is_own: bool,
    /// Whether anything is known yet: the door asks before it is.
    pub is_known: bool,
}

/// What the function says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Go on.
    Allow,
    /// Nobody was proven: 401.
    Unproven,
    /// Proven, but not entitled: 403, with what is lacking.
    Forbidden(&'static str),
    /// As if it did not exist: 404.
    Hidden,
}

const NEEDS_USER: &str = "name the user in X-User-ID";
const IS_GONE: &str = "this user was removed from the space";
const NEEDS_BACKEND: &str = "this needs a backend key";
const NEEDS_ADMIN: &str = "this needs an admin key";
const NEEDS_OPERATOR: &str = "this needs the operator's token";
const NEEDS_ADMIN_ROLE: &str = "only admins of the space may do this";
const NEEDS_LINK: &str = "only whoever runs this node may do this, signed in by a link of `anteroom link`";
const READS_ONLY: &str = "readers of a space read, and write nothing";
const NEEDS_AUTHOR: &str = "only the author or an admin of the space may change this";

/// Decides every access.
pub fn decide(principal: &Principal, action: Action, facts: &Facts) -> Decision {
    let by_principal = match (principal, action) {
        (_, Action::Look) => return Decision::Allow,
        (Principal::Nobody, _) => Decision::Unproven,
        (Principal::Operator, Action::Own | Action::Write) => Decision::Forbidden(NEEDS_USER),
        (Principal::Operator, _) => return Decision::Allow,
        (Principal::Session { .. }, Action::Operate) => Decision::Forbidden(NEEDS_LINK),
        (_, Action::Operate) => Decision::Forbidden(NEEDS_OPERATOR),
        (
            Principal::Key { user: Some(UserStanding::Gone), .. } | Principal::Session { user: UserStanding::Gone, .. },
            _,
        ) => Decision::Forbidden(IS_GONE),
        (
            Principal::Key { user: Some(UserStanding::Member(MemberRole::Reader)), .. }
            | Principal::Session { user: UserStanding::Member(MemberRole::Reader), .. },
            Action::Write | Action::Submit | Action::Change,
        ) => Decision::Forbidden(READS_ONLY),
        (Principal::Key { role, user, .. }, _) => by_key(*role, user.is_some(), action),
        (Principal::Session { user, .. }, _) => by_session(*user, action),
    };
    match by_principal {
        Decision::Allow if facts.is_known => by_facts(principal, action, facts),
        other => other,
    }
}

fn by_key(role: KeyRole, has_user: bool, action: Action) -> Decision {
    match (role, action) {
        (KeyRole::Frontend, Action::Vouch) => Decision::Forbidden(NEEDS_BACKEND),
        (KeyRole::Frontend | KeyRole::Backend, Action::Administer) => Decision::Forbidden(NEEDS_ADMIN),
        (KeyRole::Frontend, _) if !has_user => Decision::Unproven,
        (KeyRole::Backend | KeyRole::Frontend, Action::Write | Action::Change | Action::Own) if !has_user => {
            Decision::Forbidden(NEEDS_USER)
        }
        (KeyRole::Admin, Action::Write | Action::Own) if !has_user => Decision::Forbidden(NEEDS_USER),
        (_, Action::Operate) => Decision::Forbidden(NEEDS_OPERATOR),
        (_, Action::Look | Action::Read | Action::Write | Action::Submit | Action::Change) => Decision::Allow,
        (_, Action::Own | Action::Vouch | Action::Administer) => Decision::Allow,
    }
}

fn by_session(user: UserStanding, action: Action) -> Decision {
    let is_admin = matches!(user, UserStanding::Member(role) if role >= MemberRole::Admin);
    match action {
        Action::Look | Action::Read | Action::Write | Action::Submit | Action::Change => Decision::Allow,
        Action::Own => Decision::Allow,
        Action::Administer if is_admin => Decision::Allow,
        Action::Administer => Decision::Forbidden(NEEDS_ADMIN_ROLE),
        Action::Vouch => Decision::Forbidden(NEEDS_BACKEND),
        Action::Operate => Decision::Forbidden(NEEDS_LINK),
    }
}

fn by_facts(principal: &Principal, action: Action, facts: &Facts) -> Decision {
    if facts.is_closed_to_caller {
        return Decision::Hidden;
    }
    let is_entitled = match principal {
        Principal::Key { role: KeyRole::Admin, user: None, .. } | Principal::Operator => true,
        Principal::Key { user: Some(UserStanding::Member(role)), .. } => *role >= MemberRole::Admin,
        Principal::Session { user: UserStanding::Member(role), .. } => *role >= MemberRole::Admin,
        Principal::Key { .. } | Principal::Session { .. } | Principal::Nobody => false,
    };
    match action {
        Action::Change if !facts.is_own && !is_entitled => Decision::Forbidden(NEEDS_AUTHOR),
        _ => Decision::Allow,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACE: SpaceId = SpaceId([7; 16]);

    fn key(role: KeyRole, user: Option<UserStanding>) -> Principal {
        Principal::Key { role, space: SPACE, user }
    }

    #[test]
    fn nobody_may_only_look() {
        for action in [Action::Read, Action::Write, Action::Change, Action::Own, Action::Vouch, Action::Administer] {
            assert_eq!(decide(&Principal::Nobody, action, &Facts::default()), Decision::Unproven);
        }
        assert_eq!(decide(&Principal::Nobody, Action::Look, &Facts::default()), Decision::Allow);
    }

    #[test]
    fn a_frontend_key_without_a_proven_user_is_nobody() {
        for action in [Action::Read, Action::Write, Action::Change, Action::Own] {
            assert_eq!(decide(&key(KeyRole::Frontend, None), action, &Facts::default()), Decision::Unproven);
        }
    }

    #[test]
    fn what_was_signed_elsewhere_needs_no_user_but_a_reader_submits_nothing() {
        let says = |principal| decide(&principal, Action::Submit, &Facts::default());
        let reader = Some(UserStanding::Member(MemberRole::Reader));
        assert_eq!(says(key(KeyRole::Backend, None)), Decision::Allow);
        assert_eq!(says(key(KeyRole::Frontend, None)), Decision::Unproven);
        assert_eq!(says(key(KeyRole::Backend, reader)), Decision::Forbidden(READS_ONLY));
        assert_eq!(says(Principal::Nobody), Decision::Unproven);
    }

    #[test]
    fn only_the_author_or_an_admin_changes() {
        let member = Some(UserStanding::Member(MemberRole::Member));
        let admin = Some(UserStanding::Member(MemberRole::Admin));
        let facts = |is_own| Facts { is_own, is_known: true, ..Facts::default() };
        for role in [KeyRole::Frontend, KeyRole::Backend, KeyRole::Admin] {
            assert_eq!(decide(&key(role, member), Action::Change, &facts(true)), Decision::Allow);
            let refused = Decision::Forbidden(NEEDS_AUTHOR);
            assert_eq!(decide(&key(role, member), Action::Change, &facts(false)), refused);
            assert_eq!(decide(&key(role, admin), Action::Change, &facts(false)), Decision::Allow);
        }
        assert_eq!(decide(&key(KeyRole::Admin, None), Action::Change, &facts(false)), Decision::Allow);
    }

    #[test]
    fn what_is_closed_does_not_exist_and_who_is_gone_may_nothing() {
        let closed = Facts { is_closed_to_caller: true, is_own: false, is_known: true };
        let member = key(KeyRole::Backend, Some(UserStanding::Member(MemberRole::Owner)));
        assert_eq!(decide(&member, Action::Read, &closed), Decision::Hidden);
        let gone = key(KeyRole::Backend, Some(UserStanding::Gone));
        for action in [Action::Read, Action::Write, Action::Change, Action::Own, Action::Vouch, Action::Administer] {
            assert_eq!(decide(&gone, action, &Facts::default()), Decision::Forbidden(IS_GONE));
        }
    }
}
