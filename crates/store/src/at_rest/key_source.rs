//! Where everything random comes from: new storage keys, epochs, node ids.

use crate::keys::StorageKeyName;
use engine::reads::{StoreError, StoreResult};
use model::SpaceId;

/// Where everything random comes from.
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
        self.draw("anteroom v1 storage key of a test", StorageKeyName::new(*space, number).as_bytes())
    }

    /// Random bytes, at most 32. From a seed they follow from what they are for and the context.
    pub(crate) fn draw<const N: usize>(self, purpose: &str, context: &[u8]) -> StoreResult<[u8; N]> {
        const { assert!(N <= 32, "a seed gives 32 bytes at a time") };
        let mut drawn = [0; N];
        match self {
            KeySource::Machine => {
                let failed = |why| StoreError::Store(format!("the operating system gives no randomness: {why}"));
                getrandom::fill(&mut drawn).map_err(failed)?;
            }
            KeySource::Seed(seed) => {
                let material = [seed.to_be_bytes().as_slice(), context].concat();
                drawn.copy_from_slice(&blake3::derive_key(purpose, &material)[..N]);
            }
        }
        Ok(drawn)
    }
}
