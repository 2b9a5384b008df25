//! Reading a range of keys of any table as bytes.

use crate::keys::TableKey;
use crate::maintenance::explorer::families::ExplorerTable;
use crate::maintenance::explorer::pattern::KeyRange;
use crate::tables::{RowValue, Rows, Stored, TableReads};
use engine::reads::StoreResult;
use redb::ReadableTable;
use std::ops::Bound;

/// The first keys of a range.
pub(super) fn keys(
    view: &impl TableReads,
    table: ExplorerTable,
    span: &KeyRange,
    most: usize,
) -> StoreResult<Vec<Vec<u8>>> {
    match table {
        ExplorerTable::Ids => keys_in(view.ids(), span, most),
        ExplorerTable::Spaces => keys_in(view.spaces(), span, most),
        ExplorerTable::Authors => keys_in(view.authors(), span, most),
        ExplorerTable::Threads => keys_in(view.threads(), span, most),
        ExplorerTable::Updated => keys_in(view.updated(), span, most),
        ExplorerTable::Timeline => keys_in(view.timeline(), span, most),
        ExplorerTable::Versions => keys_in(view.versions(), span, most),
        ExplorerTable::Edits => keys_in(view.edits(), span, most),
        ExplorerTable::Reactions => keys_in(view.reactions(), span, most),
        ExplorerTable::Replies => keys_in(view.replies(), span, most),
        ExplorerTable::Registers => keys_in(view.registers(), span, most),
        ExplorerTable::Posts => keys_in(view.posts(), span, most),
        ExplorerTable::Chosen => keys_in(view.chosen(), span, most),
        ExplorerTable::Files => keys_in(view.files(), span, most),
        ExplorerTable::Tombstones => keys_in(view.tombstones(), span, most),
        ExplorerTable::Memberships => keys_in(view.memberships(), span, most),
        ExplorerTable::Limits => keys_in(view.limits(), span, most),
        ExplorerTable::ByAuthor => keys_in(view.by_author(), span, most),
        ExplorerTable::Contents => keys_in(view.contents(), span, most),
        ExplorerTable::ContentWaiting => keys_in(view.content_waiting(), span, most),
        ExplorerTable::Waiting => keys_in(view.waiting(), span, most),
        ExplorerTable::Held => keys_in(view.held(), span, most),
        ExplorerTable::Carried => keys_in(view.carried(), span, most),
        ExplorerTable::Gaps => keys_in(view.gaps(), span, most),
        ExplorerTable::Schedule => keys_in(view.schedule(), span, most),
        ExplorerTable::Journal => keys_in(view.journal(), span, most),
        ExplorerTable::Usage => keys_in(view.usage(), span, most),
        ExplorerTable::Refused => keys_in(view.refused(), span, most),
        ExplorerTable::Expired => keys_in(view.expired(), span, most),
        ExplorerTable::ApiKeys => keys_in(view.api_keys(), span, most),
        ExplorerTable::Audit => keys_in(view.audit(), span, most),
        ExplorerTable::Counts => keys_in(view.counts(), span, most),
    }
}

fn keys_in<K: TableKey, V: RowValue>(
    table: &Rows<impl ReadableTable<K, Stored<V>>, K, V>,
    span: &KeyRange,
    most: usize,
) -> StoreResult<Vec<Vec<u8>>> {
    // A bound that is no key, such as one of a varying width that was filled up, still sorts where it should.
    let from = match &span.from {
        Bound::Included(from) => Bound::Included(K::from_bytes(from)),
        Bound::Excluded(from) => Bound::Excluded(K::from_bytes(from)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let rows = table.range((from, Bound::Included(K::from_bytes(&span.to))))?.take(most);
    rows.map(|row| Ok(K::as_bytes(&row?.key()).as_ref().to_vec())).collect()
}
