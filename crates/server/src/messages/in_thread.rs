//! Messages with their thread in the path.

use super::page::{Page, look};
use super::{
    EditBody, Message, MessageBody, MessageQuery, Messages, Versions, history, place, post, rewrite, take_back,
};
use crate::caller::Guest;
use crate::extract::{Path, Query, Sent};
use crate::problem::Problem;
use crate::shapes::ChosenId;
use crate::state::Shared;
use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};

/// List messages of a thread: the latest, or those before, after or around one
#[utoipa::path(get, path = "/v1/threads/{thread}/messages", tag = "messages",
    params(("thread" = String, Path), MessageQuery), responses(
    (status = 200, body = Messages), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list(
    State(house): State<Shared>,
    guest: Guest,
    Path(thread): Path<String>,
    Query(query): Query<MessageQuery>,
) -> Result<Page, Problem> {
    look(&house, &guest, |look| look.page(&thread, &query))
}

/// Post a message into a thread, which is opened if it does not exist
#[utoipa::path(post, path = "/v1/threads/{thread}/messages", tag = "messages", params(("thread" = ChosenId, Path)),
    request_body = MessageBody, responses(
    (status = 201, body = Message), (status = 200, description = "It was there already", body = Message),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn create(
    State(house): State<Shared>,
    guest: Guest,
    Path(thread): Path<String>,
    headers: HeaderMap,
    Sent(body): Sent,
) -> Result<(StatusCode, Json<Message>), Problem> {
    post(&house, guest, Some(thread), &headers, &body).await
}

/// Get a message of a thread
#[utoipa::path(get, path = "/v1/threads/{thread}/messages/{id}", tag = "messages",
    params(("thread" = String, Path), ("id" = String, Path)), responses(
    (status = 200, body = Message), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn get(
    State(house): State<Shared>,
    guest: Guest,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Message>, Problem> {
    look(&house, &guest, |look| look.renderer().message_at(look.message(Some(&thread), &id)?)).map(Json)
}

/// Write a new version of a message of a thread
#[utoipa::path(put, path = "/v1/threads/{thread}/messages/{id}", tag = "messages",
    params(("thread" = String, Path), ("id" = String, Path)), request_body = EditBody, responses(
    (status = 200, body = Message), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn edit(
    State(house): State<Shared>,
    guest: Guest,
    Path((thread, id)): Path<(String, String)>,
    headers: HeaderMap,
    Sent(body): Sent,
) -> Result<Json<Message>, Problem> {
    rewrite(&house, guest, place(Some(&thread), &id)?, &headers, &body).await
}

/// Delete a message of a thread softly
#[utoipa::path(delete, path = "/v1/threads/{thread}/messages/{id}", tag = "messages",
    params(("thread" = String, Path), ("id" = String, Path)), responses(
    (status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn delete(
    State(house): State<Shared>,
    guest: Guest,
    Path((thread, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    take_back(&house, guest, place(Some(&thread), &id)?).await
}

/// All versions of a message of a thread
#[utoipa::path(get, path = "/v1/threads/{thread}/messages/{id}/versions", tag = "messages",
    params(("thread" = String, Path), ("id" = String, Path)), responses(
    (status = 200, body = Versions), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn versions(
    State(house): State<Shared>,
    guest: Guest,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Versions>, Problem> {
    history(&house, &guest, Some(&thread), &id)
}

/// The messages that answer a message of a thread
#[utoipa::path(get, path = "/v1/threads/{thread}/messages/{id}/replies", tag = "messages",
    params(("thread" = String, Path), ("id" = String, Path)), responses(
    (status = 200, body = Messages), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn replies(
    State(house): State<Shared>,
    guest: Guest,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Messages>, Problem> {
    look(&house, &guest, |look| look.replies(look.message(Some(&thread), &id)?)).map(Json)
}
