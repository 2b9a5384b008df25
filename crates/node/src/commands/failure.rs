//! Errors of commands, as the writer looks at them.
//!
//! A command ends with `?` wherever it cannot go on. The writer asks each error one question: did the store fail? That
//! ends or parks the request; everything else is the command's own answer.

use crate::commands::accounts::AccountError;
use crate::commands::{AdminError, CommandError};
use engine::reads::StoreError;

/// An error with which a command may end.
pub trait CommandFailure: From<StoreError> + Send + 'static {
    /// The failure of the store behind this error, or the error itself.
    fn into_store_error(self) -> Result<StoreError, Self>;
}

impl CommandFailure for StoreError {
    fn into_store_error(self) -> Result<StoreError, StoreError> {
        Ok(self)
    }
}

impl CommandFailure for CommandError {
    fn into_store_error(self) -> Result<StoreError, CommandError> {
        match self {
            CommandError::Store(fault) => Ok(fault),
            other => Err(other),
        }
    }
}

impl CommandFailure for AdminError {
    fn into_store_error(self) -> Result<StoreError, AdminError> {
        match self {
            AdminError::Store(fault) | AdminError::Command(CommandError::Store(fault)) => Ok(fault),
            other => Err(other),
        }
    }
}

impl CommandFailure for AccountError {
    fn into_store_error(self) -> Result<StoreError, AccountError> {
        match self {
            AccountError::Store(fault) | AccountError::Command(CommandError::Store(fault)) => Ok(fault),
            other => Err(other),
        }
    }
}
