//! Reading objects of an S3-compatible store, a window at a time.

use super::{Requests, failure};
use crate::backend::{ObjectError, ObjectSource};
use bytes::Bytes;
use model::ObjectName;
use object_store::ObjectStoreExt as _;
use object_store::aws::AmazonS3;
use object_store::path::Path as StorePath;
use std::sync::Arc;

/// What is read at once where nothing is known, and where somebody reads on.
const WINDOW_BYTES: u64 = 256 << 10;
const WINDOW_BYTES_ONWARDS: u64 = 4 << 20;

/// An object that is being read.
pub(super) struct S3Source {
    pub(super) name: ObjectName,
    pub(super) bucket: Arc<AmazonS3>,
    pub(super) path: StorePath,
    pub(super) requests: Arc<Requests>,
    pub(super) len: u64,
    pub(super) window: Bytes,
    pub(super) window_at: u64,
}

impl S3Source {
    fn window_end(&self) -> u64 {
        self.window_at + self.window.len() as u64
    }

    fn fetch(&mut self, offset: u64, least: u64) -> Result<(), ObjectError> {
        let goes_on = !self.window.is_empty() && offset <= self.window_end() && offset > self.window_at;
        let window = if goes_on { WINDOW_BYTES_ONWARDS } else { WINDOW_BYTES };
        let range = offset..offset.saturating_add(window.max(least)).min(self.len);
        let (bucket, path, wanted) = (self.bucket.clone(), self.path.clone(), range.end - range.start);
        let got = self.requests.wait(async move { bucket.get_range(&path, range).await })?;
        let got = got.map_err(|why| failure(self.name, &why))?;
        if got.len() as u64 != wanted {
            return Err(ObjectError::Damaged(self.name, "the store sent another number of bytes than was asked for"));
        }
        (self.window, self.window_at) = (got, offset);
        Ok(())
    }
}

impl ObjectSource for S3Source {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<(), ObjectError> {
        let end = offset.saturating_add(into.len() as u64);
        if end > self.len {
            return Err(ObjectError::Damaged(self.name, "it is cut off"));
        }
        if into.is_empty() {
            return Ok(());
        }
        if offset < self.window_at || end > self.window_end() {
            self.fetch(offset, into.len() as u64)?;
        }
        let from = usize::try_from(offset - self.window_at).unwrap_or(usize::MAX);
        let piece = from.checked_add(into.len()).and_then(|to| self.window.get(from..to));
        into.copy_from_slice(piece.ok_or(ObjectError::Damaged(self.name, "it is cut off"))?);
        Ok(())
    }
}
