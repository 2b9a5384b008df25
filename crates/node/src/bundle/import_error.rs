//! Why an import ended early, and what to do about it.

use super::format::BadBundle;
use super::secrets::BadSecrets;
use crate::writer_command::RequestError;
use engine::reads::StoreError;

/// Why an import did not come to its end. What was counted is kept.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The bundle is not fit.
    #[error(transparent)]
    Bundle(#[from] BadBundle),
    /// The node could not take more.
    #[error("the import stopped at byte {at}: {why}")]
    Node {
        /// The first record that was not taken.
        at: u64,
        why: RequestError,
    },
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its keys cannot be read.
    #[error(transparent)]
    Keys(#[from] BadSecrets),
    /// Contents that came before the events that refer to them found no room while the bundle came through a pipe.
    #[error("{contents} contents came before the events that refer to them and could not be kept aside: {why}")]
    Aside { contents: u64, why: String },
    /// Whoever watched it asked it to stop.
    #[error("the import was interrupted at byte {at}")]
    Interrupted {
        /// How far it was.
        at: u64,
    },
}

impl ImportError {
    /// What whoever asked for it can do.
    pub fn what_to_do(&self) -> &'static str {
        match self {
            ImportError::Bundle(why) => why.what_to_do(),
            ImportError::Node { why: RequestError::Full, .. } => {
                "free some disk space, then run import again; what was read before is kept and skipped quickly"
            }
            ImportError::Node { .. } | ImportError::Store(_) => "run `anteroom verify`, then import again",
            ImportError::Keys(BadSecrets::Passphrase) => {
                "pass the passphrase that was given to export, or none to import what can be opened without the keys"
            }
            ImportError::Aside { .. } => {
                "import the bundle from a file, or through the pipe once more: their events are here now"
            }
            ImportError::Keys(_) => "use a newer release, or export the bundle again",
            ImportError::Interrupted { .. } => "run import again; what was read before is kept and skipped quickly",
        }
    }
}
