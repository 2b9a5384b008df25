//! What a row says, as JSON. Nothing is decrypted: what rests sealed is shown as the bytes that travel.

use crate::at_rest::{TAG_FIELDS, TAG_PLAIN};
use crate::database::db::Db;
use crate::encode;
use crate::keys::*;
use crate::maintenance::explorer::ExplorerRow;
use crate::maintenance::explorer::families::{ExplorerTable, Family};
use crate::maintenance::explorer::pattern::{KeyPart, hex};
use crate::tables::{OwnedValue, RowValue, Rows, Stored, TableReads};
use crate::views::timeline::{HINT_REACTIONS, HINT_REFERS, HINT_REPLIES, HINT_VERSIONS, TimelineRow};
use engine::reads::{Reads as _, SpaceReads as _, StoreResult};
use engine::rows::{ContentLocation, Origin};
use model::stage::{ContentState, Stage};
use model::{Blob, ContentHash, EventId, Seq, SpaceId, SpaceNo};
use redb::ReadableTable;
use serde_json::{Value, json};

/// More content than this is not shown.
const SHOWN_BYTES_MAX: u64 = 64 * 1024;

const SEALED: &str = "sealed: the bytes as they travel, in hexadecimal";
const ENCRYPTED: &str = "encrypted at rest: the bytes in hexadecimal";
const NOT_JSON: &str = "not JSON: the bytes in hexadecimal";
const ELSEWHERE: &str = "the bytes are not here";
const TOO_LONG: &str = "the bytes are more than are shown here";

fn plain(value: Value) -> ExplorerRow {
    ExplorerRow { value, note: None }
}

impl<V: TableReads> Db<V> {
    /// The row of a table under a stored key.
    pub(super) fn row_value(&self, table: ExplorerTable, key: &[u8]) -> StoreResult<Option<ExplorerRow>> {
        let view = &self.tables;
        match table {
            ExplorerTable::Ids => self.event_value(key),
            ExplorerTable::Spaces => self.space_value(key),
            ExplorerTable::Authors => {
                Ok(value_at(view.authors(), key)?.map(|_| plain(json!({ "identity": hex(&key[1..]) }))))
            }
            ExplorerTable::Threads => self.points(value_at(view.threads(), key)?),
            ExplorerTable::Posts => self.points(value_at(view.posts(), key)?),
            ExplorerTable::Files => self.points(value_at(view.files(), key)?),
            ExplorerTable::Versions => self.points(value_at(view.versions(), key)?),
            ExplorerTable::Edits => self.points(value_at(view.edits(), key)?),
            ExplorerTable::Reactions => self.points(value_at(view.reactions(), key)?),
            ExplorerTable::Replies => self.points(value_at(view.replies(), key)?),
            ExplorerTable::Registers => self.points(value_at(view.registers(), key)?),
            ExplorerTable::Chosen => self.points(value_at(view.chosen(), key)?),
            ExplorerTable::Tombstones => self.points(value_at(view.tombstones(), key)?),
            ExplorerTable::ByAuthor => self.points(value_at(view.by_author(), key)?),
            ExplorerTable::Updated => self.thread_value(Seq::read(key)),
            ExplorerTable::Timeline => self.message_value(key),
            ExplorerTable::Memberships => self.membership_value(Seq::read(key)),
            ExplorerTable::Limits => Ok(value_at(view.limits(), key)?
                .map(|cap| plain(json!({ "remaining_role": cap.0.map(|role| role.to_string()) })))),
            ExplorerTable::Contents => self.content_value(key),
            ExplorerTable::ContentWaiting => is_there(view.content_waiting(), key),
            ExplorerTable::Waiting => is_there(view.waiting(), key),
            ExplorerTable::Held => is_there(view.held(), key),
            ExplorerTable::Carried => is_there(view.carried(), key),
            ExplorerTable::Gaps => is_there(view.gaps(), key),
            ExplorerTable::Schedule => self.schedule_value(key),
            ExplorerTable::Journal => self.journal_value(u64::read(key)),
            ExplorerTable::Usage => self.usage_value(key),
            ExplorerTable::Refused => {
                Ok(value_at(view.refused(), key)?.map(|row| plain(json!({ "why": row.why.to_string() }))))
            }
            ExplorerTable::Expired => Ok(value_at(view.expired(), key)?.map(|row| plain(json!({ "at": row.at.0 })))),
            ExplorerTable::ApiKeys => self.api_key_value(key),
            ExplorerTable::Audit => self.audit_value(u64::read(key)),
            ExplorerTable::Counts => Ok(value_at(view.counts(), key)?.map(|count| plain(json!(count)))),
        }
    }

    /// The space that a row is of, if it is of one.
    pub(super) fn space_of_row(&self, family: &Family, key: &[u8]) -> StoreResult<Option<SpaceId>> {
        let mut at = 0;
        for part in family.parts {
            let bytes = key.get(at..at + part.bytes().unwrap_or(0)).unwrap_or_default();
            at += bytes.len();
            match part {
                KeyPart::Space => return self.space_id(SpaceNo::read(bytes)).map(Some),
                KeyPart::SpaceId => return Ok(Some(SpaceId::read(bytes))),
                KeyPart::Event => return self.space_of(Seq::read(bytes)),
                _ => {}
            }
        }
        let seq = match family.table {
            ExplorerTable::Ids => value_at(self.tables.ids(), key)?,
            ExplorerTable::Tombstones => value_at(self.tables.tombstones(), key)?,
            ExplorerTable::Journal => self.entry(u64::read(key))?.map(|entry| entry.seq),
            ExplorerTable::ApiKeys => return Ok(self.api_key(&KeyField::read(key))?.map(|key| key.space)),
            ExplorerTable::Audit => return Ok(self.audited(u64::read(key))?.and_then(|entry| entry.space)),
            _ => None,
        };
        seq.map_or(Ok(None), |seq| self.space_of(seq))
    }

    fn points(&self, seq: Option<Seq>) -> StoreResult<Option<ExplorerRow>> {
        let Some(seq) = seq else { return Ok(None) };
        Ok(Some(plain(json!({ "event": self.id_of(seq)?.to_string() }))))
    }

    fn space_value(&self, key: &[u8]) -> StoreResult<Option<ExplorerRow>> {
        let space = SpaceId::read(key);
        if self.space_no(&space)?.is_none() {
            return Ok(None);
        }
        Ok(Some(plain(json!({ "space": space.to_string(), "joined": self.joined(&space)? }))))
    }

    fn thread_value(&self, seq: Seq) -> StoreResult<Option<ExplorerRow>> {
        let Some(updated) = self.updated(seq)? else { return Ok(None) };
        Ok(Some(plain(json!({ "event": self.id_of(seq)?.to_string(), "updated": updated.0 }))))
    }

    fn message_value(&self, key: &[u8]) -> StoreResult<Option<ExplorerRow>> {
        let Some(key) = EventStamp::parse(key) else { return Ok(None) };
        let Some(row) = self.tables.timeline().get_row(key)? else { return Ok(None) };
        let TimelineRow { seq, hints, said } = TimelineRow::decode(row.value()?)?;
        let known = [
            (HINT_VERSIONS, "versions"),
            (HINT_REACTIONS, "reactions"),
            (HINT_REPLIES, "replies"),
            (HINT_REFERS, "refers"),
        ];
        let has: Vec<&str> = known.iter().filter(|(bit, _)| hints & bit != 0).map(|(_, word)| *word).collect();
        Ok(Some(plain(json!({ "event": self.id_of(seq)?.to_string(), "has": has, "copied": said.is_some() }))))
    }

    fn membership_value(&self, seq: Seq) -> StoreResult<Option<ExplorerRow>> {
        let Some(membership) = self.membership(seq)? else { return Ok(None) };
        let value = json!({
            "member": membership.member.to_string(), "role": membership.role.to_string(), "sealed": membership.sealed,
        });
        Ok(Some(plain(value)))
    }

    fn event_value(&self, key: &[u8]) -> StoreResult<Option<ExplorerRow>> {
        let Some(seq) = self.seq(&EventId::read(key))? else { return Ok(None) };
        let copied = |parts: encode::EventParts<'_>| {
            (parts.row, parts.blob.to_vec(), parts.inline.map(crate::at_rest::Inline::into_owned))
        };
        let parts = self.with_event(seq, copied)?;
        let Some((row, blob, inline)) = parts else { return Ok(None) };
        let is_sealed = Blob::open_space_of(&blob).is_none();
        let (inline, note) = inline.map_or((Value::Null, None), |inline| match inline.is_at_rest {
            true => shown_at_rest(&inline.bytes, is_sealed),
            false => shown(&inline.bytes, is_sealed),
        });
        let (space, author) = match &row.meta {
            Some(meta) => (Some(self.space_id(meta.space)?), Some(self.author_key(meta.author)?)),
            None => (self.space_of(seq)?, None),
        };
        let meta = row.meta.as_ref();
        let value = json!({
            "stage": stage(&row.stage),
            "content": content_state(row.content),
            "from": origin(row.origin),
            "received": row.received_at.0,
            "space": space.map(|space| space.to_string()),
            "author": author.map(|author| author.to_string()),
            "kind": meta.map(|meta| meta.kind.to_string()),
            "at": meta.map(|meta| meta.at.0),
            "counts": meta.map(|meta| meta.counts),
            "content_length": meta.map(|meta| meta.content_len),
            "content_hash": meta.map(|meta| meta.content_hash.to_string()),
            "inline": inline,
            "blob": hex(&blob),
        });
        Ok(Some(ExplorerRow { value, note: note.or(is_sealed.then_some(SEALED)) }))
    }

    fn content_value(&self, key: &[u8]) -> StoreResult<Option<ExplorerRow>> {
        let Some(key) = ContentKey::parse(key) else { return Ok(None) };
        let (space, hash) = (key.space(), key.hash());
        let Some(row) = self.content(space, &hash)? else { return Ok(None) };
        let (bytes, note) = match row.place {
            ContentLocation::Absent => (Value::Null, Some(ELSEWHERE)),
            ContentLocation::Row | ContentLocation::Object(_) => self.content_shown(space, &hash)?,
        };
        let place = match row.place {
            ContentLocation::Absent => "absent",
            ContentLocation::Row => "row",
            ContentLocation::Object(_) => "object",
        };
        let value = json!({ "references": row.count, "length": row.len, "place": place, "bytes": bytes });
        Ok(Some(ExplorerRow { value, note }))
    }

    fn content_shown(&self, space: SpaceNo, hash: &ContentHash) -> StoreResult<(Value, Option<&'static str>)> {
        let id = self.space_id(space)?;
        let is_sealed = self.tables.keys().range(SpaceKeyName::of_space(id))?.next().is_some();
        match self.tables.content_bytes().get_row(ContentKey::new(space, *hash))? {
            Some(row) if row.value()?.len() as u64 <= SHOWN_BYTES_MAX => Ok(shown_at_rest(row.value()?, is_sealed)),
            Some(_) | None => Ok((Value::Null, Some(TOO_LONG))),
        }
    }

    fn schedule_value(&self, key: &[u8]) -> StoreResult<Option<ExplorerRow>> {
        let Ok(group) = model::Group::from_key(key) else { return Ok(None) };
        let row = self.schedule_row(&group)?;
        Ok(row.map(|row| plain(json!({ "attempts": row.attempts, "last": row.last, "next": row.next }))))
    }

    fn entry(&self, number: u64) -> StoreResult<Option<encode::JournalEntry>> {
        self.tables.journal().get(JournalNo::new(number))
    }

    fn journal_value(&self, number: u64) -> StoreResult<Option<ExplorerRow>> {
        let Some(entry) = self.entry(number)? else { return Ok(None) };
        // An event whose wait ended later is gone, its entry is not.
        let event = self.event(entry.seq)?.map(|row| row.id.to_string());
        let space = self.space_id(entry.space)?.to_string();
        Ok(Some(plain(json!({ "space": space, "event": event, "what": entry.kind.word(), "at": entry.at.0 }))))
    }

    fn usage_value(&self, key: &[u8]) -> StoreResult<Option<ExplorerRow>> {
        let Some(usage) = value_at(self.tables.usage(), key)? else { return Ok(None) };
        let usage = usage.by_state.map(|(events, bytes)| json!({ "events": events, "bytes": bytes }));
        let [missing, processed, invalid, pruned, deleted] = usage;
        let value = json!({
            "missing": missing, "processed": processed, "invalid": invalid, "pruned": pruned, "deleted": deleted,
        });
        Ok(Some(plain(value)))
    }

    fn api_key_value(&self, key: &[u8]) -> StoreResult<Option<ExplorerRow>> {
        let Some(key) = self.api_key(&KeyField::read(key))? else { return Ok(None) };
        let value = json!({
            "role": key.role().map(engine::access::KeyRole::word),
            "space": key.space.to_string(),
            "label": key.label,
            "created": key.created_at.0,
            "ends": key.ends_at.map(|at| at.0),
        });
        Ok(Some(ExplorerRow { value, note: Some("the hash of its secret is not shown") }))
    }

    fn audited(&self, number: u64) -> StoreResult<Option<crate::shared::api_keys::AuditRow>> {
        let found = self.audit_log(number.saturating_add(1), 1)?.pop();
        Ok(found.filter(|(other, _)| *other == number).map(|(_, entry)| entry))
    }

    fn audit_value(&self, number: u64) -> StoreResult<Option<ExplorerRow>> {
        let Some(entry) = self.audited(number)? else { return Ok(None) };
        let space = entry.space.map(|space| space.to_string());
        let value = json!({
            "at": entry.at.0, "space": space, "who": entry.who, "what": entry.what, "target": entry.target,
        });
        Ok(Some(plain(value)))
    }
}

/// Bytes as JSON where they are JSON, otherwise in hexadecimal with a note.
/// A value as it rests: the tag tells the form, and nothing is decrypted.
fn shown_at_rest(stored: &[u8], is_sealed: bool) -> (Value, Option<&'static str>) {
    match stored.split_first() {
        Some((&TAG_PLAIN, bytes)) => shown(bytes, is_sealed),
        // Four bytes say which key; then comes JSON in which some fields are encrypted.
        Some((&TAG_FIELDS, rest)) => shown(rest.get(4..).unwrap_or_default(), false),
        Some(_) | None => (hex(stored).into(), Some(ENCRYPTED)),
    }
}

fn shown(bytes: &[u8], is_sealed: bool) -> (Value, Option<&'static str>) {
    if is_sealed {
        return (hex(bytes).into(), Some(SEALED));
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => (value, None),
        Err(_) => (hex(bytes).into(), Some(NOT_JSON)),
    }
}

fn stage(stage: &Stage) -> Value {
    match stage {
        Stage::Held { unmet, since, until } => {
            let unmet: Vec<String> = unmet.iter().map(ToString::to_string).collect();
            json!({ "held": { "needs": unmet, "since": since.0, "until": until.0 } })
        }
        Stage::Applied { position } => json!({ "applied": { "journal": position } }),
        other => json!(other.word()),
    }
}

fn content_state(state: ContentState) -> Value {
    match state {
        ContentState::Deleted { by } => json!({ "deleted": { "by": by.to_string() } }),
        other => json!(other.word()),
    }
}

fn origin(origin: Origin) -> Value {
    match origin {
        Origin::Local => json!("here"),
        Origin::Import => json!("a bundle"),
        Origin::Client => json!("a Nostr client"),
        Origin::Relay => json!("a Nostr relay"),
        Origin::Peer(peer) => json!({ "peer": peer }),
    }
}

fn value_at<K: TableKey, V: OwnedValue>(
    table: &Rows<impl ReadableTable<K, Stored<V>>, K, V>,
    key: &[u8],
) -> StoreResult<Option<V>> {
    K::parse(key).map_or(Ok(None), |key| table.get(key))
}

/// A row that says all in its key.
fn is_there<K: TableKey, V: RowValue>(
    table: &Rows<impl ReadableTable<K, Stored<V>>, K, V>,
    key: &[u8],
) -> StoreResult<Option<ExplorerRow>> {
    let is_there = K::parse(key).map_or(Ok(false), |key| table.contains(key))?;
    Ok(is_there.then(|| plain(Value::Null)))
}
