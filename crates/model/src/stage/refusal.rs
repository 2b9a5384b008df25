//! Why an event was refused.

use std::fmt;

/// Why an event was refused. Refused ids are remembered, and what needs a refused event is refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RefusalReason {
    /// The space id does not follow from its creator.
    SpaceId,
    /// A kind that must name its authority does not, or names several.
    Authority,
    /// The authority is not a membership of this space, or not of the author.
    NotTheirs,
    /// The role is too small for this kind.
    Role,
    /// A needed reference is missing, repeated, of the wrong kind, or in another space.
    Reference,
    /// A needed reference is not strictly earlier.
    Order,
    /// The author may not change this target.
    Target,
    /// A plain event in a sealed space, or a sealed one in an open space.
    Sealing,
    /// This kind does not belong into a public space, or into one with members.
    Place,
    /// The auxiliary key does not fit the kind.
    AuxKey,
    /// The signature or the encoding inside the blob is wrong.
    Blob,
    /// It needs an event that was refused.
    NeedsRefused,
}

impl RefusalReason {
    /// Every reason, in the order of their codes.
    pub const ALL: [RefusalReason; 12] = [
        RefusalReason::SpaceId,
        RefusalReason::Authority,
        RefusalReason::NotTheirs,
        RefusalReason::Role,
        RefusalReason::Reference,
        RefusalReason::Order,
        RefusalReason::Target,
        RefusalReason::Sealing,
        RefusalReason::Place,
        RefusalReason::AuxKey,
        RefusalReason::Blob,
        RefusalReason::NeedsRefused,
    ];

    /// The byte that stands for it in a row.
    pub fn code(self) -> u8 {
        RefusalReason::ALL.iter().position(|why| *why == self).unwrap_or(0) as u8
    }

    /// The reason of that byte.
    pub fn from_code(code: u8) -> Option<RefusalReason> {
        RefusalReason::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RefusalReason::SpaceId => "its space id does not follow from its creator",
            RefusalReason::Authority => "it does not name exactly one membership as its authority",
            RefusalReason::NotTheirs => "its authority is not a membership of the author in this space",
            RefusalReason::Role => "the role of its authority is too small for this kind",
            RefusalReason::Reference => "a needed reference is missing, of the wrong kind, or in another space",
            RefusalReason::Order => "a needed reference is not strictly earlier",
            RefusalReason::Target => "the author may not change this target",
            RefusalReason::Sealing => "it is plain in a sealed space, or sealed in an open one",
            RefusalReason::Place => "this kind does not belong into such a space",
            RefusalReason::AuxKey => "its auxiliary key does not fit the kind",
            RefusalReason::Blob => "its signature or encoding is wrong",
            RefusalReason::NeedsRefused => "it needs an event that was refused",
        })
    }
}
