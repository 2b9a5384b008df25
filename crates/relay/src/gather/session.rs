//! One connection to another relay without a socket: it hears what the relay says, and says what to send and what came.
//!
//! The filters are gone through one after the other. Both sides are compared (NIP-77), and what is missing here is asked for
//! by id; where the other relay does not know how, the filter is read page by page. When all are done, one subscription
//! stays open for what comes later.

use model::nostr::{NostrEvent, NostrFilter, NostrId, VerifiedNostr};
use negentropy::{Id, Negentropy, NegentropyStorageVector};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};

/// Ids that are asked for at a time.
const IDS_PER_REQUEST_MAX: usize = 100;
/// Events of one page.
const PAGE_EVENTS: usize = 500;
/// Pages of one filter: who has more is asked for the rest tomorrow.
const PAGES_MAX: usize = 200;
/// Ids of one filter that are missing here: more are asked for when these are here.
const MISSING_MAX: usize = 100_000;
/// Messages of one comparison.
const ROUNDS_MAX: usize = 1_000;
/// The longest message of a comparison.
const FRAME_BYTES_MAX: u64 = 48 * 1024;
/// Filters of the subscription that stays open; others are asked for again every day.
const LIVE_FILTERS_MAX: usize = 10;
/// Events that were not asked for, or are no events, until the relay is left alone.
const RUBBISH_MAX: u32 = 16;

/// What is known here, as of now.
pub(super) trait LocalEvents {
    /// The time and id of every event here that a filter asks for; none if there are too many to compare.
    fn ids(&self, filter: &NostrFilter) -> Option<Vec<(u64, NostrId)>>;

    /// Whether an event need not be asked for: it is here, served or waiting, or was and is not wanted again.
    fn is_settled(&self, id: &NostrId) -> bool;
}

/// What the session wants done.
#[derive(Debug)]
pub(super) enum GatherOutput {
    Send(String),
    /// An event that was asked for, and that its author signed.
    Take(Box<VerifiedNostr>),
    /// Everything that is there now has come.
    Live,
}

/// Why a session cannot go on.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Misbehaved {
    #[error("it sends what nobody asked for, or what is no event")]
    Rubbish,
    #[error("it does not come to an end")]
    Endless,
}

enum Stage {
    /// Both sides are compared.
    Comparing {
        negentropy: Box<Negentropy<'static, NegentropyStorageVector>>,
        missing: Vec<NostrId>,
        rounds: usize,
    },
    /// What is missing is asked for by id.
    Fetching {
        left: VecDeque<NostrId>,
        asked: BTreeSet<NostrId>,
    },
    /// The filter is read page by page, from the latest on.
    Paging {
        until: Option<u64>,
        came: usize,
        oldest: u64,
        pages: usize,
    },
    Live,
}

/// A connection to another relay.
pub(super) struct GatherSession {
    filters: Vec<NostrFilter>,
    /// Filters for which everything has come already over the same connection.
    done: Vec<NostrFilter>,
    /// Which filter is gone through.
    at: usize,
    stage: Stage,
    /// Whether the relay compares; that is found out once.
    compares: bool,
    rubbish: u32,
}

impl GatherSession {
    /// Begins with these filters, of which some are done.
    pub(super) fn new(filters: Vec<NostrFilter>, done: Vec<NostrFilter>) -> GatherSession {
        GatherSession { filters, done, at: 0, stage: Stage::Live, compares: true, rubbish: 0 }
    }

    /// What is sent first.
    pub(super) fn begin(&mut self, local: &dyn LocalEvents) -> Vec<GatherOutput> {
        // First what comes from now on, so that nothing falls between this and what is there already.
        let mut outputs = self.listen();
        outputs.extend(self.open_filter(local));
        outputs
    }

    /// Whether an answer is waited for.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.stage, Stage::Live)
    }

    /// The relay has said nothing for long: one that does not compare is asked page by page. Says whether that is left.
    pub(super) fn on_silence(&mut self) -> Option<Vec<GatherOutput>> {
        match self.stage {
            Stage::Comparing { .. } => Some(self.read_pages()),
            Stage::Fetching { .. } | Stage::Paging { .. } | Stage::Live => None,
        }
    }

    /// Hears a message of the relay.
    pub(super) fn hear(&mut self, text: &str, local: &dyn LocalEvents) -> Result<Vec<GatherOutput>, Misbehaved> {
        let message: Vec<Value> = serde_json::from_str(text).map_err(|_| Misbehaved::Rubbish)?;
        let word = |at: usize| message.get(at).and_then(Value::as_str).unwrap_or_default();
        match (word(0), word(1)) {
            ("EVENT", of) => self.hear_event(of == "gather", message.get(2).unwrap_or(&Value::Null)),
            ("EOSE", "gather") => Ok(self.end_page(local)),
            ("CLOSED", "gather") => Ok(self.next_filter(local)),
            ("NEG-MSG", "compare") => self.compare(word(2), local),
            ("NEG-ERR", "compare") | ("CLOSED", "compare") => Ok(self.stop_comparing()),
            // So those answer who do not know the words of a comparison.
            ("NOTICE", _) => Ok(self.stop_comparing()),
            _ => Ok(Vec::new()),
        }
    }

    fn filter(&self) -> NostrFilter {
        self.filters.get(self.at).cloned().unwrap_or_default()
    }

    fn open_filter(&mut self, local: &dyn LocalEvents) -> Vec<GatherOutput> {
        while self.filters.get(self.at).is_some_and(|filter| self.done.contains(filter)) {
            self.at += 1;
        }
        if self.at >= self.filters.len() {
            self.stage = Stage::Live;
            return vec![GatherOutput::Live];
        }
        let filter = self.filter();
        let compared = match local.ids(&filter).filter(|_| self.compares) {
            Some(ids) => open_comparison(&ids),
            None => None,
        };
        let Some((negentropy, first)) = compared else { return self.read_pages() };
        self.stage = Stage::Comparing { negentropy: Box::new(negentropy), missing: Vec::new(), rounds: 0 };
        send(json!(["NEG-OPEN", "compare", filter.to_json(), hex::encode(first)]))
    }

    fn compare(&mut self, message: &str, local: &dyn LocalEvents) -> Result<Vec<GatherOutput>, Misbehaved> {
        let Stage::Comparing { negentropy, missing, rounds } = &mut self.stage else { return Ok(Vec::new()) };
        *rounds += 1;
        if *rounds > ROUNDS_MAX {
            return Err(Misbehaved::Endless);
        }
        let (mut have, mut need) = (Vec::new(), Vec::new());
        let bytes = hex::decode(message).map_err(|_| Misbehaved::Rubbish)?;
        let next = negentropy.reconcile_with_ids(&bytes, &mut have, &mut need).map_err(|_| Misbehaved::Rubbish)?;
        let need = need.into_iter().map(|id: Id| NostrId(id.to_bytes()));
        missing.extend(need.filter(|id| !local.is_settled(id)));
        if let Some(next) = next.filter(|_| missing.len() < MISSING_MAX) {
            return Ok(send(json!(["NEG-MSG", "compare", hex::encode(next)])));
        }
        let left: VecDeque<NostrId> = std::mem::take(missing).into();
        self.stage = Stage::Fetching { left, asked: BTreeSet::new() };
        let mut outputs = send(json!(["NEG-CLOSE", "compare"]));
        outputs.extend(self.fetch_some(local));
        Ok(outputs)
    }

    /// Asks for some of what is missing, or goes on with the next filter.
    fn fetch_some(&mut self, local: &dyn LocalEvents) -> Vec<GatherOutput> {
        let Stage::Fetching { left, asked } = &mut self.stage else { return Vec::new() };
        *asked = left.drain(..left.len().min(IDS_PER_REQUEST_MAX)).collect();
        if asked.is_empty() {
            return self.next_filter(local);
        }
        let ids: Vec<String> = asked.iter().map(NostrId::to_string).collect();
        send(json!(["REQ", "gather", { "ids": ids }]))
    }

    fn stop_comparing(&mut self) -> Vec<GatherOutput> {
        match self.stage {
            Stage::Comparing { .. } => {
                self.compares = false;
                self.read_pages()
            }
            Stage::Fetching { .. } | Stage::Paging { .. } | Stage::Live => Vec::new(),
        }
    }

    fn read_pages(&mut self) -> Vec<GatherOutput> {
        self.stage = Stage::Paging { until: None, came: 0, oldest: u64::MAX, pages: 0 };
        self.ask_for_page()
    }

    fn ask_for_page(&self) -> Vec<GatherOutput> {
        let until = match self.stage {
            Stage::Paging { until, .. } => until,
            Stage::Comparing { .. } | Stage::Fetching { .. } | Stage::Live => None,
        };
        let filter = NostrFilter { until, limit: Some(PAGE_EVENTS), ..self.filter() };
        send(json!(["REQ", "gather", filter.to_json()]))
    }

    /// All of a page has come, or of the ids that were asked for.
    fn end_page(&mut self, local: &dyn LocalEvents) -> Vec<GatherOutput> {
        match &mut self.stage {
            Stage::Fetching { .. } => self.fetch_some(local),
            Stage::Paging { until, came, oldest, pages } => {
                // A page may end within a second: what else is of that second comes again. Of one that fills a page, more
                // than that cannot be asked for.
                let is_one_second = Some(*oldest) == *until;
                let is_last = *came == 0 || is_one_second && *came < PAGE_EVENTS || *pages >= PAGES_MAX;
                let next = if is_one_second { oldest.saturating_sub(1) } else { *oldest };
                (*until, *came, *pages) = (Some(next), 0, *pages + 1);
                if is_last { self.next_filter(local) } else { self.ask_for_page() }
            }
            Stage::Comparing { .. } | Stage::Live => Vec::new(),
        }
    }

    fn next_filter(&mut self, local: &dyn LocalEvents) -> Vec<GatherOutput> {
        if self.is_live() {
            return Vec::new();
        }
        self.at += 1;
        let mut outputs = send(json!(["CLOSE", "gather"]));
        outputs.extend(self.open_filter(local));
        outputs
    }

    /// Asks for what comes later, to be sent as it comes.
    fn listen(&self) -> Vec<GatherOutput> {
        let live = self.filters.iter().take(LIVE_FILTERS_MAX);
        // Nothing that is stored, and everything that comes from now on, whatever time it has.
        let live = live.map(|filter| NostrFilter { limit: Some(0), ..filter.clone() }.to_json());
        let mut message = vec![json!("REQ"), json!("live")];
        message.extend(live);
        if message.len() > 2 { send(Value::Array(message)) } else { Vec::new() }
    }

    fn hear_event(&mut self, is_of_page: bool, event: &Value) -> Result<Vec<GatherOutput>, Misbehaved> {
        let checked = NostrEvent::parse(&event.to_string()).and_then(NostrEvent::check);
        let is_wanted = |event: &VerifiedNostr| match &self.stage {
            Stage::Fetching { asked, .. } => asked.contains(&event.id) || self.matches(event),
            Stage::Comparing { .. } | Stage::Paging { .. } | Stage::Live => self.matches(event),
        };
        let Some(event) = checked.ok().filter(is_wanted) else {
            self.rubbish += 1;
            return if self.rubbish > RUBBISH_MAX { Err(Misbehaved::Rubbish) } else { Ok(Vec::new()) };
        };
        if let Stage::Paging { came, oldest, .. } = &mut self.stage
            && is_of_page
        {
            (*came, *oldest) = (*came + 1, event.created_at.min(*oldest));
        }
        Ok(vec![GatherOutput::Take(Box::new(event))])
    }

    fn matches(&self, event: &NostrEvent) -> bool {
        self.filters.iter().any(|filter| filter.matches(event))
    }
}

/// A comparison from this side, and its first message.
fn open_comparison(ids: &[(u64, NostrId)]) -> Option<(Negentropy<'static, NegentropyStorageVector>, Vec<u8>)> {
    let mut storage = NegentropyStorageVector::with_capacity(ids.len());
    for (at, id) in ids {
        storage.insert(*at, Id::from_byte_array(id.0)).ok()?;
    }
    storage.seal().ok()?;
    let mut negentropy = Negentropy::owned(storage, FRAME_BYTES_MAX).ok()?;
    let first = negentropy.initiate().ok()?;
    Some((negentropy, first))
}

fn send(message: Value) -> Vec<GatherOutput> {
    vec![GatherOutput::Send(message.to_string())]
}

#[cfg(test)]
mod tests;
