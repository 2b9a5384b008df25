//! Files that were kept by another system: records with the times and statuses that they had there, and what was derived of
//! them. Bytes come as uploads do, between [`ImportFile`] and [`SettleImport`].

use super::completion::{MadeRendition, keep_derived};
use super::jobs::WorkError;
use super::renditions::new_derived;
use super::{FileChange, FileCommand, FileError, FileRequest, NewFile};
use crate::commands::Caller;
use crate::writer_command::WriterCommand;
use model::files::{DerivedStatus, FileStatus};
use model::{FileId, Nanos, SpaceId};
use store::Batch;
use store::shared::files::{DerivedFile, FileChangeError, FileRecord, StatusChange};

/// How the audit log calls whoever imports.
const WHO: &str = "import";
/// Why something failed that had failed before it came.
const HAD_FAILED: &str = "it had failed where it came from";

/// Which file, and in whose name it is imported.
#[derive(Clone, Debug)]
pub struct ImportTarget {
    pub space: SpaceId,
    pub caller: Caller,
    pub file: FileId,
    pub random: [u8; 32],
}

impl ImportTarget {
    fn ask(&self, batch: &mut Batch<'_>, command: FileCommand) -> Result<FileRecord, FileError> {
        let ImportTarget { space, caller, file, random } = self.clone();
        let request = FileRequest { space, caller, file, command, idempotency: None, random };
        request.run(batch).map(|done| done.record)
    }
}

/// Begins a file that was kept elsewhere. Answers whether it was not here before.
#[derive(Clone, Debug)]
pub struct ImportFile {
    pub target: ImportTarget,
    pub new: NewFile,
    pub created_at: Option<Nanos>,
}

impl WriterCommand for ImportFile {
    type Answer = bool;
    type Error = FileError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<bool, FileError> {
        let ImportTarget { space, file, .. } = &self.target;
        if batch.db().file(space, *file)?.is_some() {
            return Ok(false);
        }
        let record = self.target.ask(batch, FileCommand::Begin(self.new.clone()))?;
        if let Some(created_at) = self.created_at {
            batch.put_file(space, *file, &FileRecord { created_at, ..record })?;
        }
        Ok(true)
    }
}

/// Gives a file, whose bytes are here if there were any, what it had where it came from beside its bytes.
#[derive(Clone, Debug)]
pub struct SettleImport {
    pub target: ImportTarget,
    pub is_archived: bool,
    pub has_failed: bool,
    pub deleted_at: Option<Nanos>,
}

impl WriterCommand for SettleImport {
    type Answer = ();
    type Error = FileError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<(), FileError> {
        let ImportTarget { space, file, .. } = &self.target;
        let record = batch.db().file(space, *file)?.ok_or(FileChangeError::Unknown)?;
        if self.has_failed && record.status == FileStatus::Created {
            self.target.ask(batch, FileCommand::Fail(HAD_FAILED.to_owned(), None))?;
        }
        if self.is_archived && record.status != FileStatus::Archived {
            let change = FileChange { archived: Some(true), ..FileChange::default() };
            self.target.ask(batch, FileCommand::Change(change))?;
        }
        if self.deleted_at.is_some() && record.deleted_at.is_none() {
            let record = self.target.ask(batch, FileCommand::Delete)?;
            batch.put_file(space, *file, &FileRecord { deleted_at: self.deleted_at, ..record })?;
        }
        Ok(())
    }
}

/// Notes a derived file that was kept elsewhere, with its bytes if they are there. Answers whether it was not here before.
#[derive(Clone, Debug)]
pub struct ImportDerived {
    pub space: SpaceId,
    pub parent: FileId,
    pub derivation_type: String,
    pub variant: String,
    /// A JSON object.
    pub parameters: String,
    pub has_failed: bool,
    pub made: Option<MadeRendition>,
}

impl WriterCommand for ImportDerived {
    type Answer = bool;
    type Error = WorkError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<bool, WorkError> {
        let (space, parent) = (&self.space, self.parent);
        if batch.db().derived_file(space, parent, &self.variant)?.is_some() {
            return Ok(false);
        }
        let record = batch.db().file(space, parent)?.ok_or(FileChangeError::Unknown)?;
        if record.version == 0 {
            return Err(FileError::Bad("nothing is derived of a file whose bytes are not here").into());
        }
        let by = StatusChange { who: WHO, why: "it was imported" };
        let (derivation_type, parameters) = (self.derivation_type.clone(), self.parameters.clone());
        let row = DerivedFile { derivation_type, parameters, ..new_derived(batch, &self.variant) };
        batch.expect_derived(space, parent, &row, by)?;
        match &self.made {
            Some(made) => keep_derived(batch, (space, parent), &record, made, by)?,
            None if self.has_failed => {
                let by = StatusChange { who: WHO, why: HAD_FAILED };
                batch.move_derived(space, parent, &self.variant, DerivedStatus::Failed, by)?;
            }
            None => {}
        }
        Ok(true)
    }
}
