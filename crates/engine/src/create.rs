//! CREATE: a new event by somebody whose key is here. It never holds: what it refers to must be applied.
//!
//! Its time is the greatest of now, one after each needed reference, one after the current winner of the register it
//! writes, and one after the author's last, so that an edit made by a slow clock still wins.

use crate::content::ContentCheck;
use crate::keyring::Keyring;
use crate::opened::Opened;
use crate::opened::Opening;
use crate::policy::Policy;
use crate::protocol::space::counting::acting_role;
use crate::protocol::space::judge_body;
use crate::protocol::space::winner::winner;
use crate::reads::{Reads, StoreResult};
use crate::receive::{Arrival, complete};
use crate::rows::Origin;
use ed25519_dalek::SigningKey;
use model::content::seal_content;
use model::crypto::{SpaceKey, content_hash};
use model::envelope::{BadEnvelope, Role};
use model::payload::Payload;
use model::{AuxKey, Blob, Envelope, EventId, Identity, Kind, Nanos, Reference, Seq, SpaceId, Stamp};
use std::sync::Arc;

/// What somebody wants to say.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// The kind.
    pub kind: Kind,
    /// In which space.
    pub space: SpaceId,
    /// The auxiliary key.
    pub aux: AuxKey,
    /// The payload.
    pub payload: Payload,
    /// What it refers to.
    pub references: Vec<Reference>,
    /// The content, plain.
    pub content: Vec<u8>,
    /// Under which key it is sealed; none in an open space.
    pub seal: Seal,
}

/// How a draft is wrapped.
#[derive(Clone, Debug)]
pub enum Seal {
    /// Anyone can read it.
    Plain,
    /// Under a space key.
    Key(Arc<SpaceKey>),
    /// To the holder of a prekey: key events.
    Prekey([u8; 32]),
}

/// Why a draft did not become an event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// It refers to something that is not applied here.
    #[error("it refers to {0}, which is not here yet")]
    Reference(EventId),
    /// The content is not what the kind asks for.
    #[error("its content is not what a {0} asks for: a JSON object of at most 64 KiB, or nothing")]
    Content(Kind),
    /// The membership it stands on has ended, or does not reach so far any more.
    #[error("the membership it stands on is not in force any more")]
    NoRight,
    /// The envelope breaks a rule of the format.
    #[error(transparent)]
    Envelope(#[from] BadEnvelope),
    /// It could not be wrapped.
    #[error(transparent)]
    Blob(#[from] model::blob::BadBlob),
    /// It was made but not applied.
    #[error("it was not applied: {0}")]
    NotApplied(String),
}

/// The first step: the content fits the kind, and the envelope says what the draft says.
pub(crate) fn outline(now: Nanos, identity: Identity, draft: &NewEvent) -> Result<Envelope, CreateError> {
    if judge_body(draft.kind, &draft.content) == ContentCheck::Unfit {
        return Err(CreateError::Content(draft.kind));
    }
    let mut envelope = Envelope::new(draft.kind, now, draft.space, identity);
    envelope.aux = draft.aux;
    envelope.payload = draft.payload.clone();
    envelope.references = draft.references.clone();
    envelope.key = match &draft.seal {
        Seal::Plain => model::KeyId::ZERO,
        Seal::Key(key) => key.id(),
        Seal::Prekey(public) => model::KeyId(model::crypto::prekey_id(public).0),
    };
    Ok(envelope)
}

/// The second step: what it refers to is applied, its time is after all that it must win over, its right is in force.
pub(crate) fn place(
    db: &impl Reads,
    policy: &Policy,
    now: Nanos,
    mut envelope: Envelope,
) -> StoreResult<Result<Envelope, CreateError>> {
    match time(db, policy, now, &envelope)? {
        Ok(at) => envelope.created_at = at,
        Err(missing) => return Ok(Err(CreateError::Reference(missing))),
    }
    if !is_in_force(db, &envelope)? {
        return Ok(Err(CreateError::NoRight));
    }
    envelope.parents = parents(db, policy, now, &envelope)?;
    Ok(Ok(envelope))
}

/// Whether the membership that a draft stands on is in force at its time, if it names one.
fn is_in_force(db: &impl Reads, envelope: &Envelope) -> StoreResult<bool> {
    let Some(authority) = envelope.reference(Role::Authority) else { return Ok(true) };
    let Some(seq) = db.seq(&authority)? else { return Ok(false) };
    let at = Stamp { at: envelope.created_at, id: EventId([0xff; 16]) };
    // Whether it is a membership at all, and the author's, is for validation to say.
    match db.membership(seq)? {
        Some(_) => Ok(acting_role(db, seq, at)?.is_some_and(|role| role >= envelope.kind.least_role())),
        None => Ok(true),
    }
}

/// The envelope of a draft by somebody whose key is elsewhere, ready to be signed, and its content as it will travel.
pub fn prepare(
    db: &impl Reads,
    policy: &Policy,
    now: Nanos,
    identity: Identity,
    draft: NewEvent,
) -> StoreResult<Result<(Envelope, Vec<u8>), CreateError>> {
    let outlined = match outline(now, identity, &draft) {
        Ok(envelope) => envelope,
        Err(why) => return Ok(Err(why)),
    };
    let placed = place(db, policy, now, outlined)?;
    Ok(placed.map(|mut envelope| {
        envelope.references.sort_unstable();
        envelope.references.dedup();
        with_content(policy, envelope, &draft.seal, draft.content)
    }))
}

fn with_content(policy: &Policy, mut envelope: Envelope, seal: &Seal, content: Vec<u8>) -> (Envelope, Vec<u8>) {
    let wire = match seal {
        Seal::Key(key) => seal_content(key, &content, policy.inline_bytes_max, envelope.author, envelope.created_at),
        Seal::Plain | Seal::Prekey(_) => content,
    };
    envelope.content_len = wire.len() as u64;
    envelope.content_hash = content_hash(&wire);
    (envelope, wire)
}

/// The last step: signed, and wrapped as the draft wants it.
pub(crate) fn sign_and_seal(
    keyring: &impl Keyring,
    policy: &Policy,
    author: &SigningKey,
    envelope: Envelope,
    seal: &Seal,
    content: Vec<u8>,
) -> Result<Arrival, CreateError> {
    let (envelope, wire) = with_content(policy, envelope, seal, content);
    let signed = envelope.sign(author)?;
    let blob = match seal {
        Seal::Plain => Blob::plain(&signed)?,
        Seal::Key(key) => Blob::seal(&signed, key)?,
        Seal::Prekey(public) => Blob::address(&signed, public)?,
    };
    let arrival = Arrival {
        blob,
        opening: Opening::Opened(Opened::Space(signed)),
        inline: Some(wire).filter(|wire| !wire.is_empty()),
        verdict: None,
        origin: Origin::Local,
    };
    Ok(complete_local(keyring, policy, arrival))
}

/// Content that is not inline stays beside the arrival, for the caller to store first.
fn complete_local(keyring: &impl Keyring, policy: &Policy, arrival: Arrival) -> Arrival {
    let is_inline = arrival.inline.as_ref().is_some_and(|wire| wire.len() as u64 <= policy.inline_bytes_max);
    if is_inline { complete(keyring, policy, arrival) } else { arrival }
}

fn time(db: &impl Reads, policy: &Policy, now: Nanos, envelope: &Envelope) -> StoreResult<Result<Nanos, EventId>> {
    let mut at = now;
    let mut subject = None;
    for reference in envelope.needed_references() {
        let row = match db.seq(&reference.id)? {
            Some(seq) => db.event(seq)?.filter(|row| row.is_applied()).map(|row| (seq, row)),
            None => None,
        };
        let Some((seq, row)) = row else {
            return Ok(Err(reference.id));
        };
        if let Some(meta) = &row.meta {
            at = at.max(meta.at.plus(1));
        }
        if matches!(reference.role, Role::Thread) || subject.is_none() && reference.role == Role::Target {
            subject = Some(seq);
        }
    }
    for (stamp, _) in last_own(db, policy, now, envelope, 1)? {
        at = at.max(stamp.at.plus(1));
    }
    if let Some(winner) = winner(db, envelope, subject)? {
        at = at.max(winner.at.plus(1));
    }
    Ok(Ok(at))
}

fn parents(db: &impl Reads, policy: &Policy, now: Nanos, envelope: &Envelope) -> StoreResult<[EventId; 2]> {
    let mut parents = [EventId::ZERO; 2];
    for (slot, (stamp, _)) in parents.iter_mut().zip(last_own(db, policy, now, envelope, 2)?) {
        *slot = stamp.id;
    }
    Ok(parents)
}

/// The author's last events, leaving out those more than five minutes ahead of the clock.
fn last_own(
    db: &impl Reads,
    policy: &Policy,
    now: Nanos,
    envelope: &Envelope,
    most: usize,
) -> StoreResult<Vec<(Stamp, Seq)>> {
    let (Some(space), Some(author)) = (db.space_no(&envelope.space)?, db.author_no(&envelope.author)?) else {
        return Ok(Vec::new());
    };
    let upto = Stamp { at: now.plus(policy.future_nanos), id: EventId([0xff; 16]) };
    db.last_by_author(space, author, upto, most)
}
