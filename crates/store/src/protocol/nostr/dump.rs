//! The lines of the views of the `nostr` protocol, free of anything local.

use crate::database::db::Db;
use crate::tables::TableReads;
use engine::Opened;
use engine::reads::{NostrReads as _, Reads as _, StoreResult};
use model::AuthorKey;
use model::nostr::{Address, AddressName};

impl<V: TableReads> Db<V> {
    /// Every applied event with the state of its content, and whether it is the one that counts at its address.
    pub(crate) fn dump_nostr(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        for entry in self.tables.nostr_times().iter()? {
            let (row, seq) = entry.and_then(|row| Ok((row.key(), row.value()?)))?;
            let Some(Opened::Nostr(event)) = self.open_event(seq)? else {
                return Err(crate::errors::broken("a row of `nostr_times`"));
            };
            let place = match Address::of(&event) {
                None => "",
                Some(address) => {
                    let author = self.number_of(&AuthorKey::Nostr(address.author))?;
                    let name = AddressName::of(&address.identifier);
                    let winner = author.map(|author| self.address_winner(address.kind, author, &name)).transpose()?;
                    if winner.flatten().is_some_and(|(_, winner)| winner == seq) { " wins" } else { " lost" }
                }
            };
            out(format!("nostr {} kind {} {} {}{place}", event.id, event.kind, row.stamp(), self.shown(seq)?.line()));
        }
        Ok(())
    }
}
