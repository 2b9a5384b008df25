//! What of a message is searched: everything it says now, if it is shown at all.

use engine::reads::{Reads as _, StoreResult};
use model::{Kind, Seq};
use search::IndexedMessage;
use serde_json::Value;
use store::tables::TableReads;
use store::views::messages::ShownContent;
use store::{Db, JournalEntry};

/// The message that an entry of the journal may have changed.
pub(super) fn changed<V: TableReads>(db: &Db<V>, entry: &JournalEntry) -> StoreResult<Option<Seq>> {
    let Some(meta) = db.event(entry.seq)?.and_then(|row| row.meta) else { return Ok(None) };
    Ok(match meta.kind.space() {
        Some(Kind::Message) => Some(entry.seq),
        Some(Kind::Edit) => meta.subject,
        _ => None,
    })
}

/// A message as it is searched for; none where it is hidden, deleted or not here.
pub(super) fn document<V: TableReads>(db: &Db<V>, seq: Seq) -> StoreResult<Option<IndexedMessage>> {
    let Some(row) = db.event(seq)?.filter(|row| row.is_applied()) else { return Ok(None) };
    let Some(meta) = row.meta.filter(|meta| meta.kind == Kind::Message && meta.counts) else { return Ok(None) };
    let Some(message) = db.message_by_seq(seq)? else { return Ok(None) };
    let ShownContent::Here(bytes) = &message.content else { return Ok(None) };
    let Ok(content) = serde_json::from_slice::<Value>(bytes) else { return Ok(None) };
    if content["deleted"] == true {
        return Ok(None);
    }
    // A content without a body is shown whole.
    let body = content.get("body").unwrap_or(&content);
    let mut text = String::new();
    gather(body, &mut text);
    let title = body["title"].as_str().unwrap_or_default().to_owned();
    let Some(thread) = meta.subject else { return Ok(None) };
    Ok(Some(IndexedMessage { seq, thread, author: message.author, at: message.stamp.at, title, text }))
}

/// All strings of a body, one after the other. Names of fields are the application's words, not the author's. Bodies
/// are bounded in depth where they come in.
fn gather(value: &Value, text: &mut String) {
    match value {
        Value::String(string) => {
            text.push_str(string);
            text.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, text)),
        Value::Object(fields) => fields.values().for_each(|field| gather(field, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
