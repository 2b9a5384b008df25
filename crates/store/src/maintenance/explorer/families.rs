//! Every table that has something to show, with the pattern of its keys.

use crate::maintenance::explorer::pattern::KeyPart::{
    Author, Byte, Event, Fixed, Hex, Number, Space, SpaceId, Stamp, Text, Word,
};
use crate::maintenance::explorer::pattern::{self, KeyPart, NumberNames};
use engine::reads::StoreResult;

/// A table with rows to show. Several families may share one, told apart by fixed bytes in their keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ExplorerTable {
    Ids,
    Spaces,
    Authors,
    Threads,
    Updated,
    Timeline,
    Versions,
    Edits,
    Reactions,
    Replies,
    Registers,
    Posts,
    Chosen,
    Files,
    Tombstones,
    Memberships,
    Limits,
    ByAuthor,
    Contents,
    ContentWaiting,
    Waiting,
    Held,
    Carried,
    Gaps,
    Schedule,
    Journal,
    Usage,
    Refused,
    Expired,
    ApiKeys,
    Audit,
    Counts,
}

/// Keys of one form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Family {
    pub(super) table: ExplorerTable,
    pub(super) parts: &'static [KeyPart],
}

impl Family {
    /// The stored key of a text, if it is one of this family and everything it names is known here.
    pub(super) fn parse(&self, names: &impl NumberNames, text: &str) -> StoreResult<Option<Vec<u8>>> {
        pattern::parse(self.parts, text, names)
    }
}

const fn family(table: ExplorerTable, parts: &'static [KeyPart]) -> Family {
    Family { table, parts }
}

const COLON: KeyPart = Text(":");

/// Every family, in the order in which they are listed. Needs and groups that nothing makes yet have none.
pub(super) const FAMILIES: &[Family] = &[
    family(ExplorerTable::Spaces, &[Text("space:"), SpaceId]),
    family(ExplorerTable::Authors, &[Text("identity:"), Fixed(&[model::SPACE_PROTOCOL]), Hex(32)]),
    family(ExplorerTable::Ids, &[Text("event:"), Hex(16)]),
    family(ExplorerTable::Threads, &[Text("threads:"), Space, COLON, Stamp]),
    family(ExplorerTable::Updated, &[Text("thread:"), Event, Text(":meta")]),
    family(ExplorerTable::Timeline, &[Text("thread:"), Event, Text(":msg:"), Stamp]),
    family(ExplorerTable::Versions, &[Text("version:msg:"), Event, COLON, Stamp]),
    family(ExplorerTable::Edits, &[Text("edit:msg:"), Event, COLON, Stamp]),
    family(ExplorerTable::Reactions, &[Text("reaction:"), Event, COLON, Author, COLON, Stamp]),
    family(ExplorerTable::Replies, &[Text("reply:"), Space, COLON, Hex(16), COLON, Stamp]),
    family(ExplorerTable::Registers, &[Text("settings:"), Space, Fixed(&[0]), COLON, Stamp]),
    family(ExplorerTable::Registers, &[Text("profile:"), Space, Fixed(&[1]), COLON, Author, COLON, Stamp]),
    family(
        ExplorerTable::Registers,
        &[Text("device:"), Space, Fixed(&[2]), COLON, Author, COLON, Hex(16), COLON, Stamp],
    ),
    family(ExplorerTable::Registers, &[Text("read:"), Space, Fixed(&[3]), COLON, Author, COLON, Event, COLON, Stamp]),
    family(ExplorerTable::Registers, &[Text("field:"), Space, Fixed(&[4]), COLON, Event, COLON, Byte, COLON, Stamp]),
    family(
        ExplorerTable::Registers,
        &[Text("follow:"), Space, Fixed(&[5]), COLON, Author, COLON, Hex(16), COLON, Stamp],
    ),
    family(ExplorerTable::Posts, &[Text("post:"), Space, COLON, Stamp]),
    family(ExplorerTable::Chosen, &[Text("chosen:"), Space, COLON, Hex(16), COLON, Stamp]),
    family(ExplorerTable::Files, &[Text("file:"), Space, COLON, Stamp]),
    family(ExplorerTable::Tombstones, &[Text("tombstone:"), Hex(16), COLON, Stamp]),
    family(ExplorerTable::Memberships, &[Text("membership:"), Event]),
    family(ExplorerTable::Limits, &[Text("limit:"), Event, COLON, Stamp]),
    family(ExplorerTable::ByAuthor, &[Text("author:"), Space, COLON, Author, COLON, Stamp]),
    family(ExplorerTable::Contents, &[Text("content:"), Space, COLON, Hex(32)]),
    family(ExplorerTable::ContentWaiting, &[Text("missing:"), Space, COLON, Hex(32), COLON, Event]),
    family(ExplorerTable::Waiting, &[Text("waiting:event:"), Fixed(&[1]), Hex(16), COLON, Event]),
    family(ExplorerTable::Waiting, &[Text("waiting:key:"), Fixed(&[2]), Hex(16), COLON, Event]),
    family(ExplorerTable::Waiting, &[Text("waiting:time:"), Fixed(&[model::Need::TIME_TAG]), Number, COLON, Event]),
    family(ExplorerTable::Held, &[Text("held:"), Number, COLON, Event]),
    family(ExplorerTable::Carried, &[Text("carried:"), SpaceId, COLON, Event]),
    family(ExplorerTable::Gaps, &[Text("gap:"), Space, COLON, Author, COLON, Hex(16)]),
    family(ExplorerTable::Schedule, &[Text("schedule:space:"), Fixed(&[1]), SpaceId]),
    family(ExplorerTable::Schedule, &[Text("schedule:author:"), Fixed(&[2]), SpaceId, COLON, Hex(32)]),
    family(ExplorerTable::Schedule, &[Text("schedule:content:"), Fixed(&[3]), SpaceId, COLON, Hex(32)]),
    family(ExplorerTable::Journal, &[Text("journal:"), Number]),
    family(ExplorerTable::Usage, &[Text("usage:"), Space, COLON, Author]),
    family(ExplorerTable::Refused, &[Text("refused:"), Hex(16)]),
    family(ExplorerTable::Expired, &[Text("expired:"), Hex(16)]),
    family(ExplorerTable::ApiKeys, &[Text("api-key:"), Hex(8)]),
    family(ExplorerTable::Audit, &[Text("audit:"), Number]),
    family(ExplorerTable::Counts, &[Text("count:"), Word]),
];
