//! Live streams: what the journal says, as server-sent events.

use crate::ask::random_bytes;
use crate::context::RequestContext;
use crate::extract::Query;
use crate::problem::Problem;
use crate::reader::recheck;
use crate::state::SharedState;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use model::Nanos;
use queries::live::{ResumeAfter, StreamItem, Subscription, SubscriptionFilter};
use queries::sync::lock;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Mutex;
use utoipa::{IntoParams, ToSchema};

/// How long a ticket is good.
const TICKET_NANOS: u64 = 30 * Nanos::SECOND;
/// More tickets than this are not given out at a time.
const TICKETS_MAX: usize = 100_000;

/// What to listen to; the whole space if nothing is named.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// Only this thread.
    thread: Option<String>,
    /// `me`: only what concerns the caller: mentions, private threads, and what they did elsewhere.
    user: Option<String>,
    /// A position to resume after, where `Last-Event-ID` cannot be sent.
    #[param(pattern = "^[0-9]{1,10}-[0-9]{1,19}$")]
    after: Option<String>,
    /// A ticket, instead of a key.
    #[allow(dead_code, reason = "the door reads it")]
    ticket: Option<String>,
}

/// A ticket for one stream.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StreamTicket {
    /// To be sent as `?ticket=`, once, within 30 seconds.
    ticket: String,
    expires_ts: u64,
}

/// Tickets that were given out.
#[derive(Debug, Default)]
pub(crate) struct StreamTickets(Mutex<HashMap<String, (RequestContext, Nanos)>>);

impl StreamTickets {
    fn give(&self, text: String, context: RequestContext, now: Nanos) -> Result<(), Problem> {
        let mut tickets = lock(&self.0);
        if tickets.len() >= TICKETS_MAX {
            tickets.retain(|_, (_, until)| *until > now);
        }
        if tickets.len() >= TICKETS_MAX {
            return Err(Problem::overloaded("too many tickets are out").after(30));
        }
        tickets.insert(text, (context, now.plus(TICKET_NANOS)));
        Ok(())
    }

    /// Takes a ticket, which is then used.
    pub(crate) fn take(&self, text: &str, now: Nanos) -> Option<RequestContext> {
        let taken = lock(&self.0).remove(text);
        taken.filter(|(_, until)| now <= *until).map(|(context, _)| context)
    }
}

/// Get a ticket for one live stream, for browsers, which cannot send headers there
#[utoipa::path(post, path = "/v1/tickets", tag = "live", responses(
    (status = 201, body = StreamTicket), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn ticket(
    State(state): State<SharedState>,
    context: RequestContext,
) -> Result<(StatusCode, Json<StreamTicket>), Problem> {
    let now = state.node.now();
    context.read_as(&*state.node.snapshot()?, now)?;
    let ticket = hex::encode(random_bytes::<32>()?);
    state.tickets.give(ticket.clone(), context, now)?;
    Ok((StatusCode::CREATED, Json(StreamTicket { ticket, expires_ts: now.plus(TICKET_NANOS).0 })))
}

/// Listen to what happens, as server-sent events
#[utoipa::path(get, path = "/v1/events", tag = "live",
    params(EventQuery, ("Last-Event-ID" = Option<String>, Header, description = "Resume after this position")),
    responses(
    (status = 200, description = "A stream; each id is a journal position", content_type = "text/event-stream"),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
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
