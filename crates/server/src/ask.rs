//! Asking the writer, and parsing what clients send into what it understands.

use crate::caller::Guest;
use crate::problem::Problem;
use crate::state::House;
use axum::body::Bytes;
use http::HeaderMap;
use node::acts::{Act, Acted, Administered, Administration, Deed, Named, Order};
use node::{NotDone, Reply, Request};
use serde::de::DeserializeOwned;
use store::doors::Asked;
use tokio::sync::oneshot;

/// What bodies are sent as.
const JSON_TYPE: &str = "application/json";

impl House {
    /// Hands a request to the writer and waits for its commit.
    pub(crate) async fn ask(&self, request: Request) -> Result<Reply, Problem> {
        let (sender, receiver) = oneshot::channel();
        self.node.submit(request, move |reply| {
            let _ = sender.send(reply);
        })?;
        Ok(receiver.await.unwrap_or(Err(NotDone::Stopped))?)
    }

    /// Does a deed for a guest.
    pub(crate) async fn act(&self, guest: Guest, deed: Deed) -> Result<Acted, Problem> {
        let act = Act { space: guest.space()?, caller: guest.caller, once: guest.once, deed, fresh: fresh()? };
        match self.ask(Request::Act(Box::new(act))).await? {
            Reply::Acted(acted) => Ok(acted?),
            other => Err(unexpected(&other)),
        }
    }

    /// Administers for a guest.
    pub(crate) async fn administer(&self, guest: &Guest, what: Administration) -> Result<Administered, Problem> {
        self.order(guest, what, [0; 16]).await
    }

    async fn order(&self, guest: &Guest, what: Administration, salt: [u8; 16]) -> Result<Administered, Problem> {
        let order = Order { who: guest.caller.called.clone(), once: guest.once, salt, what };
        match self.ask(Request::Administer(Box::new(order))).await? {
            Reply::Administered(done) => Ok(done?),
            other => Err(unexpected(&other)),
        }
    }

    /// What came of the request that this one repeats, where it was noted and what it named may be gone since.
    pub(crate) fn repeated(&self, guest: &Guest) -> Result<Option<Asked>, Problem> {
        let Some(once) = &guest.once else { return Ok(None) };
        let earlier = self.node.snapshot()?.asked(&once.who_and_key, self.node.now())?;
        Ok(earlier.filter(|earlier| earlier.fingerprint == once.fingerprint))
    }

    /// Makes something with a secret. The answer is what was made, by this request or by the one that it repeats.
    pub(crate) async fn make(
        &self,
        guest: &Guest,
        what: impl FnOnce(&Made) -> Administration,
    ) -> Result<Made, Problem> {
        let salt = fresh()?;
        match self.order(guest, what(&self.made(&salt)), salt).await? {
            Administered::Made(salt) => Ok(self.made(&salt)),
            _ => Err(Problem::broken("no secret was made")),
        }
    }

    fn made(&self, salt: &[u8; 16]) -> Made {
        let mut id = [0; 8];
        id.copy_from_slice(&salt[..8]);
        Made { id, secret: self.node.store().secret_from(salt) }
    }
}

/// An id and a secret, both from the salt of an order.
pub(crate) struct Made {
    pub(crate) id: [u8; 8],
    pub(crate) secret: [u8; 32],
}

fn unexpected(reply: &Reply) -> Problem {
    tracing::error!(?reply, "the writer answered something else");
    Problem::broken("the writer parked this request")
}

/// Chance from the system.
pub(crate) fn fresh<const N: usize>() -> Result<[u8; N], Problem> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Problem::overloaded("the system gives no randomness").after(1))?;
    Ok(bytes)
}

/// A JSON body.
pub(crate) fn json<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T, Problem> {
    let media = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case(JSON_TYPE) {
        return Err(Problem::media_type(format!("the content type is {media:?}")));
    }
    // Fields by name, never by their order in a list.
    if !body.trim_ascii_start().starts_with(b"{") && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok() {
        return Err(Problem::unprocessable("the body is JSON, but not an object"));
    }
    serde_json::from_slice(body).map_err(|why| {
        if why.is_data() {
            Problem::unprocessable(format!("the body does not fit: {why}"))
        } else {
            Problem::bad_request(format!("the body is not JSON: {why}"))
        }
    })
}

/// The name of a thread or message.
pub(crate) fn named(text: &str, what: &'static str) -> Result<Named, Problem> {
    text.parse().map_err(|_| Problem::not_found(format!("there is no such {what}")))
}
