//! The rules of kinds and roles once more, written from the documents: a mistake in the product's own must show.

use model::envelope::{Reference, Role};
use model::payload::MemberRole;
use model::{Envelope, Kind};

/// The references without which an event waits. A delete may come before its target.
pub(super) fn needed(envelope: &Envelope) -> Vec<Reference> {
    let is_needed = |reference: &Reference| match reference.role {
        Role::ReplyTo | Role::Mention => false,
        Role::Target if envelope.kind == Kind::Delete => false,
        Role::Target | Role::Authority | Role::Thread | Role::Attachment => true,
    };
    envelope.references.iter().copied().filter(is_needed).collect()
}

/// Owners manage everybody, admins those who are below them.
pub(super) fn may_manage(role: MemberRole, other: MemberRole) -> bool {
    let below = [MemberRole::Reader, MemberRole::Member];
    role == MemberRole::Owner || role == MemberRole::Admin && below.contains(&other)
}

/// Whether what it says can be taken back.
pub(super) fn is_deletable(kind: Kind) -> bool {
    let kinds = [
        Kind::Settings,
        Kind::Device,
        Kind::Profile,
        Kind::Thread,
        Kind::ThreadUpdate,
        Kind::Message,
        Kind::Edit,
        Kind::Reaction,
        Kind::Post,
        Kind::File,
    ];
    kinds.contains(&kind) || matches!(kind, Kind::Unknown(_))
}

/// Whether its content is a JSON object.
pub(super) fn is_json(kind: Kind) -> bool {
    kind == Kind::Space || is_deletable(kind) && !matches!(kind, Kind::Unknown(_))
}

/// Whether the content of a kind says what it must.
pub(super) fn fits_json(kind: Kind, plain: &[u8]) -> bool {
    let Ok(value) = model::body::decode(plain) else { return false };
    match kind {
        Kind::Reaction => value["reaction"].as_str().is_some_and(|text| !text.is_empty() && text.len() <= 64),
        Kind::File => {
            value["name"].is_string() && value["type"].is_string() && value["size"].is_u64() && {
                value["hash"].as_str().is_some_and(|hash| hash.parse::<model::ContentHash>().is_ok())
            }
        }
        _ => true,
    }
}
