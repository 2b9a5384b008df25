//! Objects, and the bytes of files: rows agree with each other, and bytes with their hashes.

use super::Check;
use crate::encode::{self, usage_index};
use crate::events::objects::{ObjectRow, ObjectState};
use crate::keys::*;
use crate::maintenance::backup::ObjectCheck;
use crate::tables::TableReads as _;
use engine::reads::{Reads as _, StoreResult};
use engine::rows::{ContentLocation, EventRow, Meta};
use model::stage::ContentState;
use model::{ContentHash, Group, ObjectName, Seq, SpaceNo};

impl Check<'_> {
    /// A file event whose content is here takes a reference to the bytes that it speaks of, and waits for them or not.
    pub(super) fn bytes_of_file(&mut self, seq: Seq, row: &EventRow, meta: &Meta) -> StoreResult<()> {
        let db = self.db;
        let Some(wanted) = db.wanted_bytes(seq)? else { return Ok(()) };
        self.file_bytes += 1;
        self.require(row.content == ContentState::Processed, || {
            format!("{seq}: speaks of bytes but its content is {}", row.content.word())
        });
        *self.counts.entry(ContentKey::new(meta.space, wanted.hash)).or_default() += 1;
        let waits = engine::content::is_waiting_for_bytes(db, meta.space, seq, &wanted)?;
        let is_here = db.content(meta.space, &wanted.hash)?.is_some_and(|row| row.place != ContentLocation::Absent);
        self.require(waits != is_here || !self.at_rest, || {
            format!("{seq}: waits for bytes that are here, or not for bytes that are not")
        });
        let state = if waits { ContentState::Missing } else { ContentState::Processed };
        let usage = self.usage.entry(UsageKey::new(meta.space, meta.author)).or_default();
        let (_, bytes) = &mut usage.by_state[usage_index(state)];
        *bytes = bytes.saturating_add(wanted.len);
        if waits {
            self.content_waiting += 1;
            self.groups.insert(Group::Content(db.space_id(meta.space)?, wanted.hash));
        }
        Ok(())
    }

    /// An object is read from its beginning to its end.
    pub(super) fn object(&mut self, space: SpaceNo, hash: &ContentHash, name: ObjectName, len: u64) -> StoreResult<()> {
        match self.db.is_object_whole(space, hash, name, len) {
            ObjectCheck::Whole => {}
            ObjectCheck::KeyDestroyed => {
                let space = self.db.space_id(space)?;
                self.unreadable(&space, || format!("content {hash}: its bytes or their key are missing"))?;
            }
            ObjectCheck::Damaged(why) => {
                self.wrong(format!("content {hash}: its bytes are missing or changed (object {name}: {why})"));
            }
        }
        Ok(())
    }

    /// Rows of objects agree with the contents, and with the lists of those that are written and of those that go.
    pub(super) fn objects(&mut self) -> StoreResult<()> {
        let db = self.db;
        let mut listed = 0;
        for entry in db.tables.objects().iter()? {
            let Some(entry) = self.db.unless_damaged(entry)? else { break };
            let (name, Ok(bytes)) = (entry.key().name(), entry.value()) else { continue };
            let row: ObjectRow = encode::from_row(bytes, "an object")?;
            let fits = match row.state {
                ObjectState::Writing { until } => {
                    listed += 1;
                    db.tables.unfinished_objects().contains(ObjectDueKey::new(until, name))?
                }
                ObjectState::Forgotten { since } => {
                    listed += 1;
                    db.tables.forgotten_objects().contains(ObjectDueKey::new(since, name))?
                }
                ObjectState::Stored { hash } => match db.space_no(&row.space)? {
                    Some(no) => db
                        .unless_damaged(db.content(no, &hash))?
                        .flatten()
                        .is_none_or(|content| content.place == ContentLocation::Object(name)),
                    None => false,
                },
            };
            self.require(fits, || format!("object {name}: its row says {:?}, and nothing agrees", row.state));
        }
        let due = db.tables.unfinished_objects().len()? + db.tables.forgotten_objects().len()?;
        self.require(due == listed || !self.is_readable, || format!("{due} objects are listed as due, {listed} are"));
        Ok(())
    }

    pub(super) fn bytes(
        &mut self,
        space: SpaceNo,
        hash: &ContentHash,
        place: ContentLocation,
        len: u64,
    ) -> StoreResult<()> {
        if place == ContentLocation::Absent {
            return Ok(());
        }
        if let ContentLocation::Object(name) = place {
            return self.object(space, hash, name, len);
        }
        let fits = match self.db.content_bytes(space, hash, u64::MAX) {
            Ok(Some(bytes)) => bytes.len() as u64 == len && model::crypto::content_hash(&bytes) == *hash,
            Ok(None) => {
                let space = self.db.space_id(space)?;
                return self.unreadable(&space, || format!("content {hash}: its bytes or their key are missing"));
            }
            Err(_) => false,
        };
        self.require(fits, || format!("content {hash}: its bytes are missing or changed"));
        Ok(())
    }
}
