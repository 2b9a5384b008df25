//! The disk of a data folder, with its objects in the folder or in a bucket of an S3-compatible store.

use crate::context::Context;
use crate::failure::Failure;
use objects::{FolderBackend, S3Backend};
use std::sync::Arc;
use store::{FolderDisk, OBJECTS};

/// The disk as the settings say.
pub(crate) fn open_disk(context: &Context) -> Result<FolderDisk, Failure> {
    let folder = context.data_dir();
    let failed = |why| Failure::file("use the data folder", folder, &why);
    match bucket(context)? {
        Some(bucket) => FolderDisk::with_objects(folder, Arc::new(bucket)).map_err(failed),
        None => FolderDisk::new(folder).map_err(failed),
    }
}

/// The bucket, if objects are in one. Nothing is asked of it yet.
pub(crate) fn bucket(context: &Context) -> Result<Option<S3Backend>, Failure> {
    let Some(settings) = &context.settings.object_store else { return Ok(None) };
    let (folder, options) = (context.data_dir(), settings.with_key()?);
    let cannot = |why: String| Failure::new(format!("the object store cannot be used: {why}"), "check object_store");
    let staging = FolderBackend::new(folder.join(OBJECTS));
    let staging = staging.map_err(|why| Failure::file("use the data folder", folder, &why))?;
    let client = outbound::client_for_configured_hosts().map_err(cannot)?;
    S3Backend::new(&options, client, staging).map(Some).map_err(|why| cannot(why.to_string()))
}
