//! Tickets: single-use credentials of live streams, for browsers, which cannot send headers there.

use crate::context::RequestContext;
use crate::problem::Problem;
use model::Nanos;
use queries::sync::lock;
use std::collections::HashMap;
use std::sync::Mutex;

/// How long a ticket is good.
pub const TICKET_NANOS: u64 = 30 * Nanos::SECOND;
/// More tickets than this are not given out at a time.
const TICKETS_MAX: usize = 100_000;

/// Tickets that were given out.
#[derive(Debug, Default)]
pub struct StreamTickets(Mutex<HashMap<String, (RequestContext, Nanos)>>);

impl StreamTickets {
    /// Keeps the caller whom a ticket stands for.
    pub fn issue(&self, text: String, context: RequestContext, now: Nanos) -> Result<(), Problem> {
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

    /// Takes a ticket, which is used up by that.
    pub(crate) fn take(&self, text: &str, now: Nanos) -> Option<RequestContext> {
        let taken = lock(&self.0).remove(text);
        taken.filter(|(_, until)| now <= *until).map(|(context, _)| context)
    }
}
