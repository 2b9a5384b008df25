//! Reactions: one per identity and message, replaced by the next; they add no version.

use crate::ask::json;
use crate::caller::Guest;
use crate::extract::{Path, Sent};
use crate::messages::{look, place};
use crate::problem::Problem;
use crate::shapes::{ChosenId, REACTION_CHARS_MAX, fits};
use crate::state::Shared;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use node::acts::{Deed, reaction_content};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A reaction.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReactionBody {
    /// The user who reacts, where a backend key names no user in a header.
    #[schema(value_type = Option<ChosenId>)]
    id: Option<String>,
    /// An emoji or a short word.
    #[schema(min_length = 1, max_length = 64)]
    reaction: String,
}

/// The reactions to a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Reactions {
    id: String,
    reactions: BTreeMap<String, String>,
}

fn reactions_of(house: &Shared, guest: &Guest, thread: Option<&str>, id: &str) -> Result<Json<Reactions>, Problem> {
    look(house, guest, |look| {
        let renderer = look.renderer();
        let seq = look.message(thread, id)?;
        let reactions = renderer.reactions(&renderer.db.reactions(seq)?)?;
        Ok(Json(Reactions { id: renderer.name(seq)?, reactions }))
    })
}

async fn react(
    house: &Shared,
    guest: Guest,
    thread: Option<&str>,
    id: &str,
    headers: &HeaderMap,
    bytes: &Bytes,
) -> Result<Json<Reactions>, Problem> {
    let sent: ReactionBody = json(headers, bytes)?;
    let guest = guest.acting_for(sent.id)?;
    if sent.reaction.is_empty() || !fits(&sent.reaction, REACTION_CHARS_MAX) {
        return Err(Problem::unprocessable("a reaction has 1 to 64 characters"));
    }
    let content = reaction_content(&sent.reaction)?;
    house.act(guest.clone(), Deed::React(place(thread, id)?, content)).await?;
    reactions_of(house, &guest, thread, id)
}

async fn unreact(
    house: &Shared,
    guest: Guest,
    thread: Option<&str>,
    id: &str,
    identity: String,
) -> Result<StatusCode, Problem> {
    let guest = guest.acting_for(Some(identity))?;
    house.act(guest, Deed::Unreact(place(thread, id)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who reacted to a message, and how
#[utoipa::path(get, path = "/v1/messages/{id}/reactions", tag = "reactions", params(("id" = String, Path)), responses(
    (status = 200, body = Reactions), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list(
    State(house): State<Shared>,
    guest: Guest,
    Path(id): Path<String>,
) -> Result<Json<Reactions>, Problem> {
    reactions_of(&house, &guest, None, &id)
}

/// React to a message; an earlier reaction of the same user is replaced
#[utoipa::path(post, path = "/v1/messages/{id}/reactions", tag = "reactions", params(("id" = String, Path)),
    request_body = ReactionBody, responses(
    (status = 200, body = Reactions), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn add(
    State(house): State<Shared>,
    guest: Guest,
    Path(id): Path<String>,
    headers: HeaderMap,
    Sent(body): Sent,
) -> Result<Json<Reactions>, Problem> {
    react(&house, guest, None, &id, &headers, &body).await
}

/// Take a reaction back
#[utoipa::path(delete, path = "/v1/messages/{id}/reactions/{identity}", tag = "reactions",
    params(("id" = String, Path), ("identity" = String, Path)), responses(
    (status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn remove(
    State(house): State<Shared>,
    guest: Guest,
    Path((id, identity)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    unreact(&house, guest, None, &id, identity).await
}

/// Who reacted to a message of a thread, and how
#[utoipa::path(get, path = "/v1/threads/{thread}/messages/{id}/reactions", tag = "reactions",
    params(("thread" = String, Path), ("id" = String, Path)), responses(
    (status = 200, body = Reactions), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list_in_thread(
    State(house): State<Shared>,
    guest: Guest,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Reactions>, Problem> {
    reactions_of(&house, &guest, Some(&thread), &id)
}

/// React to a message of a thread
#[utoipa::path(post, path = "/v1/threads/{thread}/messages/{id}/reactions", tag = "reactions",
    params(("thread" = String, Path), ("id" = String, Path)), request_body = ReactionBody, responses(
    (status = 200, body = Reactions), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn add_in_thread(
    State(house): State<Shared>,
    guest: Guest,
    Path((thread, id)): Path<(String, String)>,
    headers: HeaderMap,
    Sent(body): Sent,
) -> Result<Json<Reactions>, Problem> {
    react(&house, guest, Some(&thread), &id, &headers, &body).await
}

/// Take a reaction to a message of a thread back
#[utoipa::path(delete, path = "/v1/threads/{thread}/messages/{id}/reactions/{identity}", tag = "reactions",
    params(("thread" = String, Path), ("id" = String, Path), ("identity" = String, Path)), responses(
    (status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn remove_in_thread(
    State(house): State<Shared>,
    guest: Guest,
    Path((thread, id, identity)): Path<(String, String, String)>,
) -> Result<StatusCode, Problem> {
    unreact(&house, guest, Some(&thread), &id, identity).await
}
