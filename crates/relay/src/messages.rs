//! What clients say: JSON arrays that begin with a word.

use model::nostr::NostrFilter;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The longest message of a client.
pub(crate) const MESSAGE_BYTES_MAX: usize = 128 * 1024;
/// The longest name of a subscription.
pub(crate) const SUBSCRIPTION_ID_BYTES_MAX: usize = 64;
/// Filters of one subscription.
pub(crate) const FILTERS_MAX: usize = 20;

/// What a client says.
#[derive(Debug)]
pub(crate) enum ClientMessage {
    /// An event, as JSON.
    Event(String),
    Request {
        id: String,
        filters: Vec<NostrFilter>,
    },
    Count {
        id: String,
        filters: Vec<NostrFilter>,
    },
    Close(String),
    /// The event that answers a challenge, as JSON.
    Auth(String),
    OpenReconciliation {
        id: String,
        filter: NostrFilter,
        message: Vec<u8>,
    },
    Reconcile {
        id: String,
        message: Vec<u8>,
    },
    CloseReconciliation(String),
}

/// Why a message is not understood: the subscription that it speaks of, if that can be told, and what is wrong.
#[derive(Debug)]
pub(crate) struct BadMessage {
    pub(crate) subscription: Option<String>,
    pub(crate) why: String,
}

fn bad(why: impl Into<String>) -> BadMessage {
    BadMessage { subscription: None, why: why.into() }
}

impl ClientMessage {
    pub(crate) fn parse(text: &str) -> Result<ClientMessage, BadMessage> {
        let parts: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| bad("a message is a JSON array"))?;
        let word = parts.first().and_then(|word| serde_json::from_str::<String>(word.get()).ok());
        let part =
            |index: usize| parts.get(index).map(|part| part.get()).ok_or_else(|| bad("the message is too short"));
        match word.as_deref() {
            Some("EVENT") => Ok(ClientMessage::Event(part(1)?.to_owned())),
            Some("AUTH") => Ok(ClientMessage::Auth(part(1)?.to_owned())),
            Some("CLOSE") => Ok(ClientMessage::Close(subscription_id(part(1)?)?)),
            Some("NEG-CLOSE") => Ok(ClientMessage::CloseReconciliation(subscription_id(part(1)?)?)),
            Some("REQ") => {
                let id = subscription_id(part(1)?)?;
                Ok(ClientMessage::Request { filters: filters(&id, parts.get(2..).unwrap_or_default())?, id })
            }
            Some("COUNT") => {
                let id = subscription_id(part(1)?)?;
                Ok(ClientMessage::Count { filters: filters(&id, parts.get(2..).unwrap_or_default())?, id })
            }
            Some("NEG-OPEN") => {
                let id = subscription_id(part(1)?)?;
                let filter = filters(&id, parts.get(2..3).unwrap_or_default())?.pop().ok_or_else(|| bad("a filter"))?;
                Ok(ClientMessage::OpenReconciliation { id, filter, message: hex_bytes(part(3)?)? })
            }
            Some("NEG-MSG") => {
                let id = subscription_id(part(1)?)?;
                Ok(ClientMessage::Reconcile { id, message: hex_bytes(part(2)?)? })
            }
            _ => Err(bad("a message begins with EVENT, REQ, COUNT, CLOSE, AUTH, NEG-OPEN, NEG-MSG or NEG-CLOSE")),
        }
    }
}

fn subscription_id(part: &str) -> Result<String, BadMessage> {
    let id: String = serde_json::from_str(part).map_err(|_| bad("the name of a subscription is a text"))?;
    let fits = !id.is_empty() && id.len() <= SUBSCRIPTION_ID_BYTES_MAX && !id.chars().any(char::is_control);
    if fits { Ok(id) } else { Err(bad("the name of a subscription has 1 to 64 bytes, and no control characters")) }
}

fn filters(id: &str, parts: &[&RawValue]) -> Result<Vec<NostrFilter>, BadMessage> {
    let bad = |why: String| BadMessage { subscription: Some(id.to_owned()), why };
    if parts.is_empty() || parts.len() > FILTERS_MAX {
        return Err(bad(format!("a subscription has 1 to {FILTERS_MAX} filters")));
    }
    let parse = |part: &&RawValue| {
        let value: Value = serde_json::from_str(part.get()).map_err(|why| bad(why.to_string()))?;
        NostrFilter::parse(&value).map_err(|why| bad(why.to_string()))
    };
    parts.iter().map(parse).collect()
}

fn hex_bytes(part: &str) -> Result<Vec<u8>, BadMessage> {
    let text: String = serde_json::from_str(part).map_err(|_| bad("a reconciliation message is a text"))?;
    hex::decode(text).map_err(|_| bad("a reconciliation message is hexadecimal digits"))
}

/// The answer to an event. The reason begins with a word that programs know.
pub(crate) fn ok(id: &str, is_taken: bool, reason: &str) -> String {
    json!(["OK", id, is_taken, reason]).to_string()
}

/// An event of a subscription.
pub(crate) fn event(subscription: &str, event: &str) -> String {
    format!("[\"EVENT\",{},{event}]", Value::from(subscription))
}

/// Everything that is stored was sent.
pub(crate) fn end_of_stored(subscription: &str) -> String {
    json!(["EOSE", subscription]).to_string()
}

/// A subscription has ended, or was never opened.
pub(crate) fn closed(subscription: &str, reason: &str) -> String {
    json!(["CLOSED", subscription, reason]).to_string()
}

pub(crate) fn notice(text: &str) -> String {
    json!(["NOTICE", text]).to_string()
}

pub(crate) fn count(subscription: &str, count: usize, is_approximate: bool) -> String {
    let mut counted = json!({ "count": count });
    if is_approximate {
        counted["approximate"] = true.into();
    }
    json!(["COUNT", subscription, counted]).to_string()
}

pub(crate) fn challenge(challenge: &str) -> String {
    json!(["AUTH", challenge]).to_string()
}

pub(crate) fn reconciliation(subscription: &str, message: &[u8]) -> String {
    json!(["NEG-MSG", subscription, hex::encode(message)]).to_string()
}

pub(crate) fn reconciliation_error(subscription: &str, reason: &str) -> String {
    json!(["NEG-ERR", subscription, reason]).to_string()
}
