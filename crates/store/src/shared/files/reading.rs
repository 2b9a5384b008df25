//! Reading the rows of files, and their lists.

use super::{DerivedFile, FileJob, FileLink, FileRecord, FileVersion, OpenUpload};
use crate::database::db::Db;
use crate::keys::*;
use crate::shared::{DerivedFiles, FileJobs, FileLinks, FileVersions, Files, OpenUploads};
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::files::{FileStatus, WantedBytes};
use model::{EventId, FileId, LinkId, Nanos, Seq, SpaceId};
use std::ops::Bound;

impl<V: TableReads> Db<V> {
    pub fn file(&self, space: &SpaceId, id: FileId) -> StoreResult<Option<FileRecord>> {
        self.shared::<Files>(&FileKey::new(*space, id))
    }

    /// The file whose latest version an event speaks of, or spoke.
    pub fn file_of_event(&self, event: &EventId) -> StoreResult<Option<FileId>> {
        self.tables.file_events().get(EventIdKey::new(*event))
    }

    /// The bytes of a version of a file.
    pub fn file_version(&self, space: &SpaceId, id: FileId, version: u32) -> StoreResult<Option<FileVersion>> {
        self.shared::<FileVersions>(&FileVersionKey::new(*space, id, version))
    }

    /// All versions of a file, the first one first.
    pub fn file_versions(&self, space: &SpaceId, id: FileId) -> StoreResult<Vec<(u32, FileVersion)>> {
        let rows = self.shared_range::<FileVersions>(FileVersionKey::of_file(*space, id))?;
        rows.map(|row| row.map(|(key, row)| (key.version(), row))).collect()
    }

    pub fn derived_file(&self, space: &SpaceId, parent: FileId, variant: &str) -> StoreResult<Option<DerivedFile>> {
        self.shared::<DerivedFiles>(&DerivedKey::of(space, parent, variant))
    }

    /// What is derived from a file, or was to be.
    pub fn derived_files(&self, space: &SpaceId, parent: FileId) -> StoreResult<Vec<DerivedFile>> {
        let rows = self.shared_range::<DerivedFiles>(DerivedKey::of_parent(*space, parent))?;
        rows.map(|row| row.map(|(_, row)| row)).collect()
    }

    /// Work that waits for a file, or that somebody does.
    pub fn file_job(&self, space: &SpaceId, file: FileId) -> StoreResult<Option<FileJob>> {
        self.shared::<FileJobs>(&FileKey::new(*space, file))
    }

    /// Files of all spaces after one of them, in the order of their keys.
    pub fn files_after(
        &self,
        after: Option<(SpaceId, FileId)>,
        most: usize,
    ) -> StoreResult<Vec<(SpaceId, FileId, FileRecord)>> {
        let from = after.map_or(Bound::Unbounded, |(space, file)| Bound::Excluded(FileKey::new(space, file)));
        let rows = self.shared_range::<Files>((from, Bound::Unbounded))?.take(most);
        rows.map(|row| row.map(|(key, row)| (key.space(), key.file(), row))).collect()
    }

    /// How much work waits or is done, in one space or in all.
    pub fn file_job_count(&self, only: Option<&SpaceId>) -> StoreResult<u64> {
        match only {
            Some(space) => Ok(self.tables.file_jobs().range(FileKey::of_space(*space))?.count() as u64),
            None => self.tables.file_jobs_due().len(),
        }
    }

    /// The upload of a file whose bytes are coming.
    pub fn open_upload(&self, space: &SpaceId, file: FileId) -> StoreResult<Option<OpenUpload>> {
        self.shared::<OpenUploads>(&FileKey::new(*space, file))
    }

    /// All uploads whose bytes are coming, as far as their rows can be read.
    pub fn open_uploads(&self) -> StoreResult<Vec<(SpaceId, FileId, OpenUpload)>> {
        let rows = self.shared_range::<OpenUploads>(..)?;
        rows.map(|row| row.map(|(key, row)| (key.space(), key.file(), row))).collect()
    }

    /// How many uploads are open, in one space or in all.
    pub fn open_upload_count(&self, only: Option<&SpaceId>) -> StoreResult<u64> {
        match only {
            Some(space) => Ok(self.tables.open_uploads().range(FileKey::of_space(*space))?.count() as u64),
            None => self.tables.open_uploads().len(),
        }
    }

    /// A link to a file.
    pub fn file_link(&self, space: &SpaceId, file: FileId, link: LinkId) -> StoreResult<Option<FileLink>> {
        self.shared::<FileLinks>(&FileLinkKey::new(*space, file, link))
    }

    /// The links to a file.
    pub fn file_links(&self, space: &SpaceId, file: FileId) -> StoreResult<Vec<(LinkId, FileLink)>> {
        let rows = self.shared_range::<FileLinks>(FileLinkKey::of_file(*space, file))?;
        rows.map(|row| row.map(|(key, row)| (key.link(), row))).collect()
    }

    /// Work that is due, the earliest first, each with when it was.
    pub fn due_file_jobs(&self, now: Nanos, most: usize) -> StoreResult<Vec<(Nanos, SpaceId, FileId)>> {
        let upto = ..=FileJobDueKey::new(now, SpaceId([0xff; 16]), FileId([0xff; 16]));
        let rows = self.tables.file_jobs_due().range(upto)?.take(most);
        rows.map(|row| row.map(|row| (row.key().at(), row.key().space(), row.key().file()))).collect()
    }

    /// Work that somebody has, as far as its rows can be read.
    pub fn leased_file_jobs(&self) -> StoreResult<Vec<(SpaceId, FileId, FileJob)>> {
        let rows = self.shared_range::<FileJobs>(..)?;
        let leased = |row: &StoreResult<(FileKey, FileJob)>| row.as_ref().is_ok_and(|(_, job)| job.lease.is_some());
        rows.filter(leased).map(|row| row.map(|(key, job)| (key.space(), key.file(), job))).collect()
    }

    /// When the next work is due.
    pub fn next_file_job(&self) -> StoreResult<Option<Nanos>> {
        Ok(self.tables.file_jobs_due().first()?.map(|row| row.key().at()))
    }

    /// Files of these statuses, the latest first, created before a moment: of one status after another merged by time.
    pub fn list_files(
        &self,
        space: &SpaceId,
        statuses: &[FileStatus],
        groups: &[u8],
        before: (Nanos, FileId),
        most: usize,
    ) -> StoreResult<Vec<(FileId, FileRecord)>> {
        let mut found = Vec::new();
        for (status, group) in statuses.iter().flat_map(|status| groups.iter().map(move |group| (status, group))) {
            let key = |at, id| FileIndexKey::new(*space, *group, *status as u8, at, id);
            let range = key(Nanos(0), FileId::ZERO)..key(before.0, before.1);
            for row in self.tables.file_index().range(range)?.rev().take(most) {
                let row = row?;
                found.push((row.key().created(), row.key().file()));
            }
        }
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.truncate(most);
        let read = |(_, id)| Ok(self.file(space, id)?.map(|record| (id, record)));
        found.into_iter().map(read).filter_map(Result::transpose).collect()
    }

    /// How many files of a space there are, by group and status.
    pub fn count_files(&self, space: &SpaceId) -> StoreResult<Vec<(u8, FileStatus, u64)>> {
        let mut counts = Vec::new();
        for group in 0..4u8 {
            for status in FileStatus::ALL {
                let key = |at, id| FileIndexKey::new(*space, group, *status as u8, at, id);
                let rows = self
                    .tables
                    .file_index()
                    .range(key(Nanos(0), FileId::ZERO)..=key(Nanos(u64::MAX), FileId([0xff; 16])))?;
                let count = rows.count() as u64;
                if count > 0 {
                    counts.push((group, *status, count));
                }
            }
        }
        Ok(counts)
    }

    /// Files of a space that have been hidden since before a moment, the longest first.
    pub fn hidden_files(&self, space: &SpaceId, before: Nanos, most: usize) -> StoreResult<Vec<FileId>> {
        let range =
            HiddenFileKey::new(*space, Nanos(0), FileId::ZERO)..HiddenFileKey::new(*space, before, FileId::ZERO);
        let rows = self.tables.hidden_files().range(range)?.take(most);
        rows.map(|row| row.map(|row| row.key().file())).collect()
    }

    /// File events whose records are to be looked at.
    pub fn due_file_events(&self, most: usize) -> StoreResult<Vec<Seq>> {
        let rows = self.tables.file_events_due().iter()?.take(most);
        rows.map(|row| row.map(|row| row.key().seq())).collect()
    }

    /// The content that rows of files hold references to, because no event does.
    pub(crate) fn references_of_files(&self) -> StoreResult<Vec<(SpaceId, WantedBytes)>> {
        self.tables
            .file_references()
            .iter()?
            .map(|row| row.and_then(|row| Ok((row.key().space(), row.value()?))))
            .collect()
    }
}
