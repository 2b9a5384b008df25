//! Links by which whoever has one downloads or uploads a file without an account, until they expire or are ended.

use super::uploads::FileCommandContext;
use super::{FileError, FileResult, NewLink};
use crate::commands::CommandError;
use model::files::FileStatus;
use model::{LinkId, Nanos};
use store::Batch;
use store::shared::files::{FileLink, LinkPurpose};

/// How long a link may be good for.
pub const LINK_SECONDS_MAX: u64 = 366 * 24 * 3600;
/// How many links a file may have.
const LINKS_PER_FILE_MAX: usize = 100;

impl FileCommandContext<'_> {
    pub(super) fn make_link(
        &self,
        batch: &mut Batch<'_>,
        link: LinkId,
        new: &NewLink,
    ) -> Result<FileResult, FileError> {
        let record = self.own(batch)?;
        if record.deleted_at.is_some() {
            return Err(FileError::Hidden);
        }
        if !(1..=LINK_SECONDS_MAX).contains(&new.seconds) {
            return Err(FileError::Bad("a link is good for a second to a year"));
        }
        let user = self.context.caller.user.clone();
        match &new.purpose {
            LinkPurpose::Download { .. } => {}
            LinkPurpose::Upload { .. } if user.is_none() => {
                return Err(FileError::Bad("bytes are uploaded in somebody's name: make this link for a user"));
            }
            LinkPurpose::Upload { .. } if record.status == FileStatus::Archived => {
                return Err(FileError::Link("the file is archived; bring it back before it gets a new version"));
            }
            LinkPurpose::Upload { .. } => {}
        }
        let (mut links, now) = (0, batch.now());
        for (other, row) in batch.db().file_links(self.space(), self.id())? {
            if row.until > now {
                links += 1;
            } else {
                batch.end_file_link(self.space(), self.id(), other)?;
            }
        }
        if links >= LINKS_PER_FILE_MAX {
            return Err(FileError::Link("the file has a hundred links, which is the most; end some of them"));
        }
        let row = FileLink {
            secret: new.secret,
            purpose: new.purpose.clone(),
            until: now.plus(new.seconds.saturating_mul(Nanos::SECOND)),
            created_at: now,
            user,
            made_by: self.context.signer.identity,
        };
        batch.put_file_link(self.space(), self.id(), link, &row)?;
        batch.audit(Some(*self.space()), self.who, "make link to file", &self.id().to_name())?;
        Ok(self.result(record))
    }

    pub(super) fn end_link(&self, batch: &mut Batch<'_>, link: LinkId) -> Result<FileResult, FileError> {
        let record = self.own(batch)?;
        if !batch.end_file_link(self.space(), self.id(), link)? {
            return Err(CommandError::Unknown("link").into());
        }
        batch.audit(Some(*self.space()), self.who, "end link to file", &self.id().to_name())?;
        Ok(self.result(record))
    }
}
