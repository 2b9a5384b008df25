//! A database that is read while its disk takes no writes: whatever opening it changes stays in memory.

use redb::StorageBackend;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

const BLOCK: u64 = 4096;

/// What is below, under what was written since. Opening a database writes little; nobody else writes to this.
#[derive(Debug)]
pub struct MemoryOverlay<B> {
    below: B,
    written: Mutex<Written>,
}

#[derive(Debug)]
struct Written {
    len: u64,
    /// How much of what is below still shows.
    below_len: u64,
    blocks: BTreeMap<u64, Vec<u8>>,
}

impl<B: StorageBackend> MemoryOverlay<B> {
    /// Over what is there now.
    pub fn new(below: B) -> io::Result<MemoryOverlay<B>> {
        let len = below.len()?;
        Ok(MemoryOverlay { below, written: Mutex::new(Written { len, below_len: len, blocks: BTreeMap::new() }) })
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of what is below; zeros where that ends.
    fn block_below(&self, number: u64, below_len: u64) -> io::Result<Vec<u8>> {
        let mut block = vec![0; BLOCK as usize];
        let begin = number * BLOCK;
        let there = below_len.saturating_sub(begin).min(BLOCK) as usize;
        if there > 0 {
            self.below.read(begin, &mut block[..there])?;
        }
        Ok(block)
    }
}

/// The parts of a range by block: number, where in the block, how much.
fn blocks(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut left = len as u64;
    let mut at = offset;
    std::iter::from_fn(move || {
        (left > 0).then(|| {
            let (number, within) = (at / BLOCK, at % BLOCK);
            let part = left.min(BLOCK - within);
            (at, left) = (at + part, left - part);
            (number, within as usize, part as usize)
        })
    })
}

impl<B: StorageBackend> StorageBackend for MemoryOverlay<B> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let written = self.lock();
        if offset.saturating_add(out.len() as u64) > written.len {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        let mut done = 0;
        for (number, within, part) in blocks(offset, out.len()) {
            let block = match written.blocks.get(&number) {
                Some(block) => block,
                None => &self.block_below(number, written.below_len)?,
            };
            out[done..done + part].copy_from_slice(&block[within..within + part]);
            done += part;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut written = self.lock();
        // What comes back after it was cut off is zero.
        if !len.is_multiple_of(BLOCK) && len < written.len {
            let mut block = match written.blocks.remove(&(len / BLOCK)) {
                Some(block) => block,
                None => self.block_below(len / BLOCK, written.below_len)?,
            };
            block[(len % BLOCK) as usize..].fill(0);
            written.blocks.insert(len / BLOCK, block);
        }
        written.len = len;
        written.below_len = written.below_len.min(len);
        written.blocks.retain(|number, _| number * BLOCK < len);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut written = self.lock();
        if offset.saturating_add(data.len() as u64) > written.len {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        let mut done = 0;
        for (number, within, part) in blocks(offset, data.len()) {
            let mut block = match written.blocks.remove(&number) {
                Some(block) => block,
                None => self.block_below(number, written.below_len)?,
            };
            block[within..within + part].copy_from_slice(&data[done..done + part]);
            written.blocks.insert(number, block);
            done += part;
        }
        Ok(())
    }

    fn close(&self) -> io::Result<()> {
        self.below.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use redb::backends::InMemoryBackend;

    #[derive(Clone, Debug)]
    enum Step {
        Length(u64),
        Write(u64, Vec<u8>),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..20_000_u64).prop_map(Step::Length),
            (0..20_000_u64, proptest::collection::vec(any::<u8>(), 0..6_000))
                .prop_map(|(at, data)| Step::Write(at, data)),
        ]
    }

    fn contents(backend: &impl StorageBackend) -> Vec<u8> {
        let mut all = vec![1; backend.len().expect("a length") as usize];
        backend.read(0, &mut all).expect("what is there can be read");
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn it_behaves_like_the_storage_itself_and_leaves_that_alone(
            first in proptest::collection::vec(any::<u8>(), 0..20_000),
            steps in proptest::collection::vec(step(), 0..12),
        ) {
            let (below, model) = (InMemoryBackend::new(), InMemoryBackend::new());
            for backend in [&below, &model] {
                backend.set_len(first.len() as u64)?;
                backend.write(0, &first)?;
            }
            let overlay = MemoryOverlay::new(below)?;
            for step in steps {
                match step {
                    Step::Length(len) => {
                        overlay.set_len(len)?;
                        model.set_len(len)?;
                    }
                    Step::Write(at, data) if at + data.len() as u64 <= model.len()? => {
                        overlay.write(at, &data)?;
                        model.write(at, &data)?;
                    }
                    Step::Write(at, data) => prop_assert!(overlay.write(at, &data).is_err()),
                }
                prop_assert!(contents(&overlay) == contents(&model));
            }
            let mut beyond = vec![0; 2];
            prop_assert!(overlay.read(model.len()?.saturating_sub(1), &mut beyond).is_err());
            prop_assert!(contents(&overlay.below) == first);
        }
    }
}
