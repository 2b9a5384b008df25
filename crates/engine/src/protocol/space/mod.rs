//! The `space` protocol: spaces with members, threads, messages, files, and public spaces.
//!
//! [`needs`] says what an event waits for, [`validate`] whether it is valid, [`counting`] who had which right when,
//! [`apply`] what it leaves in the views, [`deletion`] what a delete reaches, [`rederive`] what is looked at again when
//! rights change. [`kinds`] has a file for each small family of kinds.

mod apply;
pub mod counting;
pub mod deletion;
pub mod kinds;
mod needs;
pub(crate) mod open;
pub mod rederive;
pub mod validate;
pub(crate) mod winner;

pub use crate::rows::{Register, RegisterKey, ThreadField, ViewRow};
pub use apply::judge_body;

use super::{AppliedEvent, AppliedReference, Lookup, Numbers, Protocol};
use crate::change::Change;
use crate::content::ContentCheck;
use crate::context::StepContext;
use crate::keyring::Keyring;
use crate::policy::Policy;
use crate::reads::{Reads, StoreResult};
use crate::rows::{Meta, SpaceTask};
use model::crypto::SpaceKey;
use model::kind::ContentRule;
use model::limits::{BODY_BYTES_MAX, CHUNK_OVERHEAD_BYTES};
use model::payload::Payload;
use model::planted::{PlantedBug, is_planted};
use model::stage::RefusalReason;
use model::{EventId, Kind, Nanos, Need, Stamp, Verified};

/// The `space` protocol.
#[derive(Clone, Copy, Debug)]
pub struct Space;

impl Protocol for Space {
    type Opened = Verified;

    /// One envelope has one blob, so that any other bytes are a clash.
    fn is_same(kept: &[u8], came: &[u8]) -> bool {
        kept == came
    }

    fn outline(event: &Verified, numbers: Numbers) -> Meta {
        validate::outline(event, numbers)
    }

    fn needs<R: Reads>(db: &R, context: &StepContext, event: &Verified, is_first: bool) -> StoreResult<Lookup> {
        needs::look_up_needs(db, context, event, is_first)
    }

    fn validate<R: Reads>(
        db: &R,
        event: &Verified,
        numbers: Numbers,
        found: &[AppliedReference],
    ) -> StoreResult<Result<Meta, RefusalReason>> {
        validate::validate(db, &validate::EventToValidate { envelope: event, numbers, found })
    }

    fn counts<R: Reads>(db: &R, meta: &Meta, stamp: Stamp) -> StoreResult<bool> {
        counting::counts(db, meta, stamp)
    }

    fn standing_rows<R: Reads>(db: &R, event: AppliedEvent<'_, Verified>) -> StoreResult<Vec<Change>> {
        apply::standing_rows(db, event)
    }

    fn effects<R: Reads>(db: &R, event: AppliedEvent<'_, Verified>) -> StoreResult<Vec<Change>> {
        apply::effects(db, event)
    }

    fn wait_effects<R: Reads>(_db: &R, _event: &Verified) -> StoreResult<Vec<Change>> {
        Ok(Vec::new())
    }

    fn meets(event: &Verified) -> Vec<Need> {
        match (event.kind, &event.payload) {
            (Kind::Key, Payload::Key(_)) if is_planted(PlantedBug::KeyWakesNobody) => Vec::new(),
            (Kind::Key, Payload::Key(secret)) => vec![Need::Key(SpaceKey::new(&event.space, *secret).id())],
            _ => Vec::new(),
        }
    }

    fn deleted_by<R: Reads>(db: &R, id: &EventId, meta: &Meta, _event: &Verified) -> StoreResult<Option<Stamp>> {
        deletion::deleted_by(db, id, meta)
    }

    fn hold_until(policy: &Policy, _unmet: &[Need], now: Nanos) -> Nanos {
        now.plus(policy.hold_nanos)
    }

    const RENEWS_HOLDS: bool = false;

    const RECHECKS_ON_EACH: bool = false;

    fn judge_length(meta: &Meta) -> Option<bool> {
        match meta.kind.space().map_or(ContentRule::Any, Kind::content_rule) {
            ContentRule::Json => Some(meta.content_len <= (BODY_BYTES_MAX + CHUNK_OVERHEAD_BYTES) as u64),
            ContentRule::Empty => Some(true),
            ContentRule::Any => None,
        }
    }

    /// What does not open under its key is unfit, for everybody who has the key.
    fn judge_content(keyring: &impl Keyring, policy: &Policy, event: &Verified, wire: &[u8]) -> ContentCheck {
        match open::plain_content(keyring, policy.inline_bytes_max, event, wire) {
            Some(plain) => judge_body(event.kind, &plain),
            None => ContentCheck::Unfit,
        }
    }
}

/// Does a bounded part of a task of this protocol; what is left is a task again.
pub fn run_task<R: Reads>(db: &R, policy: &Policy, task: SpaceTask) -> StoreResult<Vec<Change>> {
    match task {
        SpaceTask::Rederive(membership, after) => rederive::rederive(db, policy, membership, after),
        SpaceTask::Versions(target, after) => deletion::recheck_versions(db, policy, target, after),
    }
}
