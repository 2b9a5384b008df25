//! Threads and messages: each deed becomes one event, or two where a message opens its thread.

use super::company::{company, identities, listed};
use super::entering::OPERATOR;
use super::finding::{DELETED, find, is_deleted, message_for, principal, thread_for};
use super::moderation;
use super::people::{self, Hand};
use super::{
    Act, Acted, Caller, CannotAct, Deed, Deemed, Means, Named, NewMessage, NewThread, Place, ThreadChange, go, make,
    naming,
};
use engine::access::{Action, Decision, Facts, Principal, decide};
use engine::create::{Draft, Seal};
use engine::reads::{Answer, Reads as _};
use engine::rows::{Meta, ThreadField};
use model::body::BadBody;
use model::crypto::{chosen_key, public_space};
use model::envelope::{Reference, Role};
use model::limits::REFERENCES_MAX;
use model::payload::Payload;
use model::{AuxKey, EventId, Identity, Kind, Seq, SpaceId, SpaceNo, body};
use serde_json::{Map, Value, json};
use store::Batch;
use store::views::Shown;

/// The content of a message or of a new version of it.
pub fn message_content(said: Value, chosen: Option<&str>) -> Result<Vec<u8>, BadBody> {
    let mut content = Map::from_iter([("body".to_owned(), said)]);
    if let Some(chosen) = chosen {
        content.insert("id".to_owned(), chosen.into());
    }
    body::encode(&Value::Object(content))
}

/// The content of a reaction.
pub fn reaction_content(reaction: &str) -> Result<Vec<u8>, BadBody> {
    body::encode(&json!({ "reaction": reaction }))
}

/// What the steps of one act share.
pub(super) struct Scene<'a> {
    pub(super) space: SpaceId,
    pub(super) no: SpaceNo,
    pub(super) caller: &'a Caller,
    pub(super) principal: Principal,
    pub(super) hand: Hand,
    seal: Seal,
    pub(super) fresh: [u8; 32],
}

impl Scene<'_> {
    pub(super) fn who(&self) -> (&Caller, Option<&Identity>) {
        (self.caller, Some(&self.hand.identity))
    }

    fn draft(&self, kind: Kind, references: Vec<Reference>, content: Vec<u8>) -> Draft {
        let authority = Reference { role: Role::Authority, id: self.hand.authority };
        let mut references = [vec![authority], references].concat();
        references.sort();
        references.dedup();
        let seal = self.seal.clone();
        Draft { kind, space: self.space, aux: AuxKey::ZERO, payload: Payload::None, references, content, seal }
    }

    /// What an admin does to what others wrote is in the audit log.
    fn audit(&self, batch: &mut Batch<'_>, meta: &Meta, what: &str, target: &EventId) -> Answer<()> {
        if batch.db().identity(meta.author)? == self.hand.identity {
            return Ok(());
        }
        let who = self
            .caller
            .user
            .as_deref()
            .map_or_else(|| self.caller.called.clone(), |user| format!("{} for {user}", self.caller.called));
        batch.audit(Some(self.space), &who, what, &target.to_string())
    }

    fn acted(&self, batch: &Batch<'_>, shown: EventId, is_new: bool) -> Deemed<Acted> {
        Ok(batch.db().seq(&shown)?.map(|seq| Acted { shown, seq, is_new }).ok_or(CannotAct::Unknown("event")))
    }
}

/// Does the deed.
pub(super) fn run(batch: &mut Batch<'_>, act: Act) -> Deemed<Acted> {
    let Act { space, caller, deed, fresh, .. } = act;
    let no = go!(people::space_no(batch, &space));
    let (principal, _) = principal(batch.db(), &space, &caller, batch.now())?;
    match decide(&principal, action(&deed), &Facts::default()) {
        Decision::Allow => {}
        denied => return Ok(Err(CannotAct::Denied(denied))),
    }
    let kept = go!(people::kept(batch, &space));
    let seal = go!(people::seal(batch, &space, &kept));
    if let (Deed::Leave, Some(user)) = (&deed, &caller.user)
        && batch.db().user(&space, user)?.is_none()
    {
        return Ok(Err(CannotAct::Unknown("user")));
    }
    if caller.user.as_deref() == Some(OPERATOR) && matches!(caller.means, Means::Key(_)) {
        return Ok(Err(CannotAct::Denied(Decision::Forbidden(
            "this name is the operator's, who signs in to the pages",
        ))));
    }
    let hand = match &caller.user {
        Some(user) => go!(people::hand(batch, &space, user, &fresh)),
        // Administration without a user is the keeper's.
        None => go!(people::keeper(batch, &kept)),
    };
    let scene = Scene { space, no, caller: &caller, principal, hand, seal, fresh };
    go!(moderation::check_quota(batch, &scene, &deed));
    match deed {
        Deed::OpenThread(new) => open_thread(batch, &scene, new),
        Deed::UpdateThread(thread, changes) => update_thread(batch, &scene, &thread, changes),
        Deed::DeleteThread(thread) => delete_thread(batch, &scene, &thread),
        Deed::Post(new) => post(batch, &scene, new),
        Deed::Edit(place, content) => edit(batch, &scene, &place, content),
        Deed::DeleteMessage(place) => edit(batch, &scene, &place, DELETED.to_vec()),
        Deed::React(place, content) => react(batch, &scene, &place, Some(content)),
        Deed::Unreact(place) => react(batch, &scene, &place, None),
        Deed::MarkRead(thread, message) => mark_read(batch, &scene, thread, message),
        Deed::Purge(target) => purge(batch, &scene, target),
        Deed::Distance(other, distance) => moderation::keep_distance(batch, &scene, &other, distance),
        Deed::Report(message, reason) => moderation::report(batch, &scene, message, reason),
        Deed::Leave => moderation::leave(batch, &scene),
    }
}

/// What the access function is asked for a deed.
fn action(deed: &Deed) -> Action {
    match deed {
        Deed::OpenThread(_) | Deed::Post(_) | Deed::React(..) | Deed::Unreact(_) => Action::Write,
        Deed::UpdateThread(..) | Deed::DeleteThread(_) | Deed::Edit(..) | Deed::DeleteMessage(_) => Action::Change,
        Deed::Purge(_) => Action::Change,
        Deed::MarkRead(..) | Deed::Distance(..) | Deed::Report(..) | Deed::Leave => Action::Own,
    }
}

fn open_thread(batch: &mut Batch<'_>, scene: &Scene<'_>, new: NewThread) -> Deemed<Acted> {
    let mut fields = new.fields;
    if let Some(chosen) = &new.chosen {
        if let Err(why) = naming::check_name(chosen) {
            return Ok(Err(why.into()));
        }
        fields.insert("id".to_owned(), chosen.as_str().into());
    }
    if !new.participants.is_empty() {
        let mut identities = go!(identities(batch, scene, &new.participants));
        identities.push(scene.hand.identity);
        fields.insert("participants".to_owned(), listed(identities));
    }
    if new.is_private {
        fields.insert("private".to_owned(), true.into());
    }
    let content = go!(Ok(body::encode(&Value::Object(fields))));
    if let Some(chosen) = &new.chosen
        && let Some(earlier) = earlier(batch, scene, chosen, Kind::Thread, &content)?
    {
        return match earlier {
            Ok(id) => scene.acted(batch, id, false),
            Err(why) => Ok(Err(why)),
        };
    }
    let id = go!(make_thread(batch, scene, new.chosen.as_deref(), content));
    scene.acted(batch, id, true)
}

fn make_thread(batch: &mut Batch<'_>, scene: &Scene<'_>, chosen: Option<&str>, content: Vec<u8>) -> Deemed<EventId> {
    let mut draft = scene.draft(Kind::Thread, Vec::new(), content);
    draft.aux = chosen.map_or(AuxKey::ZERO, chosen_key);
    make(batch, &scene.hand.key, draft)
}

/// What already has a chosen id: the same thing said again, or something else.
fn earlier(
    batch: &Batch<'_>,
    scene: &Scene<'_>,
    chosen: &str,
    kind: Kind,
    content: &[u8],
) -> Answer<Option<Result<EventId, CannotAct>>> {
    let db = batch.db();
    let Some((stamp, seq)) = db.chosen(scene.no, chosen)? else { return Ok(None) };
    let row = db.event(seq)?.and_then(|row| row.meta);
    let is_same = match row {
        Some(meta) => {
            meta.kind == kind
                && db.identity(meta.author)? == scene.hand.identity
                && db.shown(seq)? == Shown::Here(content.to_vec())
        }
        None => false,
    };
    Ok(Some(if is_same { Ok(stamp.id) } else { Err(CannotAct::Taken(chosen.to_owned())) }))
}

fn update_thread(batch: &mut Batch<'_>, scene: &Scene<'_>, thread: &Named, change: ThreadChange) -> Deemed<Acted> {
    let (stamp, seq, meta) =
        go!(thread_for(batch.db(), scene.no, thread, &scene.principal, Action::Change, scene.who()));
    // Everything is checked before anything is written.
    let mut contents = Vec::new();
    for (field, value) in change.fields {
        let content = Map::from_iter([(field.name().to_owned(), value)]);
        contents.push((field, go!(Ok(body::encode(&Value::Object(content))))));
    }
    if change.participants.is_some() || change.is_private.is_some() {
        let company = go!(company(batch, scene, seq, change.participants, change.is_private));
        contents.push((ThreadField::Participants, go!(Ok(body::encode(&Value::Object(company))))));
    }
    scene.audit(batch, &meta, "change thread", &stamp.id)?;
    for (field, content) in contents {
        let reference = Reference { role: Role::Thread, id: stamp.id };
        let mut draft = scene.draft(Kind::ThreadUpdate, vec![reference], content);
        draft.aux = field.aux();
        go!(make(batch, &scene.hand.key, draft));
    }
    Ok(Ok(Acted { shown: stamp.id, seq, is_new: true }))
}

fn delete_thread(batch: &mut Batch<'_>, scene: &Scene<'_>, thread: &Named) -> Deemed<Acted> {
    let (stamp, seq, meta) =
        go!(thread_for(batch.db(), scene.no, thread, &scene.principal, Action::Change, scene.who()));
    scene.audit(batch, &meta, "delete thread", &stamp.id)?;
    let reference = Reference { role: Role::Thread, id: stamp.id };
    go!(make(batch, &scene.hand.key, scene.draft(Kind::ThreadDelete, vec![reference], Vec::new())));
    Ok(Ok(Acted { shown: stamp.id, seq, is_new: true }))
}

fn post(batch: &mut Batch<'_>, scene: &Scene<'_>, new: NewMessage) -> Deemed<Acted> {
    if let Some(chosen) = &new.chosen {
        if let Err(why) = naming::check_name(chosen) {
            return Ok(Err(why.into()));
        }
        if let Some(earlier) = earlier(batch, scene, chosen, Kind::Message, &new.content)? {
            let is_elsewhere = match (&new.thread, earlier.as_ref().ok().map(|id| batch.db().seq(id)).transpose()?) {
                (Some(thread), Some(Some(seq))) => !is_in(batch, scene, seq, thread)?,
                _ => false,
            };
            if is_elsewhere {
                return Ok(Err(CannotAct::Taken(chosen.clone())));
            }
            return match earlier {
                Ok(id) => scene.acted(batch, id, false),
                Err(why) => Ok(Err(why)),
            };
        }
    }
    if new.mentions.len() + new.attachments.len() > REFERENCES_MAX - 3 {
        return Ok(Err(CannotAct::TooMany(REFERENCES_MAX - 3)));
    }
    let place = go!(place_for(batch, scene, new.thread.as_ref()));
    let mut references = go!(beside(batch, scene, &new));
    let thread = match place {
        Some(thread) => thread,
        None => go!(open_for(batch, scene, new.thread.as_ref())),
    };
    references.push(Reference { role: Role::Thread, id: thread });
    let mut draft = scene.draft(Kind::Message, references, new.content);
    draft.aux = new.chosen.as_deref().map_or(AuxKey::ZERO, chosen_key);
    let id = go!(make(batch, &scene.hand.key, draft));
    scene.acted(batch, id, true)
}

/// Whether a message is in the thread of that name.
fn is_in(batch: &Batch<'_>, scene: &Scene<'_>, message: Seq, thread: &Named) -> Answer<bool> {
    let subject = batch.db().event(message)?.and_then(|row| row.meta).map(|meta| meta.subject);
    Ok(find(batch.db(), scene.no, thread, Kind::Thread)?.map(|(_, seq, _)| seq) == subject)
}

/// What a message refers to beside its thread.
fn beside(batch: &mut Batch<'_>, scene: &Scene<'_>, new: &NewMessage) -> Deemed<Vec<Reference>> {
    let mut references = Vec::new();
    if let Some(message) = &new.reply_to {
        let place = Place { thread: None, message: message.clone() };
        let found = go!(message_for(batch.db(), scene.no, &place, &scene.principal, Action::Read, scene.who()));
        references.push(Reference { role: Role::ReplyTo, id: found.0.id });
    }
    for file in &new.attachments {
        if find(batch.db(), scene.no, &Named::Event(*file), Kind::File)?.is_none() {
            return Ok(Err(CannotAct::Unknown("file")));
        }
        references.push(Reference { role: Role::Attachment, id: *file });
    }
    for identity in go!(identities(batch, scene, &new.mentions)) {
        references.push(Reference { role: Role::Mention, id: EventId(public_space(&identity).0) });
    }
    Ok(Ok(references))
}

/// The thread that a message goes to, unless it has to be opened first.
fn place_for(batch: &Batch<'_>, scene: &Scene<'_>, named: Option<&Named>) -> Deemed<Option<EventId>> {
    match named {
        None => Ok(Ok(None)),
        Some(Named::Chosen(text)) if batch.db().chosen(scene.no, text)?.is_none() => Ok(Ok(None)),
        Some(named) => {
            let found = thread_for(batch.db(), scene.no, named, &scene.principal, Action::Write, scene.who())?;
            Ok(found.map(|(stamp, ..)| Some(stamp.id)))
        }
    }
}

/// Opens a thread for a message, under the id by which it was named.
fn open_for(batch: &mut Batch<'_>, scene: &Scene<'_>, named: Option<&Named>) -> Deemed<EventId> {
    let chosen = match named {
        Some(Named::Chosen(text)) => Some(text.as_str()),
        Some(Named::Event(_)) | None => None,
    };
    let fields = chosen.map_or_else(Map::new, |text| Map::from_iter([("id".to_owned(), text.into())]));
    let content = go!(Ok(body::encode(&Value::Object(fields))));
    make_thread(batch, scene, chosen, content)
}

fn edit(batch: &mut Batch<'_>, scene: &Scene<'_>, place: &Place, content: Vec<u8>) -> Deemed<Acted> {
    let (stamp, seq, meta) =
        go!(message_for(batch.db(), scene.no, place, &scene.principal, Action::Change, scene.who()));
    if is_deleted(batch.db(), seq)? {
        // Deleting it again changes nothing; nobody brings back what a moderator took away.
        return Ok(if content == DELETED {
            Ok(Acted { shown: stamp.id, seq, is_new: false })
        } else {
            Err(CannotAct::Deleted)
        });
    }
    scene.audit(batch, &meta, "edit message", &stamp.id)?;
    let reference = Reference { role: Role::Target, id: stamp.id };
    go!(make(batch, &scene.hand.key, scene.draft(Kind::Edit, vec![reference], content)));
    Ok(Ok(Acted { shown: stamp.id, seq, is_new: true }))
}

fn react(batch: &mut Batch<'_>, scene: &Scene<'_>, place: &Place, content: Option<Vec<u8>>) -> Deemed<Acted> {
    let (stamp, seq, _) = go!(message_for(batch.db(), scene.no, place, &scene.principal, Action::Write, scene.who()));
    if content.is_some() && is_deleted(batch.db(), seq)? {
        return Ok(Err(CannotAct::Deleted));
    }
    let kind = if content.is_some() { Kind::Reaction } else { Kind::ReactionRemoval };
    let reference = Reference { role: Role::Target, id: stamp.id };
    go!(make(batch, &scene.hand.key, scene.draft(kind, vec![reference], content.unwrap_or_default())));
    Ok(Ok(Acted { shown: stamp.id, seq, is_new: true }))
}

fn mark_read(batch: &mut Batch<'_>, scene: &Scene<'_>, thread: Named, message: Named) -> Deemed<Acted> {
    let place = Place { thread: Some(thread), message };
    let (stamp, seq, meta) = go!(message_for(batch.db(), scene.no, &place, &scene.principal, Action::Own, scene.who()));
    let thread = batch.db().id_of(meta.subject)?;
    let references = vec![Reference { role: Role::Thread, id: thread }, Reference { role: Role::Target, id: stamp.id }];
    go!(make(batch, &scene.hand.key, scene.draft(Kind::ReadMarker, references, Vec::new())));
    Ok(Ok(Acted { shown: stamp.id, seq, is_new: true }))
}

fn purge(batch: &mut Batch<'_>, scene: &Scene<'_>, target: EventId) -> Deemed<Acted> {
    let db = batch.db();
    let Some(seq) = db.seq(&target)? else { return Ok(Err(CannotAct::Unknown("event"))) };
    let Some(meta) = db.event(seq)?.and_then(|row| row.meta).filter(|meta| meta.space == scene.no) else {
        return Ok(Err(CannotAct::Unknown("event")));
    };
    let is_own = db.identity(meta.author)? == scene.hand.identity;
    let facts = Facts { is_closed_to_caller: false, is_own, is_known: true };
    match decide(&scene.principal, Action::Change, &facts) {
        Decision::Allow => {}
        denied => return Ok(Err(CannotAct::Denied(denied))),
    }
    scene.audit(batch, &meta, "purge", &target)?;
    let reference = Reference { role: Role::Target, id: target };
    go!(make(batch, &scene.hand.key, scene.draft(Kind::Delete, vec![reference], Vec::new())));
    Ok(Ok(Acted { shown: target, seq, is_new: true }))
}
