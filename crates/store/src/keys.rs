//! Keys of tables.

/// Joins parts into a key of fixed length.
pub(crate) fn key<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut key = [0; N];
    let mut at = 0;
    for part in parts {
        let end = (at + part.len()).min(N);
        key[at..end].copy_from_slice(&part[..end - at]);
        at = end;
    }
    key
}
