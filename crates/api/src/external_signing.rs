//! Signed elsewhere: a client with a key of its own has an event prepared, signs it, and submits it.

use crate::schemas::{ChosenId, EventIdText};
use axum::Json;
use axum::extract::State;
use engine::create::{NewEvent, prepare as prepared};
use engine::rows::Outcome;
use http::{HeaderMap, StatusCode};
use model::crypto::chosen_key;
use model::envelope::{BadEnvelope, Reference, Role};
use model::payload::Payload;
use model::{AuxKey, EventId, Identity, Kind, Verified};
use node::commands::{CommandError, Submission, SubmitSigned, message_content, names, reaction_content, seal_for};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use server::context::RequestContext;
use server::extract::RequestBody;
use server::input::json;
use server::problem::Problem;
use server::state::SharedState;
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
#[schema(example = json!({ "identity": "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "authority": "3be9f54074dbd655150de80e02aedb4e", "kind": "message", "thread": "3be9f54074dbd655150de80e02aedb4e", "body": "hello" }))]
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
#[schema(example = json!({ "text": "00", "signature": "00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000", "content": "7b7d" }))]
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
    /// What it waits for: other events, or its own content if that was not sent or does not match its hash.
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
    let seal = seal_for(&db, &viewer.space)?;
    let draft = NewEvent { kind, space: viewer.space, aux, payload: Payload::None, references, content, seal };
    let (envelope, wire) = prepared(&*db, db.policy(), now, identity, draft)?.map_err(CommandError::Create)?;
    Ok(Json(Prepared { text: hex::encode(envelope.text_to_sign()), content: hex::encode(wire) }))
}

pub(crate) async fn submit(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<Submitted>), Problem> {
    // A user who may not write hears that first; the command decides it again, inside the transaction.
    if context.caller.user.is_some() {
        context.read_as(&*state.node.snapshot()?, state.node.now())?;
    }
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
    let content = hex(&sent.content, "the content")?;
    let command = SubmitSigned { space: context.space()?, caller: context.caller, signed, content };
    let Submission { event, outcome, missing } = state.ask(command).await?;
    let (status, state, mut needs) = match outcome {
        Outcome::Applied(_) if missing.is_some() => (StatusCode::ACCEPTED, "applied", Vec::new()),
        Outcome::Applied(_) => (StatusCode::CREATED, "applied", Vec::new()),
        Outcome::Known(_) | Outcome::Carried(_) => (StatusCode::OK, "known", Vec::new()),
        Outcome::Held(_, needs) => (StatusCode::ACCEPTED, "held", needs),
        Outcome::Refused(why) => return Err(Problem::unprocessable(why.to_string())),
        Outcome::TurnedAway(why) => return Err(Problem::overloaded(format!("turned away: {why:?}")).after(60)),
    };
    needs.extend(missing);
    let waits_for = needs.iter().map(ToString::to_string).collect();
    Ok((status, Json(Submitted { event: event.to_string(), state, waits_for })))
}
