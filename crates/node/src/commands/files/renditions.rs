//! What the rows of a rendition begin with, and what becomes of them when a newer version comes.

use model::files::{DerivedStatus, FileStatus, StoredStatus};
use model::{FileId, SpaceId};
use store::Batch;
use store::shared::files::{DerivedFile, FileChangeError, StatusChange};

/// The family of what is made of images.
pub(super) const FAMILY: &str = "rendition";

/// A rendition that is expected from now on.
pub(super) fn new_derived(batch: &Batch<'_>, variant: &str) -> DerivedFile {
    DerivedFile {
        child: None,
        derivation_type: FAMILY.to_owned(),
        variant: variant.to_owned(),
        parameters: "{}".to_owned(),
        status: DerivedStatus::Created,
        attempts: 0,
        error: None,
        dimensions: None,
        created_at: batch.now(),
        updated_at: batch.now(),
        deleted_at: None,
    }
}

/// The id of a rendition follows from what it is made of, so that making it twice makes one file.
pub(crate) fn child_id(parent: FileId, version: u32, variant: &str) -> FileId {
    let mut hasher = blake3::Hasher::new_derive_key("anteroom v1 id of a rendition");
    hasher.update(&parent.0);
    hasher.update(&version.to_be_bytes());
    hasher.update(variant.as_bytes());
    let mut id = [0; 16];
    id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    FileId(id)
}

/// A newer version comes: nobody works on an older one any more.
pub(super) fn end_older_work(
    batch: &mut Batch<'_>,
    (space, file): (&SpaceId, FileId),
    by: StatusChange<'_>,
) -> Result<(), FileChangeError> {
    batch.end_file_job(space, file)?;
    let why = StatusChange { why: "a newer version came before it was processed", ..by };
    for (version, row) in batch.db().file_versions(space, file)? {
        if row.status == StoredStatus::Processing {
            batch.move_version(space, (file, version), StoredStatus::Failed, why)?;
        }
    }
    Ok(())
}

/// What was derived from a file goes: nothing is derived from its latest version.
pub(super) fn forget_derived(
    batch: &mut Batch<'_>,
    (space, file): (&SpaceId, FileId),
    by: StatusChange<'_>,
) -> Result<(), FileChangeError> {
    batch.end_file_job(space, file)?;
    let by = StatusChange { why: "nothing is derived from the latest version", ..by };
    for row in batch.db().derived_files(space, file)? {
        if let Some(child) = row.child {
            batch.forget_file(space, child)?;
        }
        let row = match row.status {
            DerivedStatus::Processing => batch.move_derived(space, file, &row.variant, DerivedStatus::Failed, by)?,
            DerivedStatus::Created | DerivedStatus::Processed | DerivedStatus::Failed => row,
        };
        let deleted_at = row.deleted_at.or(Some(batch.now()));
        batch.put_derived(space, file, &DerivedFile { deleted_at, child: None, ..row })?;
    }
    let record = batch.db().file(space, file)?.ok_or(FileChangeError::Unknown)?;
    if record.status == FileStatus::Processing {
        batch.move_file(space, file, FileStatus::Processed, by)?;
    }
    Ok(())
}
