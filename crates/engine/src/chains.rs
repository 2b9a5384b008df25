//! The chains, as fixed lists: what happens to what arrives, in which order.
//!
//! - RECEIVE of a peer packet: unwrap, parse, gate. Of an import: parse. Before the writer, in parallel.
//! - CREATE: outline, place, sign and seal. Inside the writer, so that times are given serially per author.
//! - STORE: the id is computed from the blob, and a known id is a no-op that says so. See [`store`].
//! - POST: open, needs, validate, reflect, apply, respond. The same for all, and again for what is released.
//!
//! Steps never write. They gather changes in their [`Passage`]; the writer applies all of them in one transaction.

use crate::change::Change;
use crate::content::{self, Verdict, Work};
use crate::create::{self, CannotCreate, Draft};
use crate::policy::Policy;
use crate::reads::{Answer, Fault, Reads};
use crate::receive::{self, Arrival, Dropped, Keyring, Opening};
use crate::rows::{EventRow, Origin, Outcome, TurnedAway};
use crate::space::rules::Found;
use crate::steps;
use ed25519_dalek::SigningKey;
use model::stage::{ContentState, Stage};
use model::{AuthorNo, Nanos, Seq, SpaceNo, Verified};

/// The clock and the local limits, as arguments.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Now.
    pub now: Nanos,
    /// Local limits.
    pub policy: Policy,
}

/// RECEIVE, for a packet from a peer.
pub fn receive_packet(keyring: &impl Keyring, policy: &Policy, bytes: &[u8]) -> Result<Arrival, Dropped> {
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
) -> Result<Arrival, Dropped> {
    receive::parse(keyring, policy, blob, inline, origin)
}

/// CREATE: outline, place, sign and seal. What was made then passes STORE and POST like anything else.
pub fn create(
    db: &impl Reads,
    keyring: &impl Keyring,
    setting: &Setting,
    author: &SigningKey,
    draft: Draft,
) -> Answer<Result<Arrival, CannotCreate>> {
    let identity = model::Identity(author.verifying_key().to_bytes());
    let outlined = match create::outline(setting.now, identity, &draft) {
        Ok(envelope) => envelope,
        Err(why) => return Ok(Err(why)),
    };
    let placed = create::place(db, &setting.policy, setting.now, outlined)?;
    Ok(placed.and_then(|envelope| {
        create::sign_and_seal(keyring, &setting.policy, author, envelope, &draft.seal, draft.content)
    }))
}

/// What STORE says of an arrival.
#[derive(Debug)]
pub enum Stored {
    /// It is new: give it a number and let it pass POST.
    New,
    /// It is known; these changes deliver inline content that was missing, or nothing.
    Known(Seq, Vec<Change>),
    /// It was refused before, or another blob has its id.
    Away(Outcome),
}

/// STORE: whether an arrival is new.
pub fn store(db: &impl Reads, setting: &Setting, arrival: &Arrival) -> Answer<Stored> {
    let id = arrival.blob.id();
    if let Some(seq) = db.seq(&id)? {
        return known(db, setting, arrival, seq);
    }
    Ok(match db.refused(&id)? {
        Some(why) => Stored::Away(Outcome::Refused(why)),
        None => Stored::New,
    })
}

fn known(db: &impl Reads, setting: &Setting, arrival: &Arrival, seq: Seq) -> Answer<Stored> {
    let Some(row) = db.event(seq)? else {
        return Err(Fault::Broken(format!("{seq} has an id but no row")));
    };
    let Some(kept) = db.kept(seq)? else {
        return Err(Fault::Broken(format!("{seq} has an id but no blob")));
    };
    if kept.blob.bytes() != arrival.blob.bytes() {
        return Ok(Stored::Away(Outcome::TurnedAway(TurnedAway::Clash)));
    }
    let changes = match &arrival.inline {
        Some(wire) => content::inline_arrived(db, &setting.policy, seq, row, wire)?,
        None => Vec::new(),
    };
    Ok(Stored::Known(seq, changes))
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
pub struct Passage {
    /// The clock and the limits.
    pub setting: Setting,
    /// The row and the changes so far.
    pub work: Work,
    /// What opening came to.
    pub opening: Opening,
    /// Whether it was opened in an earlier passage.
    pub was_opened: bool,
    /// What is known of its inline content.
    pub verdict: Option<Verdict>,
    /// The numbers of its space and author, once opened.
    pub numbers: (SpaceNo, AuthorNo),
    /// Its needed references, once they are all applied.
    pub found: Vec<Found>,
}

impl Passage {
    /// The opened envelope.
    pub fn envelope(&self) -> Answer<&Verified> {
        match &self.opening {
            Opening::Opened(envelope) => Ok(envelope),
            Opening::NoKey(..) | Opening::NotOurs(_) | Opening::Bad(_) => {
                Err(Fault::Broken(format!("{} went on without being opened", self.work.seq)))
            }
        }
    }
}

/// Whether the next step follows.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one lives at a time, and moving it costs less than a box")]
pub enum Next {
    /// Go on.
    On(Passage),
    /// The passage ends here.
    End(Outcome, Vec<Change>),
}

/// POST: the same steps for what is new and for what was released.
pub fn post<R: Reads>(db: &R, passage: Passage) -> Answer<(Outcome, Vec<Change>)> {
    let chain: [fn(&R, Passage) -> Answer<Next>; 6] = [
        steps::open::open,
        steps::needs::needs,
        steps::validate::validate,
        steps::apply::reflect,
        steps::apply::apply,
        steps::apply::respond,
    ];
    let mut passage = passage;
    for step in chain {
        match step(db, passage)? {
            Next::On(further) => passage = further,
            Next::End(outcome, changes) => return Ok((outcome, changes)),
        }
    }
    Err(Fault::Broken(format!("{} passed POST without an outcome", passage.work.seq)))
}

/// What a rebuild puts back for an applied event: whether it counts, and its rows. It never reflects or wakes.
pub fn rebuild_one(db: &impl Reads, seq: Seq, row: &EventRow, envelope: &Verified) -> Answer<(bool, Vec<Change>)> {
    let Some(mut meta) = row.meta.clone() else {
        return Err(Fault::Broken(format!("{seq} is applied but closed")));
    };
    let stamp = model::Stamp { at: meta.at, id: row.id };
    let counts = crate::counting::counts(db, &meta, stamp)?;
    meta.counts = counts;
    Ok((counts, steps::apply::standing_rows(db, seq, &meta, envelope, stamp)?))
}
