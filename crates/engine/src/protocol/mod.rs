//! Protocols: families of event kinds, each with its own format and rules, behind one trait.
//!
//! The chains, holding, content, fetching and the journal are written once and know no kind. What they ask of a
//! protocol is [`Protocol`]; the macros `of_protocol` and `of_kind` pick it. A protocol is a folder here, with a
//! file for each step and for each small family of kinds, and a file in each of `rows`, `change` and `reads`.

pub mod nostr;
#[cfg(feature = "simulation")]
pub mod probe;
pub mod space;

use crate::change::Change;
use crate::content::ContentCheck;
use crate::context::StepContext;
use crate::keyring::Keyring;
use crate::opened::{Opened, Opening};
use crate::policy::Policy;
use crate::reads::{Reads, StoreResult};
use crate::rows::{EventKind, EventRow, Meta};
use model::blob::BlobForm;
use model::envelope::Role;
use model::stage::RefusalReason;
use model::{AuthorNo, Blob, EventId, Nanos, Need, Seq, SpaceNo, Stamp};

/// A needed reference that is applied.
#[derive(Clone, Debug)]
pub struct AppliedReference {
    /// In which capacity it is referred to.
    pub role: Role,
    /// Its number.
    pub seq: Seq,
    /// Its row.
    pub row: EventRow,
}

/// What looking up the needs of an event came to.
#[derive(Debug)]
pub enum Lookup {
    /// Everything it needs is applied.
    Met(Vec<AppliedReference>),
    /// These are not here yet.
    Unmet(Vec<Need>),
    /// It needs something that was refused.
    Refused,
}

/// The numbers of an event's space and author.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Numbers {
    /// The space.
    pub space: SpaceNo,
    /// The author.
    pub author: AuthorNo,
}

/// An applied event with what its rules look at.
#[derive(Debug)]
pub struct AppliedEvent<'a, O> {
    /// Its number.
    pub seq: Seq,
    /// Its place in the order of events.
    pub stamp: Stamp,
    /// What its row says of it.
    pub meta: &'a Meta,
    /// What it says itself.
    pub opened: &'a O,
}

impl<O> Clone for AppliedEvent<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for AppliedEvent<'_, O> {}

/// What the chains ask of a protocol.
pub trait Protocol {
    /// An event of this protocol that was opened and checked.
    type Opened;

    /// Whether two blobs of one id are the same event; otherwise they clash.
    fn is_same(kept: &[u8], came: &[u8]) -> bool;

    /// What its row says before it was validated.
    fn outline(event: &Self::Opened, numbers: Numbers) -> Meta;

    /// Looks up what it needs. `is_first` says that it was never held.
    fn needs<R: Reads>(db: &R, context: &StepContext, event: &Self::Opened, is_first: bool) -> StoreResult<Lookup>;

    /// Whether it is valid, as a pure function of the event and of what it refers to.
    fn validate<R: Reads>(
        db: &R,
        event: &Self::Opened,
        numbers: Numbers,
        found: &[AppliedReference],
    ) -> StoreResult<Result<Meta, RefusalReason>>;

    /// Whether it counts: a view rule, which may change.
    fn counts<R: Reads>(db: &R, meta: &Meta, stamp: Stamp) -> StoreResult<bool>;

    /// The rows of an applied event that can be dropped and rebuilt.
    fn standing_rows<R: Reads>(db: &R, event: AppliedEvent<'_, Self::Opened>) -> StoreResult<Vec<Change>>;

    /// What else follows at the moment it is applied. A rebuild leaves this out.
    fn effects<R: Reads>(db: &R, event: AppliedEvent<'_, Self::Opened>) -> StoreResult<Vec<Change>>;

    /// What else follows when an event begins to wait, or waits no more without having been applied.
    fn wait_effects<R: Reads>(db: &R, event: &Self::Opened) -> StoreResult<Vec<Change>>;

    /// What its being applied satisfies, beside the need for the event itself.
    fn meets(event: &Self::Opened) -> Vec<Need>;

    /// The least delete that reaches an event, if any does.
    fn deleted_by<R: Reads>(db: &R, id: &EventId, meta: &Meta, event: &Self::Opened) -> StoreResult<Option<Stamp>>;

    /// Until when an event that waits for these may be held.
    fn hold_until(policy: &Policy, unmet: &[Need], now: Nanos) -> Nanos;

    /// Whether a fresh submission of a held event prolongs its hold.
    const RENEWS_HOLDS: bool;

    /// Whether one of the needs of a held event may be enough, so that POST looks at it whenever one is met.
    const RECHECKS_ON_EACH: bool;

    /// Whether content of its length can be what the kind asks for, without looking at it; `None` if any bytes will do.
    fn judge_length(meta: &Meta) -> Option<bool>;

    /// Whether content, as it travels, is what the kind asks for.
    fn judge_content(keyring: &impl Keyring, policy: &Policy, event: &Self::Opened, wire: &[u8]) -> ContentCheck;
}

/// Runs an expression with the protocol of an opened event: `P` is the protocol, the name the event.
macro_rules! of_protocol {
    ($opened:expr, $event:ident => $body:expr) => {
        match $opened {
            $crate::opened::Opened::Space($event) => {
                type P = $crate::protocol::space::Space;
                $body
            }
            $crate::opened::Opened::Nostr($event) => {
                type P = $crate::protocol::nostr::Nostr;
                $body
            }
            #[cfg(feature = "simulation")]
            $crate::opened::Opened::Probe($event) => {
                type P = $crate::protocol::probe::Probe;
                $body
            }
        }
    };
}
pub(crate) use of_protocol;

/// Runs an expression with the protocol `P` of a row.
macro_rules! of_kind {
    ($kind:expr => $body:expr) => {
        match $kind {
            $crate::rows::EventKind::Space(_) => {
                type P = $crate::protocol::space::Space;
                $body
            }
            $crate::rows::EventKind::Nostr(_) => {
                type P = $crate::protocol::nostr::Nostr;
                $body
            }
            #[cfg(feature = "simulation")]
            $crate::rows::EventKind::Probe(_) => {
                type P = $crate::protocol::probe::Probe;
                $body
            }
        }
    };
}
pub(crate) use of_kind;

/// Opens a blob with the keys at hand and checks it.
pub fn open(keyring: &impl Keyring, blob: &Blob) -> Opening {
    match blob.form() {
        BlobForm::Plain | BlobForm::Sealed { .. } | BlobForm::Addressed { .. } => space::open::open(keyring, blob),
        BlobForm::Nostr => nostr::open(blob),
        #[cfg(feature = "simulation")]
        BlobForm::Probe => probe::open(blob),
    }
}

/// Opens a blob that was checked before it was kept.
pub fn reopen(keyring: &impl Keyring, blob: &Blob) -> Option<Opened> {
    match blob.form() {
        BlobForm::Plain | BlobForm::Sealed { .. } | BlobForm::Addressed { .. } => {
            space::open::reopen(keyring, blob).map(Opened::Space)
        }
        BlobForm::Nostr => nostr::reopen(blob),
        #[cfg(feature = "simulation")]
        BlobForm::Probe => probe::reopen(blob),
    }
}

/// Whether content, as it travels, is what the kind asks for.
pub fn judge_content(keyring: &impl Keyring, policy: &Policy, opened: &Opened, wire: &[u8]) -> ContentCheck {
    of_protocol!(opened, event => P::judge_content(keyring, policy, event, wire))
}

/// Whether two blobs of one id are the same event.
pub fn is_same(opened: &Opened, kept: &[u8], came: &[u8]) -> bool {
    of_protocol!(opened, _event => P::is_same(kept, came))
}

/// The least delete that reaches an event, if any does.
pub fn deleted_by<R: Reads>(db: &R, id: &EventId, meta: &Meta, opened: &Opened) -> StoreResult<Option<Stamp>> {
    of_protocol!(opened, event => P::deleted_by(db, id, meta, event))
}

/// Until when an event of that kind may be held for these; one that was never opened waits as those of the `space`
/// protocol do.
pub fn hold_until(kind: Option<EventKind>, policy: &Policy, unmet: &[Need], now: Nanos) -> Nanos {
    match kind {
        Some(kind) => of_kind!(kind => P::hold_until(policy, unmet, now)),
        None => space::Space::hold_until(policy, unmet, now),
    }
}

/// What else follows when a held event goes.
pub fn end_of_wait<R: Reads>(db: &R, seq: Seq, row: &EventRow) -> StoreResult<Vec<Change>> {
    // Opening costs something, and nobody but this protocol has anything to say.
    if !matches!(row.meta.as_ref().map(|meta| meta.kind), Some(EventKind::Nostr(_))) {
        return Ok(Vec::new());
    }
    match db.open_event(seq)? {
        Some(opened) => of_protocol!(&opened, event => P::wait_effects(db, event)),
        None => Ok(Vec::new()),
    }
}

/// Whether POST looks at a held event of that kind whenever one of its needs is met.
pub fn rechecks_on_each(kind: Option<EventKind>) -> bool {
    kind.is_some_and(|kind| of_kind!(kind => P::RECHECKS_ON_EACH))
}

/// Whether a fresh submission of a held event of that kind prolongs its hold.
pub fn renews_holds(kind: Option<EventKind>) -> bool {
    kind.is_some_and(|kind| of_kind!(kind => P::RENEWS_HOLDS))
}

/// What its being applied satisfies, beside the need for the event itself.
pub fn meets(opened: &Opened) -> Vec<Need> {
    of_protocol!(opened, event => P::meets(event))
}

/// Whether an applied event counts, and the rows that a rebuild puts back for it. It never reflects or wakes.
pub fn rebuild<R: Reads>(db: &R, seq: Seq, row: &EventRow, opened: &Opened) -> StoreResult<(bool, Vec<Change>)> {
    let Some(mut meta) = row.meta.clone() else {
        return Err(crate::StoreError::Broken(format!("{seq} is applied but was never opened")));
    };
    let stamp = Stamp { at: meta.at, id: row.id };
    of_protocol!(opened, event => {
        meta.counts = P::counts(db, &meta, stamp)?;
        let rows = P::standing_rows(db, AppliedEvent { seq, stamp, meta: &meta, opened: event })?;
        Ok((meta.counts, rows))
    })
}
