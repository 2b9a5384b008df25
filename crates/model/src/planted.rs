//! Bugs that the simulator plants on purpose, to prove that it would catch them.
//!
//! A planted bug is chosen at run time, per thread, and exists only in builds with the feature `simulation`; elsewhere
//! [`is_planted`] is the constant `false` and the compiler removes the branch. The simulator runs each bug over a few
//! hundred seeds and expects at least one of them to fail.

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A deliberate mistake, named after what goes wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum PlantedBug { $($(#[$doc])* $name,)* }

        impl PlantedBug {
            /// Every bug, in the order of declaration.
            pub const ALL: &'static [PlantedBug] = &[$(PlantedBug::$name,)*];

            /// The name by which the command line knows the bug.
            pub fn name(self) -> &'static str {
                match self { $(PlantedBug::$name => stringify!($name),)* }
            }

            pub fn by_name(name: &str) -> Option<PlantedBug> {
                PlantedBug::ALL.iter().copied().find(|bug| bug.name() == name)
            }
        }
    };
}

bugs! {
    /// Holding does not re-check whether the need was met meanwhile.
    LostWakeUp,
    /// Deleting content keeps its reference.
    ForgottenGiveBack,
    /// Deleting content that was pruned gives its reference back a second time.
    DoubleGiveBack,
    /// A write is acknowledged before its commit.
    AnswerBeforeCommit,
    /// Dependants are released when a parent is ready, not when it is applied.
    ReleaseOnReady,
    /// The last version to arrive is shown, not the greatest.
    LastArrivalWins,
    /// A delete that arrives before its target is forgotten.
    DeleteBeforeTargetForgotten,
    /// A follow wins over a later unfollow.
    FollowBeatsUnfollow,
    /// The content backoff is one attempt ahead.
    ContentBackoffOffByOne,
    /// The git backoff is one attempt ahead.
    GitBackoffOffByOne,
    /// A slot that becomes free in a domain's window wakes nobody.
    WindowWakesNobody,
    /// A group is still marked busy when its completion looks for the next request.
    CompletionFindsGroupBusy,
    /// A hunt forgets which URLs it has tried.
    TriedUrlForgotten,
    /// The folder of an object is not synced after the rename.
    MissingDirectorySync,
    /// An expired event's id is still known, so that it can never come again.
    ExpiredStillKnown,
    /// A membership granted by a removed admin counts.
    RemovedAdminGrantHonoured,
    /// A delete by a removed admin counts.
    RemovedAdminDeleteHonoured,
    /// An envelope sealed again under another nonce is taken for another event.
    ResealedAppliedTwice,
    /// A released event is applied but its journal entry is missing.
    JournalEntryMissing,
    /// Content that arrives is processed for the first waiting event only.
    ContentForFirstWaiterOnly,
    /// A second, earlier delete of the same target does not become the deleting one.
    FirstDeleteStays,
    /// A release of many drops what is beyond the first transaction.
    ReleaseRestForgotten,
    /// What needs a refused event stays held for ever.
    RefusalDoesNotSpread,
    /// A collection forgets content that was referred to again meanwhile.
    CollectReferenced,
    /// A repeated delivery of content is processed again.
    ContentProcessedTwice,
    /// A domain lets one request too many into its window.
    WindowOneTooMany,
    /// A replacement of a membership ends all its rights, not only those that the new role lacks.
    ReplacementEndsAll,
    /// An event of the future is applied at once.
    FutureAppliedNow,
    /// Of two values of the probe protocol at the same time the one with the greatest id wins, as in the space protocol.
    ProbeGreatestIdWins,
    /// An event may refer to what is in another space.
    ReferenceAcrossSpaces,
    /// A delete reaches into another space.
    DeleteAcrossSpaces,
    /// An event that anyone can read is accepted in a sealed space, and one under a key in an open one.
    PlainInSealedSpace,
    /// Inline content is believed without a look at its hash.
    InlineContentUnchecked,
    /// A delete leaves those edits of its target alive that do not count.
    UncountedEditsStayAlive,
    /// Whoever knows a membership may act on it.
    SomebodyElsesMembership,
    /// A space may be founded under any id.
    AnySpaceId,
    /// Content stays deleted when the delete of it no longer counts.
    DeletedStaysDeleted,
    /// A key that comes wakes nobody.
    KeyWakesNobody,
    /// A rotation leaves inline content under the old storage key, which it then removes.
    RotationSkipsInline,
    /// A change of the master key leaves transit secrets under the old one, which it then forgets.
    RewrapSkipsTransits,
    /// A backup lacks one of the tables.
    BackupWithoutUsage,
    /// Of two Nostr events at an address of the same second the one with the greatest id wins.
    NostrGreatestIdWins,
    /// Whoever names a maintainer becomes one.
    StrangersMaintain,
    /// When the newest event at an address is deleted, the one before it comes back.
    DeletedAddressComesBack,
    /// A repository whose announcement or state begins to wait is not looked at.
    WaitingChangesNoRefs,
    /// A delete by address does not reach what is held.
    HeldEscapesDeletion,
    /// Git data that comes for one owner wakes nobody.
    GitDataWakesNobody,
}

#[cfg(feature = "simulation")]
mod active {
    use super::PlantedBug;
    use std::cell::Cell;

    thread_local! {
        static PLANTED: Cell<Option<PlantedBug>> = const { Cell::new(None) };
        static WEAK_IDS: Cell<bool> = const { Cell::new(false) };
    }

    /// Makes ids of events on this thread so short that two of them can be made to clash.
    pub fn weaken_ids(weak: bool) {
        WEAK_IDS.with(|cell| cell.set(weak));
    }

    /// Whether ids of events are weak on this thread.
    pub fn has_weak_ids() -> bool {
        WEAK_IDS.with(Cell::get)
    }

    /// Plants the bug on this thread, or none.
    pub fn plant(bug: Option<PlantedBug>) {
        PLANTED.with(|cell| cell.set(bug));
    }

    /// Whether this bug is planted on this thread.
    pub fn is_planted(bug: PlantedBug) -> bool {
        PLANTED.with(Cell::get) == Some(bug)
    }
}

#[cfg(feature = "simulation")]
pub use active::{has_weak_ids, is_planted, plant, weaken_ids};

/// Whether ids of events are weak: never, in a build without the feature.
#[cfg(not(feature = "simulation"))]
#[inline(always)]
pub const fn has_weak_ids() -> bool {
    false
}

/// Whether this bug is planted on this thread: never, in a build without the feature.
#[cfg(not(feature = "simulation"))]
#[inline(always)]
pub const fn is_planted(_bug: PlantedBug) -> bool {
    false
}
