//! The checksum at the end of every stored value: CRC-32 over the table, the key and the value.
//!
//! The key is covered too, so that a value that moved to another row is noticed like one that changed, and a row that
//! says all in its key has something to be checked by. It finds damage, not forgery: what must not be forged is
//! encrypted or signed.

/// The number of bytes.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// What the checksums of a table begin with, so that a row of one table does not pass for one of another.
pub(super) const fn seed_of(table: &str) -> u32 {
    // FNV-1a, which can be computed when this is compiled.
    let (bytes, mut hash, mut at) = (table.as_bytes(), 0x811c_9dc5_u32, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}

/// The checksum of a row. Where keys vary in width their length counts, so that no byte can change sides unnoticed.
pub(super) fn checksum(seed: u32, has_fixed_key: bool, key: &[u8], value: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = crc32fast::Hasher::new_with_initial(seed);
    if !has_fixed_key {
        hasher.update(&(key.len() as u32).to_be_bytes());
    }
    hasher.update(key);
    hasher.update(value);
    hasher.finalize().to_be_bytes()
}
