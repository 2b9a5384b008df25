//! Pages of messages. Their messages are rendered already; clients see [`Messages`].

use super::input::MessageQuery;
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_TYPE, ETAG};
use model::Stamp;
use queries::QueryError;
use queries::messages::{LatestMessages, MessageFormat, MessageReader, PageEnd, RenderedMessage, RenderedPage};
use queries::paging::{format_cursor, page_limit, parse_cursor};
use queries::shapes::Message;
use serde::Serialize;
use serde_json::Value;
use server::conditional::tag_of_parts;
use server::context::RequestContext;
use server::problem::Problem;
use server::reader::with_message_reader;
use server::state::SharedState;
use std::sync::Arc;
use store::tables::TableReads;
use utoipa::ToSchema;

/// Messages on one page.
const PAGE_MAX: usize = 500;

/// A page of messages, the newest last.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Messages {
    /// The thread they are in; absent if they are from everywhere.
    #[schema(required = false)]
    thread: Option<String>,
    messages: Vec<Message>,
    /// Where the list goes on: to older messages from the latest or from `before`, else to newer ones; null at the end.
    next: Option<String>,
    /// The other way.
    previous: Option<String>,
}

/// The messages that answer a message, the first one first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Replies {
    messages: Vec<Message>,
    /// Where to go on; null at the end.
    next: Option<String>,
}

/// All versions of a message, the first one first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Versions {
    id: String,
    versions: Vec<Message>,
    /// Where to go on; null at the end.
    next: Option<String>,
}

/// Messages as JSON.
struct JsonFormat;

impl MessageFormat for JsonFormat {
    const NAME: &'static str = "json";

    fn render<V: TableReads>(&self, _: &MessageReader<'_, V>, message: &Message) -> Result<Arc<str>, QueryError> {
        let text = serde_json::to_string(message);
        Ok(text.map_err(|_| QueryError::Broken("a message could not be written as JSON"))?.into())
    }
}

/// A page as JSON, put together from the texts of its messages, and its tag, put together from their hashes.
pub(crate) struct JsonPage {
    text: String,
    tag: String,
}

impl JsonPage {
    fn new(thread: Option<String>, messages: &[RenderedMessage], ends: [Option<PageEnd>; 2]) -> JsonPage {
        let length: usize = messages.iter().map(|message| message.text.len() + 1).sum();
        let mut text = String::with_capacity(length + 512);
        text.push('{');
        if let Some(thread) = thread {
            text.push_str("\"thread\":");
            text.push_str(&Value::from(thread).to_string());
            text.push(',');
        }
        text.push_str("\"messages\":[");
        let begin = text.len();
        for (number, message) in messages.iter().enumerate() {
            if number > 0 {
                text.push(',');
            }
            text.push_str(&message.text);
        }
        text.push(']');
        for (name, end) in ["next", "previous"].iter().zip(ends) {
            let end = end.map_or(Value::Null, |end| end.to_string().into());
            text.push_str(&format!(",\"{name}\":{end}"));
        }
        text.push('}');
        // Everything beside the messages is before and after them.
        let around = [&text[..begin], &text[begin + length.saturating_sub(1)..]].map(str::as_bytes);
        let hashes = messages.iter().map(|message| message.hash.as_slice());
        JsonPage { tag: tag_of_parts(around.into_iter().chain(hashes)), text }
    }
}

impl IntoResponse for JsonPage {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, "application/json"), (ETAG, self.tag.as_str())], self.text).into_response()
    }
}

/// A page of a thread.
pub(super) fn page_of_thread(
    state: &SharedState,
    context: &RequestContext,
    thread: &str,
    query: MessageQuery,
) -> Result<JsonPage, Problem> {
    with_message_reader(state, context, |reader| {
        let RenderedPage { thread, messages, next, previous, .. } = reader.page(thread, &query.range(), &JsonFormat)?;
        Ok(JsonPage::new(Some(thread), &messages, [next, previous]))
    })
}

/// The latest messages of all threads that the caller sees.
pub(super) fn latest(state: &SharedState, context: &RequestContext, query: MessageQuery) -> Result<JsonPage, Problem> {
    let most = page_limit(query.limit, PAGE_MAX)?;
    let range = query.range();
    let cursor = range.cursor.as_deref().filter(|text| !text.is_empty()).map(PageEnd::parse).transpose()?;
    let before = match (cursor, range.before.or(range.after).or(range.around)) {
        (None, None) => Stamp::LAST,
        (Some(PageEnd::Before(before)), None) => before,
        (Some(PageEnd::After(_)), None) => {
            return Err(Problem::bad_request("the cursor is one of a thread: name the thread"));
        }
        (_, Some(_)) => return Err(Problem::bad_request("before, after and around need a thread")),
    };
    with_message_reader(state, context, |reader| {
        let LatestMessages { messages, next } = reader.latest(before, most, range.include_deleted, &JsonFormat)?;
        Ok(JsonPage::new(None, &messages, [next, None]))
    })
}

pub(super) fn list_replies(
    state: &SharedState,
    context: &RequestContext,
    thread: Option<&str>,
    id: &str,
    query: &crate::schemas::PageQuery,
) -> Result<Json<Replies>, Problem> {
    let most = page_limit(query.limit, PAGE_MAX)?;
    let after = parse_cursor(query.cursor.as_deref())?.unwrap_or(Stamp::FIRST);
    with_message_reader(state, context, |reader| {
        let (messages, next) = reader.replies(reader.find(thread, id)?, after, most)?;
        Ok(Json(Replies { messages, next: next.map(format_cursor) }))
    })
}

/// Which versions of a message to list.
#[derive(Debug, serde::Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct VersionQuery {
    /// At most so many.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<usize>,
    /// Where the page before ended.
    #[param(pattern = "^[0-9]{0,19}$")]
    cursor: Option<String>,
}

pub(super) fn list_versions(
    state: &SharedState,
    context: &RequestContext,
    thread: Option<&str>,
    id: &str,
    query: &VersionQuery,
) -> Result<Json<Versions>, Problem> {
    let most = page_limit(query.limit, PAGE_MAX)?;
    let after = queries::paging::parse_number(query.cursor.as_deref())?.unwrap_or(0);
    with_message_reader(state, context, |reader| {
        let seq = reader.find(thread, id)?;
        let mut versions = reader.history(seq)?;
        versions.retain(|version| version.version > after);
        let has_more = versions.len() > most;
        versions.truncate(most);
        let next = versions.last().filter(|_| has_more).map(|last| last.version.to_string());
        Ok(Json(Versions { id: reader.renderer().name(seq)?, versions, next }))
    })
}
