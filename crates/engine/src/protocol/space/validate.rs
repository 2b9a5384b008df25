//! Validity: a pure function of an event and the events it refers to.

use super::counting;
use super::kinds::{self, Belongs, Target};
use crate::protocol::{AppliedReference, Numbers};
use crate::reads::{Reads, StoreError, StoreResult};
use crate::rows::{EventKind, EventRow, Membership, Meta};
use model::crypto::{public_space, space_id};
use model::envelope::Role;
use model::payload::{MemberRole, Payload};
use model::planted::{PlantedBug, is_planted};
use model::stage::RefusalReason;
use model::{Envelope, Kind, Seq};

/// An event under examination, with the needed references that were found applied.
#[derive(Debug)]
pub struct EventToValidate<'a> {
    /// What it says.
    pub envelope: &'a Envelope,
    /// The numbers of its space and author.
    pub numbers: Numbers,
    /// The needed references, in the order of the envelope.
    pub found: &'a [AppliedReference],
}

/// What a valid event stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grounds {
    /// The membership that gives the right.
    pub authority: Option<Seq>,
    /// The thread or target it belongs to.
    pub subject: Option<Seq>,
    /// The role a member event gives.
    pub grants: Option<MemberRole>,
}

/// Whether the event is valid, and what it stands on.
pub fn validate<R: Reads>(db: &R, event: &EventToValidate<'_>) -> StoreResult<Result<Meta, RefusalReason>> {
    if let Err(why) = check_references(event) {
        return Ok(Err(why));
    }
    if !kinds::aux_fits(event.envelope) {
        return Ok(Err(RefusalReason::AuxKey));
    }
    let grounds = match without_authority(event) {
        Some(verdict) => verdict,
        None => with_authority(db, event)?,
    };
    Ok(grounds.map(|grounds| meta_of(event.envelope, event.numbers, &grounds)))
}

/// Needed references are of the right kinds, in the same space, strictly earlier, and neither missing nor too many.
fn check_references(event: &EventToValidate<'_>) -> Result<(), RefusalReason> {
    let envelope = event.envelope;
    for found in event.found {
        let Some(meta) = &found.row.meta else {
            return Err(RefusalReason::Reference);
        };
        if meta.space != event.numbers.space && !is_planted(PlantedBug::ReferenceAcrossSpaces) {
            return Err(RefusalReason::Reference);
        }
        if meta.at >= envelope.created_at {
            return Err(RefusalReason::Order);
        }
    }
    let shape = kinds::shape(envelope.kind);
    if matches!(shape.target, Target::Any) {
        return Ok(());
    }
    check_role(event, Role::Thread, usize::from(shape.thread), &[Kind::Thread])?;
    let attachments = if shape.attachments { event.found.len() } else { 0 };
    check_at_most(event, Role::Attachment, attachments, &[Kind::File])?;
    match shape.target {
        Target::Any => Ok(()),
        Target::None => check_role(event, Role::Target, 0, &[]),
        Target::One(kinds) => check_role(event, Role::Target, 1, kinds),
        Target::Optional(kinds) => check_at_most(event, Role::Target, 1, kinds),
        Target::Unseen if count(envelope, Role::Target) == 1 => Ok(()),
        Target::Unseen => Err(RefusalReason::Reference),
    }
}

fn count(envelope: &Envelope, role: Role) -> usize {
    envelope.references.iter().filter(|reference| reference.role == role).count()
}

fn check_role(event: &EventToValidate<'_>, role: Role, exactly: usize, kinds: &[Kind]) -> Result<(), RefusalReason> {
    if count(event.envelope, role) != exactly {
        return Err(RefusalReason::Reference);
    }
    check_at_most(event, role, exactly, kinds)
}

fn check_at_most(event: &EventToValidate<'_>, role: Role, most: usize, kinds: &[Kind]) -> Result<(), RefusalReason> {
    let mut seen = 0;
    for found in event.found.iter().filter(|found| found.role == role) {
        seen += 1;
        if !found.row.meta.as_ref().and_then(|meta| meta.kind.space()).is_some_and(|kind| kinds.contains(&kind)) {
            return Err(RefusalReason::Reference);
        }
    }
    if seen > most { Err(RefusalReason::Reference) } else { Ok(()) }
}

/// Founding a space, carrying a key, and writing in one's own public space stand on nobody's grant.
fn without_authority(event: &EventToValidate<'_>) -> Option<Result<Grounds, RefusalReason>> {
    let envelope = event.envelope;
    let standing = |subject| Grounds { authority: None, subject, grants: None };
    let authorities = count(envelope, Role::Authority);
    match envelope.kind {
        Kind::Space => Some(check_founding(envelope).map(|()| standing(None))),
        // A key event needs nothing: the authority behind it may be sealed under the very key that it carries.
        Kind::Key if authorities > 0 => Some(Err(RefusalReason::Authority)),
        Kind::Key => Some(Ok(standing(None))),
        _ if authorities > 0 => None,
        _ if envelope.space != public_space(&envelope.author) => Some(Err(RefusalReason::Authority)),
        _ if kinds::belongs(envelope.kind) == Belongs::AmongMembers => Some(Err(RefusalReason::Place)),
        _ if !envelope.key.is_zero() => Some(Err(RefusalReason::Sealing)),
        _ => Some(Ok(standing(target(event)))),
    }
}

fn check_founding(envelope: &Envelope) -> Result<(), RefusalReason> {
    let Payload::Space { sealed } = envelope.payload else {
        return Err(RefusalReason::SpaceId);
    };
    if count(envelope, Role::Authority) > 0 {
        return Err(RefusalReason::Authority);
    }
    if envelope.space != space_id(&envelope.author, &envelope.aux, sealed) && !is_planted(PlantedBug::AnySpaceId) {
        return Err(RefusalReason::SpaceId);
    }
    if sealed == envelope.key.is_zero() { Err(RefusalReason::Sealing) } else { Ok(()) }
}

/// The author acts on exactly one membership, which is theirs, of this space, and great enough for what they do.
fn with_authority<R: Reads>(db: &R, event: &EventToValidate<'_>) -> StoreResult<Result<Grounds, RefusalReason>> {
    let envelope = event.envelope;
    let mut authorities = event.found.iter().filter(|found| found.role == Role::Authority);
    let (Some(found), None) = (authorities.next(), authorities.next()) else {
        return Ok(Err(RefusalReason::Authority));
    };
    let Some(membership) = db.membership(found.seq)? else {
        return Ok(Err(RefusalReason::NotTheirs));
    };
    if membership.member != envelope.author && !is_planted(PlantedBug::SomebodyElsesMembership) {
        return Ok(Err(RefusalReason::NotTheirs));
    }
    if kinds::belongs(envelope.kind) == Belongs::InPublic {
        return Ok(Err(RefusalReason::Place));
    }
    if membership.sealed == envelope.key.is_zero() && !is_planted(PlantedBug::PlainInSealedSpace) {
        return Ok(Err(RefusalReason::Sealing));
    }
    let standing = Grounds { authority: Some(found.seq), subject: target(event), grants: granted(envelope) };
    let meta = meta_of(envelope, event.numbers, &standing);
    if !kinds::target_fits(db, event, &meta)? {
        return Ok(Err(RefusalReason::Target));
    }
    let permitted = counting::permission(db, &meta)?.is_permitted(membership.role);
    Ok(if permitted { Ok(standing) } else { Err(RefusalReason::Role) })
}

fn granted(envelope: &Envelope) -> Option<MemberRole> {
    match envelope.payload {
        Payload::Member { role, .. } => Some(role),
        _ => None,
    }
}

pub(crate) fn target_row<'a>(event: &EventToValidate<'a>) -> StoreResult<&'a EventRow> {
    let found = event.found.iter().find(|found| found.role == Role::Target);
    found.map(|found| &found.row).ok_or_else(|| StoreError::Broken("a needed target was not found".into()))
}

/// What an event belongs to: the thread of a message or update, otherwise what it changes. The thread of a read marker
/// is its subject too; its target is found by the winner's envelope.
fn target(event: &EventToValidate<'_>) -> Option<Seq> {
    let of = |role| event.found.iter().find(|found| found.role == role).map(|found| found.seq);
    of(Role::Thread).or_else(|| of(Role::Target))
}

/// What the row of an event says before it was validated.
pub(super) fn outline(envelope: &Envelope, numbers: Numbers) -> Meta {
    meta_of(envelope, numbers, &Grounds { authority: None, subject: None, grants: None })
}

fn meta_of(envelope: &Envelope, numbers: Numbers, grounds: &Grounds) -> Meta {
    Meta {
        kind: EventKind::Space(envelope.kind),
        at: envelope.created_at,
        space: numbers.space,
        author: numbers.author,
        authority: grounds.authority,
        subject: grounds.subject,
        grants: grounds.grants,
        counts: false,
        content_len: envelope.content_len,
        content_hash: envelope.content_hash,
    }
}

/// The membership that a founding or member event gives.
pub fn membership_of<R: Reads>(db: &R, envelope: &Envelope, authority: Option<Seq>) -> StoreResult<Option<Membership>> {
    Ok(match envelope.payload {
        Payload::Space { sealed } => Some(Membership { member: envelope.author, role: MemberRole::Owner, sealed }),
        Payload::Member { member, role } => {
            let Some(authority) = authority else { return Ok(None) };
            Some(Membership { member, role, sealed: counting::membership(db, authority)?.sealed })
        }
        _ => None,
    })
}
