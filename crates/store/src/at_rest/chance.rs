//! Where new storage keys come from.

use super::storage_row;
use engine::reads::{Answer, Fault};
use model::SpaceId;

/// Where new storage keys come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Chance {
    /// The machine's randomness: what is destroyed cannot be made again.
    #[default]
    Machine,
    /// A seed, so that tests repeat themselves byte for byte.
    Seed(u64),
}

impl Chance {
    /// A secret for the storage key of that space and number.
    pub(super) fn storage_secret(self, space: &SpaceId, number: u32) -> Answer<[u8; 32]> {
        match self {
            Chance::Machine => {
                let mut secret = [0; 32];
                let failed = |why| Fault::Store(format!("the machine gives no randomness: {why}"));
                getrandom::fill(&mut secret).map_err(failed)?;
                Ok(secret)
            }
            Chance::Seed(seed) => {
                let material = [seed.to_be_bytes().as_slice(), &storage_row(space, number)].concat();
                Ok(blake3::derive_key("anteroom v1 storage key of a test", &material))
            }
        }
    }
}
