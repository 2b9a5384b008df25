//! Signed elsewhere: a client with a key of its own has an event prepared, signs it, and submits it.

use crate::schemas::{ChosenId, EventIdText};
use axum::Json;
use axum::extract::State;
use engine::create::{NewEvent, Seal, prepare as prepared};
use engine::protocol::space::counting::acting_role;
use engine::reads::Reads as _;
use engine::rows::{Origin, Outcome};
use http::{HeaderMap, StatusCode};
use model::crypto::chosen_key;
use model::envelope::{BadEnvelope, Reference, Role};
use model::payload::Payload;
use model::{AuxKey, Blob, EventId, Identity, Kind, Stamp, Verified};
use node::commands::{CommandError, is_deleted, message_content, names, reaction_content};
use queries::Viewer;
use queries::visibility::private_to;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use server::context::RequestContext;
use server::extract::RequestBody;
use server::input::json;
use server::problem::Problem;
use server::state::SharedState;
use std::sync::Arc;
use store::Db;
use store::tables::Snapshot;
use utoipa::ToSchema;

/// What can be signed elsewhere.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ExternalKind {
    /// A message in a thread.
    Message,
    /// A new version of a message.
    Edit,
    /// A reaction to a message; the body is the reaction.
    Reaction,
}

/// An event to prepare.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PrepareBody {
    /// The public key that will sign, in hex.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    identity: String,
    /// The membership it acts on, as `PUT /admin/identities` answered.
    #[schema(value_type = EventIdText)]
    authority: String,
    kind: ExternalKind,
    /// The event id of the thread, for a message.
    #[schema(value_type = Option<EventIdText>)]
    thread: Option<String>,
    /// The event id of the message, for an edit or a reaction.
    #[schema(value_type = Option<EventIdText>)]
    target: Option<String>,
    /// An id of your own, for a message.
    #[schema(value_type = Option<ChosenId>)]
    id: Option<String>,
    /// What it says.
    #[serde(default)]
    body: Value,
}

/// An event that waits for its signature.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Prepared {
    /// What to sign with ed25519, in hex.
    text: String,
    /// Its content as it travels, in hex, to be submitted with it.
    content: String,
}

/// An event that was signed elsewhere.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SubmitBody {
    /// What was signed, in hex.
    #[schema(pattern = "^([0-9a-f]{2})+$")]
    text: String,
    /// The signature, in hex.
    #[schema(pattern = "^[0-9a-f]{128}$")]
    signature: String,
    /// Its content as it travels, in hex.
    #[schema(pattern = "^([0-9a-f]{2})*$")]
    content: String,
}

/// What became of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Submitted {
    /// The id of the event.
    event: String,
    /// `applied`, `held` or `known`.
    state: &'static str,
    /// What it waits for.
    waits_for: Vec<String>,
}

fn event_id(text: Option<&String>, what: &str) -> Result<EventId, Problem> {
    let text = text.ok_or_else(|| Problem::not_found(format!("{what} is not named")))?;
    text.parse().map_err(|_| Problem::unprocessable(format!("{what} is named by its event id")))
}

pub(crate) async fn prepare(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<Prepared>, Problem> {
    let db = state.node.snapshot()?;
    let now = state.node.now();
    let viewer = context.read_as(&db, now)?;
    let sent: PrepareBody = json(&headers, &body)?;
    let identity: Identity =
        sent.identity.parse().map_err(|_| Problem::unprocessable("identity is a public key in hex"))?;
    let mut references =
        vec![Reference { role: Role::Authority, id: event_id(Some(&sent.authority), "the authority")? }];
    let mut aux = AuxKey::ZERO;
    let (kind, role, id) = match sent.kind {
        ExternalKind::Message => (Kind::Message, Role::Thread, event_id(sent.thread.as_ref(), "the thread")?),
        ExternalKind::Edit => (Kind::Edit, Role::Target, event_id(sent.target.as_ref(), "the target")?),
        ExternalKind::Reaction => (Kind::Reaction, Role::Target, event_id(sent.target.as_ref(), "the target")?),
    };
    references.push(Reference { role, id });
    let content = match (sent.kind, &sent.id) {
        (ExternalKind::Reaction, _) => reaction_content(sent.body.as_str().unwrap_or_default())?,
        (ExternalKind::Message, Some(chosen)) => {
            names::check_name(chosen)?;
            aux = chosen_key(chosen);
            message_content(sent.body, Some(chosen))?
        }
        (ExternalKind::Message | ExternalKind::Edit, _) => message_content(sent.body, None)?,
    };
    let seal = seal(&db, &viewer.space)?;
    let draft = NewEvent { kind, space: viewer.space, aux, payload: Payload::None, references, content, seal };
    let (envelope, wire) = prepared(&*db, db.policy(), now, identity, draft)?.map_err(CommandError::Create)?;
    Ok(Json(Prepared { text: hex::encode(envelope.text_to_sign()), content: hex::encode(wire) }))
}

fn seal(db: &Arc<Db<Snapshot>>, space: &model::SpaceId) -> Result<Seal, Problem> {
    let kept = db.kept_space(space)?.ok_or(CommandError::NotKept)?;
    if !kept.sealed {
        return Ok(Seal::Plain);
    }
    Ok(db.current_space_key(space)?.map(Seal::Key).ok_or(CommandError::NoKey)?)
}

/// What was deleted is neither edited nor reacted to.
fn check_is_there(db: &Db<Snapshot>, signed: &Verified) -> Result<(), Problem> {
    let envelope = signed.envelope();
    let target = envelope.reference(Role::Target).filter(|_| matches!(envelope.kind, Kind::Edit | Kind::Reaction));
    let target = target.map(|target| db.seq(&target)).transpose()?.flatten();
    match target.map(|target| is_deleted(db, target)).transpose()? {
        Some(true) => Err(CommandError::Deleted.into()),
        Some(false) | None => Ok(()),
    }
}

pub(crate) async fn submit(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<Submitted>), Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    let sent: SubmitBody = json(&headers, &body)?;
    let hex = |text: &str, what: &str| {
        hex::decode(text).map_err(|_| Problem::unprocessable(format!("{what} is not hexadecimal")))
    };
    let signature: [u8; 64] = hex(&sent.signature, "the signature")?
        .try_into()
        .map_err(|_| Problem::unprocessable("a signature has 64 bytes"))?;
    let signed = Verified::from_elsewhere(&hex(&sent.text, "the text")?, &signature).map_err(|why| match why {
        BadEnvelope::Signature => Problem::forbidden(why.to_string()),
        _ => Problem::unprocessable(why.to_string()),
    })?;
    if signed.envelope().space != viewer.space {
        return Err(Problem::not_found("that event is of another space"));
    }
    check_membership(&db, &signed, state.node.now())?;
    check_thread(&db, &signed)?;
    let blob = match seal(&db, &viewer.space)? {
        Seal::Key(key) => Blob::seal(&signed, &key),
        Seal::Plain | Seal::Prekey(_) => Blob::plain(&signed),
    };
    let blob = blob.map_err(|why| Problem::unprocessable(why.to_string()))?;
    // What is here already is answered as such.
    if db.seq(&blob.id())?.is_none() {
        check_is_there(&db, &signed)?;
    }
    let wire = hex(&sent.content, "the content")?;
    check_quota(&db, &viewer, &signed.envelope().author, wire.len() as u64)?;
    submit_signed(&state, &signed, blob, wire).await
}

/// Doors turn removed members away; an authority that is not here yet is waited for.
fn check_membership(db: &Arc<Db<Snapshot>>, signed: &Verified, now: model::Nanos) -> Result<(), Problem> {
    let authority = signed.envelope().reference(Role::Authority);
    let Some(seq) = authority.map(|id| db.seq(&id)).transpose()?.flatten() else { return Ok(()) };
    let at = Stamp { at: now.max(signed.envelope().created_at), id: EventId([0xff; 16]) };
    match acting_role(&**db, seq, at)? {
        Some(_) => Ok(()),
        None => Err(Problem::forbidden("the membership it stands on is not in force")),
    }
}

/// Nobody writes into a private thread who does not take part in it, wherever they sign.
fn check_thread(db: &Db<Snapshot>, signed: &Verified) -> Result<(), Problem> {
    let envelope = signed.envelope();
    let named = envelope.reference(Role::Thread).or_else(|| envelope.reference(Role::Target));
    let Some(seq) = named.map(|id| db.seq(&id)).transpose()?.flatten() else { return Ok(()) };
    let thread = match db.event(seq)?.and_then(|row| row.meta) {
        Some(meta) if meta.kind == Kind::Thread => Some(seq),
        Some(meta) if matches!(meta.kind.space(), Some(Kind::Message | Kind::ThreadUpdate)) => meta.subject,
        Some(_) | None => None,
    };
    match private_to(db, thread)?.is_some_and(|only| !only.contains(&envelope.author)) {
        true => Err(Problem::not_found("there is no such thread or message")),
        false => Ok(()),
    }
}

/// Who signs elsewhere has the same quota as everybody.
fn check_quota(db: &Arc<Db<Snapshot>>, viewer: &Viewer, author: &Identity, bytes: u64) -> Result<(), Problem> {
    let Some(most) = db.policy().user_bytes_max else { return Ok(()) };
    let Some(author) = db.author_no(author)? else { return Ok(()) };
    let used = db.kept_bytes(viewer.no, author)?;
    if used.saturating_add(bytes) > most { Err(CommandError::OverQuota("user").into()) } else { Ok(()) }
}

async fn submit_signed(
    state: &SharedState,
    signed: &Verified,
    blob: Blob,
    wire: Vec<u8>,
) -> Result<(StatusCode, Json<Submitted>), Problem> {
    let is_inline = wire.len() as u64 <= state.node.store().policy().inline_bytes_max;
    let inline = (is_inline && !wire.is_empty()).then(|| wire.clone());
    let event = blob.id().to_string();
    let request = state.node.receive(blob.bytes().to_vec(), inline, Origin::Local).map_err(node::RequestError::from)?;
    let (_, outcome) = state.ask(request).await?;
    if !is_inline {
        let hash = signed.envelope().content_hash;
        if let Some(request) = state.node.receive_content(signed.envelope().space, hash, wire) {
            state.ask(request).await?;
        }
    }
    let (status, state, waits_for) = match outcome {
        Outcome::Applied(_) => (StatusCode::CREATED, "applied", Vec::new()),
        Outcome::Known(_) | Outcome::Carried(_) => (StatusCode::OK, "known", Vec::new()),
        Outcome::Held(_, needs) => (StatusCode::ACCEPTED, "held", needs.iter().map(ToString::to_string).collect()),
        Outcome::Refused(why) => return Err(Problem::unprocessable(why.to_string())),
        Outcome::TurnedAway(why) => return Err(Problem::overloaded(format!("turned away: {why:?}")).after(60)),
    };
    Ok((status, Json(Submitted { event, state, waits_for })))
}
