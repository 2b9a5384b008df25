//! Reading a range of keys of any table as bytes.

use super::families::Table;
use super::pattern::Span;
use crate::db::fault;
use crate::encode;
use crate::tables::View;
use engine::reads::Answer;
use redb::{ReadableTable, Value};
use std::ops::Bound;

/// The first keys of a range.
pub(super) fn keys(view: &impl View, table: Table, span: &Span, most: usize) -> Answer<Vec<Vec<u8>>> {
    match table {
        Table::Ids => arrays(view.ids(), span, most),
        Table::Spaces => arrays(view.spaces(), span, most),
        Table::Authors => arrays(view.authors(), span, most),
        Table::Threads => arrays(view.threads(), span, most),
        Table::Updated => numbers(view.updated(), span, most),
        Table::Timeline => arrays(view.timeline(), span, most),
        Table::Versions => arrays(view.versions(), span, most),
        Table::Edits => arrays(view.edits(), span, most),
        Table::Reactions => arrays(view.reactions(), span, most),
        Table::Replies => arrays(view.replies(), span, most),
        Table::Registers => arrays(view.registers(), span, most),
        Table::Posts => arrays(view.posts(), span, most),
        Table::Chosen => arrays(view.chosen(), span, most),
        Table::Files => arrays(view.files(), span, most),
        Table::Tombstones => arrays(view.tombstones(), span, most),
        Table::Memberships => numbers(view.memberships(), span, most),
        Table::Limits => arrays(view.limits(), span, most),
        Table::ByAuthor => arrays(view.by_author(), span, most),
        Table::Contents => arrays(view.contents(), span, most),
        Table::ContentWaiting => arrays(view.content_waiting(), span, most),
        Table::Waiting => slices(view.waiting(), span, most),
        Table::Held => arrays(view.held(), span, most),
        Table::Carried => arrays(view.carried(), span, most),
        Table::Gaps => arrays(view.gaps(), span, most),
        Table::Schedule => slices(view.schedule(), span, most),
        Table::Journal => numbers(view.journal(), span, most),
        Table::Usage => arrays(view.usage(), span, most),
        Table::Refused => arrays(view.refused(), span, most),
        Table::Expired => arrays(view.expired(), span, most),
        Table::ApiKeys => arrays(view.api_keys(), span, most),
        Table::Audit => numbers(view.audit(), span, most),
        Table::Counts => words(view.counts(), span, most),
    }
}

fn arrays<const N: usize, V: Value + 'static>(
    table: &impl ReadableTable<[u8; N], V>,
    span: &Span,
    most: usize,
) -> Answer<Vec<Vec<u8>>> {
    let key = |bytes: &Vec<u8>| encode::key::<N>(&[bytes]);
    let bounds = (span.from.as_ref().map(key), Bound::Included(key(&span.to)));
    let rows = table.range::<[u8; N]>(bounds).map_err(fault)?.take(most);
    rows.map(|entry| Ok(entry.map_err(fault)?.0.value().to_vec())).collect()
}

fn numbers<V: Value + 'static>(table: &impl ReadableTable<u64, V>, span: &Span, most: usize) -> Answer<Vec<Vec<u8>>> {
    let key = |bytes: &Vec<u8>| u64::from_be_bytes(encode::key(&[bytes]));
    let bounds = (span.from.as_ref().map(key), Bound::Included(key(&span.to)));
    let rows = table.range::<u64>(bounds).map_err(fault)?.take(most);
    rows.map(|entry| Ok(entry.map_err(fault)?.0.value().to_be_bytes().to_vec())).collect()
}

fn slices<V: Value + 'static>(
    table: &impl ReadableTable<&'static [u8], V>,
    span: &Span,
    most: usize,
) -> Answer<Vec<Vec<u8>>> {
    let bounds = (span.from.as_ref().map(Vec::as_slice), Bound::Included(span.to.as_slice()));
    let rows = table.range::<&[u8]>(bounds).map_err(fault)?.take(most);
    rows.map(|entry| Ok(entry.map_err(fault)?.0.value().to_vec())).collect()
}

fn words<V: Value + 'static>(
    table: &impl ReadableTable<&'static str, V>,
    span: &Span,
    most: usize,
) -> Answer<Vec<Vec<u8>>> {
    let word = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let (from, to) = (span.from.as_ref().map(word), word(&span.to));
    let bounds = (from.as_ref().map(String::as_str), Bound::Included(to.as_str()));
    let rows = table.range::<&str>(bounds).map_err(fault)?.take(most);
    rows.map(|entry| Ok(entry.map_err(fault)?.0.value().as_bytes().to_vec())).collect()
}
