//! Live streams: what the journal says, as server-sent events.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use model::calendar::Rfc3339;
use queries::live::{ResumeAfter, StreamItem, Subscription, SubscriptionFilter};
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::Query;
use server::problem::Problem;
use server::reader::recheck;
use server::secrets::random_bytes;
use server::state::SharedState;
use server::tickets::TICKET_NANOS;
use std::convert::Infallible;
use std::fmt::Write as _;
use utoipa::{IntoParams, ToSchema};

/// What to listen to; the whole space if nothing is named.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// Only this thread.
    thread: Option<String>,
    /// `me`: only what concerns the caller: mentions, private threads, and what they did elsewhere.
    user: Option<String>,
    /// A position to resume after, where `Last-Event-ID` cannot be sent.
    #[param(pattern = "^[0-9]{1,19}-[0-9]{1,19}$")]
    after: Option<String>,
    /// The space, for a session of the web page.
    #[allow(dead_code, reason = "authentication reads it")]
    space: Option<String>,
    /// A ticket, instead of a key.
    #[allow(dead_code, reason = "authentication reads it")]
    ticket: Option<String>,
}

/// A ticket for one stream.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StreamTicket {
    /// To be sent as `?ticket=`, once, within 30 seconds.
    ticket: String,
    /// Until when it can be used.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Rfc3339,
}

pub(crate) async fn ticket(
    State(state): State<SharedState>,
    context: RequestContext,
) -> Result<(StatusCode, Json<StreamTicket>), Problem> {
    let now = state.node.now();
    context.read_as(&*state.node.snapshot()?, now)?;
    let ticket = hex::encode(random_bytes::<32>()?);
    state.tickets.issue(ticket.clone(), context, now)?;
    Ok((StatusCode::CREATED, Json(StreamTicket { ticket, expires_at: Rfc3339(now.plus(TICKET_NANOS)) })))
}

pub(crate) async fn events(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<EventQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").map(|value| value.to_str().ok().and_then(|text| text.parse().ok()));
    let last = last.or_else(|| query.after.as_ref().map(|after| after.parse().ok()));
    let after = match last {
        None => ResumeAfter::Now,
        Some(Some(position)) => ResumeAfter::Position(position),
        Some(None) => ResumeAfter::Unknown,
    };
    let only_concerning_viewer = match query.user.as_deref() {
        None => false,
        Some("me") => true,
        Some(_) => return Err(Problem::bad_request("user is me, or absent")),
    };
    let filter = SubscriptionFilter { thread: query.thread, only_concerning_viewer };
    let subscription = Subscription::open(&state.hub, &filter, after, recheck(&state, context))?;
    let stream = futures_util::stream::unfold(subscription, |mut subscription| async move {
        let item = subscription.next().await?;
        Some((Ok::<_, Infallible>(frame(&item)), subscription))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(stream)).into_response())
}

/// What a quiet stream says, which clients pass over.
const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// An item as server-sent events have it. JSON has no line breaks, so the data is one line.
fn frame(item: &StreamItem) -> Bytes {
    match item {
        StreamItem::KeepAlive => KEEP_ALIVE,
        StreamItem::Reset(position) => Bytes::from(format!("id: {position}\nevent: reset\ndata: {{}}\n\n")),
        StreamItem::Event(event) => event.encoded(|event| {
            let mut text = String::with_capacity(event.data.len() + 64);
            if let Some(position) = event.position {
                let _ = writeln!(text, "id: {position}");
            }
            let _ = write!(text, "event: {}\ndata: {}\n\n", event.name, event.data);
            Bytes::from(text)
        }),
    }
}
