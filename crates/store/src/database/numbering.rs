//! Small numbers for spaces and identities, given in the order of their arrival.

use crate::database::batch::Batch;
use crate::database::db::fault;
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
        self.db.tables.spaces.insert(space.0, number).map_err(fault)?;
        self.db.tables.space_ids.insert(number, space.0).map_err(fault)?;
        Ok(SpaceNo(number))
    }

    /// The number of an identity, given now if it has none.
    pub fn number_author(&mut self, identity: &Identity) -> StoreResult<AuthorNo> {
        if let Some(known) = self.db.author_no(identity)? {
            return Ok(known);
        }
        let number = self.next_author;
        self.next_author += 1;
        self.is_changed = true;
        self.db.tables.authors.insert(identity.0, number).map_err(fault)?;
        self.db.tables.author_ids.insert(number, identity.0).map_err(fault)?;
        Ok(AuthorNo(number))
    }

    /// Takes back the numbers of a space and an author that were given for an event that is not kept after all.
    pub fn take_back_numbers(&mut self, space: Option<SpaceId>, author: Option<Identity>) -> StoreResult<()> {
        if let Some(space) = space {
            let removed = self.db.tables.spaces.remove(space.0).map_err(fault)?.map(|guard| guard.value());
            if let Some(number) = removed {
                self.db.tables.space_ids.remove(number).map_err(fault)?;
                self.next_space = self.next_space.min(number);
            }
        }
        if let Some(author) = author {
            let removed = self.db.tables.authors.remove(author.0).map_err(fault)?.map(|guard| guard.value());
            if let Some(number) = removed {
                self.db.tables.author_ids.remove(number).map_err(fault)?;
                self.next_author = self.next_author.min(number);
            }
        }
        Ok(())
    }
}
