//! What must hold between rows of the `nostr` protocol, beside what all protocols ask for.

use crate::database::db::Db;
use crate::tables::TableReads;
use engine::Opened;
use engine::reads::{Reads as _, StoreResult};
use model::AuthorKey;
use model::nostr::{Address, AddressName};

impl<V: TableReads> Db<V> {
    /// Names every event that stands at another address than its own, and every repository without a readable name.
    pub(crate) fn check_nostr(&self, wrong: &mut impl FnMut(String)) -> StoreResult<()> {
        for entry in self.tables.nostr_addresses().iter()? {
            let row = entry?;
            let (key, seq) = (row.key(), row.value()?);
            let own = match self.open_event(seq)? {
                Some(Opened::Nostr(event)) => Address::of(&event),
                _ => None,
            };
            let is_own = match &own {
                Some(own) => {
                    self.number_of(&AuthorKey::Nostr(own.author))? == Some(key.author())
                        && (own.kind, AddressName::of(&own.identifier)) == (key.kind(), key.name())
                }
                None => false,
            };
            if !is_own {
                wrong(format!("the Nostr event {seq} stands at an address that is not its own"));
            }
        }
        for entry in self.tables.git_data().iter()? {
            let row = entry?;
            let name = std::str::from_utf8(row.value()?).map(AddressName::of);
            if name != Ok(row.key().name()) {
                wrong(format!("a repository of {} stands under another name than its own", row.key().owner()));
            }
        }
        Ok(())
    }
}
