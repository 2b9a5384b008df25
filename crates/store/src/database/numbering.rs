//! Small numbers for spaces and authors, given in the order of their arrival.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::encode::Usage;
use crate::keys::*;
use crate::tables::TableReads;
use engine::reads::{Reads as _, StoreResult};
use model::{AuthorKey, AuthorNo, SpaceId, SpaceNo};

/// The least number that the next space or author gets. Numbers that were given up are not given again: readers may
/// remember whose they were.
pub(crate) const NEXT_SPACE: &str = "next space";
pub(crate) const NEXT_AUTHOR: &str = "next author";

impl<V: TableReads> Db<V> {
    /// The number after the last one, or the least that may be given.
    pub(crate) fn next_number(&self, name: &str, last: u32) -> StoreResult<u32> {
        let least = u32::try_from(self.about_number(name)?).unwrap_or(u32::MAX);
        Ok(least.max(last.saturating_add(1)))
    }

    /// Whether nothing is kept of a space, so that it needs no number.
    pub(crate) fn is_unused(&self, space: SpaceNo) -> StoreResult<bool> {
        let tables = &self.tables;
        if tables.usage().range(UsageKey::of_space(space))?.next().is_some() {
            return Ok(false);
        }
        Ok(tables.contents().range(ContentKey::of_space(space))?.next().is_none())
    }
}

impl Batch<'_> {
    /// Writes what everybody uses. Whoever uses nothing any more, as a stranger whose events have all expired, gives
    /// up the number.
    pub(crate) fn write_usage(&mut self) -> StoreResult<()> {
        let (over, used): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.db.pending.usage).into_iter().partition(|(_, usage)| *usage == Usage::default());
        // Who comes into one space before who leaves another: it may be the same.
        for (key, usage) in used {
            if !self.db.tables.usage.replace(key, usage)? {
                let author = AuthorNoKey::new(key.author());
                let spaces = self.db.tables.author_spaces.get(author)?.unwrap_or(0);
                self.db.tables.author_spaces.insert(author, spaces + 1)?;
            }
        }
        for (key, _) in over {
            // What came and went in this batch has no row, but may have given numbers.
            let had_row = self.db.tables.usage.remove(key)?;
            self.perhaps_unused.insert(key.space());
            self.leave_space(key.author(), had_row)?;
        }
        for space in std::mem::take(&mut self.perhaps_unused) {
            if self.db.is_unused(space)?
                && let Some(id) = self.db.tables.space_ids.get(SpaceNoKey::new(space))?
            {
                self.db.tables.spaces.remove(SpaceIdKey::new(id))?;
                self.db.tables.space_ids.remove(SpaceNoKey::new(space))?;
                self.keep_number(NEXT_SPACE, self.next_space)?;
            }
        }
        Ok(())
    }

    fn leave_space(&mut self, author: AuthorNo, had_row: bool) -> StoreResult<()> {
        let key = AuthorNoKey::new(author);
        let spaces = self.db.tables.author_spaces.get(key)?.unwrap_or(0);
        match spaces.saturating_sub(u64::from(had_row)) {
            left @ 1.. => self.db.tables.author_spaces.insert(key, left),
            0 => {
                self.db.tables.author_spaces.remove(key)?;
                if let Some(id) = self.db.tables.author_ids.get(key)? {
                    self.db.tables.authors.remove(AuthorName::of(id))?;
                    self.db.tables.author_ids.remove(key)?;
                    self.keep_number(NEXT_AUTHOR, self.next_author)?;
                }
                Ok(())
            }
        }
    }

    fn keep_number(&mut self, name: &str, next: u32) -> StoreResult<()> {
        self.db.tables.about.insert(name, &u64::from(next).to_be_bytes())
    }

    /// The number of a space, and whether it is given now.
    pub fn number_space(&mut self, space: &SpaceId) -> StoreResult<(SpaceNo, bool)> {
        if let Some(known) = self.db.space_no(space)? {
            return Ok((known, false));
        }
        let number = SpaceNo(self.next_space);
        self.next_space += 1;
        self.is_changed = true;
        self.db.tables.spaces.insert(SpaceIdKey::new(*space), number)?;
        self.db.tables.space_ids.insert(SpaceNoKey::new(number), *space)?;
        Ok((number, true))
    }

    /// The number of an author, and whether it is given now.
    pub fn number_author(&mut self, author: &AuthorKey) -> StoreResult<(AuthorNo, bool)> {
        if let Some(known) = self.db.number_of(author)? {
            return Ok((known, false));
        }
        let number = AuthorNo(self.next_author);
        self.next_author += 1;
        self.is_changed = true;
        self.db.tables.authors.insert(AuthorName::of(*author), number)?;
        self.db.tables.author_ids.insert(AuthorNoKey::new(number), *author)?;
        Ok((number, true))
    }

    /// Takes back the numbers of a space and an author that were given for an event that is not kept after all.
    pub fn take_back_numbers(&mut self, space: Option<SpaceId>, author: Option<AuthorKey>) -> StoreResult<()> {
        if let Some(space) = space
            && let Some(number) = self.db.space_no(&space)?
        {
            self.db.tables.spaces.remove(SpaceIdKey::new(space))?;
            self.db.tables.space_ids.remove(SpaceNoKey::new(number))?;
            self.next_space = self.next_space.min(number.0);
        }
        if let Some(author) = author
            && let Some(number) = self.db.number_of(&author)?
        {
            self.db.tables.authors.remove(AuthorName::of(author))?;
            self.db.tables.author_ids.remove(AuthorNoKey::new(number))?;
            self.next_author = self.next_author.min(number.0);
        }
        Ok(())
    }
}
