//! Who sees which thread, message and live event, and what they could do with it: decided here and nowhere else.
//!
//! A private thread is seen by its author and its participants, and by keys that act for no user. A thread that was
//! deleted is found by nobody; lists may ask for it. What a blocked user writes is not shown to whoever blocks them. The
//! API, the pages and the live streams all ask here, so that none of them shows what another hides.

use crate::error::QueryError;
use crate::names::parse_name;
use crate::viewer::Viewer;
use engine::access::{Action, Decision, Facts, decide};
use engine::reads::Reads as _;
use engine::rows::Meta;
use model::crypto::public_space;
use model::{EventId, Identity, Kind, Seq, Stamp};
use node::commands;
use store::Db;
use store::shared::moderation::BlockKind;
use store::tables::TableReads;

/// What a viewer sees of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadAccess {
    /// Nothing: it is not there, or private to others.
    Hidden,
    /// It was deleted softly; only a list that asks for such threads shows it.
    Deleted,
    Visible,
}

/// Whom a live event is for, whatever it says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audience {
    /// Who alone may know of it: participants of a private thread, or the owner of a read marker.
    pub only: Option<Vec<Identity>>,
    /// Who caused it.
    pub by: Identity,
    /// Who wrote the message that it shows.
    pub shows: Option<Identity>,
    /// The public spaces of those it mentions.
    pub mentions: Vec<EventId>,
}

impl Viewer {
    fn is_allowed(&self, action: Action, is_closed_to_caller: bool, is_own: bool) -> bool {
        let facts = Facts { is_closed_to_caller, is_own, is_known: true };
        decide(&self.principal, action, &facts) == Decision::Allow
    }

    /// Whether the access function lets them do this in the space at all.
    pub fn may(&self, action: Action) -> bool {
        decide(&self.principal, action, &Facts::default()) == Decision::Allow
    }

    /// Whether the user does not want to see what somebody writes.
    pub fn blocks(&self, other: &Identity) -> bool {
        self.blocked.contains(other)
    }

    /// Whether they could change what a user of that name wrote.
    pub fn may_change_by(&self, author: &str) -> bool {
        self.is_allowed(Action::Change, false, self.caller.user.as_deref() == Some(author))
    }

    /// Whether they could change or delete what an identity wrote.
    pub fn may_change(&self, author: Option<&Identity>) -> bool {
        let is_own = author.is_some() && author == self.identity();
        // Keys that act for no user see the whole space.
        self.caller.user.is_none() || self.is_allowed(Action::Change, false, is_own)
    }

    /// Whether a live event is shown to them.
    pub fn may_receive(&self, audience: &Audience) -> bool {
        let is_closed = match (&audience.only, &self.caller.user, self.identity()) {
            (None, _, _) | (_, None, _) => false,
            (Some(only), Some(_), identity) => !identity.is_some_and(|identity| only.contains(identity)),
        };
        let is_blocked = self.blocks(&audience.by) || audience.shows.as_ref().is_some_and(|author| self.blocks(author));
        self.is_allowed(Action::Read, is_closed, false) && !is_blocked
    }

    /// Whether a live event concerns them: they caused it, it mentions them, or it is not for everybody.
    pub fn is_concerned(&self, audience: &Audience) -> bool {
        let Some(identity) = self.identity() else { return false };
        let mine = EventId(public_space(identity).0);
        audience.by == *identity || audience.only.is_some() || audience.mentions.contains(&mine)
    }
}

fn access_by_meta<V: TableReads>(
    db: &Db<V>,
    viewer: &Viewer,
    thread: Seq,
    meta: &Meta,
) -> Result<ThreadAccess, QueryError> {
    let found = commands::thread_visibility(db, thread, meta, Some(&viewer.caller), viewer.identity())?;
    Ok(match (viewer.is_allowed(Action::Read, found.is_closed, false), found.is_deleted) {
        (false, _) => ThreadAccess::Hidden,
        (true, true) => ThreadAccess::Deleted,
        (true, false) => ThreadAccess::Visible,
    })
}

/// What a viewer sees of a thread.
pub fn thread_access<V: TableReads>(db: &Db<V>, viewer: &Viewer, thread: Seq) -> Result<ThreadAccess, QueryError> {
    match db.event(thread)?.and_then(|row| row.meta) {
        Some(meta) => access_by_meta(db, viewer, thread, &meta),
        None => Ok(ThreadAccess::Hidden),
    }
}

/// The thread of that name, if the viewer sees it.
pub fn find_thread<V: TableReads>(db: &Db<V>, viewer: &Viewer, name: &str) -> Result<(Stamp, Seq), QueryError> {
    let unknown = || QueryError::not_found("there is no such thread");
    let named = parse_name(name, "thread")?;
    let (stamp, seq, meta) = commands::find(db, viewer.no, &named, Kind::Thread)?.ok_or_else(unknown)?;
    match access_by_meta(db, viewer, seq, &meta)? {
        ThreadAccess::Visible => Ok((stamp, seq)),
        ThreadAccess::Hidden | ThreadAccess::Deleted => Err(unknown()),
    }
}

/// The message of that name, if the viewer sees the thread it is in; where a thread is named, it must be that one.
pub fn find_message<V: TableReads>(
    db: &Db<V>,
    viewer: &Viewer,
    thread: Option<&str>,
    name: &str,
) -> Result<Seq, QueryError> {
    let unknown = || QueryError::not_found("there is no such message");
    let named = parse_name(name, "message")?;
    let (_, seq, meta) = commands::find(db, viewer.no, &named, Kind::Message)?.ok_or_else(unknown)?;
    let place = match thread {
        Some(thread) => find_thread(db, viewer, thread)?.1,
        None => {
            let thread = meta.subject.ok_or_else(unknown)?;
            find_thread(db, viewer, &db.id_of(thread)?.to_string()).map_err(|_| unknown())?.1
        }
    };
    if Some(place) == meta.subject { Ok(seq) } else { Err(unknown()) }
}

/// Whether the viewer neither blocks nor mutes somebody: only then a mention by them is listed.
pub fn is_heard<V: TableReads>(db: &Db<V>, viewer: &Viewer, other: &Identity) -> Result<bool, QueryError> {
    match viewer.identity() {
        Some(identity) => Ok(db.block_between(&viewer.space, identity, other)?.is_none()),
        None => Ok(true),
    }
}

/// Whom the viewer blocks or mutes.
pub fn blocked_or_muted<V: TableReads>(db: &Db<V>, viewer: &Viewer) -> Result<Vec<(Identity, BlockKind)>, QueryError> {
    match viewer.identity() {
        Some(identity) => Ok(db.blocks_by(&viewer.space, identity)?),
        None => Ok(Vec::new()),
    }
}

/// Those who alone may know of a thread, if it is private.
pub fn private_to<V: TableReads>(db: &Db<V>, thread: Option<Seq>) -> Result<Option<Vec<Identity>>, QueryError> {
    let Some(seq) = thread else { return Ok(None) };
    let Some(meta) = db.event(seq)?.and_then(|row| row.meta) else { return Ok(None) };
    if !commands::thread_visibility(db, seq, &meta, None, None)?.is_private {
        return Ok(None);
    }
    let mut insiders = commands::participants(db, seq, meta.space)?;
    insiders.push(db.identity(meta.author)?);
    Ok(Some(insiders))
}
