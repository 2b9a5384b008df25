//! The store as an operator sees it: rows under keys that are text.
//!
//! Keys rest compact and refer to events, spaces and identities by local numbers. Here they are written with the ids
//! that everybody knows: `thread:{thread}:msg:{unix nanos, 20 digits}-{event id}`. Each table that has something to
//! show is a [`Family`](families::Family), whose pattern says how its bytes and its text correspond. Keys that differ
//! only after their last event, space or identity sort as text exactly as their rows do.
//!
//! A list is a range of one table at a time and never reads more rows than it shows. Whoever administers one space sees
//! rows of that space only: where the range cannot be limited to it, the family is not listed for them. Nothing is
//! decrypted: sealed content shows as the bytes that travel.

mod families;
mod pattern;
mod scan;
#[cfg(test)]
mod tests;
mod value;

use crate::database::db::Db;
use crate::keys::{JournalNo, KeyField as _, SpaceNoKey};
use crate::tables::TableReads;
use engine::reads::{Reads, StoreResult};
use families::{FAMILIES, Family};
use model::{AuthorKey, AuthorNo, EventId, Seq, SpaceId, SpaceNo};
use pattern::NumberNames;
pub(super) use pattern::hex;
use std::ops::Bound;

/// A page of keys.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExplorerPage {
    /// The keys, by family and then in the order of their rows.
    pub keys: Vec<String>,
    /// The last key, if there may be more after it.
    pub next: Option<String>,
}

/// A row as the explorer shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct ExplorerRow {
    /// Its value, as JSON.
    pub value: serde_json::Value,
    /// What to know about how it is shown.
    pub note: Option<&'static str>,
}

/// Why a text is no place to list from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadExplorerKey {
    /// Rows of this kind are told apart by space only one by one.
    #[error("rows of this kind cannot be listed for one space: name more of the key, or ask the operator")]
    OfManySpaces,
    /// The cursor is not a key of this list.
    #[error("the cursor is not a key that this list gave out")]
    Cursor,
}

impl<V: TableReads> Db<V> {
    /// Keys that begin with a prefix, after a cursor; of one space, or of the whole node.
    pub fn explore(
        &self,
        prefix: &str,
        cursor: Option<&str>,
        most: usize,
        only: Option<&SpaceId>,
    ) -> StoreResult<Result<ExplorerPage, BadExplorerKey>> {
        let fitting: Vec<&Family> = FAMILIES.iter().filter(|family| pattern::may_begin(family.parts, prefix)).collect();
        if fitting.is_empty() {
            return Ok(Ok(ExplorerPage::default()));
        }
        if only.is_some() && !prefix.is_empty() && self.is_of_many_spaces(&fitting, prefix, only)? {
            return Ok(Err(BadExplorerKey::OfManySpaces));
        }
        let mut after = None;
        let mut first = 0;
        if let Some(cursor) = cursor {
            let found = fitting.iter().enumerate().find_map(|(at, family)| match family.parse(self, cursor) {
                Ok(key) => key.map(|key| Ok((at, key))),
                Err(fault) => Some(Err(fault)),
            });
            let Some((at, key)) = found.transpose()? else { return Ok(Err(BadExplorerKey::Cursor)) };
            (first, after) = (at, Some(key));
        }
        let mut page = ExplorerPage::default();
        for family in &fitting[first..] {
            let room = most - page.keys.len();
            // One more than there is room for tells that there are more.
            let keys = self.keys_of(family, prefix, after.take(), room + 1, only)?;
            for key in keys.iter().take(room) {
                page.keys.push(pattern::to_text(family.parts, key, self)?);
            }
            if keys.len() > room {
                page.next = page.keys.last().cloned();
                break;
            }
        }
        Ok(Ok(page))
    }

    /// Whether nothing that begins with a prefix can be listed for one space, because nothing says whose it is.
    fn is_of_many_spaces(&self, fitting: &[&Family], prefix: &str, only: Option<&SpaceId>) -> StoreResult<bool> {
        let mut is_so = false;
        for family in fitting {
            match pattern::span(family.parts, prefix, self, only)? {
                _ if family.table == families::ExplorerTable::Journal => return Ok(false),
                // Of their space, or of one that they are told nothing about.
                Some(span) if span.is_of_space.is_some() => return Ok(false),
                Some(_) => is_so = true,
                None => {}
            }
        }
        Ok(is_so)
    }

    /// The row under a key; of one space, or of the whole node.
    pub fn explore_row(&self, key: &str, only: Option<&SpaceId>) -> StoreResult<Option<ExplorerRow>> {
        for family in FAMILIES {
            let Some(stored) = family.parse(self, key)? else { continue };
            if only.is_some() && self.space_of_row(family, &stored)?.as_ref() != only {
                return Ok(None);
            }
            return self.row_value(family.table, &stored);
        }
        Ok(None)
    }

    fn keys_of(
        &self,
        family: &Family,
        prefix: &str,
        after: Option<Vec<u8>>,
        most: usize,
        only: Option<&SpaceId>,
    ) -> StoreResult<Vec<Vec<u8>>> {
        let Some(mut span) = pattern::span(family.parts, prefix, self, only)? else { return Ok(Vec::new()) };
        // A cursor from elsewhere must not lead out of the range.
        let low = match &span.from {
            Bound::Included(low) | Bound::Excluded(low) => low.clone(),
            Bound::Unbounded => Vec::new(),
        };
        let after = after.filter(|after| *after >= low);
        if after.as_ref().is_some_and(|after| *after > span.to) {
            return Ok(Vec::new());
        }
        match (family.table, only) {
            (families::ExplorerTable::Journal, Some(space)) => {
                return self.journal_of(space, &low, after, &span.to, most);
            }
            (families::ExplorerTable::Registers, None) if low[..4] != span.to[..4] => {
                return self.registers_of_all(family, prefix, after, most);
            }
            (_, Some(_)) if span.is_of_space != Some(true) => return Ok(Vec::new()),
            (_, Some(_) | None) => {}
        }
        if let Some(after) = after {
            span.from = Bound::Excluded(after);
        }
        scan::keys(&self.tables, family.table, &span, most)
    }

    /// The journal has an index by space of its own.
    fn journal_of(
        &self,
        space: &SpaceId,
        low: &[u8],
        after: Option<Vec<u8>>,
        high: &[u8],
        most: usize,
    ) -> StoreResult<Vec<Vec<u8>>> {
        let Some(no) = Reads::space_no(self, space)? else { return Ok(Vec::new()) };
        let after = after.map_or(u64::read(low).saturating_sub(1), |after| u64::read(&after));
        let entries = self.journal(Some(no), after, most)?.into_iter();
        let entries = entries.map(|(number, _)| JournalNo::new(number).as_bytes().to_vec());
        Ok(entries.take_while(|key| key.as_slice() <= high).collect())
    }

    /// Registers of all kinds share a table, which is ordered by space first, so one kind is a range per space.
    fn registers_of_all(
        &self,
        family: &Family,
        prefix: &str,
        mut after: Option<Vec<u8>>,
        most: usize,
    ) -> StoreResult<Vec<Vec<u8>>> {
        let first = SpaceNo(after.as_ref().map_or(0, |key| u32::read(&key[..4])));
        let mut keys = Vec::new();
        for row in self.tables.space_ids().range(SpaceNoKey::new(first)..)? {
            let space = row?.value()?;
            keys.extend(self.keys_of(family, prefix, after.take(), most - keys.len(), Some(&space))?);
            if keys.len() >= most {
                break;
            }
        }
        Ok(keys)
    }
}

impl<V: TableReads> NumberNames for Db<V> {
    fn event_no(&self, id: &EventId) -> StoreResult<Option<Seq>> {
        self.seq(id)
    }

    fn event_id(&self, seq: Seq) -> StoreResult<EventId> {
        self.id_of(seq)
    }

    fn space_of_event(&self, seq: Seq) -> StoreResult<Option<SpaceId>> {
        self.space_of(seq)
    }

    fn space_no(&self, id: &SpaceId) -> StoreResult<Option<SpaceNo>> {
        Reads::space_no(self, id)
    }

    fn space_id(&self, no: SpaceNo) -> StoreResult<SpaceId> {
        Reads::space_id(self, no)
    }

    fn author_no(&self, key: &[u8; 32]) -> StoreResult<Option<AuthorNo>> {
        for author in AuthorKey::candidates(*key) {
            if let Some(known) = self.number_of(&author)? {
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    fn author_bytes(&self, no: AuthorNo) -> StoreResult<[u8; 32]> {
        Ok(self.author_key(no)?.to_code().1)
    }
}
