//! Events that were stamped ahead of the clock, because it was set wrong for a while: which they are, and how they get
//! the right time.
//!
//! What follows such an event is stamped after it and does not wait, so everything can be changed. But messages stand at
//! the end of their threads until their time has come, and whoever was admitted writes at that time. So memberships are
//! issued again with the right time, then messages, which are purged where they stood; a first membership ends when
//! nothing is left that stands on it.

use crate::commands::{CommandError, by_keeper, create_event, hosted, seal};
use crate::jobs::purging::purge;
use crate::writer_command::WriterCommand;
use engine::create::NewEvent;
use engine::reads::{Reads as _, SpaceReads as _, StoreError, StoreResult};
use engine::rows::{EventRow, Meta};
use model::envelope::{Reference, Role};
use model::payload::Payload;
use model::stage::ContentState;
use model::{AuxKey, EventId, Identity, Kind, Nanos, Seq, SpaceId, Stamp};
use serde::Serialize;
use store::shared::users::User;
use store::tables::TableReads;
use store::views::messages::ShownContent;
use store::{Batch, Db};

/// How many numbers are looked up at a time.
const EVENTS_PER_LOOK: usize = 1000;

/// An applied event whose time is ahead of the clock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AheadEvent {
    #[serde(serialize_with = "crate::explain::text")]
    pub id: EventId,
    #[serde(serialize_with = "crate::explain::text")]
    pub space: SpaceId,
    #[serde(serialize_with = "crate::explain::text")]
    pub kind: Kind,
    /// The user, or the identity of an author who is none here.
    pub author: String,
    pub at: u64,
}

/// The applied events ahead of a time by more than events may be, by their arrival.
pub fn events_ahead<V: TableReads>(db: &Db<V>, now: Nanos, most: usize) -> StoreResult<Vec<AheadEvent>> {
    let bound = now.plus(db.policy().future_nanos);
    let (mut found, mut after) = (Vec::new(), Seq(0));
    loop {
        let numbers = db.events_after(after, EVENTS_PER_LOOK)?;
        let Some(last) = numbers.last() else { return Ok(found) };
        after = *last;
        for seq in numbers {
            let Some((row, meta, kind)) = applied(db, seq)? else { continue };
            if meta.at <= bound || !says_something(db, &row, &meta, kind)? {
                continue;
            }
            if found.len() == most {
                return Ok(found);
            }
            let (space, identity) = (db.space_id(meta.space)?, db.identity(meta.author)?);
            let author = match db.user_name(&space, &identity)? {
                Some(name) => name.to_string(),
                None => identity.to_string(),
            };
            found.push(AheadEvent { id: row.id, space, kind, author, at: meta.at.0 });
        }
    }
}

/// Whether an event still says something. What was purged does not, nor what only takes away, nor a membership in whose
/// place there is another.
fn says_something<V: TableReads>(db: &Db<V>, row: &EventRow, meta: &Meta, kind: Kind) -> StoreResult<bool> {
    if !meta.counts || matches!(row.content, ContentState::Deleted { .. }) {
        return Ok(false);
    }
    Ok(match kind {
        Kind::Delete | Kind::Removal | Kind::ReactionRemoval => false,
        Kind::Member => {
            let Some(seq) = db.seq(&row.id)? else { return Ok(false) };
            let member = db.membership(seq)?.map(|membership| membership.member);
            user_of(db, &db.space_id(meta.space)?, member)?.is_none_or(|user| user.membership == row.id)
        }
        _ => true,
    })
}

/// The user with an identity.
fn user_of<V: TableReads>(db: &Db<V>, space: &SpaceId, identity: Option<Identity>) -> StoreResult<Option<User>> {
    let Some(identity) = identity else { return Ok(None) };
    match db.user_name(space, &identity)? {
        Some(name) => db.user(space, &name),
        None => Ok(None),
    }
}

fn applied<V: TableReads>(db: &Db<V>, seq: Seq) -> StoreResult<Option<(EventRow, Meta, Kind)>> {
    let Some(row) = db.event(seq)?.filter(|row| row.is_applied()) else { return Ok(None) };
    let Some(meta) = row.meta.clone() else { return Ok(None) };
    Ok(meta.kind.space().map(|kind| (row, meta, kind)))
}

/// Takes the clock for right: the greatest time that was given is now.
#[derive(Clone, Copy, Debug)]
pub struct TrustClock;

impl WriterCommand for TrustClock {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        batch.trust_clock();
        Ok(())
    }
}

/// Issues an event again that was stamped ahead, or only takes it away.
#[derive(Clone, Copy, Debug)]
pub struct SettleAhead {
    pub id: EventId,
    pub how: Settlement,
}

/// How an event that was stamped ahead is settled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settlement {
    /// Issue it again with the right time. A message is purged where it stood.
    Reissue,
    /// Only purge it.
    Purge,
    /// End a membership in whose place there is another, if nothing is left that stands on it.
    End,
}

/// What became of an event that was stamped ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Settled {
    /// Another one says the same with the right time.
    Reissued(EventId),
    /// What it said is gone.
    Purged,
    /// It stays: it is of a kind that can be changed at any time, or was settled before.
    Stays,
    /// It stays: its author's key is not here, or what it needs is ahead, too, or something stands on it.
    NotHere,
}

impl WriterCommand for SettleAhead {
    type Answer = Settled;
    type Error = CommandError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<Settled, CommandError> {
        let Some(seq) = batch.db().seq(&self.id)? else { return Ok(Settled::Stays) };
        let Some((_, meta, kind)) = applied(batch.db(), seq)? else { return Ok(Settled::Stays) };
        let space = batch.db().space_id(meta.space)?;
        if !batch.db().is_hosted(&space) || !meta.counts {
            return Ok(Settled::NotHere);
        }
        match (kind, self.how) {
            (Kind::Message, Settlement::Reissue | Settlement::Purge) => {
                self.settle_message(batch, &Target { seq, space, meta })
            }
            (Kind::Member, Settlement::Reissue) => self.settle_membership(batch, seq, &space),
            (Kind::Member, Settlement::End) => self.end_membership(batch, &Target { seq, space, meta }),
            _ => Ok(Settled::Stays),
        }
    }
}

/// The event that is settled.
struct Target {
    seq: Seq,
    space: SpaceId,
    meta: Meta,
}

impl SettleAhead {
    fn settle_message(&self, batch: &mut Batch<'_>, target: &Target) -> Result<Settled, CommandError> {
        let Target { seq, space, meta } = target;
        let said = batch.db().message_by_seq(*seq)?.map(|message| message.content);
        let Some(ShownContent::Here(content)) = said else { return Ok(Settled::Stays) };
        let mut settled = Settled::Purged;
        if self.how == Settlement::Reissue {
            let identity = batch.db().identity(meta.author)?;
            let Some(id) = reissue(batch, space, &identity, *seq, content)? else { return Ok(Settled::NotHere) };
            settled = Settled::Reissued(id);
        }
        purge(batch, space, &self.id)?;
        batch.audit(Some(*space), "clock", "settle an event ahead", &self.id.to_string())?;
        Ok(settled)
    }

    /// A second membership with the right time, on which the user acts from now on.
    fn settle_membership(&self, batch: &mut Batch<'_>, seq: Seq, space: &SpaceId) -> Result<Settled, CommandError> {
        let Some(membership) = batch.db().membership(seq)? else { return Ok(Settled::Stays) };
        let user = user_of(batch.db(), space, Some(membership.member))?;
        let Some(mut user) = user.filter(|user| user.membership == self.id && !user.is_gone) else {
            return Ok(Settled::NotHere);
        };
        let founding = hosted(batch.db(), space)?.founding;
        if is_ahead(batch, &founding)? {
            return Ok(Settled::NotHere);
        }
        let payload = Payload::Member { member: membership.member, role: membership.role };
        user.membership = by_keeper(batch, space, Kind::Member, payload, None)?;
        batch.keep_user(space, &user)?;
        batch.audit(Some(*space), "clock", "settle an event ahead", &user.id)?;
        Ok(Settled::Reissued(user.membership))
    }

    /// Ends the first membership. What was written on it and still says something would fall with it.
    fn end_membership(&self, batch: &mut Batch<'_>, target: &Target) -> Result<Settled, CommandError> {
        let Target { seq, space, meta } = target;
        let Some(membership) = batch.db().membership(*seq)? else { return Ok(Settled::Stays) };
        let user = user_of(batch.db(), space, Some(membership.member))?;
        if user.is_none_or(|user| user.membership == self.id) {
            return Ok(Settled::Stays);
        }
        if let Some(author) = batch.db().author_no(&membership.member)? {
            let after = Stamp { at: meta.at, id: EventId([0; 16]) };
            for (_, seq) in batch.db().by_author(meta.space, author, after, EVENTS_PER_LOOK)? {
                let Some((row, meta, kind)) = applied(batch.db(), seq)? else { continue };
                if says_something(batch.db(), &row, &meta, kind)? {
                    return Ok(Settled::NotHere);
                }
            }
        }
        let target = Some(Reference { role: Role::Target, id: self.id });
        by_keeper(batch, space, Kind::Removal, Payload::None, target)?;
        batch.audit(Some(*space), "clock", "settle an event ahead", &self.id.to_string())?;
        Ok(Settled::Purged)
    }
}

/// Whether an event's time is still to come.
fn is_ahead(batch: &Batch<'_>, id: &EventId) -> StoreResult<bool> {
    let bound = batch.now().plus(batch.db().policy().future_nanos);
    let meta = match batch.db().seq(id)? {
        Some(seq) => batch.db().event(seq)?.and_then(|row| row.meta),
        None => None,
    };
    Ok(meta.is_some_and(|meta| meta.at > bound))
}

/// The same message by the same author with the right time; none if it cannot be made here, or would be ahead again.
fn reissue(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    author: &Identity,
    seq: Seq,
    content: Vec<u8>,
) -> Result<Option<EventId>, CommandError> {
    let user = user_of(batch.db(), space, Some(*author))?;
    let Some(user) = user.filter(|user| !user.is_gone) else { return Ok(None) };
    let Some(key) = batch.db().signing_key(author)? else { return Ok(None) };
    let Some(envelope) = batch.db().opened(seq)? else { return Ok(None) };
    let authority = Reference { role: Role::Authority, id: user.membership };
    let others = envelope.references.iter().filter(|reference| reference.role != Role::Authority).copied();
    let references: Vec<Reference> = std::iter::once(authority).chain(others).collect();
    // What it answers or mentions may stay ahead.
    for reference in references.iter().filter(|reference| !matches!(reference.role, Role::ReplyTo | Role::Mention)) {
        if is_ahead(batch, &reference.id)? {
            return Ok(None);
        }
    }
    let kept = hosted(batch.db(), space)?;
    let seal = seal(batch.db(), space, &kept)?;
    let draft = NewEvent {
        kind: Kind::Message,
        space: *space,
        aux: AuxKey::ZERO,
        payload: Payload::None,
        references,
        content,
        seal,
    };
    create_event(batch, &key, draft).map(Some)
}
