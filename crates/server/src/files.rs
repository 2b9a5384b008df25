//! Files over HTTP: in ([`upload`], in several goes [`resumable`]), out ([`download`]), and by links without an account
//! ([`links`]).

pub mod download;
pub mod links;
pub mod resumable;
pub mod upload;

use crate::problem::Problem;
use node::AskError;
use node::commands::files::FileError;
use node::files::upload::UploadError;
use std::time::Duration;
use store::shared::files::FileChangeError;

/// Pieces between a connection and the thread that reads or writes them.
const PIECES_MAX: usize = 4;
/// Nothing of a body coming for so long ends an upload.
const PIECE_SECONDS_MAX: Duration = Duration::from_secs(60);
/// At least so many bytes come in a minute, or the upload ends.
const BYTES_PER_MINUTE_MIN: usize = 16 * 1024;

impl From<FileError> for Problem {
    fn from(why: FileError) -> Problem {
        let detail = why.to_string();
        match why {
            FileError::Command(why) => why.into(),
            FileError::Change(FileChangeError::Unknown) => Problem::not_found(detail),
            FileError::Change(FileChangeError::Edge { .. })
            | FileError::Busy
            | FileError::Hidden
            | FileError::NotProcessing
            | FileError::Derived
            | FileError::Link(_)
            | FileError::Purged
            | FileError::NotFailed => Problem::status_conflict(detail),
            FileError::Change(FileChangeError::Store(fault)) => fault.into(),
            FileError::NoUpload => Problem::not_found(detail),
            FileError::TooManyUploads(_) => Problem::overloaded(detail).after(60),
            FileError::Bad(_) => Problem::unprocessable(detail),
        }
    }
}

impl From<UploadError> for Problem {
    fn from(why: UploadError) -> Problem {
        let detail = why.to_string();
        match why {
            UploadError::TooLarge(_) => Problem::too_large(detail),
            UploadError::OtherHash(_) | UploadError::TooShort(..) => Problem::unprocessable(detail),
            UploadError::Ask(AskError::Refused(why)) => why.into(),
            UploadError::Ask(AskError::NotRun(why)) => why.into(),
            UploadError::Object(_) => Problem::overloaded(detail).after(5),
            UploadError::BrokenOff(_) => Problem::slow(detail),
        }
    }
}
