//! Numbered migrations: one format after the other, each in a transaction of its own.

use crate::at_rest;
use crate::db::fault;
use crate::master::WrongKey;
use crate::open::{FORMAT, OpenError, Store};
use crate::tables::Tables;
use engine::reads::StoreResult;
use redb::ReadableTable as _;

impl Store {
    /// Brings an older data folder to this release's format, one numbered step at a time. Says whether views have to be built again, which needs the keys.
    pub(crate) fn migrate(&self) -> Result<bool, OpenError> {
        let check = self.shared.master.check_value();
        let begun = self.write_raw(|transaction| {
            let mut tables = Tables::open(transaction).map_err(fault)?;
            let read = |tables: &Tables<'_>, name| -> StoreResult<Option<Vec<u8>>> {
                Ok(tables.about.get(name).map_err(fault)?.map(|guard| guard.value().to_vec()))
            };
            let format = read(&tables, "format")?;
            let stored = read(&tables, "key check")?;
            if format.is_none() {
                tables.about.insert("format", FORMAT.to_be_bytes().as_slice()).map_err(fault)?;
                tables.about.insert("epoch", 1u64.to_be_bytes().as_slice()).map_err(fault)?;
                tables.about.insert("key check", check.as_slice()).map_err(fault)?;
                return Ok((FORMAT, check.to_vec()));
            }
            let format = format.and_then(|bytes| bytes.try_into().ok()).map_or(u64::MAX, u64::from_be_bytes);
            Ok((format, stored.unwrap_or_default()))
        })?;
        match begun {
            (format, _) if format > FORMAT => Err(OpenError::Newer(format)),
            (_, stored) if stored != check => Err(OpenError::WrongKey(WrongKey)),
            (format, _) => {
                (format..FORMAT).try_for_each(|format| self.migrate_from(format))?;
                Ok(format < FORMAT)
            }
        }
    }

    fn migrate_from(&self, format: u64) -> StoreResult<()> {
        self.write_raw(|transaction| {
            match format {
                1 => at_rest::tag_contents(self.shared.disk.as_ref(), transaction)?,
                _ => crate::timeline::copy_into_timeline(transaction)?,
            }
            let mut tables = Tables::open(transaction).map_err(fault)?;
            tables.about.insert("format", (format + 1).to_be_bytes().as_slice()).map_err(fault)?;
            Ok(())
        })
    }
}
