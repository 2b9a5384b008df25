//! Messages with their thread in the path.

use super::{
    JsonPage, MessageQuery, Messages, Versions, delete_message, edit_message, list_replies, list_versions, message_ref,
    page_of_thread, post_message,
};
use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use queries::shapes::Message;
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::problem::Problem;
use server::reader::with_message_reader;
use server::state::SharedState;

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
    Query(query): Query<MessageQuery>,
) -> Result<JsonPage, Problem> {
    page_of_thread(&state, &context, &thread, query)
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(thread): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<Message>), Problem> {
    post_message(&state, context, Some(thread), &headers, &body).await
}

pub(crate) async fn get(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Message>, Problem> {
    with_message_reader(&state, &context, |reader| Ok(Json(reader.message(Some(&thread), &id)?)))
}

pub(crate) async fn edit(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<Message>, Problem> {
    edit_message(&state, context, message_ref(Some(&thread), &id)?, &headers, &body).await
}

pub(crate) async fn delete(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    delete_message(&state, context, message_ref(Some(&thread), &id)?).await
}

pub(crate) async fn versions(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Versions>, Problem> {
    list_versions(&state, &context, Some(&thread), &id)
}

pub(crate) async fn replies(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
) -> Result<Json<Messages>, Problem> {
    list_replies(&state, &context, Some(&thread), &id)
}
