//! Every table that has something to show, with the pattern of its keys.

use super::pattern::Part::{Author, Byte, Event, Fixed, Hex, Number, Space, SpaceId, Stamp, Text, Word};
use super::pattern::{self, Names, Part};
use engine::reads::Answer;

/// A table with rows to show. Several families may share one, told apart by fixed bytes in their keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Table {
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
    pub(super) table: Table,
    pub(super) parts: &'static [Part],
}

impl Family {
    /// The stored key of a text, if it is one of this family and everything it names is known here.
    pub(super) fn parse(&self, names: &impl Names, text: &str) -> Answer<Option<Vec<u8>>> {
        pattern::parse(self.parts, text, names)
    }
}

const fn family(table: Table, parts: &'static [Part]) -> Family {
    Family { table, parts }
}

/// The registers pad their subject to twenty bytes.
const PAD_20: &[u8] = &[0; 20];
const PAD_16: &[u8] = &[0; 16];
const PAD_11: &[u8] = &[0; 11];
const PAD_8: &[u8] = &[0; 8];
const COLON: Part = Text(":");

/// Every family, in the order in which they are listed. Needs and groups that nothing makes yet have none.
pub(super) const FAMILIES: &[Family] = &[
    family(Table::Spaces, &[Text("space:"), SpaceId]),
    family(Table::Authors, &[Text("identity:"), Hex(32)]),
    family(Table::Ids, &[Text("event:"), Hex(16)]),
    family(Table::Threads, &[Text("threads:"), Space, COLON, Stamp]),
    family(Table::Updated, &[Text("thread:"), Event, Text(":meta")]),
    family(Table::Timeline, &[Text("thread:"), Event, Text(":msg:"), Stamp]),
    family(Table::Versions, &[Text("version:msg:"), Event, COLON, Stamp]),
    family(Table::Edits, &[Text("edit:msg:"), Event, COLON, Stamp]),
    family(Table::Reactions, &[Text("reaction:"), Event, COLON, Author, COLON, Stamp]),
    family(Table::Replies, &[Text("reply:"), Space, COLON, Hex(16), COLON, Stamp]),
    family(Table::Registers, &[Text("settings:"), Space, Fixed(&[0]), Fixed(PAD_20), COLON, Stamp]),
    family(Table::Registers, &[Text("profile:"), Space, Fixed(&[1]), COLON, Author, Fixed(PAD_16), COLON, Stamp]),
    family(Table::Registers, &[Text("device:"), Space, Fixed(&[2]), COLON, Author, COLON, Hex(16), COLON, Stamp]),
    family(
        Table::Registers,
        &[Text("read:"), Space, Fixed(&[3]), COLON, Author, COLON, Event, Fixed(PAD_8), COLON, Stamp],
    ),
    family(
        Table::Registers,
        &[Text("field:"), Space, Fixed(&[4]), COLON, Event, COLON, Byte, Fixed(PAD_11), COLON, Stamp],
    ),
    family(Table::Registers, &[Text("follow:"), Space, Fixed(&[5]), COLON, Author, COLON, Hex(16), COLON, Stamp]),
    family(Table::Posts, &[Text("post:"), Space, COLON, Stamp]),
    family(Table::Chosen, &[Text("chosen:"), Space, COLON, Hex(16), COLON, Stamp]),
    family(Table::Files, &[Text("file:"), Space, COLON, Stamp]),
    family(Table::Tombstones, &[Text("tombstone:"), Hex(16), COLON, Stamp]),
    family(Table::Memberships, &[Text("membership:"), Event]),
    family(Table::Limits, &[Text("limit:"), Event, COLON, Stamp]),
    family(Table::ByAuthor, &[Text("author:"), Space, COLON, Author, COLON, Stamp]),
    family(Table::Contents, &[Text("content:"), Space, COLON, Hex(32)]),
    family(Table::ContentWaiting, &[Text("missing:"), Space, COLON, Hex(32), COLON, Event]),
    family(Table::Waiting, &[Text("waiting:event:"), Fixed(&[1]), Hex(16), COLON, Event]),
    family(Table::Waiting, &[Text("waiting:key:"), Fixed(&[2]), Hex(16), COLON, Event]),
    family(Table::Waiting, &[Text("waiting:time:"), Fixed(&[model::Need::TIME_TAG]), Number, COLON, Event]),
    family(Table::Held, &[Text("held:"), Number, COLON, Event]),
    family(Table::Carried, &[Text("carried:"), SpaceId, COLON, Event]),
    family(Table::Gaps, &[Text("gap:"), Space, COLON, Author, COLON, Hex(16)]),
    family(Table::Schedule, &[Text("schedule:space:"), Fixed(&[1]), SpaceId]),
    family(Table::Schedule, &[Text("schedule:author:"), Fixed(&[2]), SpaceId, COLON, Hex(32)]),
    family(Table::Schedule, &[Text("schedule:content:"), Fixed(&[3]), SpaceId, COLON, Hex(32)]),
    family(Table::Journal, &[Text("journal:"), Number]),
    family(Table::Usage, &[Text("usage:"), Space, COLON, Author]),
    family(Table::Refused, &[Text("refused:"), Hex(16)]),
    family(Table::Expired, &[Text("expired:"), Hex(16)]),
    family(Table::ApiKeys, &[Text("api-key:"), Hex(8)]),
    family(Table::Audit, &[Text("audit:"), Number]),
    family(Table::Counts, &[Text("count:"), Word]),
];
