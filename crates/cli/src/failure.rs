//! Errors of commands: what happened, and what the user can do about it.

use engine::reads::StoreError;
use node::bundle::{ExportError, ImportError};
use node::{AskError, RequestError};
use store::OpenError;
use store::maintenance::backup::{BackupError, RestoreError};

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Failure {
    Reported {
        /// What was attempted and what happened.
        what: String,
        what_to_do: String,
        /// The result so far, for the JSON output.
        so_far: Option<serde_json::Value>,
    },
    /// The reader of standard output is gone, so nothing is printed.
    OutputClosed,
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, what_to_do: impl Into<String>) -> Failure {
        Failure::Reported { what: what.into(), what_to_do: what_to_do.into(), so_far: None }
    }

    /// Adds the result so far.
    pub(crate) fn with_result(self, done: &impl serde::Serialize) -> Failure {
        match self {
            Failure::Reported { what, what_to_do, .. } => {
                Failure::Reported { what, what_to_do, so_far: serde_json::to_value(done).ok() }
            }
            Failure::OutputClosed => Failure::OutputClosed,
        }
    }

    /// An error while reading or writing a file. `doing` is a verb with its object, such as "read the bundle".
    pub(crate) fn file(doing: &str, path: &std::path::Path, why: &std::io::Error) -> Failure {
        let what_to_do = match why.kind() {
            std::io::ErrorKind::NotFound => "check the path",
            std::io::ErrorKind::PermissionDenied => "check the permissions",
            std::io::ErrorKind::IsADirectory => "pass a file, not a folder",
            std::io::ErrorKind::StorageFull => "free some disk space",
            _ => "check the path and the disk",
        };
        Failure::new(format!("cannot {doing} {}: {why}", path.display()), what_to_do)
    }
}

impl From<StoreError> for Failure {
    fn from(fault: StoreError) -> Failure {
        let what_to_do = match fault {
            StoreError::Store(_) => "check the disk, then try again",
            StoreError::Full => "free some disk space, then try again",
            StoreError::Broken(_) => "run `anteroom verify`, and restore a backup if it finds problems",
        };
        Failure::new(fault.to_string(), what_to_do)
    }
}

impl From<OpenError> for Failure {
    fn from(why: OpenError) -> Failure {
        let what_to_do = match &why {
            OpenError::Newer(_) => "use the release that wrote it, or a newer one",
            OpenError::Busy => "stop the other process first, or use another --data-dir",
            OpenError::WrongKey(_) => {
                "pass the right key with --master-key, or recreate it with `anteroom init --recover TEXT`"
            }
            OpenError::Damaged(_) => {
                "restore a backup into another folder, and keep this folder until that has succeeded"
            }
            OpenError::Store(_) => "check the disk, then try again",
        };
        Failure::new(why.to_string(), what_to_do)
    }
}

impl From<AskError<StoreError>> for Failure {
    fn from(why: AskError<StoreError>) -> Failure {
        match why {
            AskError::NotRun(why) => why.into(),
            AskError::Refused(fault) => fault.into(),
        }
    }
}

impl From<RequestError> for Failure {
    fn from(why: RequestError) -> Failure {
        let what_to_do = match &why {
            RequestError::Busy => "try again in a moment",
            RequestError::Full => "free some disk space, then try again",
            RequestError::Objects(_) => "check where objects are kept (`anteroom config`), then try again",
            RequestError::Stopped => "start the node again",
            RequestError::Dropped(_) => "check the input",
            RequestError::Parked(_) => "run `anteroom verify`",
            RequestError::Failed(_) => "check the disk and run `anteroom verify`",
        };
        Failure::new(why.to_string(), what_to_do)
    }
}

macro_rules! from_errors_with_advice {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(why: $error) -> Failure {
                Failure::new(why.to_string(), why.what_to_do())
            }
        }
    )*};
}

from_errors_with_advice!(ImportError, BackupError, RestoreError, server::TlsError);

impl From<ExportError> for Failure {
    fn from(why: ExportError) -> Failure {
        match &why {
            ExportError::Write(io) if io.kind() == std::io::ErrorKind::BrokenPipe => Failure::OutputClosed,
            ExportError::Write(_) | ExportError::Store(_) | ExportError::Keys(_) => {
                Failure::new(why.to_string(), why.what_to_do())
            }
        }
    }
}
