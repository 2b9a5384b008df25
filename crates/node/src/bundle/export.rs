//! Export: what is kept here, as a bundle.

use super::format::{BundleWriter, CONTENT_RECORD_BYTES_MAX};
use super::secrets::{self, BadSecrets, Passphrase, SaltedSecret};
use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::rows::{ContentLocation, ContentRow, EventRow};
use model::{ContentHash, Seq, SpaceId, SpaceNo};
use std::collections::HashMap;
use std::io::{self, Write};
use store::Db;
use store::tables::Snapshot;

/// How many numbers are looked up at a time.
const EVENTS_PER_LOOK: usize = 1000;
/// How many contents with several references are remembered as written. Beyond it one may be written twice, which
/// costs only room: an import takes it once.
const WRITTEN_MAX: usize = 100_000;

/// What is to be exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExportOptions {
    /// Of which space; of all if none.
    pub space: Option<SpaceId>,
    /// Only what arrived after this number.
    pub after: Seq,
}

/// What an export came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Exported {
    /// Events that were written.
    pub events: u64,
    /// Contents that were written.
    pub contents: u64,
    /// Spaces whose keys are in the bundle.
    pub spaces_with_keys: u64,
    /// Contents that are here but too large for a bundle.
    pub too_large: u64,
    /// Bytes of the bundle.
    pub bytes: u64,
    /// The last number that was looked at: a later export can continue after it.
    pub last: u64,
}

/// Why an export did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The bundle could not be written.
    #[error("writing the bundle failed: {0}")]
    Write(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the keys cannot be written: {0}")]
    Keys(#[from] BadSecrets),
}

impl ExportError {
    /// What whoever asked for it can do.
    pub fn what_to_do(&self) -> &'static str {
        match self {
            ExportError::Write(_) => "check that the place is writable and has room, then export again",
            ExportError::Store(_) => "run `anteroom verify`",
            ExportError::Keys(_) => "try again",
        }
    }
}

/// Writes everything kept that fits the options: events by the order of their arrival, in whatever stage they are,
/// then the contents they refer to that are here. With a passphrase the keys of the spaces come first, under it.
/// Tells the numbers so far after each page of events.
pub fn export(
    db: &Db<Snapshot>,
    options: ExportOptions,
    passphrase: Option<&Passphrase>,
    out: impl Write,
    progress: &mut dyn FnMut(&Exported),
) -> Result<Exported, ExportError> {
    let mut writer = BundleWriter::new(out)?;
    let mut done = Exported { last: options.after.0, ..Exported::default() };
    if let Some(passphrase) = passphrase {
        done.spaces_with_keys = write_keys(db, options, passphrase, &mut writer)?;
    }
    each_event(db, options, &mut |seq, row| {
        let Some(kept) = db.kept(seq)? else { return Err(gone(row).into()) };
        writer.event(kept.blob.bytes(), kept.inline.as_deref().unwrap_or_default())?;
        done.events += 1;
        done.last = seq.0;
        done.bytes = writer.bytes();
        progress(&done);
        Ok(())
    })?;
    let mut written = Written::default();
    each_event(db, options, &mut |_, row| {
        let Some((space, hash, content)) = shared_content(db, row)? else { return Ok(()) };
        if !written.is_first(space, hash, content.count) {
            return Ok(());
        }
        match db.content_bytes(space, &hash, CONTENT_RECORD_BYTES_MAX as u64)? {
            Some(bytes) => {
                writer.content(&db.space_id(space)?, &hash, &bytes)?;
                done.contents += 1;
            }
            None => done.too_large += 1,
        }
        done.bytes = writer.bytes();
        progress(&done);
        Ok(())
    })?;
    done.bytes = writer.bytes();
    writer.finish()?;
    Ok(done)
}

fn write_keys(
    db: &Db<Snapshot>,
    options: ExportOptions,
    passphrase: &Passphrase,
    writer: &mut BundleWriter<impl Write>,
) -> Result<u64, ExportError> {
    let secret = SaltedSecret::begin(passphrase)?;
    let spaces = match options.space {
        Some(space) => vec![space],
        None => db.spaces()?.into_iter().map(|(space, _, _)| space).collect(),
    };
    let mut with_keys = 0;
    for space in spaces {
        let mut has_keys = false;
        secrets::each_part::<ExportError>(db, &space, &mut |part| {
            has_keys = true;
            Ok(writer.keys(&secret.seal(&part)?)?)
        })?;
        with_keys += u64::from(has_keys);
    }
    Ok(with_keys)
}

type Visit<'a> = &'a mut dyn FnMut(Seq, &EventRow) -> Result<(), ExportError>;

fn each_event(db: &Db<Snapshot>, options: ExportOptions, visit: Visit<'_>) -> Result<(), ExportError> {
    let mut after = options.after;
    loop {
        let numbers = db.events_after(after, EVENTS_PER_LOOK)?;
        let Some(last) = numbers.last() else { return Ok(()) };
        after = *last;
        for seq in numbers {
            let Some(row) = db.event(seq)? else { continue };
            if options.space.is_none() || db.space_of(seq)? == options.space {
                visit(seq, &row)?;
            }
        }
    }
}

fn gone(row: &EventRow) -> StoreError {
    StoreError::Broken(format!("event {} has a row but no blob; run `anteroom verify`", row.id))
}

/// The content of an event that is stored apart from it and is here.
fn shared_content(db: &Db<Snapshot>, row: &EventRow) -> StoreResult<Option<(SpaceNo, ContentHash, ContentRow)>> {
    let Some(meta) = &row.meta else { return Ok(None) };
    if meta.content_len <= db.policy().inline_bytes_max || !row.content.holds_reference() {
        return Ok(None);
    }
    let content =
        db.content(meta.space, &meta.content_hash)?.filter(|content| content.place != ContentLocation::Absent);
    Ok(content.map(|content| (meta.space, meta.content_hash, content)))
}

/// Which contents with several references were written already.
#[derive(Default)]
struct Written {
    references_left: HashMap<(SpaceNo, ContentHash), u64>,
}

impl Written {
    fn is_first(&mut self, space: SpaceNo, hash: ContentHash, references: u64) -> bool {
        if references <= 1 {
            return true;
        }
        match self.references_left.get_mut(&(space, hash)) {
            Some(left) if *left > 1 => {
                *left -= 1;
                false
            }
            Some(_) => {
                self.references_left.remove(&(space, hash));
                false
            }
            None => {
                if self.references_left.len() >= WRITTEN_MAX {
                    self.references_left.clear();
                }
                self.references_left.insert((space, hash), references - 1);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_with_several_references_is_written_once() {
        let mut written = Written::default();
        let (one, other) = (ContentHash([1; 32]), ContentHash([2; 32]));
        let mut first = |hash, references| written.is_first(SpaceNo(1), hash, references);
        assert_eq!([first(one, 3), first(other, 1), first(one, 3), first(one, 3)], [true, true, false, false]);
        assert_eq!([first(one, 2), first(other, 2), first(one, 2), first(other, 2)], [true, true, false, false]);
        assert!(written.references_left.is_empty(), "what nobody refers to any more is not remembered");
    }
}
