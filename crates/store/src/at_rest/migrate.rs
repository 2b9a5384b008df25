//! From format 1 to 2: larger content gets a tag before its bytes.

use super::writing::plain;
use crate::content::{file_name, split_content_key, write_file};
use crate::db::fault;
use crate::disk::Disk;
use crate::encode;
use crate::tables::Tables;
use engine::reads::{StoreError, StoreResult};
use engine::rows::ContentLocation;
use model::SpaceId;
use redb::{ReadableTable as _, WriteTransaction};

/// Tags all larger content as resting as it travels. Files come first: one that was tagged before a crash is known by
/// its hash, which is no longer its name.
pub(crate) fn tag_contents(disk: &dyn Disk, transaction: &WriteTransaction) -> StoreResult<()> {
    let mut tables = Tables::open(transaction).map_err(fault)?;
    let mut rows = Vec::new();
    for entry in tables.contents.iter().map_err(fault)? {
        let (key, value) = entry.map_err(fault)?;
        rows.push((key.value(), encode::decode_content(value.value())?.place));
    }
    for (key, place) in rows {
        match place {
            ContentLocation::Absent => {}
            ContentLocation::Row => {
                let bytes = tables.content_bytes.get(key).map_err(fault)?.map(|guard| plain(guard.value()));
                if let Some(bytes) = bytes {
                    tables.content_bytes.insert(key, bytes.as_slice()).map_err(fault)?;
                }
            }
            ContentLocation::File => {
                let (no, hash) = split_content_key(&key);
                let found = tables.space_ids.get(no.0).map_err(fault)?.map(|guard| SpaceId(guard.value()));
                let space = found.ok_or_else(|| encode::broken("a space number"))?;
                let read = disk.read_file(&file_name(&space, &hash));
                let bytes = read.map_err(|why| StoreError::Store(why.to_string()))?;
                if model::crypto::content_hash(&bytes) == hash {
                    write_file(disk, &space, &hash, &plain(&bytes))?;
                }
            }
        }
    }
    Ok(())
}
