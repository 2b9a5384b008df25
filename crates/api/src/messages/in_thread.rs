//! Messages with their thread in the path.

use super::{
    JsonPage, MessageQuery, Replies, VersionQuery, Versions, delete_message, edit_message, list_replies, list_versions,
    page_of_thread, post_message,
};
use crate::schemas::PageQuery;
use axum::Json;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use queries::shapes::Message;
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::json;
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
) -> Result<Response, Problem> {
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
    edit_message(&state, context, (Some(&thread), &id), &headers, json(&headers, &body)?).await.map(Json)
}

pub(crate) async fn delete(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    delete_message(&state, context, (Some(&thread), &id), &headers).await
}

pub(crate) async fn versions(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
    Query(query): Query<VersionQuery>,
) -> Result<Json<Versions>, Problem> {
    list_versions(&state, &context, Some(&thread), &id, &query)
}

pub(crate) async fn replies(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((thread, id)): Path<(String, String)>,
    Query(query): Query<PageQuery>,
) -> Result<Json<Replies>, Problem> {
    list_replies(&state, &context, Some(&thread), &id, &query)
}
