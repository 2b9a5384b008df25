//! Rows as no part of the product would leave them: for tests of what notices it.

use crate::database::open::Store;
use crate::tables::{Tables, tamper_row};
use engine::reads::StoreResult;

impl Store {
    /// Sets the value of a row, given without its checksum, or removes it. Says whether it can be a row of that table.
    pub fn tamper(&self, table: &str, key: &[u8], value: Option<&[u8]>) -> StoreResult<bool> {
        self.write_raw(|transaction| tamper_row(&mut Tables::open(transaction)?, table, key, value))
    }
}
