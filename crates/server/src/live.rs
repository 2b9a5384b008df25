//! Live streams: what the journal says, as server-sent events.
//!
//! One task reads the journal once for everybody, renders each entry once, and hands it to the topics that somebody
//! listens to: a space, or a thread. A stream first catches up from the journal to the snapshot it was opened on, then
//! goes on with what its topic brings after that: no gap, no repeat. Who loses the right to listen hears nothing more. A
//! reader that falls behind is cut off and resumes from the journal when it comes back.

mod hub;
mod payload;
mod stream;

pub(crate) use hub::{ChangedRights, LiveEvent, LiveHub};
#[cfg(test)]
pub(crate) use payload::look_at_keys;
pub(crate) use payload::{HubStart, insiders, live_event, run};

use crate::ask::random_bytes;
use crate::caller::RequestContext;
use crate::extract::Query;
use crate::problem::Problem;
use crate::state::SharedState;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use model::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
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
    pub(crate) thread: Option<String>,
    /// `me`: only what concerns the caller: mentions, private threads, and what they did elsewhere.
    pub(crate) user: Option<String>,
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
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(text);
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
    let stream = stream::open(&state, &context, &query, last)?;
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(stream)).into_response())
}
