//! Small numbers for spaces and identities, given in the order of their arrival.

use crate::database::batch::Batch;
use crate::keys::*;
use engine::reads::{Reads as _, StoreResult};
use model::{AuthorNo, Identity, SpaceId, SpaceNo};

impl Batch<'_> {
    /// The number of a space, given now if it has none.
    pub fn number_space(&mut self, space: &SpaceId) -> StoreResult<SpaceNo> {
        if let Some(known) = self.db.space_no(space)? {
            return Ok(known);
        }
        let number = self.next_space;
        self.next_space += 1;
        self.is_changed = true;
        let number = SpaceNo(number);
        self.db.tables.spaces.insert(SpaceIdKey::new(*space), number)?;
        self.db.tables.space_ids.insert(SpaceNoKey::new(number), *space)?;
        Ok(number)
    }

    /// The number of an identity, given now if it has none.
    pub fn number_author(&mut self, identity: &Identity) -> StoreResult<AuthorNo> {
        if let Some(known) = self.db.author_no(identity)? {
            return Ok(known);
        }
        let number = self.next_author;
        self.next_author += 1;
        self.is_changed = true;
        let number = AuthorNo(number);
        self.db.tables.authors.insert(IdentityKey::new(*identity), number)?;
        self.db.tables.author_ids.insert(AuthorNoKey::new(number), *identity)?;
        Ok(number)
    }

    /// Takes back the numbers of a space and an author that were given for an event that is not kept after all.
    pub fn take_back_numbers(&mut self, space: Option<SpaceId>, author: Option<Identity>) -> StoreResult<()> {
        if let Some(space) = space
            && let Some(number) = self.db.space_no(&space)?
        {
            self.db.tables.spaces.remove(SpaceIdKey::new(space))?;
            self.db.tables.space_ids.remove(SpaceNoKey::new(number))?;
            self.next_space = self.next_space.min(number.0);
        }
        if let Some(author) = author
            && let Some(number) = self.db.author_no(&author)?
        {
            self.db.tables.authors.remove(IdentityKey::new(author))?;
            self.db.tables.author_ids.remove(AuthorNoKey::new(number))?;
            self.next_author = self.next_author.min(number.0);
        }
        Ok(())
    }
}
