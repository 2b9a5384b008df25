//! What is kept of an event and of its content, whichever protocol it belongs to; the rows of a protocol's own are in a
//! file beside this one.

mod nostr;
#[cfg(feature = "simulation")]
mod probe;
mod space;

pub use nostr::{Alignment, DeleteTarget, NostrTask, PushedCommit};
#[cfg(feature = "simulation")]
pub use probe::ProbeTask;
pub use space::{Membership, MembershipLimit, Register, RegisterKey, SpaceTask, ThreadField, ViewRow};

use model::nostr::NOSTR_PROTOCOL;
use model::payload::MemberRole;
use model::stage::{ContentState, RefusalReason, Stage};
use model::{AuthorNo, ContentHash, EventId, Kind, Nanos, ObjectName, SPACE_PROTOCOL, Seq, SpaceId, SpaceNo, Stamp};

/// Through which door an event came first. Kept locally, never replicated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Origin {
    /// Made here.
    Local,
    /// Read from a bundle.
    Import,
    /// Sent by a Nostr client.
    Client,
    /// Gathered from another Nostr relay.
    Relay,
    /// Brought by the peer of that local number.
    Peer(u32),
}

/// The kind of an event, whichever protocol it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EventKind {
    /// A kind of the `space` protocol.
    Space(Kind),
    /// A kind of the `nostr` protocol.
    Nostr(u16),
    #[cfg(feature = "simulation")]
    Probe(model::probe::ProbeKind),
}

impl EventKind {
    /// The kind, if the event belongs to the `space` protocol.
    pub fn space(self) -> Option<Kind> {
        match self {
            EventKind::Space(kind) => Some(kind),
            EventKind::Nostr(_) => None,
            #[cfg(feature = "simulation")]
            EventKind::Probe(_) => None,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            EventKind::Space(kind) => kind.word(),
            EventKind::Nostr(kind) => nostr::kind_word(kind),
            #[cfg(feature = "simulation")]
            EventKind::Probe(kind) => kind.word(),
        }
    }

    /// The codes of its protocol and of the kind within it, as rows keep them.
    pub fn to_code(self) -> (u8, u16) {
        match self {
            EventKind::Space(kind) => (SPACE_PROTOCOL, kind.code()),
            EventKind::Nostr(kind) => (NOSTR_PROTOCOL, kind),
            #[cfg(feature = "simulation")]
            EventKind::Probe(kind) => (model::probe::PROBE_FORM, kind.code()),
        }
    }

    /// The kind of these codes, if this release knows the protocol.
    pub fn from_code(protocol: u8, kind: u16) -> Option<EventKind> {
        match protocol {
            SPACE_PROTOCOL => Some(EventKind::Space(Kind::from_code(kind))),
            NOSTR_PROTOCOL => Some(EventKind::Nostr(kind)),
            #[cfg(feature = "simulation")]
            model::probe::PROBE_FORM => model::probe::ProbeKind::from_code(kind).map(EventKind::Probe),
            _ => None,
        }
    }

    /// Which kinds need which: a rebuild goes from tier to tier.
    pub fn tier(self) -> Tier {
        match self {
            EventKind::Space(kind) => Tier::Space(kind.tier()),
            EventKind::Nostr(_) => Tier::Nostr,
            #[cfg(feature = "simulation")]
            EventKind::Probe(_) => Tier::Probe,
        }
    }
}

/// Kinds of one protocol that do not need each other, or only in the order of their stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// Of the `space` protocol: what a kind needs is of a lower tier.
    Space(u8),
    /// Of the `nostr` protocol.
    Nostr,
    #[cfg(feature = "simulation")]
    Probe,
}

impl Tier {
    /// Every tier, those first that others need.
    pub fn all() -> impl Iterator<Item = Tier> {
        let tiers = (0..Kind::TIERS).map(Tier::Space).chain([Tier::Nostr]);
        #[cfg(feature = "simulation")]
        let tiers = tiers.chain([Tier::Probe]);
        tiers
    }

    /// Whether its events need each other, so that they go back in the order of their stamps.
    pub fn is_ordered(self) -> bool {
        match self {
            Tier::Space(tier) => tier == 0,
            Tier::Nostr => false,
            #[cfg(feature = "simulation")]
            Tier::Probe => false,
        }
    }
}

impl PartialEq<Kind> for EventKind {
    fn eq(&self, other: &Kind) -> bool {
        self.space() == Some(*other)
    }
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EventKind::Space(kind) => kind.fmt(f),
            EventKind::Nostr(kind) => write!(f, "nostr kind {kind}"),
            #[cfg(feature = "simulation")]
            EventKind::Probe(kind) => f.write_str(kind.word()),
        }
    }
}

/// What the envelope of an opened event says, as far as rows and decisions need it again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meta {
    /// The protocol and its kind.
    pub kind: EventKind,
    /// When, by the author's clock.
    pub at: Nanos,
    /// The space.
    pub space: SpaceNo,
    /// The author.
    pub author: AuthorNo,
    /// The membership it stands on.
    pub authority: Option<Seq>,
    /// The thread or target it belongs to.
    pub subject: Option<Seq>,
    /// The role that a member event gives.
    pub grants: Option<MemberRole>,
    /// Whether it counts. Meaningful once applied.
    pub counts: bool,
    /// How long its content is.
    pub content_len: u64,
    /// Which content.
    pub content_hash: ContentHash,
}

/// The row of an event, beside its blob.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventRow {
    /// The id.
    pub id: EventId,
    /// Where it stands.
    pub stage: Stage,
    /// Where its content stands. Meaningful once opened.
    pub content: ContentState,
    /// Whether it holds its inline bytes.
    pub has_inline: bool,
    /// The door it came through first.
    pub origin: Origin,
    /// When it came first.
    pub received_at: Nanos,
    /// What it says, once opened.
    pub meta: Option<Meta>,
}

impl EventRow {
    /// Whether its effects are in the views.
    pub fn is_applied(&self) -> bool {
        matches!(self.stage, Stage::Applied { .. })
    }

    /// Its place in the order of events, once opened.
    pub fn stamp(&self) -> Option<Stamp> {
        self.meta.as_ref().map(|meta| Stamp { at: meta.at, id: self.id })
    }
}

/// Who answers for a held event: its limits are theirs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Owner {
    /// Its author, once it was opened.
    Author(AuthorNo),
    /// The door that brought a blob that cannot be opened yet.
    Door(Origin),
}

/// Where the bytes of a content are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentLocation {
    /// Not here.
    Absent,
    /// In the database.
    Row,
    /// In an object of that name.
    Object(ObjectName),
}

/// How often a content is referred to, and where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContentRow {
    /// How many references are taken.
    pub count: u64,
    /// How many bytes travel.
    pub len: u64,
    /// Where they are.
    pub place: ContentLocation,
    /// Since when the count is zero, while it is.
    pub unused_since: Option<Nanos>,
}

/// Why an entry stands in the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JournalKind {
    /// The event was applied.
    Applied,
    /// Its content was processed.
    Processed,
    /// Its content was deleted.
    Deleted,
    /// Its content came back: no delete counts any more.
    Undeleted,
    /// Its content was pruned.
    Pruned,
    /// It does not count any more.
    Hidden,
    /// It counts again.
    Shown,
    /// The bytes of a file came.
    BytesArrived,
}

impl JournalKind {
    const ALL: [JournalKind; 8] = [
        JournalKind::Applied,
        JournalKind::Processed,
        JournalKind::Deleted,
        JournalKind::Undeleted,
        JournalKind::Pruned,
        JournalKind::Hidden,
        JournalKind::Shown,
        JournalKind::BytesArrived,
    ];

    /// The byte that stands for it.
    pub fn code(self) -> u8 {
        JournalKind::ALL.iter().position(|kind| *kind == self).unwrap_or(0) as u8
    }

    /// The kind of that byte.
    pub fn from_code(code: u8) -> Option<JournalKind> {
        JournalKind::ALL.get(usize::from(code)).copied()
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            JournalKind::Applied => "applied",
            JournalKind::Processed => "processed",
            JournalKind::Deleted => "deleted",
            JournalKind::Undeleted => "undeleted",
            JournalKind::Pruned => "pruned",
            JournalKind::Hidden => "hidden",
            JournalKind::Shown => "shown",
            JournalKind::BytesArrived => "bytes-arrived",
        }
    }
}

/// Work that is cut into transactions: a row until it is done, so that it survives a crash.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Task {
    /// Wake what waits for an event, key or time.
    Release(model::Need),
    /// Process content for those that wait for it, after a number.
    Content(SpaceNo, ContentHash, Seq),
    /// Wake what was carried of a space that was joined, after a number.
    Join(SpaceId, Seq),
    /// Work of the `space` protocol.
    Space(SpaceTask),
    /// Work of the `nostr` protocol.
    Nostr(NostrTask),
    /// Work of the `probe` protocol.
    #[cfg(feature = "simulation")]
    Probe(ProbeTask),
}

/// What became of an arrival.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Its effects are in the views.
    Applied(Seq),
    /// It waits.
    Held(Seq, Vec<model::Need>),
    /// It is kept for others.
    Carried(Seq),
    /// It will never be valid.
    Refused(RefusalReason),
    /// It was here already; nothing changed, except that inline content that was missing may have come with it.
    Known(Seq),
    /// It was turned away and may come again.
    TurnedAway(TurnedAway),
}

/// Why something was turned away. Nothing of it is remembered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TurnedAway {
    /// Another blob has this id.
    Clash,
    /// There is no room for more that waits.
    NoRoom,
    /// What is inside has a version that this release does not know.
    Version,
}
