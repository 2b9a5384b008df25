//! Rows of the `space` protocol: memberships, registers, and what an event contributes to the views.

use super::{Meta, Task};
use model::envelope::Role;
use model::payload::MemberRole;
use model::{AuthorNo, AuxKey, Envelope, EventId, Identity, Seq, SpaceId, SpaceNo, Stamp};

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
    /// Somebody who alone, with others, sees a thread.
    Direct {
        /// Their public space.
        who: SpaceId,
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

impl ViewRow {
    /// A candidate of a register of the event's space.
    pub(crate) fn in_register(meta: &Meta, register: Register) -> ViewRow {
        ViewRow::Register(RegisterKey { space: meta.space, register })
    }

    /// The row under the id that a client chose, if it chose one.
    pub(crate) fn chosen(meta: &Meta, envelope: &Envelope) -> Option<ViewRow> {
        (!envelope.aux.is_zero()).then_some(ViewRow::Chosen { space: meta.space, key: envelope.aux })
    }

    /// A row for each event that it answers.
    pub(crate) fn replies(meta: &Meta, envelope: &Envelope) -> impl Iterator<Item = ViewRow> {
        let answers = envelope.references.iter().filter(|reference| reference.role == Role::ReplyTo);
        answers.map(|reference| ViewRow::Reply { space: meta.space, target: reference.id })
    }

    /// The register it is a candidate of.
    pub(crate) fn register(self) -> Option<RegisterKey> {
        match self {
            ViewRow::Register(key) => Some(key),
            ViewRow::Thread { .. } | ViewRow::Direct { .. } => None,
            ViewRow::Timeline { .. } | ViewRow::Version { .. } => None,
            ViewRow::Reaction { .. } | ViewRow::Reply { .. } | ViewRow::Mention { .. } => None,
            ViewRow::Follower { .. } | ViewRow::Post { .. } | ViewRow::Chosen { .. } | ViewRow::File { .. } => None,
        }
    }
}

/// Work of the `space` protocol that is cut into transactions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SpaceTask {
    /// Look again at the events that stand on a membership, from a stamp on.
    Rederive(Seq, Stamp),
    /// Look again at the content of a target's versions, after a stamp.
    Versions(Seq, Stamp),
}

impl From<SpaceTask> for Task {
    fn from(task: SpaceTask) -> Task {
        Task::Space(task)
    }
}
