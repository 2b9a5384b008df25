//! Finding what a request names, and what the caller may see of it. The same for the writer and for readers.

use crate::commands::deletion::{DELETED_THREAD, is_thread_deleted};
use crate::commands::{Caller, CallerKind, CommandError, NameOrId};
use engine::access::{Action, Decision, Facts, KeyRole, Principal, UserStanding, decide};
use engine::protocol::space::counting::acting_role;
use engine::reads::{Reads, StoreResult};
use engine::rows::{Meta, Register, ThreadField};
use model::{EventId, Identity, Kind, Nanos, Seq, SpaceId, SpaceNo, Stamp};
use store::Db;
use store::shared::users::User;
use store::tables::TableReads;
use store::views::messages::ShownContent;

/// What the access function may know of a caller, and the user they act for.
pub fn principal<V: TableReads>(
    db: &Db<V>,
    space: &SpaceId,
    caller: &Caller,
    now: Nanos,
) -> StoreResult<(Principal, Option<User>)> {
    let user = match &caller.user {
        Some(id) => db.user(space, id)?,
        None => None,
    };
    let standing = match &user {
        Some(user) => standing(db, user, now)?,
        None => UserStanding::New,
    };
    let principal = match caller.kind {
        CallerKind::Key(role) => Principal::Key { role, space: *space, user: caller.user.as_ref().map(|_| standing) },
        CallerKind::Session => Principal::Session { space: *space, user: standing },
        // An operator who names a user acts as an admin key does.
        CallerKind::Operator if caller.user.is_some() => {
            Principal::Key { role: KeyRole::Admin, space: *space, user: Some(standing) }
        }
        CallerKind::Operator => Principal::Operator,
    };
    Ok((principal, user))
}

/// How a user stands now.
pub fn standing<V: TableReads>(db: &Db<V>, user: &User, now: Nanos) -> StoreResult<UserStanding> {
    if user.is_gone {
        return Ok(UserStanding::Gone);
    }
    let Some(seq) = db.seq(&user.membership)? else { return Ok(UserStanding::Gone) };
    // A membership that was just given may be a moment ahead of the clock.
    let since = db.event(seq)?.and_then(|row| row.stamp()).map_or(now, |stamp| stamp.at.plus(1));
    let at = Stamp { at: now.max(since), id: EventId([0xff; 16]) };
    Ok(acting_role(db, seq, at)?.map_or(UserStanding::Gone, UserStanding::Member))
}

/// Finds an applied thread, message or file of a space by name; whether the caller may see it is another question.
pub fn find<V: TableReads>(
    db: &Db<V>,
    space: SpaceNo,
    named: &NameOrId,
    kind: Kind,
) -> StoreResult<Option<(Stamp, Seq, Meta)>> {
    let seq = match named {
        NameOrId::Event(id) => db.seq(id)?,
        NameOrId::Chosen(text) => db.chosen(space, text)?.map(|(_, seq)| seq),
    };
    let Some(seq) = seq else { return Ok(None) };
    let Some(row) = db.event(seq)?.filter(|row| row.is_applied()) else { return Ok(None) };
    let stamp = row.stamp();
    Ok(match (stamp, row.meta) {
        (Some(stamp), Some(meta)) if meta.kind == kind && meta.space == space && meta.counts => {
            Some((stamp, seq, meta))
        }
        _ => None,
    })
}

/// The events that make a thread or message what it is now: what was written last of each thing that can be changed.
pub fn version_of<V: TableReads>(db: &Db<V>, seq: Seq) -> StoreResult<Vec<EventId>> {
    let Some(meta) = db.event(seq)?.and_then(|row| row.meta) else { return Ok(Vec::new()) };
    if meta.kind != Kind::Thread {
        return Ok(db.message_by_seq(seq)?.map(|message| message.version.id).into_iter().collect());
    }
    let fields = ThreadField::UPDATABLE.into_iter().chain([ThreadField::Deleted]);
    let winners = fields.map(|field| db.register(meta.space, Register::ThreadField(seq, field.code())));
    let mut version = Vec::new();
    for winner in winners {
        // A field that was never changed keeps its place, so that no two versions look alike.
        version.push(winner?.map_or(EventId::ZERO, |(stamp, _)| stamp.id));
    }
    Ok(version)
}

/// What a caller sees of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadVisibility {
    /// Whether it was deleted softly.
    pub is_deleted: bool,
    /// Whether only its participants see it.
    pub is_private: bool,
    /// Whether the caller is not among those.
    pub is_closed: bool,
}

/// What that identity sees of a thread; nobody in particular sees all of them.
pub fn thread_visibility<V: TableReads>(
    db: &Db<V>,
    thread: Seq,
    meta: &Meta,
    who: Option<&Caller>,
    identity: Option<&Identity>,
) -> StoreResult<ThreadVisibility> {
    let is_deleted = is_thread_deleted(db, thread, meta.space)?;
    let is_private = is_private(db, thread, meta.space)?;
    let asks_for_a_user = who.is_some_and(|caller| caller.user.is_some());
    let is_closed = is_private && asks_for_a_user && !participates(db, thread, meta, identity)?;
    Ok(ThreadVisibility { is_deleted, is_private, is_closed })
}

/// Whether somebody may read and write in a thread: it is open to all, or they take part in it.
pub(super) fn is_open_to<V: TableReads>(
    db: &Db<V>,
    thread: Seq,
    meta: &Meta,
    identity: &Identity,
) -> StoreResult<bool> {
    Ok(!is_private(db, thread, meta.space)? || participates(db, thread, meta, Some(identity))?)
}

/// The thread that an event is, or belongs to: a message or a change names its thread.
pub(super) fn thread_of<V: TableReads>(db: &Db<V>, seq: Seq) -> StoreResult<Option<(Seq, Meta)>> {
    let Some(meta) = db.event(seq)?.and_then(|row| row.meta) else { return Ok(None) };
    let thread = match meta.kind.space() {
        Some(Kind::Thread) => return Ok(Some((seq, meta))),
        Some(Kind::Message | Kind::ThreadUpdate) => meta.subject,
        Some(_) | None => None,
    };
    let Some(thread) = thread else { return Ok(None) };
    Ok(db.event(thread)?.and_then(|row| row.meta).map(|meta| (thread, meta)))
}

/// Whether only its participants see a thread: as the latest list of them says, or what it was opened with; always, if it
/// is a direct conversation. Where what would say it cannot be read any more, nobody else sees it.
pub fn is_private<V: TableReads>(db: &Db<V>, thread: Seq, space: SpaceNo) -> StoreResult<bool> {
    if db.is_direct(thread)? {
        return Ok(true);
    }
    let register = Register::ThreadField(thread, ThreadField::Participants.code());
    let latest = match db.register(space, register)? {
        Some((_, winner)) => Some(db.shown(winner)?),
        None => None,
    };
    match privacy(latest.as_ref()) {
        Some(said) => Ok(said),
        None => Ok(privacy(Some(&db.shown(thread)?)).unwrap_or(false)),
    }
}

/// What the latest list of participants, or what a thread was opened with, says about who sees it. What cannot be read
/// may have said so.
pub fn privacy(said: Option<&ShownContent>) -> Option<bool> {
    match said? {
        ShownContent::Here(bytes) => says_private(bytes),
        ShownContent::Absent | ShownContent::Invalid | ShownContent::Deleted(_) | ShownContent::Damaged => Some(true),
    }
}

/// What a content says about it. Most say nothing, and that can be seen without reading their JSON.
fn says_private(content: &[u8]) -> Option<bool> {
    const WORD: &[u8] = b"\"private\":";
    content.windows(WORD.len()).any(|window| window == WORD).then_some(())?;
    model::body::decode(content).ok()?["private"].as_bool()
}

fn participates<V: TableReads>(db: &Db<V>, thread: Seq, meta: &Meta, identity: Option<&Identity>) -> StoreResult<bool> {
    let Some(identity) = identity else { return Ok(false) };
    if db.identity(meta.author)? == *identity {
        return Ok(true);
    }
    if db.is_direct(thread)? {
        return db.is_talking(thread, identity);
    }
    Ok(participants(db, thread, meta.space)?.contains(identity))
}

/// What says who takes part in a thread.
pub(super) fn list_of_participants<V: TableReads>(
    db: &Db<V>,
    thread: Seq,
    space: SpaceNo,
) -> StoreResult<ShownContent> {
    let register = Register::ThreadField(thread, ThreadField::Participants.code());
    let from = match db.is_direct(thread)? {
        true => thread,
        false => db.register(space, register)?.map_or(thread, |(_, winner)| winner),
    };
    db.shown(from)
}

/// The identities that take part in a thread: the latest list, or the one it was opened with; of a direct conversation
/// always the latter.
pub fn participants<V: TableReads>(db: &Db<V>, thread: Seq, space: SpaceNo) -> StoreResult<Vec<Identity>> {
    let is_direct = db.is_direct(thread)?;
    let ShownContent::Here(bytes) = list_of_participants(db, thread, space)? else { return Ok(Vec::new()) };
    let Ok(content) = model::body::decode(&bytes) else { return Ok(Vec::new()) };
    let listed = content["participants"].as_array().into_iter().flatten();
    let mut participants = Vec::new();
    for identity in listed.filter_map(|item| item.as_str()?.parse::<Identity>().ok()) {
        if !is_direct || db.is_talking(thread, &identity)? {
            participants.push(identity);
        }
    }
    Ok(participants)
}

/// Asks the access function about something in a thread.
pub(crate) fn allowed<V: TableReads>(
    db: &Db<V>,
    principal: &Principal,
    action: Action,
    thread: (Seq, &Meta),
    who: (&Caller, Option<&Identity>),
    author: Option<&Identity>,
) -> Result<ThreadVisibility, CommandError> {
    let sight = thread_visibility(db, thread.0, thread.1, Some(who.0), who.1)?;
    let is_own = author.is_some() && author == who.1;
    let facts = Facts { is_closed_to_caller: sight.is_closed, is_own, is_known: true };
    match decide(principal, action, &facts) {
        Decision::Allow => Ok(sight),
        Decision::Hidden => Err(CommandError::Unknown("thread or message")),
        denied => Err(CommandError::Denied(denied)),
    }
}

/// The thread of that name, if the caller may do this in it.
pub(crate) fn thread_for<V: TableReads>(
    db: &Db<V>,
    space: SpaceNo,
    named: &NameOrId,
    principal: &Principal,
    action: Action,
    who: (&Caller, Option<&Identity>),
) -> Result<(Stamp, Seq, Meta), CommandError> {
    let Some((stamp, seq, meta)) = find(db, space, named, Kind::Thread)? else {
        return Err(CommandError::Unknown("thread"));
    };
    let author = db.identity(meta.author)?;
    let sight = allowed(db, principal, action, (seq, &meta), who, Some(&author))?;
    if sight.is_deleted {
        return Err(CommandError::Unknown(DELETED_THREAD));
    }
    Ok((stamp, seq, meta))
}

/// The message of that name, if the caller may do this to it.
pub(crate) fn message_for<V: TableReads>(
    db: &Db<V>,
    space: SpaceNo,
    place: &crate::commands::MessageRef,
    principal: &Principal,
    action: Action,
    who: (&Caller, Option<&Identity>),
) -> Result<(Stamp, Seq, Meta), CommandError> {
    let Some((stamp, seq, meta)) = find(db, space, &place.message, Kind::Message)? else {
        return Err(CommandError::Unknown("message"));
    };
    if let Some(thread) = &place.thread {
        let named = find(db, space, thread, Kind::Thread)?;
        if named.is_none_or(|(_, thread, _)| Some(thread) != meta.subject) {
            return Err(CommandError::Unknown("message in that thread"));
        }
    }
    let Some(thread_seq) = meta.subject else { return Err(CommandError::Unknown("thread")) };
    let Some(thread) = db.event(thread_seq)?.and_then(|row| row.meta) else {
        return Err(CommandError::Unknown("thread"));
    };
    let author = db.identity(meta.author)?;
    allowed(db, principal, action, (thread_seq, &thread), who, Some(&author))?;
    Ok((stamp, seq, meta))
}
