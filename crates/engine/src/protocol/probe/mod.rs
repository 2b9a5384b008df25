//! The `probe` protocol, which only the simulator speaks: two kinds, a need of its own, and a replaceable value whose ties
//! the least id wins. It proves that a protocol lives in its folders and in the listed arms.

mod values;

use super::{AppliedEvent, AppliedReference, Lookup, Numbers, Protocol};
use crate::change::Change;
use crate::content::ContentCheck;
use crate::context::StepContext;
use crate::keyring::Keyring;
use crate::opened::{Opened, Opening};
use crate::policy::Policy;
use crate::reads::{Reads, StoreResult};
use crate::rows::{EventKind, Meta, ProbeTask};
use model::blob::BadBlob;
use model::probe::{ProbeKind, ProbeStatement};
use model::stage::RefusalReason;
use model::{Blob, EventId, Nanos, Need, SpaceId, Stamp};

/// The `probe` protocol.
#[derive(Clone, Copy, Debug)]
pub struct Probe;

/// How long its events wait.
const HOLD_NANOS: u64 = 24 * 3600 * Nanos::SECOND;

impl Protocol for Probe {
    type Opened = ProbeStatement;

    /// One statement may be signed in several ways; statements that share the first half of their ids clash.
    fn is_same(kept: &[u8], came: &[u8]) -> bool {
        match (ProbeStatement::read(kept), ProbeStatement::read(came)) {
            (Ok(kept), Ok(came)) => kept.id() == came.id(),
            _ => false,
        }
    }

    fn outline(event: &ProbeStatement, numbers: Numbers) -> Meta {
        Meta {
            kind: EventKind::Probe(event.kind),
            at: event.at,
            space: numbers.space,
            author: numbers.author,
            authority: None,
            subject: None,
            grants: None,
            counts: true,
            content_len: event.content_len,
            content_hash: event.content_hash,
        }
    }

    fn needs<R: Reads>(db: &R, context: &StepContext, event: &ProbeStatement, _is_first: bool) -> StoreResult<Lookup> {
        let mut unmet = Vec::new();
        if let Some(need) = values::needed_value(event)
            && !is_met(db, &need)?
        {
            unmet.push(need);
        }
        let opens_at = event.at.minus(context.policy.future_nanos);
        if opens_at > context.now {
            unmet.push(Need::Time(opens_at));
        }
        Ok(if unmet.is_empty() { Lookup::Met(Vec::new()) } else { Lookup::Unmet(unmet) })
    }

    fn validate<R: Reads>(
        _db: &R,
        event: &ProbeStatement,
        numbers: Numbers,
        _found: &[AppliedReference],
    ) -> StoreResult<Result<Meta, RefusalReason>> {
        let is_valid = !event.name.is_empty() && event.name != event.after;
        Ok(if is_valid { Ok(Probe::outline(event, numbers)) } else { Err(RefusalReason::Reference) })
    }

    fn counts<R: Reads>(_db: &R, _meta: &Meta, _stamp: Stamp) -> StoreResult<bool> {
        Ok(true)
    }

    fn standing_rows<R: Reads>(_db: &R, event: AppliedEvent<'_, ProbeStatement>) -> StoreResult<Vec<Change>> {
        Ok(values::standing_rows(event))
    }

    fn effects<R: Reads>(_db: &R, event: AppliedEvent<'_, ProbeStatement>) -> StoreResult<Vec<Change>> {
        Ok(values::effects(event))
    }

    fn wait_effects<R: Reads>(_db: &R, _event: &ProbeStatement) -> StoreResult<Vec<Change>> {
        Ok(Vec::new())
    }

    fn meets(event: &ProbeStatement) -> Vec<Need> {
        match event.kind {
            ProbeKind::Value => vec![Need::Probe { author: event.author, name: event.name.clone() }],
            ProbeKind::Clear => Vec::new(),
        }
    }

    fn deleted_by<R: Reads>(db: &R, id: &EventId, meta: &Meta, event: &ProbeStatement) -> StoreResult<Option<Stamp>> {
        values::cleared_by(db, meta.author, event, Stamp { at: meta.at, id: *id })
    }

    fn hold_until(_policy: &Policy, _unmet: &[Need], now: Nanos) -> Nanos {
        now.plus(HOLD_NANOS)
    }

    const RENEWS_HOLDS: bool = true;

    const RECHECKS_ON_EACH: bool = false;

    fn judge_length(_meta: &Meta) -> Option<bool> {
        Some(true)
    }

    /// What begins with `bad` is unfit.
    fn judge_content(_: &impl Keyring, _: &Policy, _: &ProbeStatement, wire: &[u8]) -> ContentCheck {
        if wire.starts_with(b"bad") { ContentCheck::Unfit } else { ContentCheck::Fits(None) }
    }
}

/// Opens a blob and checks it.
pub(super) fn open(blob: &Blob) -> Opening {
    match ProbeStatement::check(blob.bytes()) {
        Ok(statement) => Opening::Opened(Opened::Probe(statement)),
        Err(_) => Opening::Bad(BadBlob::Header),
    }
}

/// Opens a blob that was checked before it was kept.
pub(super) fn reopen(blob: &Blob) -> Option<Opened> {
    ProbeStatement::read(blob.bytes()).ok().map(Opened::Probe)
}

/// The door of this protocol, which no product has: a blob of it, parsed. No other door takes one.
pub fn parse_at_door(bytes: Vec<u8>) -> Result<Blob, BadBlob> {
    let blob = Blob::parse_kept(bytes)?;
    match blob.form().named_space() {
        Some(SpaceId::COMMONS) => Ok(blob),
        Some(_) | None => Err(BadBlob::Header),
    }
}

/// Whether a need of this protocol is met; those of others are not.
pub(crate) fn is_met(db: &impl Reads, need: &Need) -> StoreResult<bool> {
    let Need::Probe { author, name } = need else { return Ok(false) };
    values::has_value(db, author, name)
}

/// Does a bounded part of a task of this protocol; what is left is a task again.
pub fn run_task<R: Reads>(db: &R, policy: &Policy, task: ProbeTask) -> StoreResult<Vec<Change>> {
    values::recheck(db, policy, task)
}
