//! How much room the database takes, and for what.

use crate::database::open::Store;
use crate::errors::fault;
use engine::reads::StoreResult;
use redb::{ReadableDatabase as _, ReadableTableMetadata as _, TableHandle as _};

/// How much room the database takes.
#[derive(Clone, Default, Debug)]
pub struct DatabaseSize {
    /// Bytes of pages in use.
    pub used_bytes: u64,
    /// Bytes of the file that nothing uses.
    pub free_bytes: u64,
    /// The tables, the largest first.
    pub tables: Vec<TableSize>,
}

/// How much room one table takes.
#[derive(Clone, Debug)]
pub struct TableSize {
    /// What it is called in the database.
    pub name: String,
    /// How many bytes its keys and values have.
    pub stored_bytes: u64,
    /// How many bytes of its pages are empty.
    pub unfilled_bytes: u64,
}

impl Store {
    /// Looks at every page. The writer waits meanwhile.
    pub fn size(&self) -> StoreResult<DatabaseSize> {
        let whole = self.try_out(|transaction| transaction.stats().map_err(fault))?;
        let reading = self.database().begin_read().map_err(fault)?;
        let mut tables = Vec::new();
        for handle in reading.list_tables().map_err(fault)? {
            let name = handle.name().to_owned();
            let stats = reading.open_untyped_table(handle).and_then(|table| Ok(table.stats()?)).map_err(fault)?;
            tables.push(TableSize {
                name,
                stored_bytes: stats.stored_bytes() + stats.metadata_bytes(),
                unfilled_bytes: stats.fragmented_bytes(),
            });
        }
        tables.sort_by_key(|table| std::cmp::Reverse(table.stored_bytes + table.unfilled_bytes));
        let unfilled: u64 = tables.iter().map(|table| table.unfilled_bytes).sum();
        Ok(DatabaseSize {
            used_bytes: whole.allocated_pages() * whole.page_size() as u64,
            free_bytes: whole.fragmented_bytes().saturating_sub(unfilled),
            tables,
        })
    }
}
