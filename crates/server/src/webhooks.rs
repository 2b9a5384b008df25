//! Sends applications what happens, as Standard Webhooks: signed, in order, again until it was received.
//!
//! One task looks whenever something was committed or something is due, and begins to send to each webhook that has
//! something to receive. It reads the journal after the webhook's position, renders what live streams would get, and posts
//! it. The position moves when an entry was received, so an entry may come twice, under the same id. One is left out only
//! if it was trimmed from the journal before it could be sent.

use crate::problem::Problem;
use crate::writer::ask_writer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::fetch::{BackoffPolicy, backoff};
use engine::reads::Reads as _;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use model::calendar::Rfc3339;
use model::{Nanos, SpaceId};
use node::Node;
use node::node_commands::SaveWebhookProgress;
use outbound::{OutboundClient, SendError};
use queries::live::{joined_entries, live_event};
use queries::sync::lock;
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::Sha256;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::shared::webhooks::{Webhook, WebhookId, WebhookProgress};
use tokio::sync::Notify;

/// A webhook that did not receive an entry for so long is disabled.
const RETRY_NANOS_MAX: u64 = 24 * 3600 * Nanos::SECOND;
/// Journal entries that are read at a time.
const CHUNK: usize = 64;
/// How often to look for what is due, when nothing happens.
const LOOK: Duration = Duration::from_secs(10);

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// What is posted to a webhook.
#[derive(Debug, Serialize)]
struct WebhookPayload<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    /// When.
    timestamp: Rfc3339,
    data: &'a RawValue,
}

/// Sends what happens to the webhooks of all spaces.
#[derive(Debug)]
pub struct WebhookDispatcher {
    node: Node,
    outbound: OutboundClient,
    /// Which webhooks something is being sent to right now.
    busy: Mutex<HashSet<(SpaceId, WebhookId)>>,
    wake: Notify,
}

impl WebhookDispatcher {
    pub(crate) fn new(node: Node, outbound: OutboundClient) -> WebhookDispatcher {
        WebhookDispatcher { node, outbound, busy: Mutex::default(), wake: Notify::new() }
    }

    /// Looks soon whether anything is to be sent.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    fn begin(&self, space: SpaceId, id: WebhookId) -> bool {
        lock(&self.busy).insert((space, id))
    }

    fn end(&self, space: SpaceId, id: WebhookId) {
        lock(&self.busy).remove(&(space, id));
    }
}

/// A secret as people see it.
pub fn secret_text(secret: &[u8; 32]) -> String {
    format!("whsec_{}", STANDARD.encode(secret))
}

/// `v1,` and the signature, for each secret that is in force.
fn signatures(webhook: &Webhook, id: &str, seconds: u64, body: &[u8], now: Nanos) -> String {
    let previous = webhook.previous.filter(|(_, until)| now <= *until).map(|(secret, _)| secret);
    let sign = |secret: [u8; 32]| {
        // A key of any length is taken.
        let mut mac = Hmac::<Sha256>::new_from_slice(&secret).ok()?;
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        Some(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    };
    let signed: Vec<String> = std::iter::once(webhook.secret).chain(previous).filter_map(sign).collect();
    signed.join(" ")
}

impl WebhookDispatcher {
    /// Posts one event to a webhook, and returns the status of the answer.
    pub async fn post(&self, webhook: &Webhook, id: &str, kind: &str, data: &str) -> Result<u16, SendError> {
        let now = self.node.now();
        let data = RawValue::from_string(data.to_owned()).map_err(|_| SendError::NoAnswer)?;
        let payload = WebhookPayload { kind, timestamp: Rfc3339(now), data: &data };
        let body = serde_json::to_vec(&payload).map_err(|_| SendError::NoAnswer)?;
        let seconds = now.0 / Nanos::SECOND;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let values = [(ID, id.to_owned()), (TIMESTAMP, seconds.to_string())];
        let signature = (SIGNATURE, signatures(webhook, id, seconds, &body, now));
        for (name, value) in values.into_iter().chain([signature]) {
            headers.extend(HeaderValue::from_str(&value).map(|value| (name, value)));
        }
        self.outbound.post(&webhook.url, headers, Bytes::from(body)).await
    }

    /// Looks whenever something was committed or something is due, for as long as anything is committed.
    pub async fn run(self: Arc<WebhookDispatcher>, mut position: tokio::sync::watch::Receiver<u64>) {
        let mut sending = FuturesUnordered::new();
        let mut is_news = true;
        loop {
            if is_news {
                match self.take_due() {
                    Ok(due) => sending.extend(due.into_iter().map(|(space, id, hook)| self.send(space, id, hook))),
                    Err(problem) => tracing::error!(?problem, "webhooks could not be read"),
                }
            }
            is_news = tokio::select! {
                changed = position.changed() => if changed.is_ok() { true } else { return },
                () = self.wake.notified() => true,
                () = tokio::time::sleep(LOOK) => true,
                // There may be more than one chunk; where nothing came of it there is not.
                Some(has_moved) = sending.next() => has_moved,
            };
        }
    }

    /// Takes the webhooks that have something to be sent now and to which nothing is being sent.
    fn take_due(&self) -> Result<Vec<(SpaceId, WebhookId, Webhook)>, Problem> {
        let db = self.node.snapshot()?;
        let (now, latest) = (self.node.now(), db.position()?);
        let mut webhooks = db.webhooks(None)?;
        webhooks.retain(|(space, id, webhook)| {
            let progress = &webhook.progress;
            let has_more = progress.epoch != latest.epoch || progress.number < latest.number;
            progress.disabled.is_none() && progress.next <= now && has_more && self.begin(*space, *id)
        });
        Ok(webhooks)
    }

    /// Sends a webhook a part of what it has not received. Returns whether anything came of it.
    async fn send(&self, space: SpaceId, id: WebhookId, webhook: Webhook) -> bool {
        let before = webhook.progress.clone();
        let after = self.send_chunk(&space, &id, &webhook).await.unwrap_or_else(|problem| {
            tracing::error!(?problem, "events for a webhook could not be read");
            before.clone()
        });
        let mut has_moved = after != before;
        if has_moved {
            // If it cannot be noted, the same entries are sent again under the same ids, when something next happens.
            if let Err(problem) =
                ask_writer(&self.node, SaveWebhookProgress { space, webhook: id, progress: after }).await
            {
                tracing::warn!(?problem, "the progress of a webhook could not be saved");
                has_moved = false;
            }
        }
        self.end(space, id);
        has_moved
    }

    /// Sends a part of what a webhook has not received. Returns how far that went.
    async fn send_chunk(&self, space: &SpaceId, id: &WebhookId, webhook: &Webhook) -> Result<WebhookProgress, Problem> {
        let (latest, entries) = {
            let db = self.node.snapshot()?;
            let Some(no) = db.space_no(space)? else { return Ok(webhook.progress.clone()) };
            (db.position()?, db.journal(Some(no), webhook.progress.number, CHUNK)?)
        };
        let mut progress = webhook.progress.clone();
        if progress.epoch != latest.epoch {
            // A restored node goes on from what it has: numbers of another epoch mean something else.
            return Ok(WebhookProgress { epoch: latest.epoch, number: progress.number.min(latest.number), ..progress });
        }
        let (is_last, is_empty) = (entries.len() < CHUNK, entries.is_empty());
        for (number, entry) in joined_entries(&entries) {
            // Read when it is sent, so that what was deleted meanwhile is not sent any more.
            let event = live_event(&*self.node.snapshot()?, number, &entry)?;
            let is_wanted = |name: &str| webhook.kinds.is_empty() || webhook.kinds.iter().any(|kind| kind == name);
            if let Some(event) = event.filter(|event| is_wanted(event.name)) {
                let name = format!("{}_{}-{number}", hex::encode(id), latest.epoch);
                let answer = self.post(webhook, &name, event.name, &event.data).await;
                if !answer.as_ref().is_ok_and(|status| (200..300).contains(status)) {
                    return Ok(failed(progress, &answer, self.node.now()));
                }
            }
            progress = WebhookProgress { number, attempts: 0, failing_since: None, next: Nanos(0), ..progress };
        }
        // What happens in other spaces alone is not worth a row.
        if is_last && !is_empty {
            progress.number = progress.number.max(latest.number);
        }
        Ok(progress)
    }
}

/// What comes of an entry that was not received: another attempt later, or the end.
fn failed(before: WebhookProgress, answer: &Result<u16, SendError>, now: Nanos) -> WebhookProgress {
    let attempts = before.attempts.saturating_add(1);
    let failing_since = before.failing_since.filter(|_| before.attempts > 0).unwrap_or(now);
    let next = now.plus(backoff(BackoffPolicy::Content, attempts));
    let said = match answer {
        Ok(status) => format!("it answered {status}"),
        Err(why) => why.to_string(),
    };
    let is_gone = *answer == Ok(StatusCode::GONE.as_u16());
    let is_over = is_gone || now.0.saturating_sub(failing_since.0) >= RETRY_NANOS_MAX;
    let disabled = is_over.then(|| if is_gone { said } else { format!("{said}, for a day") });
    WebhookProgress { attempts, failing_since: Some(failing_since), next, disabled, ..before }
}

#[cfg(test)]
mod tests;
