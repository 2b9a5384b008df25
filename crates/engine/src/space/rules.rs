//! Validity: a pure function of an event and the events it refers to.

use crate::counting::act;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::rows::{EventRow, Membership, Meta, ThreadField};
use model::crypto::{public_space, space_id};
use model::envelope::Role;
use model::payload::{MemberRole, Payload};
use model::stage::RefusalReason;
use model::{AuthorNo, AuxKey, Envelope, EventId, Kind, Seq, SpaceNo};

/// An event under examination, with the needed references that were found applied.
#[derive(Debug)]
pub struct EventToValidate<'a> {
    /// What it says.
    pub envelope: &'a Envelope,
    /// Its number.
    pub space: SpaceNo,
    /// Its author's number.
    pub author: AuthorNo,
    /// The needed references, in the order of the envelope.
    pub found: &'a [AppliedReference],
}

/// A needed reference that is applied.
#[derive(Clone, Debug)]
pub struct AppliedReference {
    /// In which capacity it is referred to.
    pub role: Role,
    /// Its number.
    pub seq: Seq,
    /// Its row.
    pub row: EventRow,
}

/// What a valid event stands on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grounds {
    /// The membership that gives the right; zero for none.
    pub authority: Seq,
    /// The thread or target it belongs to; zero for none.
    pub subject: Seq,
    /// The role a member event gives.
    pub grants: Option<MemberRole>,
}

/// Which references a kind has beside its authority.
struct Shape {
    thread: bool,
    target: Target,
    attachments: bool,
}

enum Target {
    None,
    One(&'static [Kind]),
    Perhaps(&'static [Kind]),
    /// Named, but not needed: a delete.
    Unseen,
}

fn shape(kind: Kind) -> Shape {
    let plain = |target| Shape { thread: false, target, attachments: false };
    match kind {
        Kind::Space | Kind::Settings | Kind::Device | Kind::Prekey | Kind::Key => plain(Target::None),
        Kind::Profile | Kind::Thread | Kind::File | Kind::Follow | Kind::Unfollow => plain(Target::None),
        Kind::Member => plain(Target::Perhaps(&[Kind::Member])),
        Kind::Removal => plain(Target::One(&[Kind::Member, Kind::Space])),
        Kind::ThreadUpdate | Kind::ThreadDelete => Shape { thread: true, target: Target::None, attachments: false },
        Kind::Message => Shape { thread: true, target: Target::None, attachments: true },
        Kind::Post => Shape { thread: false, target: Target::None, attachments: true },
        Kind::Edit => Shape { thread: false, target: Target::One(&[Kind::Message, Kind::Post]), attachments: true },
        Kind::Reaction | Kind::ReactionRemoval => plain(Target::One(&[Kind::Message])),
        Kind::ReadMarker => Shape { thread: true, target: Target::One(&[Kind::Message]), attachments: false },
        Kind::Delete => plain(Target::Unseen),
        Kind::Unknown(_) => plain(Target::None),
    }
}

/// Whether the event is valid, and what it stands on.
pub fn validate(db: &impl Reads, event: &EventToValidate<'_>) -> StoreResult<Result<Grounds, RefusalReason>> {
    if let Err(why) = check_references(event) {
        return Ok(Err(why));
    }
    if let Err(why) = check_aux(event.envelope) {
        return Ok(Err(why));
    }
    if let Some(verdict) = without_authority(event) {
        return Ok(verdict);
    }
    with_authority(db, event)
}

/// Needed references are of the right kinds, in the same space, strictly earlier, and neither missing nor too many.
fn check_references(event: &EventToValidate<'_>) -> Result<(), RefusalReason> {
    let envelope = event.envelope;
    for found in event.found {
        let Some(meta) = &found.row.meta else {
            return Err(RefusalReason::Reference);
        };
        if meta.space != event.space {
            return Err(RefusalReason::Reference);
        }
        if meta.at >= envelope.created_at {
            return Err(RefusalReason::Order);
        }
    }
    if matches!(envelope.kind, Kind::Unknown(_)) {
        return Ok(());
    }
    let shape = shape(envelope.kind);
    check_role(event, Role::Thread, usize::from(shape.thread), &[Kind::Thread])?;
    let attachments = if shape.attachments { event.found.len() } else { 0 };
    check_at_most(event, Role::Attachment, attachments, &[Kind::File])?;
    match shape.target {
        Target::None => check_role(event, Role::Target, 0, &[]),
        Target::One(kinds) => check_role(event, Role::Target, 1, kinds),
        Target::Perhaps(kinds) => check_at_most(event, Role::Target, 1, kinds),
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
        if !found.row.meta.as_ref().is_some_and(|meta| kinds.contains(&meta.kind)) {
            return Err(RefusalReason::Reference);
        }
    }
    if seen > most { Err(RefusalReason::Reference) } else { Ok(()) }
}

fn check_aux(envelope: &Envelope) -> Result<(), RefusalReason> {
    let fits = match envelope.kind {
        Kind::Thread | Kind::Message | Kind::Unknown(_) => true,
        Kind::Space | Kind::Device | Kind::Follow | Kind::Unfollow => !envelope.aux.is_zero(),
        Kind::ThreadUpdate => ThreadField::UPDATABLE.iter().any(|field| field.aux() == envelope.aux),
        Kind::Settings | Kind::Member | Kind::Removal | Kind::Prekey | Kind::Key | Kind::Profile => {
            envelope.aux == AuxKey::ZERO
        }
        Kind::ThreadDelete | Kind::Edit | Kind::Reaction | Kind::ReactionRemoval | Kind::ReadMarker => {
            envelope.aux == AuxKey::ZERO
        }
        Kind::Delete | Kind::Post | Kind::File => envelope.aux == AuxKey::ZERO,
    };
    if fits { Ok(()) } else { Err(RefusalReason::AuxKey) }
}

/// Founding a space, carrying a key, and writing in one's own public space stand on nobody's grant.
fn without_authority(event: &EventToValidate<'_>) -> Option<Result<Grounds, RefusalReason>> {
    let envelope = event.envelope;
    let standing = |subject| Grounds { authority: Seq(0), subject, grants: None };
    let authorities = count(envelope, Role::Authority);
    match envelope.kind {
        Kind::Space => Some(check_founding(envelope).map(|()| standing(Seq(0)))),
        // A key event needs nothing: the authority behind it may be sealed under the very key that it carries.
        Kind::Key if authorities > 0 => Some(Err(RefusalReason::Authority)),
        Kind::Key => Some(Ok(standing(Seq(0)))),
        _ if authorities > 0 => None,
        _ if envelope.space != public_space(&envelope.author) => Some(Err(RefusalReason::Authority)),
        _ if !belongs_in_public(envelope.kind) => Some(Err(RefusalReason::Place)),
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
    if envelope.space != space_id(&envelope.author, &envelope.aux, sealed) {
        return Err(RefusalReason::SpaceId);
    }
    if sealed == envelope.key.is_zero() { Err(RefusalReason::Sealing) } else { Ok(()) }
}

fn belongs_in_public(kind: Kind) -> bool {
    match kind {
        Kind::Post | Kind::Follow | Kind::Unfollow | Kind::Profile | Kind::Device | Kind::Prekey => true,
        Kind::File | Kind::Edit | Kind::Delete | Kind::Unknown(_) => true,
        Kind::Space | Kind::Settings | Kind::Member | Kind::Removal | Kind::Key => false,
        Kind::Thread | Kind::ThreadUpdate | Kind::ThreadDelete | Kind::Message => false,
        Kind::Reaction | Kind::ReactionRemoval | Kind::ReadMarker => false,
    }
}

fn belongs_among_members(kind: Kind) -> bool {
    !matches!(kind, Kind::Post | Kind::Follow | Kind::Unfollow)
}

/// The author acts on exactly one membership, which is theirs, of this space, and great enough for what they do.
fn with_authority(db: &impl Reads, event: &EventToValidate<'_>) -> StoreResult<Result<Grounds, RefusalReason>> {
    let envelope = event.envelope;
    let mut authorities = event.found.iter().filter(|found| found.role == Role::Authority);
    let (Some(found), None) = (authorities.next(), authorities.next()) else {
        return Ok(Err(RefusalReason::Authority));
    };
    let Some(membership) = db.membership(found.seq)? else {
        return Ok(Err(RefusalReason::NotTheirs));
    };
    if membership.member != envelope.author {
        return Ok(Err(RefusalReason::NotTheirs));
    }
    if !belongs_among_members(envelope.kind) {
        return Ok(Err(RefusalReason::Place));
    }
    if membership.sealed == envelope.key.is_zero() {
        return Ok(Err(RefusalReason::Sealing));
    }
    let standing = Grounds { authority: found.seq, subject: target(event), grants: granted(envelope) };
    let meta = meta_of(event, &standing);
    if let Err(why) = check_target(db, event, &meta)? {
        return Ok(Err(why));
    }
    let permitted = act(db, &meta)?.is_permitted(membership.role);
    Ok(if permitted { Ok(standing) } else { Err(RefusalReason::Role) })
}

fn granted(envelope: &Envelope) -> Option<MemberRole> {
    match envelope.payload {
        Payload::Member { role, .. } => Some(role),
        _ => None,
    }
}

/// A replacement replaces a membership of the same identity; a founding is ended only by its founder; a read marker
/// points into its thread.
fn check_target(db: &impl Reads, event: &EventToValidate<'_>, meta: &Meta) -> StoreResult<Result<(), RefusalReason>> {
    let fits = match meta.kind {
        Kind::Member if meta.subject != Seq(0) => {
            let old = crate::counting::membership(db, meta.subject)?;
            matches!(event.envelope.payload, Payload::Member { member, .. } if member == old.member)
        }
        Kind::Removal => {
            let target = target_row(event)?;
            let own = target.meta.as_ref().is_some_and(|other| other.author == meta.author);
            target.meta.as_ref().is_some_and(|other| other.kind == Kind::Member) || own
        }
        Kind::ReadMarker => {
            let target = target_row(event)?;
            let thread = event.found.iter().find(|found| found.role == Role::Thread).map(|found| found.seq);
            target.meta.as_ref().map(|other| other.subject) == thread
        }
        _ => true,
    };
    Ok(if fits { Ok(()) } else { Err(RefusalReason::Target) })
}

fn target_row<'a>(event: &EventToValidate<'a>) -> StoreResult<&'a EventRow> {
    let found = event.found.iter().find(|found| found.role == Role::Target);
    found.map(|found| &found.row).ok_or_else(|| StoreError::Broken("a needed target was not found".into()))
}

/// What an event belongs to: the thread of a message or update, otherwise what it changes. The thread of a read marker
/// is its subject too; its target is found by the winner's envelope.
fn target(event: &EventToValidate<'_>) -> Seq {
    let of = |role| event.found.iter().find(|found| found.role == role).map(|found| found.seq);
    of(Role::Thread).or_else(|| of(Role::Target)).unwrap_or(Seq(0))
}

/// The short form of an examined event.
pub fn meta_of(event: &EventToValidate<'_>, standing: &Grounds) -> Meta {
    let envelope = event.envelope;
    Meta {
        kind: envelope.kind,
        at: envelope.created_at,
        space: event.space,
        author: event.author,
        authority: standing.authority,
        subject: standing.subject,
        grants: standing.grants,
        counts: false,
        content_len: envelope.content_len,
        content_hash: envelope.content_hash,
    }
}

/// The membership that a founding or member event gives.
pub fn membership_of(db: &impl Reads, envelope: &Envelope, authority: Seq) -> StoreResult<Option<Membership>> {
    Ok(match envelope.payload {
        Payload::Space { sealed } => Some(Membership { member: envelope.author, role: MemberRole::Owner, sealed }),
        Payload::Member { member, role } => {
            let sealed = crate::counting::membership(db, authority)?.sealed;
            Some(Membership { member, role, sealed })
        }
        _ => None,
    })
}

/// What a delete names.
pub fn deleted_target(envelope: &Envelope) -> Option<EventId> {
    if envelope.kind == Kind::Delete { envelope.reference(Role::Target) } else { None }
}
