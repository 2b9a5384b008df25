//! The chains, as fixed lists: what happens to what arrives, in which order.
//!
//! - RECEIVE of a peer packet: unwrap, parse, gate. Of an import: parse. Before the writer, in parallel.
//! - CREATE: outline, place, sign and seal. Inside the writer, so that times are given serially per author.
//! - STORE: the id is computed from the blob, and a known id is a no-op that says so. See [`store`].
//! - POST: open, needs, validate, reflect, apply, respond. The same for all, and again for what is released.
//!
//! Steps never write. They gather changes in their [`EventInPost`]; the writer applies all of them in one transaction.

use crate::change::Change;
use crate::content::{self, ContentCheck, EventDraft};
use crate::create::{self, CreateError, NewEvent};
use crate::policy::Policy;
use crate::reads::{Reads, StoreError, StoreResult};
use crate::receive::{self, Arrival, DropReason, Keyring, Opening};
use crate::rows::{EventRow, Origin, Outcome, TurnedAway};
use crate::space::rules::AppliedReference;
use crate::steps;
use ed25519_dalek::SigningKey;
use model::stage::{ContentState, Stage};
use model::{AuthorNo, Nanos, Seq, SpaceNo, Verified};

/// The clock and the local limits, as arguments.
#[derive(Clone, Copy, Debug)]
pub struct StepContext {
    /// Now.
    pub now: Nanos,
    /// Local limits.
    pub policy: Policy,
}

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
    if kept.blob.bytes() != arrival.blob.bytes() {
        return Ok(StoreOutcome::Away(Outcome::TurnedAway(TurnedAway::Clash)));
    }
    let changes = match &arrival.inline {
        Some(wire) => content::inline_arrived(db, &context.policy, seq, row, wire)?,
        None => Vec::new(),
    };
    Ok(StoreOutcome::Known(seq, changes))
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

/// An event on its way through POST.
#[derive(Debug)]
pub struct EventInPost {
    /// The clock and the limits.
    pub context: StepContext,
    /// The row and the changes so far.
    pub draft: EventDraft,
    /// What opening came to.
    pub opening: Opening,
    /// Whether it was opened in an earlier passage.
    pub was_opened: bool,
    /// What is known of its inline content.
    pub verdict: Option<ContentCheck>,
    /// The numbers of its space and author, once opened.
    pub numbers: (SpaceNo, AuthorNo),
    /// Its needed references, once they are all applied.
    pub found: Vec<AppliedReference>,
}

impl EventInPost {
    /// The opened envelope.
    pub fn envelope(&self) -> StoreResult<&Verified> {
        match &self.opening {
            Opening::Opened(envelope) => Ok(envelope),
            Opening::NoKey(..) | Opening::NotOurs(_) | Opening::Bad(_) => {
                Err(StoreError::Broken(format!("{} went on without being opened", self.draft.seq)))
            }
        }
    }
}

/// Whether the next step follows.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one lives at a time, and moving it costs less than a box")]
pub enum StepResult {
    /// Go on.
    On(EventInPost),
    /// The passage ends here.
    End(Outcome, Vec<Change>),
}

/// POST: the same steps for what is new and for what was released.
pub fn post<R: Reads>(db: &R, in_post: EventInPost) -> StoreResult<(Outcome, Vec<Change>)> {
    let chain: [fn(&R, EventInPost) -> StoreResult<StepResult>; 6] = [
        steps::open::open,
        steps::needs::needs,
        steps::validate::validate,
        steps::apply::reflect,
        steps::apply::apply,
        steps::apply::respond,
    ];
    let mut in_post = in_post;
    for step in chain {
        match step(db, in_post)? {
            StepResult::On(further) => in_post = further,
            StepResult::End(outcome, changes) => return Ok((outcome, changes)),
        }
    }
    Err(StoreError::Broken(format!("{} passed POST without an outcome", in_post.draft.seq)))
}

/// What a rebuild puts back for an applied event: whether it counts, and its rows. It never reflects or wakes.
pub fn rebuild_one(db: &impl Reads, seq: Seq, row: &EventRow, envelope: &Verified) -> StoreResult<(bool, Vec<Change>)> {
    let Some(mut meta) = row.meta.clone() else {
        return Err(StoreError::Broken(format!("{seq} is applied but closed")));
    };
    let stamp = model::Stamp { at: meta.at, id: row.id };
    let counts = crate::counting::counts(db, &meta, stamp)?;
    meta.counts = counts;
    Ok((counts, steps::apply::standing_rows(db, seq, &meta, envelope, stamp)?))
}
