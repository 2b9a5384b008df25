//! Reading a range of keys of any table as bytes.

use crate::database::db::fault;
use crate::maintenance::explorer::families::ExplorerTable;
use crate::maintenance::explorer::pattern::KeyRange;

use crate::tables::TableReads;
use engine::reads::StoreResult;
use redb::{ReadableTable, Value};
use std::ops::Bound;

/// The first keys of a range.
pub(super) fn keys(
    view: &impl TableReads,
    table: ExplorerTable,
    span: &KeyRange,
    most: usize,
) -> StoreResult<Vec<Vec<u8>>> {
    match table {
        ExplorerTable::Ids => arrays(view.ids(), span, most),
        ExplorerTable::Spaces => arrays(view.spaces(), span, most),
        ExplorerTable::Authors => arrays(view.authors(), span, most),
        ExplorerTable::Threads => arrays(view.threads(), span, most),
        ExplorerTable::Updated => numbers(view.updated(), span, most),
        ExplorerTable::Timeline => arrays(view.timeline(), span, most),
        ExplorerTable::Versions => arrays(view.versions(), span, most),
        ExplorerTable::Edits => arrays(view.edits(), span, most),
        ExplorerTable::Reactions => arrays(view.reactions(), span, most),
        ExplorerTable::Replies => arrays(view.replies(), span, most),
        ExplorerTable::Registers => arrays(view.registers(), span, most),
        ExplorerTable::Posts => arrays(view.posts(), span, most),
        ExplorerTable::Chosen => arrays(view.chosen(), span, most),
        ExplorerTable::Files => arrays(view.files(), span, most),
        ExplorerTable::Tombstones => arrays(view.tombstones(), span, most),
        ExplorerTable::Memberships => numbers(view.memberships(), span, most),
        ExplorerTable::Limits => arrays(view.limits(), span, most),
        ExplorerTable::ByAuthor => arrays(view.by_author(), span, most),
        ExplorerTable::Contents => arrays(view.contents(), span, most),
        ExplorerTable::ContentWaiting => arrays(view.content_waiting(), span, most),
        ExplorerTable::Waiting => slices(view.waiting(), span, most),
        ExplorerTable::Held => arrays(view.held(), span, most),
        ExplorerTable::Carried => arrays(view.carried(), span, most),
        ExplorerTable::Gaps => arrays(view.gaps(), span, most),
        ExplorerTable::Schedule => slices(view.schedule(), span, most),
        ExplorerTable::Journal => numbers(view.journal(), span, most),
        ExplorerTable::Usage => arrays(view.usage(), span, most),
        ExplorerTable::Refused => arrays(view.refused(), span, most),
        ExplorerTable::Expired => arrays(view.expired(), span, most),
        ExplorerTable::ApiKeys => arrays(view.api_keys(), span, most),
        ExplorerTable::Audit => numbers(view.audit(), span, most),
        ExplorerTable::Counts => words(view.counts(), span, most),
    }
}

fn arrays<const N: usize, V: Value + 'static>(
    table: &impl ReadableTable<[u8; N], V>,
    span: &KeyRange,
    most: usize,
) -> StoreResult<Vec<Vec<u8>>> {
    let key = |bytes: &Vec<u8>| crate::keys::key::<N>(&[bytes]);
    let bounds = (span.from.as_ref().map(key), Bound::Included(key(&span.to)));
    let rows = table.range::<[u8; N]>(bounds).map_err(fault)?.take(most);
    rows.map(|entry| Ok(entry.map_err(fault)?.0.value().to_vec())).collect()
}

fn numbers<V: Value + 'static>(
    table: &impl ReadableTable<u64, V>,
    span: &KeyRange,
    most: usize,
) -> StoreResult<Vec<Vec<u8>>> {
    let key = |bytes: &Vec<u8>| u64::from_be_bytes(crate::keys::key(&[bytes]));
    let bounds = (span.from.as_ref().map(key), Bound::Included(key(&span.to)));
    let rows = table.range::<u64>(bounds).map_err(fault)?.take(most);
    rows.map(|entry| Ok(entry.map_err(fault)?.0.value().to_be_bytes().to_vec())).collect()
}

fn slices<V: Value + 'static>(
    table: &impl ReadableTable<&'static [u8], V>,
    span: &KeyRange,
    most: usize,
) -> StoreResult<Vec<Vec<u8>>> {
    let bounds = (span.from.as_ref().map(Vec::as_slice), Bound::Included(span.to.as_slice()));
    let rows = table.range::<&[u8]>(bounds).map_err(fault)?.take(most);
    rows.map(|entry| Ok(entry.map_err(fault)?.0.value().to_vec())).collect()
}

fn words<V: Value + 'static>(
    table: &impl ReadableTable<&'static str, V>,
    span: &KeyRange,
    most: usize,
) -> StoreResult<Vec<Vec<u8>>> {
    let word = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let (from, to) = (span.from.as_ref().map(word), word(&span.to));
    let bounds = (from.as_ref().map(String::as_str), Bound::Included(to.as_str()));
    let rows = table.range::<&str>(bounds).map_err(fault)?.take(most);
    rows.map(|entry| Ok(entry.map_err(fault)?.0.value().as_bytes().to_vec())).collect()
}
