//! Asking the writer, and parsing what clients send into what it understands.

use crate::caller::RequestContext;
use crate::problem::Problem;
use crate::state::ServerState;
use axum::body::Bytes;
use http::HeaderMap;
use node::commands::{AdminCommand, AdminRequest, AdminResult, CommandRequest, CommandResult, NameOrId, UserCommand};
use node::{AskError, RequestError, WriterCommand};
use serde::de::DeserializeOwned;
use store::shared::api_keys::IdempotencyRecord;
use tokio::sync::oneshot;

/// What bodies are sent as.
const JSON_TYPE: &str = "application/json";

impl ServerState {
    /// Hands a command to the writer and waits for its commit.
    pub(crate) async fn ask<C: WriterCommand<Error: Into<Problem>>>(&self, command: C) -> Result<C::Answer, Problem> {
        let (sender, receiver) = oneshot::channel();
        self.node.submit(command, move |answer| {
            let _ = sender.send(answer);
        })?;
        Ok(receiver.await.unwrap_or(Err(AskError::NotRun(RequestError::Stopped)))?)
    }

    /// Does a deed for a guest.
    pub(crate) async fn act(&self, context: RequestContext, command: UserCommand) -> Result<CommandResult, Problem> {
        let act = CommandRequest {
            space: context.space()?,
            caller: context.caller,
            idempotency: context.idempotency,
            command,
            random: random_bytes()?,
        };
        self.ask(act).await
    }

    /// Administers for a guest.
    pub(crate) async fn administer(
        &self,
        context: &RequestContext,
        what: AdminCommand,
    ) -> Result<AdminResult, Problem> {
        self.order(context, what, [0; 16]).await
    }

    async fn order(
        &self,
        context: &RequestContext,
        what: AdminCommand,
        salt: [u8; 16],
    ) -> Result<AdminResult, Problem> {
        let order =
            AdminRequest { who: context.caller.audit_name.clone(), idempotency: context.idempotency, salt, what };
        self.ask(order).await
    }

    /// What came of the request that this one repeats, where it was noted and what it named may be gone since.
    pub(crate) fn repeated(&self, context: &RequestContext) -> Result<Option<IdempotencyRecord>, Problem> {
        let Some(idempotency) = &context.idempotency else { return Ok(None) };
        let earlier = self.node.snapshot()?.asked(&idempotency.who_and_key, self.node.now())?;
        Ok(earlier.filter(|earlier| earlier.fingerprint == idempotency.fingerprint))
    }

    /// Makes something with a secret. The answer is what was made, by this request or by the one that it repeats.
    pub(crate) async fn make(
        &self,
        context: &RequestContext,
        what: impl FnOnce(&NewSecret) -> AdminCommand,
    ) -> Result<NewSecret, Problem> {
        let salt = random_bytes()?;
        match self.order(context, what(&self.made(&salt)), salt).await? {
            AdminResult::Made(salt) => Ok(self.made(&salt)),
            _ => Err(Problem::broken("no secret was made")),
        }
    }

    fn made(&self, salt: &[u8; 16]) -> NewSecret {
        let mut id = [0; 8];
        id.copy_from_slice(&salt[..8]);
        NewSecret { id, secret: self.node.store().secret_from(salt) }
    }
}

/// An id and a secret, both from the salt of an order.
pub(crate) struct NewSecret {
    pub(crate) id: [u8; 8],
    pub(crate) secret: [u8; 32],
}

/// Chance from the system.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Problem> {
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
pub(crate) fn named(text: &str, what: &'static str) -> Result<NameOrId, Problem> {
    text.parse().map_err(|_| Problem::not_found(format!("there is no such {what}")))
}
