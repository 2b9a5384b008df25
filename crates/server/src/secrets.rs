//! Secrets that are given out once and kept as hashes.

use crate::problem::Problem;
use store::shared::accounts::SecretHash;

/// Randomness from the operating system.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], Problem> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| Problem::overloaded("the system gives no randomness").after(1))?;
    Ok(bytes)
}

/// A secret that somebody is given, and the hash that is kept of it.
pub struct Secret {
    pub text: String,
    pub hash: SecretHash,
}

impl Secret {
    pub fn random() -> Result<Secret, Problem> {
        Ok(Secret::of(hex::encode(random_bytes::<32>()?)))
    }

    /// The secret in a text.
    pub fn of(text: String) -> Secret {
        let hash = *blake3::hash(text.as_bytes()).as_bytes();
        Secret { text, hash }
    }
}

/// The bytes and the secret in a text that [`write_secret`] wrote.
pub fn read_secret<const N: usize>(text: &str) -> Option<([u8; N], Secret)> {
    let (front, secret) = text.split_at_checked(2 * N)?;
    let is_secret = secret.len() == 64 && secret.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut bytes = [0; N];
    hex::decode_to_slice(front, &mut bytes).ok()?;
    is_secret.then(|| (bytes, Secret::of(secret.to_owned())))
}

/// Where a secret belongs, and the secret, as one text.
pub fn write_secret(front: &[u8], secret: &Secret) -> String {
    format!("{}{}", hex::encode(front), secret.text)
}
