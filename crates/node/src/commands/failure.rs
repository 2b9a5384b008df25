//! Which errors of commands are failures of the store.

use crate::commands::accounts::AccountError;
use crate::commands::{AdminError, CommandError};
use crate::writer_command::CommandFailure;
use engine::reads::StoreError;

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
