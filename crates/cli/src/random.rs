//! Randomness from the operating system.

use crate::failure::Failure;

pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let failed = |_| Failure::new("the operating system provides no random numbers", "try again later");
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
