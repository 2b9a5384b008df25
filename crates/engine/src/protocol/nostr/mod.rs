//! The `nostr` protocol: events of Nostr clients and relays, as far as they are about git repositories. See docs/NOSTR.md.
//!
//! [`needs`] says what an event waits for, [`rows`] what it leaves, [`deletion`] what deletes it. What depends on other
//! events is decided when it is asked: [`maintainers`] says who may speak for a repository, [`push`] what a push may do,
//! [`admit`] what a door takes.

pub mod admit;
mod deletion;
pub mod maintainers;
mod needs;
pub mod push;
mod rows;

use super::{AppliedEvent, AppliedReference, Lookup, Numbers, Protocol};
use crate::change::Change;
use crate::content::ContentCheck;
use crate::context::StepContext;
use crate::keyring::Keyring;
use crate::opened::{Opened, Opening};
use crate::policy::Policy;
use crate::reads::{Reads, StoreResult};
use crate::rows::{EventKind, Meta, NostrTask};
use model::blob::BadBlob;
use model::crypto::content_hash;
use model::nostr::{
    ANNOUNCEMENT, Address, Announcement, RepositoryState, STATE, VerifiedNostr, named_repositories, tip_of,
};
use model::nostr::{PULL_REQUEST, PULL_REQUEST_UPDATE};
use model::planted::{PlantedBug, is_planted};
use model::stage::RefusalReason;
use model::{Blob, EventId, Nanos, Need, Stamp};

/// The `nostr` protocol.
#[derive(Clone, Copy, Debug)]
pub struct Nostr;

/// How long an event waits for git data; a push, a new state or a fresh submission renews it.
const GIT_HOLD_NANOS: u64 = 30 * 60 * Nanos::SECOND;
/// How long an event waits for anything else, such as an announcement.
const HOLD_NANOS: u64 = 24 * 3600 * Nanos::SECOND;

impl Protocol for Nostr {
    type Opened = VerifiedNostr;

    /// The same id with another valid signature is the same event; another id with the same first half is not.
    fn is_same(kept: &[u8], came: &[u8]) -> bool {
        match (VerifiedNostr::kept(kept), VerifiedNostr::kept(came)) {
            (Ok(kept), Ok(came)) => kept.id == came.id,
            _ => false,
        }
    }

    fn outline(event: &VerifiedNostr, numbers: Numbers) -> Meta {
        Meta {
            kind: EventKind::Nostr(event.kind),
            at: event.at(),
            space: numbers.space,
            author: numbers.author,
            authority: None,
            subject: None,
            grants: None,
            counts: true,
            // All of it is in the blob.
            content_len: 0,
            content_hash: content_hash(&[]),
        }
    }

    fn needs<R: Reads>(db: &R, context: &StepContext, event: &VerifiedNostr, _is_first: bool) -> StoreResult<Lookup> {
        let unmet = needs::unmet(db, context, event)?;
        Ok(if unmet.is_empty() { Lookup::Met(Vec::new()) } else { Lookup::Unmet(unmet) })
    }

    fn validate<R: Reads>(
        _db: &R,
        event: &VerifiedNostr,
        numbers: Numbers,
        _found: &[AppliedReference],
    ) -> StoreResult<Result<Meta, RefusalReason>> {
        Ok(if says_what_its_kind_asks(event) {
            Ok(Nostr::outline(event, numbers))
        } else {
            Err(RefusalReason::Reference)
        })
    }

    fn counts<R: Reads>(_db: &R, _meta: &Meta, _stamp: Stamp) -> StoreResult<bool> {
        Ok(true)
    }

    fn standing_rows<R: Reads>(_db: &R, event: AppliedEvent<'_, VerifiedNostr>) -> StoreResult<Vec<Change>> {
        Ok(rows::standing_rows(event))
    }

    fn effects<R: Reads>(db: &R, event: AppliedEvent<'_, VerifiedNostr>) -> StoreResult<Vec<Change>> {
        let mut changes = deletion::effects(db, event)?;
        changes.extend(rows::alignments(db, event.opened)?);
        Ok(changes)
    }

    /// A push is decided from what waits as well, and refs follow it as far as its objects are here.
    fn wait_effects<R: Reads>(db: &R, event: &VerifiedNostr) -> StoreResult<Vec<Change>> {
        if is_planted(PlantedBug::WaitingChangesNoRefs) {
            return Ok(Vec::new());
        }
        rows::alignments(db, event)
    }

    fn meets(event: &VerifiedNostr) -> Vec<Need> {
        let address = Address::of(event).filter(|address| !address.identifier.is_empty());
        let fits = |address: &Address| address.identifier.len() <= model::limits::IDENTIFIER_BYTES_MAX;
        address.filter(fits).map(needs::need_for).into_iter().collect()
    }

    fn deleted_by<R: Reads>(db: &R, id: &EventId, meta: &Meta, event: &VerifiedNostr) -> StoreResult<Option<Stamp>> {
        deletion::deleted_by(db, id, meta.author, event)
    }

    fn hold_until(_policy: &Policy, unmet: &[Need], now: Nanos) -> Nanos {
        let is_git = |need: &Need| matches!(need, Need::GitObject { .. } | Need::GitData { .. });
        now.plus(if unmet.iter().any(is_git) { GIT_HOLD_NANOS } else { HOLD_NANOS })
    }

    const RENEWS_HOLDS: bool = true;

    const RECHECKS_ON_EACH: bool = true;

    fn judge_length(_meta: &Meta) -> Option<bool> {
        None
    }

    fn judge_content(_: &impl Keyring, _: &Policy, _: &VerifiedNostr, _: &[u8]) -> ContentCheck {
        ContentCheck::Fits(None)
    }
}

/// Whether an event of a kind that decides about git data can be understood.
pub fn says_what_its_kind_asks(event: &VerifiedNostr) -> bool {
    match event.kind {
        ANNOUNCEMENT => Announcement::of(event).is_some(),
        STATE => RepositoryState::of(event).is_some(),
        PULL_REQUEST | PULL_REQUEST_UPDATE => tip_of(event).is_some() && !named_repositories(event, &["a"]).is_empty(),
        _ => true,
    }
}

/// Opens a blob and checks it.
pub(super) fn open(blob: &Blob) -> Opening {
    match VerifiedNostr::of_blob(blob.bytes()) {
        Ok(event) => Opening::Opened(Opened::Nostr(event)),
        Err(_) => Opening::Bad(BadBlob::Header),
    }
}

/// Opens a blob that was checked before it was kept.
pub(super) fn reopen(blob: &Blob) -> Option<Opened> {
    VerifiedNostr::kept(blob.bytes()).ok().map(Opened::Nostr)
}

/// Whether a need that only this protocol has is met; those of others are not.
pub(crate) fn is_met(db: &impl Reads, need: &Need) -> StoreResult<bool> {
    match need {
        Need::Address { kind, author, identifier } => needs::is_applied_at(db, *kind, author, identifier),
        Need::GitObject { owner, identifier, oid } => db.is_git_present(owner, identifier, oid),
        Need::GitData { owner, identifier } => db.has_git_data(owner, identifier),
        _ => Ok(false),
    }
}

/// Does a bounded part of a task of this protocol; what is left is a task again.
pub(crate) fn run_task<R: Reads>(db: &R, policy: &Policy, task: NostrTask) -> StoreResult<Vec<Change>> {
    deletion::run_task(db, policy, task)
}

#[cfg(test)]
mod tests {
    use super::says_what_its_kind_asks;
    use model::nostr::NostrEvent;

    #[test]
    fn a_pull_request_says_which_commit_it_is_and_for_which_repository() {
        let says = |kind, tags: &[[&str; 2]]| {
            let tags = tags.iter().map(|tag| tag.map(str::to_owned).to_vec()).collect();
            NostrEvent::sign(&[1; 32], 1, kind, tags, "").is_ok_and(|event| says_what_its_kind_asks(&event))
        };
        let (commit, address) = ("11".repeat(20), format!("30617:{}:tool", "22".repeat(32)));
        for kind in [1618, 1619] {
            assert!(says(kind, &[["c", &commit], ["a", &address]]));
            assert!(!says(kind, &[["a", &address]]), "no commit");
            assert!(!says(kind, &[["c", &commit]]), "no repository");
        }
        assert!(says(1621, &[]), "an issue needs neither");
    }
}
