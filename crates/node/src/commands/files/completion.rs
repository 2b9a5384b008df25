//! Work that is done: the renditions that were made become files of their own.

use super::FileError;
use super::jobs::{WorkError, leased, note_in_journal};
use super::renditions::{child_id, forget_derived};
use crate::large_content::StagedContent;
use crate::writer_command::WriterCommand;
use model::files::{DERIVATION_DEPTH_MAX, DerivedStatus, FileStatus, StoredStatus};
use model::{FileId, SpaceId};
use store::Batch;
use store::shared::files::{
    Derivation, DerivedFile, FileChangeError, FileContent, FileRecord, FileVersion, StatusChange,
};

/// A rendition that was made, and where its bytes are.
#[derive(Clone, Debug)]
pub struct MadeRendition {
    pub variant: String,
    pub media_type: String,
    /// Width and height, if they are known.
    pub dimensions: Option<(u32, u32)>,
    pub size: u64,
    /// The content that it is.
    pub reference: FileContent,
    pub content: StagedContent,
}

/// Says that work is done.
#[derive(Clone, Debug)]
pub struct CompleteWork {
    pub space: SpaceId,
    pub file: FileId,
    pub token: u64,
    pub made: Vec<MadeRendition>,
}

impl WriterCommand for CompleteWork {
    type Answer = ();
    type Error = WorkError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<(), WorkError> {
        let job = leased(batch, &self.space, self.file, self.token)?;
        let who = job.lease.map(|lease| lease.worker).unwrap_or_default();
        let parent = batch.db().file(&self.space, self.file)?.ok_or(FileChangeError::Unknown)?;
        for made in &self.made {
            let by = StatusChange { who: &who, why: "a rendition was made" };
            keep_derived(batch, (&self.space, self.file), &parent, made, by)?;
        }
        let by = StatusChange { who: &who, why: "its renditions are made" };
        let place = (self.file, parent.version);
        // What was processed before, and lacked something, stays so.
        let row = batch.db().file_version(&self.space, place.0, place.1)?.ok_or(FileChangeError::Unknown)?;
        if row.status != StoredStatus::Processed {
            batch.move_version(&self.space, place, StoredStatus::Processed, by)?;
        }
        if parent.status == FileStatus::Processed {
            // A new version of it was processed.
        } else if parent.status == FileStatus::Archived {
            let before_archive = Some(FileStatus::Processed);
            batch.put_file(&self.space, self.file, &FileRecord { before_archive, ..parent.clone() })?;
        } else {
            batch.move_file(&self.space, self.file, FileStatus::Processed, by)?;
        }
        batch.end_file_job(&self.space, self.file)?;
        note_in_journal(batch, &self.space, &parent)?;
        Ok(())
    }
}

/// Says that nothing is made of a file, because of what it is: it is as it should be.
#[derive(Clone, Copy, Debug)]
pub struct NothingToMake {
    pub space: SpaceId,
    pub file: FileId,
    pub token: u64,
}

impl WriterCommand for NothingToMake {
    type Answer = ();
    type Error = WorkError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<(), WorkError> {
        let job = leased(batch, &self.space, self.file, self.token)?;
        let who = job.lease.map(|lease| lease.worker).unwrap_or_default();
        let by = StatusChange { who: &who, why: "nothing is made of such files" };
        let record = batch.db().file(&self.space, self.file)?.ok_or(FileChangeError::Unknown)?;
        let place = (self.file, record.version);
        if let Some(row) = batch.db().file_version(&self.space, place.0, place.1)? {
            let row = match row.status {
                StoredStatus::Processing => batch.move_version(&self.space, place, StoredStatus::Processed, by)?,
                _ => row,
            };
            batch.put_version(&self.space, place, &FileVersion { is_renderable: false, ..row })?;
        }
        forget_derived(batch, (&self.space, self.file), by)?;
        note_in_journal(batch, &self.space, &record)?;
        Ok(())
    }
}

/// A derived file is a file of its own, which no event speaks of: its row holds the reference to its bytes. The relation is
/// there already.
pub(super) fn keep_derived(
    batch: &mut Batch<'_>,
    (space, file): (&SpaceId, FileId),
    parent: &FileRecord,
    made: &MadeRendition,
    by: StatusChange<'_>,
) -> Result<(), WorkError> {
    let relation = batch.db().derived_file(space, file, &made.variant)?.ok_or(FileChangeError::Unknown)?;
    let depth = parent.derivation.as_ref().map_or(0, |derivation| derivation.depth) + 1;
    if usize::from(depth) > DERIVATION_DEPTH_MAX {
        return Err(FileError::Bad("a rendition of a rendition is at most five deep").into());
    }
    let child = child_id(file, parent.version, &made.variant);
    let now = batch.now();
    let derivation =
        Derivation { parent: file, derivation_type: relation.derivation_type, variant: made.variant.clone(), depth };
    let record = FileRecord {
        owner: parent.owner,
        name: parent.name.clone(),
        media_type: made.media_type.clone(),
        size: Some(made.size),
        status: FileStatus::Uploaded,
        created_at: now,
        updated_at: now,
        deleted_at: None,
        is_purged: false,
        metadata: String::new(),
        derivation: Some(derivation),
        event: None,
        version: 1,
        before_archive: None,
        error: None,
        history: Vec::new(),
    };
    batch.begin_file(space, child, &record, by)?;
    let row = FileVersion {
        content: Some(made.reference),
        object: None,
        size: Some(made.size),
        status: StoredStatus::Uploaded,
        created_at: now,
        updated_at: now,
        deleted_at: None,
        error: None,
        event: None,
        holds_reference: true,
        is_renderable: false,
    };
    batch.begin_version(space, (child, 1), &row, by)?;
    match &made.content {
        StagedContent::Bytes(wire) => batch.deliver(space, &made.reference.hash, wire)?,
        StagedContent::Object(name, len) => batch.enter_object(space, &made.reference.hash, *len, *name)?,
    };
    let row = batch.move_derived(space, file, &made.variant, DerivedStatus::Processed, by)?;
    if let Some(older) = row.child.filter(|older| *older != child) {
        batch.forget_file(space, older)?;
    }
    batch.put_derived(space, file, &DerivedFile { child: Some(child), dimensions: made.dimensions, ..row })?;
    Ok(())
}
