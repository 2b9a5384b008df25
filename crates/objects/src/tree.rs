//! The hash of content as a tree over groups of 64 KiB, made in the pass that writes the content.
//!
//! BLAKE3 is a tree itself. Its inner values over whole groups (32 bytes for 64 KiB) are kept behind the content: with them
//! a range can be checked without reading the rest, and damage has a place.

use blake3::Hasher;
use blake3::hazmat::{ChainingValue, HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root};
use model::ContentHash;

/// The bytes of a group, a power of two as BLAKE3 needs it.
pub(crate) const GROUP_BYTES: u64 = 64 << 10;
/// The bytes that a group has in the tree.
pub(crate) const GROUP_HASH_BYTES: u64 = 32;

/// Hashes content as it comes, group by group.
pub(crate) struct TreeHasher {
    groups: Vec<ChainingValue>,
    /// The group that is not known to be the last.
    current: Hasher,
    in_current: u64,
}

impl TreeHasher {
    pub(crate) fn new() -> TreeHasher {
        TreeHasher { groups: Vec::new(), current: Hasher::new(), in_current: 0 }
    }

    pub(crate) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.in_current == GROUP_BYTES {
                self.end_group();
                self.current.set_input_offset(self.groups.len() as u64 * GROUP_BYTES);
            }
            let room = usize::try_from(GROUP_BYTES - self.in_current).unwrap_or(usize::MAX);
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.current.update(now);
            self.in_current += now.len() as u64;
            bytes = later;
        }
    }

    fn end_group(&mut self) {
        self.groups.push(self.current.finalize_non_root());
        self.current = Hasher::new();
        self.in_current = 0;
    }

    /// The hash of everything, and the values of its groups: none if there is but one.
    pub(crate) fn finish(mut self) -> (ContentHash, Vec<ChainingValue>) {
        if self.groups.is_empty() {
            return (ContentHash(*self.current.finalize().as_bytes()), Vec::new());
        }
        self.end_group();
        (root(&self.groups), self.groups)
    }
}

/// The hash of content that has these groups, of which there are at least two.
fn root(groups: &[ChainingValue]) -> ContentHash {
    let (left, right) = groups.split_at(left_groups(groups.len()));
    ContentHash(*merge_subtrees_root(&inner(left), &inner(right), Mode::Hash).as_bytes())
}

fn inner(groups: &[ChainingValue]) -> ChainingValue {
    match groups {
        [] => ChainingValue::default(),
        [one] => *one,
        more => {
            let (left, right) = more.split_at(left_groups(more.len()));
            merge_subtrees_non_root(&inner(left), &inner(right), Mode::Hash)
        }
    }
}

/// The left half of a tree is as large as a power of two can be, and the right one has something.
fn left_groups(count: usize) -> usize {
    count.next_power_of_two() / 2
}

/// How many groups the tree of content of that length has.
pub(crate) fn group_count(len: u64) -> u64 {
    if len > GROUP_BYTES { len.div_ceil(GROUP_BYTES) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]

        #[test]
        fn the_tree_has_the_hash_of_the_content(groups in 0u64..9, more in 0u64..3000, cuts in proptest::collection::vec(1usize..200_000, 1..5)) {
            let content: Vec<u8> = (0..groups * GROUP_BYTES + more).map(|at| (at * 7 / 3) as u8).collect();
            let mut hasher = TreeHasher::new();
            let (mut rest, mut cuts) = (content.as_slice(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (now, later) = rest.split_at(cuts.next().copied().unwrap_or(1).min(rest.len()));
                hasher.update(now);
                rest = later;
            }
            let (hash, tree) = hasher.finish();
            prop_assert_eq!(hash.0, *blake3::hash(&content).as_bytes());
            prop_assert_eq!(tree.len() as u64, group_count(content.len() as u64));
        }
    }

    #[test]
    fn the_left_half_is_the_greatest_power_of_two_that_leaves_something() {
        let halves: Vec<usize> = (2..10).map(left_groups).collect();
        assert_eq!(halves, [1, 2, 2, 4, 4, 4, 4, 8]);
    }
}
