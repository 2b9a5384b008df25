//! The chains, as fixed lists: what happens to what arrives, in which order.
//!
//! - RECEIVE of a peer packet: unwrap, parse, gate. Of an import: parse. Before the writer, in parallel.
//! - CREATE: outline, place, sign and seal. Inside the writer, so that times are given serially per author.
//! - STORE: the id is computed from the blob, and a known id is a no-op that says so. See [`store`].
//! - POST: open, needs, validate, reflect, apply, respond. The same for all, and again for what is released.
//!
//! Steps never write: they gather changes; the writer applies all of them in one transaction.

pub use crate::context::StepContext;
pub use crate::post::{EventInPost, post};
pub use crate::protocol::rebuild as rebuild_one;
pub use crate::tasks::run_task;

use crate::change::Change;
use crate::content::EventDraft;
use crate::create::{self, CreateError, NewEvent};
use crate::delivery;
use crate::keyring::Keyring;
use crate::opened::Opening;
use crate::policy::Policy;
use crate::protocol;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::receive::{self, Arrival, DropReason};
use crate::release;
use crate::rows::{EventRow, Origin, Outcome, TurnedAway};
use ed25519_dalek::SigningKey;
use model::stage::{ContentState, Stage};
use model::{Nanos, Seq};

/// RECEIVE, for a packet from a peer.
pub fn receive_packet(keyring: &impl Keyring, policy: &Policy, bytes: &[u8]) -> Result<Arrival, DropReason> {
    let (carried, transit) = receive::unwrap(keyring, bytes)?;
    let origin = transit.as_ref().map_or(Origin::Peer(0), |transit| Origin::Peer(transit.peer));
    let arrival = receive::parse(keyring, policy, carried.blob, Some(carried.inline), origin)?;
    receive::gate(arrival, transit.as_ref())
}

/// RECEIVE, for a blob from a bundle or from a source that was asked.
pub fn receive_blob(
    keyring: &impl Keyring,
    policy: &Policy,
    blob: Vec<u8>,
    inline: Option<Vec<u8>>,
    origin: Origin,
) -> Result<Arrival, DropReason> {
    receive::parse(keyring, policy, blob, inline, origin)
}

/// RECEIVE, for a blob that the door of its own protocol has parsed.
#[cfg(feature = "simulation")]
pub fn receive_parsed(
    keyring: &impl Keyring,
    policy: &Policy,
    blob: model::Blob,
    inline: Option<Vec<u8>>,
    origin: Origin,
) -> Result<Arrival, DropReason> {
    receive::accept(keyring, policy, blob, inline, origin)
}

/// CREATE: outline, place, sign and seal. What was made then passes STORE and POST like anything else.
pub fn create(
    db: &impl Reads,
    keyring: &impl Keyring,
    context: &StepContext,
    author: &SigningKey,
    draft: NewEvent,
) -> StoreResult<Result<Arrival, CreateError>> {
    let identity = model::Identity(author.verifying_key().to_bytes());
    let outlined = match create::outline(context.now, identity, &draft) {
        Ok(envelope) => envelope,
        Err(why) => return Ok(Err(why)),
    };
    let placed = create::place(db, &context.policy, context.now, outlined)?;
    Ok(placed.and_then(|envelope| {
        create::sign_and_seal(keyring, &context.policy, author, envelope, &draft.seal, draft.content)
    }))
}

/// What STORE says of an arrival.
#[derive(Debug)]
pub enum StoreOutcome {
    /// It is new: give it a number and let it pass POST.
    New,
    /// It is known; these changes deliver inline content that was missing, or nothing.
    Known(Seq, Vec<Change>),
    /// It was refused before, or another blob has its id.
    Away(Outcome),
}

/// STORE: whether an arrival is new.
pub fn store(db: &impl Reads, context: &StepContext, arrival: &Arrival) -> StoreResult<StoreOutcome> {
    let id = arrival.blob.id();
    if let Some(seq) = db.seq(&id)? {
        return known(db, context, arrival, seq);
    }
    Ok(match db.refused(&id)? {
        Some(why) => StoreOutcome::Away(Outcome::Refused(why)),
        None => StoreOutcome::New,
    })
}

fn known(db: &impl Reads, context: &StepContext, arrival: &Arrival, seq: Seq) -> StoreResult<StoreOutcome> {
    let Some(row) = db.event(seq)? else {
        return Err(StoreError::Broken(format!("{seq} has an id but no row")));
    };
    let Some(kept) = db.kept(seq)? else {
        return Err(StoreError::Broken(format!("{seq} has an id but no blob")));
    };
    if !is_same(arrival, kept.blob.bytes()) {
        return Ok(StoreOutcome::Away(Outcome::TurnedAway(TurnedAway::Clash)));
    }
    let kind = row.meta.as_ref().map(|meta| meta.kind);
    let mut draft = EventDraft::new(seq, row);
    let unmet = match &draft.row.stage {
        Stage::Held { unmet, .. } => unmet.as_slice(),
        _ => &[],
    };
    let until = protocol::hold_until(kind, &context.policy, unmet, context.now);
    let is_renewed = protocol::renews_holds(kind) && release::renew(&mut draft, until)?;
    let is_delivered = match &arrival.inline {
        Some(wire) => delivery::inline_arrived(db, &context.policy, &mut draft, wire)?,
        None => false,
    };
    Ok(StoreOutcome::Known(seq, if is_renewed || is_delivered { draft.finish() } else { Vec::new() }))
}

/// Whether an arrival is the event that has its id. One that cannot be opened is compared byte by byte.
fn is_same(arrival: &Arrival, kept: &[u8]) -> bool {
    match &arrival.opening {
        Opening::Opened(opened) => protocol::is_same(opened, kept, arrival.blob.bytes()),
        Opening::NoKey(..) | Opening::NotOurs(_) | Opening::Bad(_) => kept == arrival.blob.bytes(),
    }
}

/// The row of an arrival that was just given a number.
pub fn new_row(arrival: &Arrival, now: Nanos) -> EventRow {
    EventRow {
        id: arrival.blob.id(),
        stage: Stage::Ready,
        content: ContentState::Missing,
        has_inline: arrival.inline.is_some(),
        origin: arrival.origin,
        received_at: now,
        meta: None,
    }
}
