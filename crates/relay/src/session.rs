//! One client's session without a socket: it hears what the client says and what happens, and says what to answer.

use crate::messages::{self, ClientMessage};
use engine::rows::{Outcome, TurnedAway};
use model::nostr::{NostrEvent, NostrFilter, ServiceName, VerifiedNostr};
use model::{Nanos, NostrKey};
use negentropy::{Id, Negentropy, NegentropyStorageVector};
use node::git::GitAccess;
use node::nostr::NostrSubmission;
use node::{AskError, RequestError};
use queries::nostr::{ServedEvent, count_events, find_events, list_ids};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use store::Db;
use store::tables::Snapshot;

/// Subscriptions of one session.
pub(crate) const SUBSCRIPTIONS_MAX: usize = 200;
/// Bytes of stored events that one request brings; later ones are found by asking for earlier times.
const STORED_BYTES_MAX: usize = 16 << 20;
/// Reconciliations of one session at the same time: each holds the ids of what it compares.
const RECONCILIATIONS_MAX: usize = 4;
/// The longest message of a reconciliation.
const RECONCILIATION_BYTES_MAX: u64 = 48 * 1024;
/// The kind of an event that answers a challenge (NIP-42).
const AUTH: u16 = 22_242;
/// How far the time of such an event may be off.
const AUTH_SECONDS_MAX: u64 = 600;

/// Questions (REQ, COUNT, NEG-OPEN) that a session may ask at once, and how long it waits for each further one: a question
/// reads up to 500 events per filter.
const QUESTIONS_AT_ONCE: u64 = 400;
const QUESTION_NANOS: u64 = Nanos::SECOND / 200;

/// How many questions a session may ask: as many as have passed since, and some at once.
#[derive(Default)]
struct QuestionBudget {
    /// When all that were asked would have been asked one after the other.
    spent_until: Nanos,
}

impl QuestionBudget {
    /// Whether one more may be asked now; if so, it is counted.
    fn spend(&mut self, now: Nanos) -> bool {
        let spent_until = self.spent_until.max(now).plus(QUESTION_NANOS);
        let is_allowed = spent_until <= now.plus(QUESTIONS_AT_ONCE * QUESTION_NANOS);
        if is_allowed {
            self.spent_until = spent_until;
        }
        is_allowed
    }
}

/// A subscription: what it asks for, and from which journal entry on it is live.
struct Subscription {
    filters: Vec<NostrFilter>,
    after: u64,
}

/// What the session wants done.
pub(crate) enum SessionOutput {
    /// This is to be sent.
    Send(String),
    /// This is to be handed to the node; the answer is [`Session::answer_event`].
    Submit(Box<VerifiedNostr>),
}

/// One client's session.
pub(crate) struct Session {
    subscriptions: BTreeMap<String, Subscription>,
    reconciliations: BTreeMap<String, Negentropy<'static, NegentropyStorageVector>>,
    challenge: String,
    is_challenged: bool,
    authenticated: BTreeSet<NostrKey>,
    service: Option<ServiceName>,
    access: Arc<GitAccess>,
    questions: QuestionBudget,
}

impl Session {
    pub(crate) fn new(challenge: String, service: Option<ServiceName>, access: Arc<GitAccess>) -> Session {
        Session {
            access,
            subscriptions: BTreeMap::new(),
            reconciliations: BTreeMap::new(),
            challenge,
            is_challenged: false,
            authenticated: BTreeSet::new(),
            service,
            questions: QuestionBudget::default(),
        }
    }

    /// Hears a message of the client. `db` is as of now.
    pub(crate) fn hear(&mut self, text: &str, db: &Db<Snapshot>, now: Nanos) -> Vec<SessionOutput> {
        let message = match ClientMessage::parse(text) {
            Ok(message) => message,
            Err(bad) => {
                return send(match bad.subscription {
                    Some(id) => messages::closed(&id, &format!("invalid: {}", bad.why)),
                    None => messages::notice(&format!("invalid: {}", bad.why)),
                });
            }
        };
        if let Some(refusal) = self.limit_questions(&message, now) {
            return send(refusal);
        }
        match message {
            ClientMessage::Event(json) => self.hear_event(&json),
            ClientMessage::Auth(json) => self.hear_auth(&json, now),
            ClientMessage::Request { id, filters } => self.subscribe(id, filters, db, now),
            ClientMessage::Count { id, filters } => send(self.count(&id, &filters, db, now)),
            ClientMessage::Close(id) => {
                self.subscriptions.remove(&id);
                Vec::new()
            }
            ClientMessage::OpenReconciliation { id, filter, message } => {
                send(self.open_reconciliation(id, &filter, &message, db, now))
            }
            ClientMessage::Reconcile { id, message } => send(self.reconcile(&id, &message)),
            ClientMessage::CloseReconciliation(id) => {
                self.reconciliations.remove(&id);
                Vec::new()
            }
        }
    }

    /// The answer to a question that comes too soon.
    fn limit_questions(&mut self, message: &ClientMessage, now: Nanos) -> Option<String> {
        const WHY: &str = "rate-limited: too many questions in a short time; ask again in a second";
        let refusal = match message {
            ClientMessage::Request { id, .. } | ClientMessage::Count { id, .. } => messages::closed(id, WHY),
            ClientMessage::OpenReconciliation { id, .. } => messages::reconciliation_error(id, WHY),
            ClientMessage::Event(_) | ClientMessage::Auth(_) | ClientMessage::Close(_) => return None,
            ClientMessage::Reconcile { .. } | ClientMessage::CloseReconciliation(_) => return None,
        };
        (!self.questions.spend(now)).then_some(refusal)
    }

    fn hear_event(&mut self, json: &str) -> Vec<SessionOutput> {
        let event = match NostrEvent::parse(json) {
            Ok(event) => event,
            Err(why) => return send(messages::ok(&id_in(json), false, &format!("invalid: {why}"))),
        };
        let id = event.id.to_string();
        match event.check() {
            Err(why) => send(messages::ok(&id, false, &format!("invalid: {why}"))),
            Ok(event) if event.is_protected() && !self.authenticated.contains(&event.author) => {
                let mut outputs = self.challenge();
                let why = "auth-required: this event may only be published by its author";
                outputs.extend(send(messages::ok(&id, false, why)));
                outputs
            }
            Ok(_) if !self.may_publish() => {
                let mut outputs = self.challenge();
                // Whoever has proved who they are need not do so again.
                let word = if self.authenticated.is_empty() { "auth-required" } else { "restricted" };
                let why = format!("{word}: only those whom the operator lists may publish here");
                outputs.extend(send(messages::ok(&id, false, &why)));
                outputs
            }
            Ok(event) => match self.access.why_not(&event) {
                Some((word, why)) => send(messages::ok(&id, false, &format!("{word}: {why}"))),
                None => vec![SessionOutput::Submit(Box::new(event))],
            },
        }
    }

    /// Whether the client is one of those who may publish.
    fn may_publish(&self) -> bool {
        self.access.writers.is_empty() || !self.access.writers.is_disjoint(&self.authenticated)
    }

    /// Asks the client to prove who it is, once.
    fn challenge(&mut self) -> Vec<SessionOutput> {
        match std::mem::replace(&mut self.is_challenged, true) {
            true => Vec::new(),
            false => send(messages::challenge(&self.challenge)),
        }
    }

    fn hear_auth(&mut self, json: &str, now: Nanos) -> Vec<SessionOutput> {
        let event = match NostrEvent::parse(json).and_then(NostrEvent::check) {
            Ok(event) => event,
            Err(why) => return send(messages::ok(&id_in(json), false, &format!("invalid: {why}"))),
        };
        let is_ours = event.value("relay").and_then(ServiceName::of_url).is_some_and(|name| Some(name) == self.service);
        let why = if event.kind != AUTH || event.value("challenge") != Some(self.challenge.as_str()) {
            "invalid: the event does not answer the challenge of this session"
        } else if !is_ours {
            "invalid: the event is for another relay"
        } else if event.created_at.abs_diff(now.0 / Nanos::SECOND) > AUTH_SECONDS_MAX {
            "invalid: the event is older or newer than ten minutes"
        } else {
            self.authenticated.insert(event.author);
            ""
        };
        send(messages::ok(&event.id.to_string(), why.is_empty(), why))
    }

    /// What a client is told after the node has decided about its event.
    pub(crate) fn answer_event(id: &str, answer: Result<NostrSubmission, AskError<engine::StoreError>>) -> String {
        const WAITS: &str = "purgatory: won't be served until git data arrives";
        let (is_taken, why) = match answer {
            Ok(NostrSubmission::Admitted(outcome)) => match outcome {
                Outcome::Applied(_) | Outcome::Carried(_) => (true, String::new()),
                Outcome::Held(_, unmet) if unmet.iter().all(|need| matches!(need, model::Need::Time(_))) => {
                    (true, "future: won't be served before its time".to_owned())
                }
                Outcome::Held(..) => (true, WAITS.to_owned()),
                Outcome::Known(_) => (true, "duplicate: already have this event".to_owned()),
                Outcome::Refused(why) => (false, format!("invalid: {why}")),
                Outcome::TurnedAway(TurnedAway::Clash) => {
                    (false, "invalid: another event has half of this id".to_owned())
                }
                Outcome::TurnedAway(TurnedAway::NoRoom) => (false, "error: too many events wait already".to_owned()),
                Outcome::TurnedAway(TurnedAway::Version) => (false, "invalid: unknown version".to_owned()),
            },
            Ok(NostrSubmission::NotAdmitted(why)) => (false, format!("{}: {}", why.prefix, why.why)),
            Err(AskError::NotRun(RequestError::Busy)) => (false, "rate-limited: try again in a moment".to_owned()),
            Err(why) => (false, format!("error: {why}")),
        };
        messages::ok(id, is_taken, &why)
    }

    fn subscribe(
        &mut self,
        id: String,
        filters: Vec<NostrFilter>,
        db: &Db<Snapshot>,
        now: Nanos,
    ) -> Vec<SessionOutput> {
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX && !self.subscriptions.contains_key(&id) {
            let why = format!("error: a session has at most {SUBSCRIPTIONS_MAX} subscriptions");
            return send(messages::closed(&id, &why));
        }
        let position = match db.position() {
            Ok(position) => position.number,
            Err(why) => return send(messages::closed(&id, &format!("error: {why}"))),
        };
        let (mut seen, mut outputs, mut bytes) = (HashSet::new(), Vec::new(), 0);
        for filter in &filters {
            let found = match find_events(db, filter, &self.access.banned, now) {
                Ok(found) => found,
                Err(why) => return send(messages::closed(&id, &format!("error: {why}"))),
            };
            for served in found.events.into_iter().filter(|served| seen.insert(served.event.id)) {
                bytes += served.json.len();
                if bytes <= STORED_BYTES_MAX {
                    outputs.push(SessionOutput::Send(messages::event(&id, &served.json)));
                }
            }
        }
        outputs.push(SessionOutput::Send(messages::end_of_stored(&id)));
        self.subscriptions.insert(id, Subscription { filters, after: position });
        outputs
    }

    fn count(&self, id: &str, filters: &[NostrFilter], db: &Db<Snapshot>, now: Nanos) -> String {
        let [filter] = filters else { return messages::closed(id, "error: a count takes one filter") };
        match count_events(db, filter, &self.access.banned, now) {
            Ok((counted, is_cut)) => messages::count(id, counted, is_cut),
            Err(why) => messages::closed(id, &format!("error: {why}")),
        }
    }

    fn open_reconciliation(
        &mut self,
        id: String,
        filter: &NostrFilter,
        message: &[u8],
        db: &Db<Snapshot>,
        now: Nanos,
    ) -> String {
        self.reconciliations.remove(&id);
        if self.reconciliations.len() >= RECONCILIATIONS_MAX {
            return messages::reconciliation_error(&id, "blocked: too many reconciliations at the same time");
        }
        let ids = match list_ids(db, filter, &self.access.banned, now) {
            Ok(Some(ids)) => ids,
            Ok(None) => return messages::reconciliation_error(&id, "blocked: this query is too big"),
            Err(why) => return messages::reconciliation_error(&id, &format!("error: {why}")),
        };
        let begun = || {
            let mut storage = NegentropyStorageVector::with_capacity(ids.len());
            for (at, id) in &ids {
                storage.insert(*at, Id::from_byte_array(id.0))?;
            }
            storage.seal()?;
            Negentropy::owned(storage, RECONCILIATION_BYTES_MAX)
        };
        match begun() {
            Ok(reconciliation) => {
                self.reconciliations.insert(id.clone(), reconciliation);
                self.reconcile(&id, message)
            }
            Err(why) => messages::reconciliation_error(&id, &format!("error: {why}")),
        }
    }

    fn reconcile(&mut self, id: &str, message: &[u8]) -> String {
        let Some(reconciliation) = self.reconciliations.get_mut(id) else {
            return messages::reconciliation_error(id, "closed: there is no such reconciliation");
        };
        match reconciliation.reconcile(message) {
            Ok(answer) => messages::reconciliation(id, &answer),
            Err(why) => {
                self.reconciliations.remove(id);
                messages::reconciliation_error(id, &format!("invalid: {why}"))
            }
        }
    }

    /// What of a live event the client is told.
    pub(crate) fn live(&self, number: u64, served: &ServedEvent) -> impl Iterator<Item = String> {
        self.subscriptions
            .iter()
            .filter(|_| !self.access.banned.contains(&served.event.author))
            .filter(move |(_, subscription)| number > subscription.after)
            .filter(|(_, subscription)| subscription.filters.iter().any(|filter| filter.matches(&served.event)))
            .map(|(id, _)| messages::event(id, &served.json))
    }
}

fn send(text: String) -> Vec<SessionOutput> {
    vec![SessionOutput::Send(text)]
}

/// The id that a text which is no event claims to have, for the answer.
fn id_in(json: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(json).ok();
    let id = value.as_ref().and_then(|value| value.get("id")?.as_str()).unwrap_or_default();
    id.chars().take(64).filter(char::is_ascii_hexdigit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_limited_and_come_back_with_time() {
        let (mut budget, now) = (QuestionBudget::default(), Nanos(1_000 * Nanos::SECOND));
        let mut ask = |now: Nanos| (0..1_000).filter(|_| budget.spend(now)).count() as u64;
        assert_eq!(ask(now), QUESTIONS_AT_ONCE);
        assert_eq!(ask(now.plus(QUESTION_NANOS - 1)), 0);
        assert_eq!(ask(now.plus(QUESTION_NANOS)), 1);
        assert_eq!(ask(now.plus(Nanos::SECOND)), 199);
        assert_eq!(ask(now.plus(3600 * Nanos::SECOND)), QUESTIONS_AT_ONCE, "a pause saves up no more than that");
    }
}
