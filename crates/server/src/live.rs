//! Live streams: what the journal says, as server-sent events.
//!
//! One task reads the journal once for everybody, renders each entry once, and hands it to the topics that somebody
//! listens to: a space, or a thread. A stream first catches up from the journal to the snapshot it was opened on, then
//! goes on with what its topic brings after that: no gap, no repeat. Who loses the right to listen hears nothing more. A
//! reader that falls behind is cut off and resumes from the journal when it comes back.

mod hub;
mod stream;
mod telling;

pub(crate) use hub::{Hub, Rights, Told};
#[cfg(test)]
pub(crate) use telling::look_at_keys;
pub(crate) use telling::{Begin, insiders, run, told};

use crate::ask::fresh;
use crate::caller::Guest;
use crate::extract::Query;
use crate::problem::Problem;
use crate::state::Shared;
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
pub(crate) struct Ticket {
    /// To be sent as `?ticket=`, once, within 30 seconds.
    ticket: String,
    expires_ts: u64,
}

/// Tickets that were given out.
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<HashMap<String, (Guest, Nanos)>>);

impl Tickets {
    fn give(&self, text: String, guest: Guest, now: Nanos) -> Result<(), Problem> {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tickets.len() >= TICKETS_MAX {
            tickets.retain(|_, (_, until)| *until > now);
        }
        if tickets.len() >= TICKETS_MAX {
            return Err(Problem::overloaded("too many tickets are out").after(30));
        }
        tickets.insert(text, (guest, now.plus(TICKET_NANOS)));
        Ok(())
    }

    /// Takes a ticket, which is then used.
    pub(crate) fn take(&self, text: &str, now: Nanos) -> Option<Guest> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(text);
        taken.filter(|(_, until)| now <= *until).map(|(guest, _)| guest)
    }
}

/// Get a ticket for one live stream, for browsers, which cannot send headers there
#[utoipa::path(post, path = "/v1/tickets", tag = "live", responses(
    (status = 201, body = Ticket), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn ticket(State(house): State<Shared>, guest: Guest) -> Result<(StatusCode, Json<Ticket>), Problem> {
    let now = house.node.now();
    guest.seen(&*house.node.snapshot()?, now)?;
    let ticket = hex::encode(fresh::<32>()?);
    house.tickets.give(ticket.clone(), guest, now)?;
    Ok((StatusCode::CREATED, Json(Ticket { ticket, expires_ts: now.plus(TICKET_NANOS).0 })))
}

/// Listen to what happens, as server-sent events
#[utoipa::path(get, path = "/v1/events", tag = "live",
    params(EventQuery, ("Last-Event-ID" = Option<String>, Header, description = "Resume after this position")),
    responses(
    (status = 200, description = "A stream; each id is a journal position", content_type = "text/event-stream"),
    (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn events(
    State(house): State<Shared>,
    guest: Guest,
    Query(query): Query<EventQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let last = headers.get("last-event-id").map(|value| value.to_str().ok().and_then(|text| text.parse().ok()));
    let last = last.or_else(|| query.after.as_ref().map(|after| after.parse().ok()));
    let stream = stream::open(&house, &guest, &query, last)?;
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(stream)).into_response())
}
