//! What each kind contributes to the views while it counts.
//!
//! Contributions depend on the envelope alone, so that winners do not change with the state of content. The same list
//! is put when an event counts and removed when it stops.

use crate::rows::{Meta, Register, RegisterKey, ThreadField, ViewRow};
use model::envelope::Role;
use model::{Envelope, Kind, SpaceId};

/// The rows of an event.
pub fn rows(meta: &Meta, envelope: &Envelope) -> Vec<ViewRow> {
    let mut rows = match meta.kind {
        Kind::Settings => vec![register(meta, Register::Settings)],
        Kind::Profile => vec![register(meta, Register::Profile(meta.author))],
        Kind::Device => vec![register(meta, Register::Device(meta.author, envelope.aux))],
        Kind::Thread => vec![ViewRow::Thread { space: meta.space }],
        Kind::ThreadUpdate => vec![thread_field(meta, envelope.aux.0[15])],
        Kind::ThreadDelete => vec![thread_field(meta, ThreadField::Deleted.code())],
        Kind::Message => vec![ViewRow::Timeline { space: meta.space, thread: meta.subject, refers: refers(envelope) }],
        Kind::Edit => vec![ViewRow::Version { target: meta.subject }],
        Kind::Reaction | Kind::ReactionRemoval => {
            vec![ViewRow::Reaction { target: meta.subject, author: meta.author }]
        }
        Kind::ReadMarker => vec![register(meta, Register::ReadMarker(meta.author, meta.subject))],
        Kind::Post => vec![ViewRow::Post { space: meta.space }],
        Kind::Follow | Kind::Unfollow => vec![
            register(meta, Register::Follow(meta.author, envelope.aux)),
            ViewRow::Follower { followee: SpaceId(envelope.aux.0), follower: meta.author },
        ],
        Kind::File => vec![ViewRow::File { space: meta.space }],
        Kind::Space | Kind::Member | Kind::Removal | Kind::Prekey | Kind::Key => Vec::new(),
        Kind::Delete | Kind::Unknown(_) => Vec::new(),
    };
    if matches!(meta.kind, Kind::Thread | Kind::Message) && !envelope.aux.is_zero() {
        rows.push(ViewRow::Chosen { space: meta.space, key: envelope.aux });
    }
    if matches!(meta.kind, Kind::Message | Kind::Post) {
        let replies = envelope.references.iter().filter(|reference| reference.role == Role::ReplyTo);
        rows.extend(replies.map(|reference| ViewRow::Reply { space: meta.space, target: reference.id }));
    }
    if meta.kind == Kind::Message {
        let mentions = envelope.references.iter().filter(|reference| reference.role == Role::Mention);
        rows.extend(mentions.map(|mention| ViewRow::Mention { space: meta.space, who: SpaceId(mention.id.0) }));
    }
    rows
}

fn refers(envelope: &Envelope) -> bool {
    envelope.references.iter().any(|reference| matches!(reference.role, Role::ReplyTo | Role::Attachment))
}

fn register(meta: &Meta, register: Register) -> ViewRow {
    ViewRow::Register(RegisterKey { space: meta.space, register })
}

fn thread_field(meta: &Meta, field: u8) -> ViewRow {
    register(meta, Register::ThreadField(meta.subject, field))
}

/// The register that a draft of this kind would write, if it writes one.
pub fn register_of(meta: &Meta, envelope: &Envelope) -> Option<RegisterKey> {
    rows(meta, envelope).into_iter().find_map(|row| match row {
        ViewRow::Register(key) => Some(key),
        ViewRow::Thread { .. } | ViewRow::Timeline { .. } | ViewRow::Version { .. } => None,
        ViewRow::Reaction { .. } | ViewRow::Reply { .. } | ViewRow::Mention { .. } => None,
        ViewRow::Follower { .. } => None,
        ViewRow::Post { .. } | ViewRow::Chosen { .. } | ViewRow::File { .. } => None,
    })
}
