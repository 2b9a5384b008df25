//! Webhooks of a space: list, make, end, test, rotate.

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use model::calendar::Rfc3339;
use node::commands::{AdminCommand, WebhookCommand};
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::{Path, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use server::webhooks::secret_text;
use store::shared::webhooks::{Webhook, WebhookId};
use utoipa::ToSchema;

/// The kinds of events that can be sent.
const KINDS: [&str; 10] = [
    "message.created",
    "message.changed",
    "message.reacted",
    "thread.created",
    "thread.changed",
    "thread.deleted",
    "thread.read",
    "members.changed",
    "file.created",
    "file.changed",
];

/// A webhook, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookEntry {
    id: String,
    url: String,
    /// The kinds of events that are sent; all if empty.
    events: Vec<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    /// The journal position up to which events were received.
    position: String,
    /// How many attempts to send the next event failed.
    attempts: u32,
    /// When it is tried again.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Rfc3339>,
    /// Why nothing is sent any more; a test that succeeds enables it again.
    disabled: Option<String>,
}

/// The webhooks of a space.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Webhooks {
    webhooks: Vec<WebhookEntry>,
}

/// A kind of event that can be sent.
#[derive(ToSchema)]
#[schema(value_type = String, pattern = r"^(message\.(created|changed|reacted)|thread\.(created|changed|deleted|read)|members\.changed|file\.(created|changed))$")]
#[allow(dead_code, reason = "only its shape is used")]
pub(crate) struct EventWord(String);

/// A webhook to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "url": "https://example.org/hook" }))]
pub(crate) struct WebhookBody {
    /// Where to post to: https or http, at a public address.
    #[schema(
        pattern = r"^https?://[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?(\.[a-z][a-z0-9]{1,20}){1,5}(:(80|443|8080|8443))?(/[A-Za-z0-9._~/-]*)?(\?[A-Za-z0-9=&._~-]*)?$"
    )]
    url: String,
    /// Which events to send, such as `message.created`; all if absent or empty.
    #[serde(default)]
    #[schema(value_type = Vec<EventWord>)]
    events: Vec<String>,
}

/// A secret: the only time it is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhookSecret {
    id: String,
    /// What signs, as `whsec_…`.
    secret: String,
}

/// What came of a test.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tested {
    /// Whether the event was taken.
    taken: bool,
    /// What came back.
    detail: String,
}

fn entry(id: &WebhookId, webhook: Webhook) -> WebhookEntry {
    let progress = webhook.progress;
    WebhookEntry {
        id: hex::encode(id),
        url: webhook.url,
        events: webhook.kinds,
        created_at: Rfc3339(webhook.created_at),
        position: format!("{}-{}", progress.epoch, progress.number),
        attempts: progress.attempts,
        next_at: (progress.attempts > 0).then_some(Rfc3339(progress.next)),
        disabled: progress.disabled,
    }
}

fn webhook_id(id: &str) -> Result<WebhookId, Problem> {
    let mut bytes = [0; 8];
    let unknown = |_| Problem::not_found("there is no such webhook");
    hex::decode_to_slice(id, &mut bytes).map_err(unknown).map(|()| bytes)
}

/// A webhook of the caller's space.
fn find_webhook(state: &ServerState, context: &RequestContext, id: &str) -> Result<(WebhookId, Webhook), Problem> {
    let bytes = webhook_id(id)?;
    let found = state.node.snapshot()?.webhook(&context.space()?, &bytes)?;
    Ok((bytes, found.ok_or_else(|| Problem::not_found("there is no such webhook"))?))
}

async fn change_webhook(
    state: &ServerState,
    context: &RequestContext,
    id: WebhookId,
    command: WebhookCommand,
) -> Result<(), Problem> {
    state.administer(context, AdminCommand::Webhook(context.space()?, id, command)).await.map(drop)
}

pub(crate) async fn list(State(state): State<SharedState>, context: RequestContext) -> Result<Json<Webhooks>, Problem> {
    let found = state.node.snapshot()?.webhooks(Some(&context.space()?))?;
    Ok(Json(Webhooks { webhooks: found.into_iter().map(|(_, id, webhook)| entry(&id, webhook)).collect() }))
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<WebhookSecret>), Problem> {
    let WebhookBody { url, events } = json(&headers, &body)?;
    state.outbound.vet(&url).map_err(|why| Problem::unprocessable(format!("the url: {why}")))?;
    if let Some(other) = events.iter().find(|event| !KINDS.contains(&event.as_str())) {
        let other: String = other.chars().take(80).collect();
        return Err(Problem::unprocessable(format!("there are no {other:?} events; there are {}", KINDS.join(", "))));
    }
    let kinds = KINDS.iter().filter(|kind| events.iter().any(|event| event == *kind));
    let kinds = kinds.map(|kind| (*kind).to_owned()).collect();
    let space = context.space()?;
    let made = state.make(&context, |made| {
        AdminCommand::Webhook(space, made.id, WebhookCommand::Add { url, secret: Box::new(made.secret), kinds })
    });
    let made = made.await?;
    Ok((StatusCode::CREATED, Json(WebhookSecret { id: hex::encode(made.id), secret: secret_text(&made.secret) })))
}

pub(crate) async fn end(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    change_webhook(&state, &context, webhook_id(&id)?, WebhookCommand::End).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn test(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
) -> Result<Json<Tested>, Problem> {
    let (id, webhook) = find_webhook(&state, &context, &id)?;
    let name = format!("{}_test-{}", hex::encode(id), state.node.now().0);
    let answer = state.webhook_dispatcher.post(&webhook, &name, "test", "{}").await;
    let taken = answer.as_ref().is_ok_and(|status| (200..300).contains(status));
    if taken && webhook.progress.attempts > 0 {
        // A test that is repeated is another test.
        change_webhook(&state, &RequestContext { idempotency: None, ..context }, id, WebhookCommand::Enable).await?;
        state.webhook_dispatcher.wake();
    }
    let detail = answer.map_or_else(|why| why.to_string(), |status| format!("it answered {status}"));
    Ok(Json(Tested { taken, detail }))
}

pub(crate) async fn rotate(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
) -> Result<Json<WebhookSecret>, Problem> {
    let (id, _) = find_webhook(&state, &context, &id)?;
    let space = context.space()?;
    let made =
        state.make(&context, |made| AdminCommand::Webhook(space, id, WebhookCommand::Rotate(Box::new(made.secret))));
    Ok(Json(WebhookSecret { id: hex::encode(id), secret: secret_text(&made.await?.secret) }))
}
