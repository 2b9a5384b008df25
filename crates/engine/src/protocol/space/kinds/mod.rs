//! The kinds of the `space` protocol, a file for each small family: what such an event refers to, where it belongs, who
//! may make it, and what it contributes to the views.
//!
//! Contributions depend on the envelope alone, so that winners do not change with the state of content. The same list
//! is put when an event counts and removed when it stops.

mod conversation;
mod deletion;
mod files;
mod keys;
mod membership;
mod profile;
mod public;
mod reactions;
mod threads;
mod unknown;

use super::counting::Permission;
use super::validate::EventToValidate;
use super::{RegisterKey, ViewRow};
use crate::reads::{Reads, StoreResult};
use crate::rows::Meta;
use model::files::WantedBytes;
use model::payload::MemberRole;
use model::{Envelope, Kind};

/// Where events of a kind belong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Belongs {
    /// In spaces with members.
    AmongMembers,
    /// In their author's public space.
    InPublic,
    /// In both.
    Anywhere,
}

/// Which events a kind refers to as its target.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// None.
    None,
    /// Exactly one, of these kinds.
    One(&'static [Kind]),
    /// One of these kinds, or none.
    Optional(&'static [Kind]),
    /// One that is named but not needed: a delete.
    Unseen,
    /// Whatever it likes: the kind is not known.
    Any,
}

/// Which needed references a kind has beside its authority.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) thread: bool,
    pub(crate) target: Target,
    pub(crate) attachments: bool,
}

impl Shape {
    pub(crate) const PLAIN: Shape = Shape { thread: false, target: Target::None, attachments: false };
}

/// What the rules ask of a kind. The defaults are those of most kinds.
pub(crate) trait KindRules {
    /// Which references it has.
    fn shape(&self) -> Shape {
        Shape::PLAIN
    }

    /// Whether its auxiliary key is one that it can have.
    fn aux_fits(&self, envelope: &Envelope) -> bool {
        envelope.aux.is_zero()
    }

    /// Where it belongs.
    fn belongs(&self) -> Belongs {
        Belongs::AmongMembers
    }

    /// Whether its target fits it, beyond being of the right kind.
    fn target_fits<R: Reads>(&self, _db: &R, _event: &EventToValidate<'_>, _meta: &Meta) -> StoreResult<bool> {
        Ok(true)
    }

    /// What it does, as far as rights are concerned.
    fn permission<R: Reads>(&self, _db: &R, _meta: &Meta, least: MemberRole) -> StoreResult<Permission> {
        Ok(Permission::Plain(least))
    }

    /// Whether a JSON body has the fields that the kind asks for.
    fn body_fits(&self, _body: &serde_json::Value) -> bool {
        true
    }

    /// The content of its own that a JSON body speaks of.
    fn wanted_bytes(&self, _body: &serde_json::Value) -> Option<WantedBytes> {
        None
    }

    /// Its contributions to the views.
    fn rows(&self, _meta: &Meta, _envelope: &Envelope) -> Vec<ViewRow> {
        Vec::new()
    }
}

/// Hands the rules of a kind to an expression: the one list of all kinds beside the model's.
macro_rules! rules_of {
    ($kind:expr, $rules:ident => $body:expr) => {
        match $kind {
            Kind::Space => {
                let $rules = &membership::Founding;
                $body
            }
            Kind::Member => {
                let $rules = &membership::Grant;
                $body
            }
            Kind::Removal => {
                let $rules = &membership::Removal;
                $body
            }
            Kind::Settings => {
                let $rules = &profile::Settings;
                $body
            }
            Kind::Device => {
                let $rules = &profile::Device;
                $body
            }
            Kind::Profile => {
                let $rules = &profile::Profile;
                $body
            }
            Kind::Prekey => {
                let $rules = &keys::Prekey;
                $body
            }
            Kind::Key => {
                let $rules = &keys::Key;
                $body
            }
            Kind::Thread => {
                let $rules = &threads::Thread;
                $body
            }
            Kind::ThreadUpdate => {
                let $rules = &threads::ThreadUpdate;
                $body
            }
            Kind::ThreadDelete => {
                let $rules = &threads::ThreadDelete;
                $body
            }
            Kind::Message => {
                let $rules = &conversation::Message;
                $body
            }
            Kind::Edit => {
                let $rules = &conversation::Edit;
                $body
            }
            Kind::ReadMarker => {
                let $rules = &conversation::ReadMarker;
                $body
            }
            Kind::Reaction => {
                let $rules = &reactions::Reaction;
                $body
            }
            Kind::ReactionRemoval => {
                let $rules = &reactions::ReactionRemoval;
                $body
            }
            Kind::Delete => {
                let $rules = &deletion::Delete;
                $body
            }
            Kind::Post => {
                let $rules = &public::Post;
                $body
            }
            Kind::Follow | Kind::Unfollow => {
                let $rules = &public::Follow;
                $body
            }
            Kind::File => {
                let $rules = &files::File;
                $body
            }
            Kind::Unknown(_) => {
                let $rules = &unknown::Unknown;
                $body
            }
        }
    };
}

/// Which references the kind has.
pub(crate) fn shape(kind: Kind) -> Shape {
    rules_of!(kind, rules => rules.shape())
}

/// Whether the auxiliary key of an envelope is one that its kind can have.
pub(crate) fn aux_fits(envelope: &Envelope) -> bool {
    rules_of!(envelope.kind, rules => rules.aux_fits(envelope))
}

/// Where the kind belongs.
pub(crate) fn belongs(kind: Kind) -> Belongs {
    rules_of!(kind, rules => rules.belongs())
}

/// Whether the target of an event fits it.
pub(crate) fn target_fits<R: Reads>(db: &R, event: &EventToValidate<'_>, meta: &Meta) -> StoreResult<bool> {
    rules_of!(event.envelope.kind, rules => rules.target_fits(db, event, meta))
}

/// What an event of that kind does, as far as rights are concerned.
pub(crate) fn permission<R: Reads>(db: &R, kind: Kind, meta: &Meta) -> StoreResult<Permission> {
    rules_of!(kind, rules => rules.permission(db, meta, kind.least_role()))
}

/// Whether a JSON body has the fields that the kind asks for.
pub(crate) fn body_fits(kind: Kind, body: &serde_json::Value) -> bool {
    rules_of!(kind, rules => rules.body_fits(body))
}

/// The content of its own that a JSON body speaks of.
pub(crate) fn wanted_bytes(kind: Kind, body: &serde_json::Value) -> Option<WantedBytes> {
    rules_of!(kind, rules => rules.wanted_bytes(body))
}

/// The contributions of an event to the views.
pub fn rows(meta: &Meta, envelope: &Envelope) -> Vec<ViewRow> {
    rules_of!(envelope.kind, rules => rules.rows(meta, envelope))
}

/// The register that an event of this kind writes, if it writes one.
pub fn register_of(meta: &Meta, envelope: &Envelope) -> Option<RegisterKey> {
    rows(meta, envelope).into_iter().find_map(ViewRow::register)
}
