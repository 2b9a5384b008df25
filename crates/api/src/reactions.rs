//! Reactions: one per identity and message, replaced by the next; they add no version.

use crate::messages::message_ref;
use crate::schemas::ChosenId;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use node::commands::{UserCommand, reaction_content};
use queries::shapes::Message;
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::{Path, RequestBody};
use server::input::{REACTION_CHARS_MAX, fits, json};
use server::problem::Problem;
use server::reader::with_message_reader;
use server::state::SharedState;
use utoipa::ToSchema;

/// A reaction.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reaction": "👍" }))]
pub(crate) struct ReactionBody {
    /// The user who reacts, where a backend key names no user in a header.
    #[schema(value_type = Option<ChosenId>)]
    id: Option<String>,
    /// An emoji or a short word.
    #[schema(min_length = 1, max_length = 64)]
    reaction: String,
}

/// Who reacted, and how.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReactionEntry {
    /// The user, or the public key of an identity from elsewhere.
    id: String,
    reaction: String,
}

/// The reactions to a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reactions {
    /// The message.
    id: String,
    reactions: Vec<ReactionEntry>,
}

fn reactions_of(
    state: &SharedState,
    context: &RequestContext,
    thread: Option<&str>,
    id: &str,
) -> Result<Json<Reactions>, Problem> {
    with_message_reader(state, context, |reader| {
        let renderer = reader.renderer();
        let seq = reader.find(thread, id)?;
        let reactions = renderer.reactions(&renderer.db.reactions(seq)?)?.into_iter();
        let reactions = reactions.map(|(id, reaction)| ReactionEntry { id, reaction }).collect();
        Ok(Json(Reactions { id: renderer.name(seq)?, reactions }))
    })
}

async fn react(
    state: &SharedState,
    context: RequestContext,
    thread: Option<&str>,
    id: &str,
    headers: &HeaderMap,
    bytes: &Bytes,
) -> Result<Json<Message>, Problem> {
    let sent: ReactionBody = json(headers, bytes)?;
    let context = state.acting_for(context, sent.id)?;
    if sent.reaction.is_empty() || !fits(&sent.reaction, REACTION_CHARS_MAX) {
        return Err(Problem::over_limit(format!("a reaction has 1 to {REACTION_CHARS_MAX} characters")));
    }
    let content = reaction_content(&sent.reaction)?;
    state.act(context.clone(), UserCommand::React(message_ref(thread, id)?, content)).await?;
    with_message_reader(state, &context, |reader| Ok(Json(reader.message(thread, id)?)))
}

async fn unreact(
    state: &SharedState,
    context: RequestContext,
    thread: Option<&str>,
    id: &str,
    identity: String,
) -> Result<StatusCode, Problem> {
    let context = state.acting_for(context, Some(identity))?;
    state.act(context, UserCommand::Unreact(message_ref(thread, id)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
) -> Result<Json<Reactions>, Problem> {
    reactions_of(&state, &context, None, &id)
}

pub(crate) async fn add(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<Message>, Problem> {
    react(&state, context, None, &id, &headers, &body).await
}

pub(crate) async fn remove(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((id, identity)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    unreact(&state, context, None, &id, identity).await
}

pub(crate) async fn list_in_thread(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Reactions>, Problem> {
    reactions_of(&state, &context, Some(&thread), &id)
}

pub(crate) async fn add_in_thread(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<Message>, Problem> {
    react(&state, context, Some(&thread), &id, &headers, &body).await
}

pub(crate) async fn remove_in_thread(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id, identity)): Path<(String, String, String)>,
) -> Result<StatusCode, Problem> {
    unreact(&state, context, Some(&thread), &id, identity).await
}
