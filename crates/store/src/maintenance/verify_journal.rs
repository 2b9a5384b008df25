//! The journal, which has no gap, and its index: a row for each space and block of numbers in which the space has entries, and no other.

use crate::database::batch::JOURNAL_BLOCK;
use crate::database::db::Db;
use crate::keys::JournalBlockKey;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use std::collections::BTreeSet;

impl<V: TableReads> Db<V> {
    /// Everything that is wrong between the journal and its index.
    pub(crate) fn journal_problems(&self) -> StoreResult<Vec<String>> {
        let mut blocks = BTreeSet::new();
        let mut problems = Vec::new();
        let mut last: Option<u64> = None;
        for row in self.tables.journal().iter()? {
            let row = row?;
            let number = row.key().number();
            // What is old goes from the beginning.
            if let Some(gap) = last.replace(number).filter(|last| last + 1 != number) {
                problems.push(format!("the journal has no entries between {gap} and {number}"));
            }
            blocks.insert(JournalBlockKey::new(row.value()?.space, row.key().number() / JOURNAL_BLOCK));
        }
        let latest = self.position()?.number;
        if let Some(last) = last.filter(|last| *last != latest) {
            problems.push(format!("the journal ends with {last}, before its last entry"));
        }
        let (rows, counted) = (self.tables.journal_blocks().len()?, blocks.len() as u64);
        if rows != counted {
            problems.push(format!("{rows} rows of the index of the journal, but {counted} counted"));
        }
        for key in blocks {
            if !self.tables.journal_blocks().contains(key)? {
                problems.push(format!("block {} of the journal of {} is not indexed", key.block(), key.space()));
            }
        }
        Ok(problems)
    }
}
