//! Small numbers for spaces and authors, given in the order of their arrival.

use crate::database::batch::Batch;
use crate::keys::*;
use engine::reads::{Reads as _, StoreResult};
use model::{AuthorKey, AuthorNo, SpaceId, SpaceNo};

impl Batch<'_> {
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
