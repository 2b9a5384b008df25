//! Many messages in one request, with one answer for each.
//!
//! They are handed to the writer in their order and share its commits. Each is checked, limited and answered as if it had
//! come alone, so that one that is refused keeps no other from being posted.

use super::{MessageBody, post};
use axum::Json;
use axum::extract::State;
use futures_util::future::join_all;
use http::{HeaderMap, StatusCode};
use queries::shapes::Message;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use server::context::RequestContext;
use server::extract::RequestBody;
use server::input::{json_of_parts, json_part};
use server::problem::Problem;
use server::state::SharedState;
use utoipa::ToSchema;

/// Messages in one request.
const MESSAGES_MAX: usize = 500;

/// How many times as large as that of other requests the body may be.
pub(crate) const BODY_FACTOR: usize = 16;

/// Messages to post.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "messages": [{ "thread": "tea", "body": "one" }, { "thread": "tea", "body": "two", "role": "assistant" }] }))]
pub(crate) struct BulkBody {
    /// In the order in which they are to be posted.
    #[schema(value_type = Vec<MessageBody>, min_items = 1, max_items = 500)]
    messages: Vec<Box<RawValue>>,
}

/// What became of one message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkResult {
    /// The status that it would have had alone: 201 if it is new, 200 if it was there already.
    status: u16,
    /// The message, if it is there.
    message: Option<Message>,
    /// Why it is not.
    problem: Option<Problem>,
}

/// What became of each message, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkResults {
    results: Vec<BulkResult>,
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<BulkResults>, Problem> {
    let BulkBody { messages } = json_of_parts(&headers, &body)?;
    let messages: Vec<Result<MessageBody, Problem>> = messages.iter().map(|part| json_part(part)).collect();
    // Whoever may not write at all is told so once.
    let names_author = |sent: &Result<MessageBody, Problem>| sent.as_ref().is_ok_and(|sent| sent.author.is_some());
    if context.caller.user.is_some() || !messages.iter().any(names_author) {
        context.read_as(&*state.node.snapshot()?, state.node.now())?;
    }
    if messages.is_empty() || messages.len() > MESSAGES_MAX {
        return Err(Problem::over_limit(format!("a request posts 1 to {MESSAGES_MAX} messages")));
    }
    let mut messages = messages.into_iter().enumerate();
    let mut results = Vec::new();
    if context.idempotency.is_some() {
        for (number, sent) in messages.by_ref() {
            let is_postable = sent.is_ok();
            // The first one that fits tells whether the key was used for another request, of which then nothing is done.
            match post_part(&state, &context, number, sent).await {
                Err(problem) if problem.kind == Problem::key_reused("").kind => return Err(problem),
                result => results.push(result),
            }
            if is_postable {
                break;
            }
        }
    }
    // Every future hands its message over when it is first looked at, which is done in order.
    let posts = messages.map(|(number, sent)| post_part(&state, &context, number, sent));
    results.extend(join_all(posts).await);
    let results = results.into_iter().map(|result| match result {
        Ok((status, message)) => BulkResult { status: status.as_u16(), message: Some(message), problem: None },
        Err(problem) => BulkResult { status: problem.status, message: None, problem: Some(problem) },
    });
    Ok(Json(BulkResults { results: results.collect() }))
}

async fn post_part(
    state: &SharedState,
    context: &RequestContext,
    number: usize,
    sent: Result<MessageBody, Problem>,
) -> Result<(StatusCode, Message), Problem> {
    let mut sent = sent?;
    let context = context.part(number as u64);
    let context = match number {
        // The request itself was counted as one.
        0 => state.acting_for(context, sent.author.take())?,
        _ => {
            let context = context.acting_for(sent.author.take())?;
            // What was done before costs nothing.
            if !state.is_repeated(&context)? {
                state.rate_limiters.count_again(&context)?;
            }
            context
        }
    };
    let (result, message) = post(state, context, None, sent).await?;
    Ok((if result.is_new { StatusCode::CREATED } else { StatusCode::OK }, message))
}
