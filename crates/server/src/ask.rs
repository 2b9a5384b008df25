//! Asking the writer, and parsing what clients send into what it understands.

use crate::caller::Guest;
use crate::problem::Problem;
use crate::state::House;
use axum::body::Bytes;
use http::HeaderMap;
use node::acts::{Act, Acted, Administered, Administration, Deed, Named, Once};
use node::{NotDone, Reply, Request};
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

/// The longest `Idempotency-Key`.
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 255;
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
    pub(crate) async fn act(&self, guest: Guest, once: Option<Once>, deed: Deed) -> Result<Acted, Problem> {
        let act = Act { space: guest.space()?, caller: guest.caller, once, deed, fresh: fresh()? };
        match self.ask(Request::Act(Box::new(act))).await? {
            Reply::Acted(acted) => Ok(acted?),
            other => Err(unexpected(&other)),
        }
    }

    /// Administers for a guest.
    pub(crate) async fn administer(&self, guest: &Guest, what: Administration) -> Result<Administered, Problem> {
        match self.ask(Request::Administer(guest.caller.called.clone(), Box::new(what))).await? {
            Reply::Administered(done) => Ok(done?),
            other => Err(unexpected(&other)),
        }
    }
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

/// What makes the request safe to repeat, if it carries a key for that.
pub(crate) fn once(guest: &Guest, headers: &HeaderMap, what: &str, body: &[u8]) -> Result<Option<Once>, Problem> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(key) = values.next() else { return Ok(None) };
    if values.next().is_some() || key.is_empty() || key.len() > IDEMPOTENCY_KEY_BYTES_MAX {
        return Err(Problem::bad_request("Idempotency-Key is one value of 1 to 255 bytes"));
    }
    let hash = |parts: &[&[u8]]| {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&(part.len() as u64).to_be_bytes());
            hasher.update(part);
        }
        *hasher.finalize().as_bytes()
    };
    let user = guest.caller.user.as_deref().unwrap_or_default();
    let space = guest.space()?;
    Ok(Some(Once {
        who_and_key: hash(&[&space.0, &guest.account, user.as_bytes(), key.as_bytes()]),
        fingerprint: hash(&[what.as_bytes(), body]),
    }))
}
