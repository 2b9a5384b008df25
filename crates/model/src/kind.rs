//! The kinds of the `space` protocol, and what each of them is allowed to carry.
//!
//! A kind that is not known here is kept, passed on and shown as unknown; a later release may know it.

use crate::member_role::MemberRole;
use std::fmt;

macro_rules! kinds {
    ($(
        $(#[$doc:meta])*
        $name:ident = $code:literal, $word:literal, content $content:ident, least $role:ident, deletable $deletable:literal,
        tier $tier:literal, payload $payload:literal;
    )*) => {
        /// What an event of the `space` protocol says.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
            /// A kind this release does not know.
            Unknown(u16),
        }

        impl Kind {
            /// Every known kind.
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            /// The kind of that code.
            pub fn from_code(code: u16) -> Kind {
                match code { $($code => Kind::$name,)* other => Kind::Unknown(other) }
            }

            /// The code that stands in the envelope.
            pub fn code(self) -> u16 {
                match self { $(Kind::$name => $code,)* Kind::Unknown(code) => code }
            }

            /// The word for it.
            pub fn word(self) -> &'static str {
                match self { $(Kind::$name => $word,)* Kind::Unknown(_) => "unknown" }
            }

            /// What its content must be.
            pub fn content_rule(self) -> ContentRule {
                match self { $(Kind::$name => ContentRule::$content,)* Kind::Unknown(_) => ContentRule::Any }
            }

            /// Whether it carries a payload, which decides validity.
            pub fn has_payload(self) -> bool {
                match self { $(Kind::$name => $payload,)* Kind::Unknown(_) => false }
            }

            /// The least role that may make it in a space with members.
            pub fn least_role(self) -> MemberRole {
                match self { $(Kind::$name => MemberRole::$role,)* Kind::Unknown(_) => MemberRole::Reader }
            }

            /// Whether the content of such an event can be deleted. What decides validity never goes.
            pub fn is_deletable(self) -> bool {
                match self { $(Kind::$name => $deletable,)* Kind::Unknown(_) => true }
            }

            /// Which kinds need which: an event needs only events of a lower tier, or, in tier zero, earlier ones.
            pub fn tier(self) -> u8 {
                match self { $(Kind::$name => $tier,)* Kind::Unknown(_) => Kind::TIERS - 1 }
            }
        }
    };
}

kinds! {
    /// Creates a space; its author is the owner.
    Space = 1, "space", content Json, least Reader, deletable false, tier 0, payload true;
    /// The settings of a space: one register.
    Settings = 2, "settings", content Json, least Admin, deletable true, tier 1, payload false;
    /// Gives an identity a role, or replaces an earlier membership.
    Member = 3, "member", content Empty, least Admin, deletable false, tier 0, payload true;
    /// Ends a membership.
    Removal = 4, "removal", content Empty, least Reader, deletable false, tier 0, payload false;
    /// A device of the author: one register per device key.
    Device = 5, "device", content Json, least Reader, deletable true, tier 1, payload false;
    /// A public key to which key events are sealed.
    Prekey = 6, "prekey", content Empty, least Reader, deletable false, tier 1, payload true;
    /// Carries a space key to one member.
    Key = 7, "key", content Empty, least Reader, deletable false, tier 1, payload true;
    /// The author's profile in the space: one register.
    Profile = 8, "profile", content Json, least Reader, deletable true, tier 1, payload false;
    /// Opens a thread.
    Thread = 16, "thread", content Json, least Member, deletable true, tier 1, payload false;
    /// Changes one field of a thread; the auxiliary key says which.
    ThreadUpdate = 17, "thread-update", content Json, least Member, deletable true, tier 2, payload false;
    /// Deletes a thread softly.
    ThreadDelete = 18, "thread-delete", content Empty, least Member, deletable false, tier 2, payload false;
    /// A message in a thread.
    Message = 32, "message", content Json, least Member, deletable true, tier 2, payload false;
    /// A new version of a message or post.
    Edit = 33, "edit", content Json, least Member, deletable true, tier 3, payload false;
    /// A reaction; replaces the author's earlier one on the same target.
    Reaction = 34, "reaction", content Json, least Member, deletable true, tier 3, payload false;
    /// Takes the author's reaction back.
    ReactionRemoval = 35, "reaction-removal", content Empty, least Member, deletable false, tier 3, payload false;
    /// How far the author has read a thread: one register per thread.
    ReadMarker = 36, "read-marker", content Empty, least Reader, deletable false, tier 3, payload false;
    /// Deletes the content of its target for ever.
    Delete = 48, "delete", content Empty, least Member, deletable false, tier 3, payload false;
    /// A post in the author's public space.
    Post = 64, "post", content Json, least Member, deletable true, tier 2, payload false;
    /// Follows a public space: one register with unfollow.
    Follow = 65, "follow", content Empty, least Member, deletable false, tier 1, payload false;
    /// Ends a follow.
    Unfollow = 66, "unfollow", content Empty, least Member, deletable false, tier 1, payload false;
    /// A file; its content is the manifest.
    File = 80, "file", content Json, least Member, deletable true, tier 1, payload false;
}

impl Kind {
    /// How many tiers there are.
    pub const TIERS: u8 = 4;
}

/// Whether content must be there, must not, or may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentRule {
    /// A JSON object in canonical form.
    Json,
    /// No content at all.
    Empty,
    /// Anything: the kind is not known.
    Any,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Unknown(code) => write!(f, "unknown-{code}"),
            known => f.write_str(known.word()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_one_to_one() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_code(kind.code()), *kind);
        }
        assert_eq!(Kind::from_code(9999), Kind::Unknown(9999));
    }
}
