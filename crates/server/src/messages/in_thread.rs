//! Messages with their thread in the path.

use super::{
    EditBody, JsonPage, MessageBody, MessageQuery, Messages, Versions, answers, history, page, place, post, rewrite,
    take_back,
};
use crate::context::RequestContext;
use crate::extract::{Path, Query, RequestBody};
use crate::problem::Problem;
use crate::reader::with_message_reader;
use crate::shapes::ChosenId;
use crate::state::SharedState;
use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use queries::shapes::Message;

/// List messages of a thread: the latest, or those before, after or around one
#[utoipa::path(get, path = "/v1/threads/{thread}/messages", tag = "messages",
    params(("thread" = String, Path), MessageQuery), responses(
    (status = 200, body = Messages), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
    Query(query): Query<MessageQuery>,
) -> Result<JsonPage, Problem> {
    page(&state, &context, &thread, query)
}

/// Post a message into a thread, which is opened if it does not exist
#[utoipa::path(post, path = "/v1/threads/{thread}/messages", tag = "messages", params(("thread" = ChosenId, Path)),
    request_body = MessageBody, responses(
    (status = 201, body = Message), (status = 200, description = "It was there already", body = Message),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<Message>), Problem> {
    post(&state, context, Some(thread), &headers, &body).await
}

/// Get a message of a thread
#[utoipa::path(get, path = "/v1/threads/{thread}/messages/{id}", tag = "messages",
    params(("thread" = String, Path), ("id" = String, Path)), responses(
    (status = 200, body = Message), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn get(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Message>, Problem> {
    with_message_reader(&state, &context, |reader| Ok(Json(reader.message(Some(&thread), &id)?)))
}

/// Write a new version of a message of a thread
#[utoipa::path(put, path = "/v1/threads/{thread}/messages/{id}", tag = "messages",
    params(("thread" = String, Path), ("id" = String, Path)), request_body = EditBody, responses(
    (status = 200, body = Message), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn edit(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<Message>, Problem> {
    rewrite(&state, context, place(Some(&thread), &id)?, &headers, &body).await
}

/// Delete a message of a thread softly
#[utoipa::path(delete, path = "/v1/threads/{thread}/messages/{id}", tag = "messages",
    params(("thread" = String, Path), ("id" = String, Path)), responses(
    (status = 204), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn delete(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    take_back(&state, context, place(Some(&thread), &id)?).await
}

/// All versions of a message of a thread
#[utoipa::path(get, path = "/v1/threads/{thread}/messages/{id}/versions", tag = "messages",
    params(("thread" = String, Path), ("id" = String, Path)), responses(
    (status = 200, body = Versions), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn versions(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Versions>, Problem> {
    history(&state, &context, Some(&thread), &id)
}

/// The messages that answer a message of a thread
#[utoipa::path(get, path = "/v1/threads/{thread}/messages/{id}/replies", tag = "messages",
    params(("thread" = String, Path), ("id" = String, Path)), responses(
    (status = 200, body = Messages), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn replies(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Messages>, Problem> {
    answers(&state, &context, Some(&thread), &id)
}
