//! What is kept of an event, of content and of memberships, and the rows of the views.

use model::payload::MemberRole;
use model::stage::{ContentState, RefusalReason, Stage};
use model::{AuthorNo, AuxKey, ContentHash, EventId, Identity, Kind, Nanos, Seq, SpaceId, SpaceNo, Stamp};

/// Through which door an event came first. Kept locally, never replicated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Origin {
    /// Made here.
    Local,
    /// Read from a bundle.
    Import,
    /// Brought by the peer of that local number.
    Peer(u32),
}

/// What the envelope of an opened event says, as far as rows and decisions need it again and again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meta {
    /// The kind.
    pub kind: Kind,
    /// When, by the author's clock.
    pub at: Nanos,
    /// The space.
    pub space: SpaceNo,
    /// The author.
    pub author: AuthorNo,
    /// The membership it stands on; zero for none.
    pub authority: Seq,
    /// The thread or target it belongs to; zero for none.
    pub subject: Seq,
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

/// A role that a space or member event gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Membership {
    /// To whom.
    pub member: Identity,
    /// Which role.
    pub role: MemberRole,
    /// Whether the space is sealed.
    pub sealed: bool,
}

/// Something that ends or lessens a membership from its stamp on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MembershipLimit {
    /// From when.
    pub from: Stamp,
    /// The greatest role that remains; none after a removal.
    pub cap: Option<MemberRole>,
}

/// Where the bytes of a content are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ContentLocation {
    /// Not here.
    Absent,
    /// In the database.
    Row,
    /// In a file of their own.
    File,
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
    /// Since when the count is zero.
    pub unused_since: Nanos,
}

/// Which register a candidate stands in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Register {
    /// The settings of the space.
    Settings,
    /// The profile of an author.
    Profile(AuthorNo),
    /// A device of an author.
    Device(AuthorNo, AuxKey),
    /// How far an author has read a thread.
    ReadMarker(AuthorNo, Seq),
    /// A field of a thread.
    ThreadField(Seq, u8),
    /// Whether an author follows a public space.
    Follow(AuthorNo, AuxKey),
}

/// A register of a space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RegisterKey {
    /// The space.
    pub space: SpaceNo,
    /// The register.
    pub register: Register,
}

/// The fields of a thread; the last byte of an update's auxiliary key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ThreadField {
    /// Its title.
    Title,
    /// What an application keeps with it.
    Metadata,
    /// Who takes part.
    Participants,
    /// Which messages are pinned.
    Pins,
    /// Whether it was deleted; written by thread deletes only.
    Deleted,
}

impl ThreadField {
    /// Every field that an update can write.
    pub const UPDATABLE: [ThreadField; 4] =
        [ThreadField::Title, ThreadField::Metadata, ThreadField::Participants, ThreadField::Pins];

    /// The byte that stands for it.
    pub fn code(self) -> u8 {
        match self {
            ThreadField::Title => 1,
            ThreadField::Metadata => 2,
            ThreadField::Participants => 3,
            ThreadField::Pins => 4,
            ThreadField::Deleted => 255,
        }
    }

    /// The auxiliary key of an update of this field.
    pub fn aux(self) -> AuxKey {
        let mut key = [0; 16];
        key[15] = self.code();
        AuxKey(key)
    }

    /// The name of the field in the body of an update.
    pub fn name(self) -> &'static str {
        match self {
            ThreadField::Title => "title",
            ThreadField::Metadata => "metadata",
            ThreadField::Participants => "participants",
            ThreadField::Pins => "pins",
            ThreadField::Deleted => "deleted",
        }
    }
}

/// One event's contribution to a view. Rows carry their event's stamp, so that each event has its own and the winner
/// is found by order, never by arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ViewRow {
    /// A thread of a space.
    Thread {
        /// The space.
        space: SpaceNo,
    },
    /// A message of a thread.
    Timeline {
        /// The space.
        space: SpaceNo,
        /// The thread.
        thread: Seq,
        /// Whether the message refers to more than its thread: an answer, or with attachments.
        refers: bool,
    },
    /// A later version of a message or post.
    Version {
        /// The message or post.
        target: Seq,
    },
    /// A candidate for the author's reaction.
    Reaction {
        /// The message.
        target: Seq,
        /// The author.
        author: AuthorNo,
    },
    /// An answer to an event, which need not be here.
    Reply {
        /// The space of both: an answer counts where it is said.
        space: SpaceNo,
        /// What it answers.
        target: EventId,
    },
    /// A message that mentions somebody.
    Mention {
        /// The space of the message.
        space: SpaceNo,
        /// The public space of whom it mentions.
        who: SpaceId,
    },
    /// A candidate of a register.
    Register(RegisterKey),
    /// A candidate of a follow, found by whom it follows.
    Follower {
        /// The public space that is followed.
        followee: SpaceId,
        /// Who follows.
        follower: AuthorNo,
    },
    /// A post of a public space.
    Post {
        /// The space.
        space: SpaceNo,
    },
    /// A thread or message under an id that a client chose.
    Chosen {
        /// The space.
        space: SpaceNo,
        /// The hash of the chosen id.
        key: AuxKey,
    },
    /// A file of a space.
    File {
        /// The space.
        space: SpaceNo,
    },
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
}

impl JournalKind {
    const ALL: [JournalKind; 7] = [
        JournalKind::Applied,
        JournalKind::Processed,
        JournalKind::Deleted,
        JournalKind::Undeleted,
        JournalKind::Pruned,
        JournalKind::Hidden,
        JournalKind::Shown,
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
    /// Look again at the events that stand on a membership, from a stamp on.
    Rederive(Seq, Stamp),
    /// Look again at the content of a target's versions, after a stamp.
    Versions(Seq, Stamp),
    /// Wake what was carried of a space that was joined, after a number.
    Join(SpaceId, Seq),
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
