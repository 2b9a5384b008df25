//! Reading what rests: the tag tells the form, the number the key.

use crate::at_rest::StorageKey;
use crate::at_rest::{
    TAG_FIELDS, TAG_PLAIN, TAG_WHOLE, TAG_WRAPPED, TAG_WRAPPED_NAMED, fields, full_name, inline_name,
};
use crate::database::db::Db;
use crate::encode::{self};
use crate::errors::broken;
use crate::keys::*;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::{Blob, SpaceId};
use std::sync::Arc;

impl<V: TableReads> Db<V> {
    /// A storage key by its number, if it is still here.
    pub(crate) fn storage_key(&self, space: &SpaceId, number: u32) -> StoreResult<Option<Arc<StorageKey>>> {
        let known = self.pending.keys.storage_key(space, number).or_else(|| self.keys.storage_key(space, number));
        if known.is_some() {
            return Ok(known);
        }
        // A snapshot may see a commit a moment before its keys are published. What is found here is not remembered, so
        // that a reader of the past does not keep a key that was destroyed since.
        let name = StorageKeyName::new(*space, number);
        let Some(row) = self.tables.storage_keys().get_row(name)? else { return Ok(None) };
        let secret = self.shared.master.unwrap32(name.as_bytes(), row.value()?).map_err(|_| broken("a storage key"))?;
        Ok(Some(Arc::new(StorageKey::new(number, &secret))))
    }

    /// The number of the newest storage key of a space, if it has any.
    pub(crate) fn newest_storage_key(&self, space: &SpaceId) -> StoreResult<Option<u32>> {
        let last = self.tables.storage_keys().range(StorageKeyName::of_space(*space))?.next_back();
        Ok(last.transpose()?.map(|row| row.key().number()))
    }

    /// The numbers of a space's storage keys, in order.
    pub fn storage_key_numbers(&self, space: &SpaceId) -> StoreResult<Vec<u32>> {
        let rows = self.tables.storage_keys().range(StorageKeyName::of_space(*space))?;
        rows.map(|row| Ok(row?.key().number())).collect()
    }

    /// Opens a value that belongs to a space. None if its key was destroyed.
    pub(crate) fn open_at_rest(&self, space: &SpaceId, name: &[u8], stored: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        let (tag, rest) = stored.split_first().ok_or_else(|| broken("an empty value"))?;
        match *tag {
            TAG_PLAIN => Ok(Some(rest.to_vec())),
            TAG_WRAPPED | TAG_WRAPPED_NAMED => {
                let opened = self.shared.master.unwrap(&full_name(space, name), stored);
                opened.map(Some).map_err(|_| broken("a protected row"))
            }
            TAG_WHOLE | TAG_FIELDS => {
                let (number, sealed) = rest.split_first_chunk::<4>().ok_or_else(|| broken("a protected value"))?;
                let Some(key) = self.storage_key(space, u32::from_be_bytes(*number))? else { return Ok(None) };
                let name = full_name(space, name);
                let opened =
                    if *tag == TAG_WHOLE { key.open(&name, sealed) } else { fields::open(&key, &name, sealed) };
                opened.map(Some).ok_or_else(|| broken("a protected value"))
            }
            _ => Err(broken("a value of unknown form")),
        }
    }

    /// The inline content of an event as it travels. None if there is none, or its key was destroyed.
    pub(crate) fn open_inline(&self, parts: &encode::EventParts<'_>) -> StoreResult<Option<Vec<u8>>> {
        match &parts.inline {
            Some(inline) if inline.is_at_rest => {
                let space = Blob::open_space_of(parts.blob).ok_or_else(|| broken("protected inline content"))?;
                self.open_at_rest(&space, &inline_name(&parts.row.id), &inline.bytes)
            }
            Some(inline) => Ok(Some(inline.bytes.to_vec())),
            None => Ok(None),
        }
    }
}
