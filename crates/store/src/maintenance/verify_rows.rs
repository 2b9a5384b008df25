//! What a damaged row is about, as far as other rows tell.

use crate::database::db::Db;
use crate::keys::{ContentKey, EventStamp, TableKey as _, seq_from};
use crate::maintenance::explorer::hex;
use crate::tables::{Snapshot, TableReads as _};
use model::EventId;

/// What a row is called that is damaged; without a key, all rows from somewhere on.
pub(crate) fn name_row(table: &str, key: &[u8]) -> String {
    match key {
        [] => format!("a page of the table {table} is damaged, and rows after it cannot be read"),
        key => format!("the row {} of the table {table} is damaged", hex(key)),
    }
}

impl Db<Snapshot> {
    /// What a damaged row is about, to be said after its name; nothing if that cannot be told.
    pub(crate) fn meaning_of_row(&self, table: &str, key: &[u8]) -> String {
        let meaning = match table {
            "events_v1" => self.id_of_number(key).map(|id| format!(": it is the event {id}")),
            "contents_v1" | "content_bytes_v1" => {
                ContentKey::parse(key).map(|key| format!(": it is of the content {}", key.hash()))
            }
            "timeline_v1" => EventStamp::parse(key).map(|key| {
                format!(": it copies the message {}; `anteroom rebuild-views` writes it anew", key.stamp().id)
            }),
            _ => None,
        };
        meaning.unwrap_or_default()
    }

    /// The id of an event whose own row cannot be read. Looks at all ids.
    fn id_of_number(&self, key: &[u8]) -> Option<EventId> {
        let seq = seq_from(key.try_into().ok()?);
        let mut ids = self.tables.ids().iter().ok()?.flatten();
        ids.find(|row| row.value().is_ok_and(|other| other == seq)).map(|row| row.key().id())
    }
}
