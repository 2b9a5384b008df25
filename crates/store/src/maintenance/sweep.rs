//! Putting everything to rest anew, a bounded number of rows at a time.
//!
//! One walk over all values serves three ends: encrypting what rests plain, following a changed [`Protection`], and
//! moving a space to a new storage key. How far it has come is a row, so that it goes on after a crash. Everything is
//! readable throughout, since every value names its own form and key; and rows that change behind the walk are written
//! in the new form anyway.

use crate::at_rest::SWEEP;
use crate::at_rest::{Inline, Protection, TAG_WHOLE, content_name, inline_name};
use crate::database::batch::Batch;
use crate::encode::{decode_event, from_row, to_row};
use crate::events::objects::ObjectRow;
use crate::keys::*;
use crate::shared::{
    Accounts, DerivedFiles, FileJobs, FileLinks, FileVersions, Files, HostedSpaces, Invitations, OpenUploads, Reports,
    Sealing, Sessions, SharedTable, SigningKeys, UserNames, Users, Webhooks,
};
use crate::tables::after_bound;
use crate::tables::{Bytes, Rows, Stored};
use engine::reads::{Reads as _, StoreResult};
use model::blob::BlobForm;
use model::planted::{PlantedBug, is_planted};
use model::{Blob, EventId, SpaceId, SpaceNo};
use redb::ReadableTable;
use serde::{Deserialize, Serialize};
use std::ops::Bound;

/// How far work over all rows has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SweepProgress {
    /// Rows looked at since it began.
    pub seen: u64,
    /// Values written anew since it began.
    pub changed: u64,
    /// Whether it is done.
    pub is_done: bool,
}

/// Where a walk goes on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SweepCursor {
    pub(crate) phase: u8,
    pub(crate) after: Vec<u8>,
    pub(crate) seen: u64,
    pub(crate) changed: u64,
}

impl SweepCursor {
    pub(crate) fn progress(&self, is_done: bool) -> SweepProgress {
        SweepProgress { seen: self.seen, changed: self.changed, is_done }
    }

    /// Goes on after the last of a page, or with the next phase after a page that was not full.
    pub(crate) fn step(&mut self, page: usize, most: usize, last: Option<Vec<u8>>) {
        self.seen += page as u64;
        match last {
            Some(last) if page >= most => self.after = last,
            Some(_) | None => (self.phase, self.after) = (self.phase + 1, Vec::new()),
        }
    }
}

/// What a page of a walk came to: rows looked at, the key of the last.
struct Page {
    rows: usize,
    last: Option<Vec<u8>>,
}

fn cursor_name(space: Option<SpaceId>) -> String {
    space.map_or_else(|| SWEEP.to_owned(), |space| format!("{SWEEP} {space}"))
}

/// The rows of a table of bytes after a key, at most so many.
pub(crate) fn page_of<K: TableKey + for<'a> redb::Value<SelfType<'a> = K>>(
    table: &Rows<impl ReadableTable<K, Stored<Bytes>>, K, Bytes>,
    after: &[u8],
    most: usize,
) -> StoreResult<Vec<(K, Vec<u8>)>> {
    let mut rows = Vec::new();
    for row in table.range((after_bound::<K>(after)?, Bound::Unbounded))?.take(most) {
        let row = row?;
        rows.push((row.key(), row.value()?.to_vec()));
    }
    Ok(rows)
}

impl Batch<'_> {
    pub(crate) fn cursor(&self, name: &str) -> StoreResult<Option<SweepCursor>> {
        self.db.about(name)?.map(|row| from_row(&row, "a cursor")).transpose()
    }

    pub(crate) fn keep_cursor(&mut self, name: &str, cursor: &SweepCursor) -> StoreResult<()> {
        self.touch();
        self.db.tables.about.insert(name, &to_row(cursor)?)
    }

    /// Encrypts what rests otherwise than its space's protection says, looking at about so many rows. To be repeated
    /// until it is done.
    pub fn encrypt_existing(&mut self, most: usize) -> StoreResult<SweepProgress> {
        self.sweep(None, most)
    }

    /// Moves a space to a new storage key, looking at about so many rows. To be repeated until it is done: the first
    /// time makes the key, the last removes the older ones.
    pub fn rotate(&mut self, space: &SpaceId, most: usize) -> StoreResult<SweepProgress> {
        let name = cursor_name(Some(*space));
        if self.cursor(&name)?.is_none() {
            // Nothing is written under the new key before it is durable.
            self.make_storage_key(space)?;
            self.keep_cursor(&name, &SweepCursor::default())?;
            return Ok(SweepProgress::default());
        }
        let progress = self.sweep(Some(*space), most)?;
        if progress.is_done {
            self.retire_older_keys(space)?;
        }
        Ok(progress)
    }

    fn sweep(&mut self, space: Option<SpaceId>, most: usize) -> StoreResult<SweepProgress> {
        let name = cursor_name(space);
        let mut cursor = self.cursor(&name)?.unwrap_or_default();
        let mut left = most.max(1);
        loop {
            let page = match cursor.phase {
                0 => self.sweep_events(&mut cursor, space, left)?,
                1 => self.sweep_content_rows(&mut cursor, space, left)?,
                2 => self.sweep_objects(&mut cursor, space, left)?,
                3 => self.sweep_progress(&mut cursor, space, left)?,
                4 => self.sweep_shared::<HostedSpaces>(&mut cursor, space, left)?,
                5 => self.sweep_shared::<Users>(&mut cursor, space, left)?,
                6 => self.sweep_shared::<UserNames>(&mut cursor, space, left)?,
                7 => self.sweep_shared::<SigningKeys>(&mut cursor, space, left)?,
                8 => self.sweep_shared::<Webhooks>(&mut cursor, space, left)?,
                9 => self.sweep_shared::<Reports>(&mut cursor, space, left)?,
                10 => self.sweep_shared::<Accounts>(&mut cursor, space, left)?,
                11 => self.sweep_shared::<Sessions>(&mut cursor, space, left)?,
                12 => self.sweep_shared::<Invitations>(&mut cursor, space, left)?,
                13 => self.sweep_shared::<Files>(&mut cursor, space, left)?,
                14 => self.sweep_shared::<FileVersions>(&mut cursor, space, left)?,
                15 => self.sweep_shared::<DerivedFiles>(&mut cursor, space, left)?,
                16 => self.sweep_shared::<FileJobs>(&mut cursor, space, left)?,
                17 => self.sweep_shared::<OpenUploads>(&mut cursor, space, left)?,
                18 => self.sweep_shared::<FileLinks>(&mut cursor, space, left)?,
                _ => {
                    self.touch();
                    self.db.tables.about.remove(name.as_str())?;
                    return Ok(cursor.progress(true));
                }
            };
            cursor.step(page.rows, left, page.last);
            left -= page.rows.min(left);
            if left == 0 {
                break;
            }
        }
        self.keep_cursor(&name, &cursor)?;
        Ok(cursor.progress(false))
    }

    /// A protected row under the newest key; none if it is so already, or cannot be read any more.
    pub(crate) fn protect_anew(&mut self, space: &SpaceId, name: &[u8], stored: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        let number = self.writing(space)?.key.number();
        if is_whole_under(number, stored) {
            return Ok(None);
        }
        match self.db.open_at_rest(space, name, stored)? {
            Some(plain) => self.protect(space, name, &plain).map(Some),
            None => Ok(None),
        }
    }

    /// Walks a page of a shared table whose rows rest under the storage keys of their spaces.
    fn sweep_shared<T: SharedTable>(
        &mut self,
        cursor: &mut SweepCursor,
        space: Option<SpaceId>,
        most: usize,
    ) -> StoreResult<Page> {
        let page = self.reseal_shared::<T>(&cursor.after, most, |batch, key, stored| match T::sealing(key) {
            Sealing::Space(owner) if space.is_none_or(|space| space == owner) => {
                batch.protect_anew(&owner, <T::Key as redb::Value>::as_bytes(key).as_ref(), stored)
            }
            Sealing::Space(_) | Sealing::Plain | Sealing::Master(_) => Ok(None),
        })?;
        cursor.changed += page.changed;
        Ok(Page { rows: page.rows, last: page.last })
    }

    /// Walks a page of how far webhooks have told.
    fn sweep_progress(&mut self, cursor: &mut SweepCursor, space: Option<SpaceId>, most: usize) -> StoreResult<Page> {
        let rows = page_of(&self.db.tables.webhook_progress, &cursor.after, most)?;
        let last = rows.last().map(|(key, _)| key.as_bytes().to_vec());
        for (key, stored) in &rows {
            if space.is_none_or(|space| space == key.space())
                && let Some(anew) = self.protect_anew(&key.space(), key.as_bytes(), stored)?
            {
                self.db.tables.webhook_progress.insert(key, &anew)?;
                cursor.changed += 1;
            }
        }
        Ok(Page { rows: rows.len(), last })
    }

    fn sweep_events(&mut self, cursor: &mut SweepCursor, space: Option<SpaceId>, most: usize) -> StoreResult<Page> {
        let mut rows = Vec::new();
        for row in self.db.tables.events.range((after_bound::<EventNo>(&cursor.after)?, Bound::Unbounded))?.take(most) {
            let row = row?;
            let parts = decode_event(row.value()?)?;
            let owner = Blob::open_space_of(parts.blob).filter(|owner| space.is_none_or(|space| space == *owner));
            rows.push((row.key().seq(), owner, parts.row.id, parts.inline.map(Inline::into_owned)));
        }
        let page = rows.len();
        let last = rows.last().map(|(seq, ..)| EventNo::new(*seq).as_bytes().to_vec());
        for (seq, owner, id, inline) in rows {
            if let (Some(owner), Some(inline)) = (owner, inline)
                && !is_planted(PlantedBug::RotationSkipsInline)
                && let Some(anew) = self.inline_anew(&owner, &id, &inline)?
            {
                self.put_inline(seq, Some(anew))?;
                cursor.changed += 1;
            }
        }
        Ok(Page { rows: page, last })
    }

    /// Inline content as it travels, if it must be put to rest anew.
    fn inline_anew(&mut self, space: &SpaceId, id: &EventId, inline: &Inline<'_>) -> StoreResult<Option<Vec<u8>>> {
        let writing = self.writing(space)?;
        let name = inline_name(id);
        if !inline.is_at_rest {
            return Ok((writing.protection != Protection::Nothing).then(|| inline.bytes.to_vec()));
        }
        if writing.protection == Protection::Whole && is_whole_under(writing.key.number(), &inline.bytes) {
            return Ok(None);
        }
        let plain = self.db.open_at_rest(space, &name, &inline.bytes)?;
        Ok(plain.filter(|plain| writing.content(space, &name, plain) != *inline.bytes))
    }

    /// Larger content in the form in which it should rest, if that is another.
    fn content_anew(&mut self, key: &ContentKey, stored: &[u8]) -> StoreResult<Option<Vec<u8>>> {
        let (no, hash) = (key.space(), key.hash());
        let space = self.db.space_id(no)?;
        let name = content_name(&hash);
        let is_sealed = self.is_sealed(no)?;
        if is_sealed && stored.first() == Some(&crate::at_rest::TAG_PLAIN) {
            return Ok(None);
        }
        let writing = self.writing(&space)?;
        let is_whole = is_whole_under(writing.key.number(), stored);
        if !is_sealed && writing.protection == Protection::Whole && is_whole {
            return Ok(None);
        }
        let Some(plain) = self.db.open_at_rest(&space, &name, stored)? else { return Ok(None) };
        let anew = if is_sealed {
            crate::database::writing_at_rest::plain(&plain)
        } else {
            writing.content(&space, &name, &plain)
        };
        Ok(Some(anew).filter(|anew| anew != stored))
    }

    fn sweep_content_rows(
        &mut self,
        cursor: &mut SweepCursor,
        space: Option<SpaceId>,
        most: usize,
    ) -> StoreResult<Page> {
        let rows = page_of(&self.db.tables.content_bytes, &cursor.after, most)?;
        let last = rows.last().map(|(key, _)| key.as_bytes().to_vec());
        for (key, stored) in &rows {
            if self.is_in(space, key)?
                && let Some(anew) = self.content_anew(key, stored)?
            {
                self.db.tables.content_bytes.insert(key, &anew)?;
                cursor.changed += 1;
            }
        }
        Ok(Page { rows: rows.len(), last })
    }

    /// The keys of objects rest anew; the objects stay as they are.
    fn sweep_objects(&mut self, cursor: &mut SweepCursor, space: Option<SpaceId>, most: usize) -> StoreResult<Page> {
        let rows = page_of(&self.db.tables.objects, &cursor.after, most)?;
        let last = rows.last().map(|(key, _)| key.as_bytes().to_vec());
        for (key, bytes) in &rows {
            let row: ObjectRow = from_row(bytes, "an object")?;
            if let Some(secret) = &row.secret
                && space.is_none_or(|space| space == row.space)
                && let Some(anew) = self.protect_anew(&row.space, key.as_bytes(), secret)?
            {
                self.put_object(key.name(), &ObjectRow { secret: Some(anew), ..row })?;
                cursor.changed += 1;
            }
        }
        Ok(Page { rows: rows.len(), last })
    }

    fn is_in(&self, space: Option<SpaceId>, key: &ContentKey) -> StoreResult<bool> {
        match space {
            Some(space) => Ok(self.db.space_id(key.space())? == space),
            None => Ok(true),
        }
    }

    /// Whether a space is sealed. It is so for good, so one of its applied events tells; key events do not.
    fn is_sealed(&self, space: SpaceNo) -> StoreResult<bool> {
        for row in self.db.tables.by_author.range(AuthorStamp::of_space(space))? {
            let seq = row?.value()?;
            match self.db.with_event(seq, |parts| Blob::form_of(parts.blob).ok())?.flatten() {
                Some(BlobForm::Addressed { .. }) | None => {}
                Some(form) => return Ok(form.sealing_key().is_some()),
            }
        }
        Ok(false)
    }
}

/// Whether a value rests wholly under the key of that number.
fn is_whole_under(number: u32, stored: &[u8]) -> bool {
    stored.first() == Some(&TAG_WHOLE) && stored.get(1..5) == Some(number.to_be_bytes().as_slice())
}
