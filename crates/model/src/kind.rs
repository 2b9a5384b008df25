//! The kinds of the `space` protocol, and what each of them is allowed to carry.
//!
//! A kind that is not known here is kept, passed on and shown as unknown; a later release may know it.

use crate::payload::MemberRole;
use std::fmt;

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $word:literal;)*) => {
        /// The kind of an event, which decides its rules.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Kind {
            $($(#[$doc])* $name,)*
            /// A kind this release does not know.
            Unknown(u16),
        }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$name,)*];

            pub fn from_code(code: u16) -> Kind {
                match code { $($code => Kind::$name,)* other => Kind::Unknown(other) }
            }

            /// The code used in the envelope.
            pub fn code(self) -> u16 {
                match self { $(Kind::$name => $code,)* Kind::Unknown(code) => code }
            }

            /// The name shown to users and used in the API.
            pub fn word(self) -> &'static str {
                match self { $(Kind::$name => $word,)* Kind::Unknown(_) => "unknown" }
            }
        }
    };
}

kinds! {
    /// Creates a space; its author is the owner.
    Space = 1, "space";
    /// The settings of a space: one register.
    Settings = 2, "settings";
    /// Gives an identity a role, or replaces an earlier membership.
    Member = 3, "member";
    /// Ends a membership.
    Removal = 4, "removal";
    /// A device of the author: one register per device key.
    Device = 5, "device";
    /// A public key to which key events are sealed.
    Prekey = 6, "prekey";
    /// Carries a space key to one member.
    Key = 7, "key";
    /// The author's profile in the space: one register.
    Profile = 8, "profile";
    /// Opens a thread.
    Thread = 16, "thread";
    /// Changes one field of a thread; the auxiliary key says which.
    ThreadUpdate = 17, "thread-update";
    /// Deletes a thread softly.
    ThreadDelete = 18, "thread-delete";
    /// A message in a thread.
    Message = 32, "message";
    /// A new version of a message or post.
    Edit = 33, "edit";
    /// A reaction; replaces the author's earlier one on the same target.
    Reaction = 34, "reaction";
    /// Takes the author's reaction back.
    ReactionRemoval = 35, "reaction-removal";
    /// How far the author has read a thread: one register per thread.
    ReadMarker = 36, "read-marker";
    /// Deletes the content of its target for ever.
    Delete = 48, "delete";
    /// A post in the author's public space.
    Post = 64, "post";
    /// Follows a public space: one register with unfollow.
    Follow = 65, "follow";
    /// Ends a follow.
    Unfollow = 66, "unfollow";
    /// A file; its content is the manifest.
    File = 80, "file";
}

/// Whether content must be there, must not, or may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentRule {
    /// A JSON object in canonical form.
    Json,
    /// There must be no content.
    Empty,
    /// Anything: the kind is not known.
    Any,
}

impl Kind {
    pub fn content_rule(self) -> ContentRule {
        match self {
            Kind::Space | Kind::Settings | Kind::Device | Kind::Profile => ContentRule::Json,
            Kind::Thread | Kind::ThreadUpdate | Kind::Message | Kind::Edit => ContentRule::Json,
            Kind::Reaction | Kind::Post | Kind::File => ContentRule::Json,
            Kind::Member | Kind::Removal | Kind::Prekey | Kind::Key => ContentRule::Empty,
            Kind::ThreadDelete | Kind::ReactionRemoval | Kind::Delete => ContentRule::Empty,
            Kind::ReadMarker | Kind::Follow | Kind::Unfollow => ContentRule::Empty,
            Kind::Unknown(_) => ContentRule::Any,
        }
    }

    /// Whether it carries a payload, which decides validity.
    pub fn has_payload(self) -> bool {
        matches!(self, Kind::Space | Kind::Member | Kind::Prekey | Kind::Key)
    }

    /// The least role that may make it in a space with members.
    pub fn least_role(self) -> MemberRole {
        match self {
            Kind::Settings | Kind::Member => MemberRole::Admin,
            Kind::Thread | Kind::ThreadUpdate | Kind::ThreadDelete | Kind::Message | Kind::Edit => MemberRole::Member,
            Kind::Reaction | Kind::ReactionRemoval | Kind::Delete | Kind::File => MemberRole::Member,
            Kind::Post | Kind::Follow | Kind::Unfollow => MemberRole::Member,
            Kind::Space | Kind::Removal | Kind::Device | Kind::Prekey | Kind::Key => MemberRole::Reader,
            Kind::Profile | Kind::ReadMarker | Kind::Unknown(_) => MemberRole::Reader,
        }
    }

    /// Whether the content of such an event can be deleted. What decides validity never goes.
    pub fn is_deletable(self) -> bool {
        match self {
            Kind::Thread | Kind::ThreadUpdate | Kind::Message | Kind::Edit | Kind::Reaction => true,
            Kind::Post | Kind::File | Kind::Profile | Kind::Device | Kind::Settings => true,
            Kind::Unknown(_) => true,
            Kind::Space | Kind::Member | Kind::Removal | Kind::Prekey | Kind::Key => false,
            Kind::ThreadDelete | Kind::ReactionRemoval | Kind::ReadMarker | Kind::Delete => false,
            Kind::Follow | Kind::Unfollow => false,
        }
    }

    /// Which kinds need which: an event needs only events of a lower tier, or, in tier zero, earlier ones.
    pub fn tier(self) -> u8 {
        match self {
            Kind::Space | Kind::Member | Kind::Removal => 0,
            Kind::Settings | Kind::Device | Kind::Prekey | Kind::Key | Kind::Profile => 1,
            Kind::Thread | Kind::File | Kind::Follow | Kind::Unfollow => 1,
            Kind::ThreadUpdate | Kind::ThreadDelete | Kind::Message | Kind::Post => 2,
            Kind::Edit | Kind::Reaction | Kind::ReactionRemoval | Kind::ReadMarker => 3,
            Kind::Delete | Kind::Unknown(_) => 3,
        }
    }
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
