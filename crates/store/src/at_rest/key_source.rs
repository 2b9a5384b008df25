//! Where new storage keys come from.

use crate::keys::StorageKeyName;
use engine::reads::{StoreError, StoreResult};
use model::SpaceId;

/// Where new storage keys come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum KeySource {
    /// The machine's randomness: what is destroyed cannot be made again.
    #[default]
    Machine,
    /// A seed, so that tests repeat themselves byte for byte.
    Seed(u64),
}

impl KeySource {
    /// A secret for the storage key of that space and number.
    pub(crate) fn storage_secret(self, space: &SpaceId, number: u32) -> StoreResult<[u8; 32]> {
        match self {
            KeySource::Machine => {
                let mut secret = [0; 32];
                let failed = |why| StoreError::Store(format!("the machine gives no randomness: {why}"));
                getrandom::fill(&mut secret).map_err(failed)?;
                Ok(secret)
            }
            KeySource::Seed(seed) => {
                let material = [seed.to_be_bytes().as_slice(), StorageKeyName::new(*space, number).as_bytes()].concat();
                Ok(blake3::derive_key("anteroom v1 storage key of a test", &material))
            }
        }
    }
}
