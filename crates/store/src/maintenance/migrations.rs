//! Numbered formats of the data folder: each release knows the steps from every earlier one to its own.
//!
//! Nothing is released yet, so the list of steps is empty and the format is number 1. The mechanism stays, and its test
//! runs steps of its own.

use crate::at_rest::master::WrongKey;
use crate::database::identity::{EPOCH, NODE_ID, draw_epoch, draw_node_id};
use crate::database::open::{FORMAT, OpenError, Store, read_about};
use crate::disk::Disk;
use crate::tables::Tables;
use engine::reads::{StoreError, StoreResult};
use redb::WriteTransaction;

/// Brings a data folder from one format to the next, in one transaction. Files come first: a step may be cut off by a
/// crash after any of them and is then run again.
pub(crate) type Migration = fn(&dyn Disk, &WriteTransaction) -> StoreResult<()>;

/// The step at place n leads from format n + 1 to n + 2.
const MIGRATIONS: &[Migration] = &[];
const _: () = assert!(MIGRATIONS.len() as u64 + 1 == FORMAT);

impl Store {
    /// Brings an older data folder to this release's format, one numbered step at a time. Says whether there was a step,
    /// so that views have to be built again, which needs the keys.
    pub(crate) fn migrate(&self) -> Result<bool, OpenError> {
        self.migrate_by(MIGRATIONS)
    }

    fn migrate_by(&self, steps: &[Migration]) -> Result<bool, OpenError> {
        let newest = steps.len() as u64 + 1;
        let check = self.shared.master.check_value();
        let (format, stored) = self.read_or_begin_format(newest, &check)?;
        if format > newest {
            return Err(OpenError::Newer(format));
        }
        if stored != check {
            return Err(OpenError::WrongKey(WrongKey));
        }
        (format..newest).try_for_each(|format| self.migrate_from(format, steps))?;
        Ok(format < newest)
    }

    /// The format of the folder and the check value of its master key; a new folder gets both.
    fn read_or_begin_format(&self, newest: u64, check: &[u8]) -> StoreResult<(u64, Vec<u8>)> {
        let random = self.shared.random;
        self.write_raw(|transaction| {
            let mut tables = Tables::open(transaction)?;
            let Some(format) = read_about(&tables, "format")? else {
                tables.about.insert("format", &newest.to_be_bytes())?;
                tables.about.insert(EPOCH, &draw_epoch(random, check)?.to_be_bytes())?;
                tables.about.insert(NODE_ID, &draw_node_id(random, check)?.0)?;
                tables.about.insert("key check", check)?;
                return Ok((newest, check.to_vec()));
            };
            let format = format.try_into().map_or(u64::MAX, u64::from_be_bytes);
            Ok((format, read_about(&tables, "key check")?.unwrap_or_default()))
        })
    }

    fn migrate_from(&self, format: u64, steps: &[Migration]) -> StoreResult<()> {
        let step = usize::try_from(format).ok().and_then(|format| steps.get(format.checked_sub(1)?));
        let step = step.ok_or_else(|| StoreError::Store(format!("no migration leads on from format {format}")))?;
        self.write_raw(|transaction| {
            step(self.shared.disk.as_ref(), transaction)?;
            let mut tables = Tables::open(transaction)?;
            tables.about.insert("format", &(format + 1).to_be_bytes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FolderDisk, KeySource, MasterKey, StoreOptions};
    use std::sync::Arc;

    fn open(folder: &std::path::Path) -> Result<Store, OpenError> {
        let disk = Arc::new(FolderDisk::new(folder).expect("a folder"));
        let options = StoreOptions { cache_bytes: 1 << 20, random: KeySource::Seed(1), ..StoreOptions::default() };
        Store::open(disk, MasterKey::new(&[7; 32]), options)
    }

    /// Appends a letter to a row, so that the order and number of steps can be read afterwards.
    fn note(transaction: &WriteTransaction, letter: u8) -> StoreResult<()> {
        let mut tables = Tables::open(transaction)?;
        let mut steps = read_about(&tables, "steps")?.unwrap_or_default();
        steps.push(letter);
        tables.about.insert("steps", &steps)
    }

    fn read(store: &Store, name: &str) -> Option<Vec<u8>> {
        store.snapshot().expect("a snapshot").about(name).expect("read")
    }

    #[test]
    fn each_step_runs_once_in_the_order_of_formats() {
        let home = tempfile::tempdir().expect("a folder");
        let store = open(home.path()).expect("opened");
        let steps: [Migration; 2] =
            [|_, transaction| note(transaction, b'a'), |_, transaction| note(transaction, b'b')];
        assert!(store.migrate_by(&steps).expect("migrated"));
        assert_eq!(read(&store, "steps").as_deref(), Some(b"ab".as_slice()));
        assert!(!store.migrate_by(&steps).expect("nothing to do"));
        assert_eq!(read(&store, "steps").as_deref(), Some(b"ab".as_slice()));
    }

    #[test]
    fn a_step_that_fails_changes_nothing_and_is_run_again() {
        let home = tempfile::tempdir().expect("a folder");
        let store = open(home.path()).expect("opened");
        let fails: Migration = |_, transaction| {
            note(transaction, b'x')?;
            Err(StoreError::Store("no room".into()))
        };
        assert!(store.migrate_by(&[|_, transaction| note(transaction, b'a'), fails]).is_err());
        assert_eq!(read(&store, "steps").as_deref(), Some(b"a".as_slice()));
        let again: [Migration; 2] =
            [|_, transaction| note(transaction, b'a'), |_, transaction| note(transaction, b'b')];
        assert!(store.migrate_by(&again).expect("migrated"));
        assert_eq!(read(&store, "steps").as_deref(), Some(b"ab".as_slice()));
    }

    #[test]
    fn a_folder_of_a_later_format_is_refused_by_its_number() {
        let home = tempfile::tempdir().expect("a folder");
        let steps: [Migration; 1] = [|_, transaction| note(transaction, b'a')];
        assert!(open(home.path()).expect("opened").migrate_by(&steps).expect("migrated"));
        assert!(matches!(open(home.path()), Err(OpenError::Newer(2))));
    }
}
