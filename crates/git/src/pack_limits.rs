//! What a pack that was taken becomes when it is read: how large all of it is, and how many objects have to be read for one.

use crate::command::{GitError, bound_time, git, with};
use crate::staging::Staging;
use model::need::Oid;
use std::io::{BufRead as _, BufReader, BufWriter, Seek as _, SeekFrom, Write as _};
use std::process::Stdio;

/// Git itself writes chains of at most 4,095 differences.
const DELTA_DEPTH_MAX: u32 = 4096;
/// So many times as large as a repository may be, its objects may be when they are inflated.
const INFLATION_MAX: u64 = 16;

/// An object of the pack that is kept as a difference to another: its place, and that of the other.
type Delta = (u32, u32);

impl Staging {
    /// Why the packs that came are not taken, if they are not: all of their objects together, or the chain of one, are too
    /// long. Objects are not inflated for it.
    pub fn exceeds_limits(&self) -> Result<Option<String>, GitError> {
        let mut oids = self.oids()?;
        oids.sort_unstable();
        let (mut deltas, mut bytes) = (Vec::new(), 0_u64);
        let mut command = git(self.folder.path());
        with(&mut command, &["cat-file", "--batch-check=%(objectsize) %(deltabase)", "--buffer"]);
        let mut child = command.stdin(list_of(&oids)?).stderr(Stdio::null()).spawn().map_err(GitError::Missing)?;
        bound_time(child.id());
        let lines = child.stdout.take().into_iter().flat_map(|told| BufReader::new(told).lines());
        for (place, line) in lines.enumerate() {
            let line = line?;
            let (size, base) = line.split_once(' ').ok_or(GitError::Answer { what: "cat-file" })?;
            bytes = bytes.saturating_add(size.parse().map_err(|_| GitError::Answer { what: "cat-file" })?);
            let mut oid: Oid = [0; 20];
            hex::decode_to_slice(base, &mut oid).map_err(|_| GitError::Answer { what: "cat-file" })?;
            if let (Ok(of), Ok(on)) = (u32::try_from(place), oids.binary_search(&oid)) {
                deltas.push((of, u32::try_from(on).unwrap_or(of)));
            }
        }
        if !child.wait()?.success() {
            return Err(GitError::Answer { what: "cat-file" });
        }
        let bytes_max = self.limits.repository_bytes_max.saturating_mul(INFLATION_MAX);
        if bytes > bytes_max {
            return Ok(Some(format!("its objects have {bytes} bytes inflated; at most {bytes_max} are taken")));
        }
        Ok(is_too_deep(&deltas).then(|| format!("an object needs more than {DELTA_DEPTH_MAX} others to be read")))
    }
}

/// These objects as the standard input of a program, on the disk and not in memory.
fn list_of(oids: &[Oid]) -> Result<Stdio, GitError> {
    let mut file = BufWriter::new(tempfile::tempfile()?);
    for oid in oids {
        writeln!(file, "{}", hex::encode(oid))?;
    }
    let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

/// Whether a chain of differences is longer than it may be. They are sorted by place, and each has one.
fn is_too_deep(deltas: &[Delta]) -> bool {
    let at = |place: u32| deltas.binary_search_by_key(&place, |delta| delta.0).ok();
    // How many others each of them needs, once that is known.
    let mut depths: Vec<u32> = vec![0; deltas.len()];
    let mut chain = Vec::new();
    for start in 0..deltas.len() {
        let mut next = Some(start);
        // From each along its chain, until one is known; every one is met once.
        while let Some(index) = next.filter(|index| depths[*index] == 0) {
            if chain.len() > DELTA_DEPTH_MAX as usize {
                return true;
            }
            chain.push(index);
            next = at(deltas[index].1);
        }
        let mut depth = next.map_or(0, |index| depths[index]);
        while let Some(index) = chain.pop() {
            depth += 1;
            depths[index] = depth;
            if depth > DELTA_DEPTH_MAX {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{DELTA_DEPTH_MAX, is_too_deep};

    #[test]
    fn chains_of_differences_are_bounded_wherever_they_begin() {
        let chain = |length: u32| (1..=length).map(|place| (place, place - 1)).collect::<Vec<_>>();
        let other_way = |length: u32| (0..length).map(|place| (place, place + 1)).collect::<Vec<_>>();
        assert!(!is_too_deep(&[]) && !is_too_deep(&chain(DELTA_DEPTH_MAX)) && is_too_deep(&chain(DELTA_DEPTH_MAX + 1)));
        assert!(!is_too_deep(&other_way(DELTA_DEPTH_MAX)) && is_too_deep(&other_way(DELTA_DEPTH_MAX + 1)));
        // Many that need the same one are not deep.
        assert!(!is_too_deep(&(1..100_000).map(|place| (place, 0)).collect::<Vec<_>>()));
        assert!(!is_too_deep(&chain(20).into_iter().chain((30..90_000).map(|place| (place, 20))).collect::<Vec<_>>()));
        // What would need itself never ends.
        assert!(is_too_deep(&[(1, 2), (2, 1)]));
    }
}
