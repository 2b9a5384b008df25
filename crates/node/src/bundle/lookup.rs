//! Which records of a bundle need no further check, because the store has an answer already.

use super::format::Record;
use super::tally::KnownRecord;
use crate::running::Node;
use engine::reads::{Reads as _, StoreResult};
use model::crypto::event_id;
use model::stage::ContentState;
use model::{ContentHash, Seq, SpaceId};
use std::sync::Arc;
use store::Db;
use store::tables::Snapshot;

/// How many records a checker looks up in one snapshot before it takes a fresh one.
const LOOKUPS_PER_SNAPSHOT: u32 = 1024;

/// A checker's view of what is here, refreshed now and then.
pub(super) struct Lookup<'a> {
    node: &'a Node,
    snapshot: Option<Arc<Db<Snapshot>>>,
    left: u32,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(node: &'a Node) -> Lookup<'a> {
        Lookup { node, snapshot: None, left: 0 }
    }

    pub(super) fn known(&mut self, record: &Record) -> StoreResult<Option<KnownRecord>> {
        let is_fresh = self.left == 0;
        if is_fresh {
            self.snapshot = Some(self.node.snapshot()?);
            self.left = LOOKUPS_PER_SNAPSHOT;
        }
        self.left -= 1;
        match self.find(record)? {
            // What refers to it may have come since.
            Some(KnownRecord::Unwanted) if !is_fresh => {
                self.left = 0;
                self.known(record)
            }
            known => Ok(known),
        }
    }

    fn find(&self, record: &Record) -> StoreResult<Option<KnownRecord>> {
        match (&self.snapshot, record) {
            (_, Record::Keys { .. }) => Ok(None),
            (Some(db), Record::Event { blob, inline }) => known_event(db, blob, inline),
            (Some(db), Record::Content { space, hash, .. }) => known_content(db, space, hash),
            (None, _) => Ok(None),
        }
    }
}

/// What is known of a content; none if something waits for it.
pub(super) fn known_content(
    db: &Db<Snapshot>,
    space: &SpaceId,
    hash: &ContentHash,
) -> StoreResult<Option<KnownRecord>> {
    let Some(space) = db.space_no(space)? else { return Ok(Some(KnownRecord::Unwanted)) };
    Ok(match db.content(space, hash)? {
        // Short content has no row, but whoever waits for it is known.
        None => db.waiting_for_content(space, hash, Seq(0), 1)?.is_empty().then_some(KnownRecord::Unwanted),
        Some(row) if row.place == engine::rows::ContentLocation::Absent => None,
        Some(_) => Some(KnownRecord::Content),
    })
}

fn known_event(db: &Db<Snapshot>, blob: &[u8], inline: &[u8]) -> StoreResult<Option<KnownRecord>> {
    let id = event_id(blob);
    if let Some(why) = db.refused(&id)? {
        return Ok(Some(KnownRecord::Refused(why)));
    }
    let Some(seq) = db.seq(&id)? else { return Ok(None) };
    let (Some(row), Some(kept)) = (db.event(seq)?, db.kept(seq)?) else { return Ok(None) };
    let wants_inline = row.content == ContentState::Missing && !row.has_inline && !inline.is_empty();
    Ok((kept.blob.bytes() == blob && !wants_inline).then_some(KnownRecord::Event))
}
