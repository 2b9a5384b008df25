//! Putting values to rest under the newest storage key of their space.

use crate::at_rest::{Inline, Protection, StorageKey, TAG_FIELDS, TAG_PLAIN, TAG_WHOLE};
use crate::at_rest::{fields, full_name, inline_name};
use crate::database::batch::Batch;
use crate::database::db::PendingRow;
use crate::keys::*;
use engine::reads::{Reads as _, StoreResult};
use model::{Blob, ContentHash, Seq, SpaceId, SpaceNo};
use std::sync::Arc;

/// What a batch writes the values of one space with, found once.
#[derive(Debug)]
pub(crate) struct Writing {
    pub(crate) key: Arc<StorageKey>,
    pub(crate) protection: Protection,
}

impl Writing {
    fn seal_whole(&self, name: &[u8], value: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(48 + value.len());
        out.push(TAG_WHOLE);
        out.extend(self.key.number().to_be_bytes());
        self.key.seal_onto(&mut out, name, value);
        out
    }

    /// Content in the form that the space's protection asks for.
    pub(crate) fn content(&self, space: &SpaceId, name: &[u8], bytes: &[u8]) -> Vec<u8> {
        let name = full_name(space, name);
        match &self.protection {
            Protection::Nothing => plain(bytes),
            Protection::Whole => self.seal_whole(&name, bytes),
            Protection::Fields(paths) => match fields::seal(&self.key, &name, paths, bytes) {
                Some(json) => [&[TAG_FIELDS], self.key.number().to_be_bytes().as_slice(), &json].concat(),
                None => self.seal_whole(&name, bytes),
            },
        }
    }
}

/// A value that rests as it travels.
pub(crate) fn plain(bytes: &[u8]) -> Vec<u8> {
    [&[TAG_PLAIN], bytes].concat()
}

impl Batch<'_> {
    /// What values of a space are written with. The first time, a storage key is made.
    pub(crate) fn writing(&mut self, space: &SpaceId) -> StoreResult<Arc<Writing>> {
        if let Some(known) = self.writing.get(space) {
            return Ok(known.clone());
        }
        let key = match self.db.newest_storage_key(space)? {
            Some(number) => self.db.storage_key(space, number)?,
            None => None,
        };
        let key = match key {
            Some(key) => key,
            None => self.make_storage_key(space)?,
        };
        let writing = Arc::new(Writing { key, protection: self.db.protection(space)? });
        self.writing.insert(*space, writing.clone());
        Ok(writing)
    }

    /// Draws the next storage key of a space. From now on everything of that space is written under it.
    pub(crate) fn make_storage_key(&mut self, space: &SpaceId) -> StoreResult<Arc<StorageKey>> {
        self.touch();
        self.writing.remove(space);
        let number = self.db.next_storage_number(space)?;
        let secret = zeroize::Zeroizing::new(self.shared.random.storage_secret(space, number)?);
        let name = StorageKeyName::new(*space, number);
        let wrapped = self.shared.master.wrap(name.as_bytes(), secret.as_slice());
        self.db.tables.storage_keys.insert(name, &wrapped)?;
        self.db.pending.keys.add_storage_key(*space, StorageKey::new(number, &secret));
        self.db.storage_key(space, number)?.ok_or_else(|| crate::errors::broken("a new storage key"))
    }

    /// Protects a local row that belongs to a space, under its name.
    pub(crate) fn protect(&mut self, space: &SpaceId, row: &[u8], value: &[u8]) -> StoreResult<Vec<u8>> {
        Ok(self.writing(space)?.seal_whole(&full_name(space, row), value))
    }

    /// Larger content in the form in which it rests.
    pub(crate) fn rest_content(
        &mut self,
        (no, space): (SpaceNo, &SpaceId),
        hash: &ContentHash,
        bytes: &[u8],
    ) -> StoreResult<Vec<u8>> {
        if self.travels_sealed(no, hash)? {
            return Ok(plain(bytes));
        }
        Ok(self.writing(space)?.content(space, &crate::at_rest::content_name(hash), bytes))
    }

    /// Whether content was sealed by its author. A space is sealed or open for good, so one of its events tells.
    pub fn travels_sealed(&self, space: SpaceNo, hash: &ContentHash) -> StoreResult<bool> {
        let Some(seq) = self.db.waiting_for_content(space, hash, Seq(0), 1)?.first().copied() else {
            return Ok(false);
        };
        let form = self.db.with_event(seq, |parts| Blob::form_of(parts.blob).ok())?.flatten();
        Ok(form.is_some_and(|form| form.sealing_key().is_some()))
    }

    /// Inline content in the form in which it rests beside its blob; what rests already stays as it is.
    pub(crate) fn rest_inline(&mut self, pending: &mut PendingRow) -> StoreResult<()> {
        let Some(inline) = pending.inline.as_mut().filter(|inline| !inline.is_at_rest) else { return Ok(()) };
        let Some(space) = Blob::open_space_of(&pending.blob) else { return Ok(()) };
        let writing = self.writing(&space)?;
        if writing.protection != Protection::Nothing {
            let bytes = writing.content(&space, &inline_name(&pending.row.id), &inline.bytes);
            *inline = Inline { bytes: bytes.into(), is_at_rest: true };
        }
        Ok(())
    }
}
