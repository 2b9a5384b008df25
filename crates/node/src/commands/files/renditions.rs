//! What the rows of a rendition begin with.

use model::FileId;
use model::files::DerivedStatus;
use store::Batch;
use store::shared::files::DerivedFile;

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
