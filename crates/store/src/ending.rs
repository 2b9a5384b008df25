//! Forgetting people and spaces: what this node keeps of them beside events.

use crate::batch::Batch;
use crate::db::fault;
use crate::encode;
use crate::people::User;
use engine::reads::Answer;
use model::SpaceId;
use redb::ReadableTable as _;

/// Removes every row of a table whose key begins with a space.
macro_rules! forget_rows {
    ($batch:ident, $space:ident, $($table:ident: $length:literal),*) => {
        $({
            let first = encode::key::<$length>(&[&$space.0]);
            let last = encode::key::<$length>(&[&$space.0, &[0xff; $length]]);
            let mut keys = Vec::new();
            for entry in $batch.db.tables.$table.range(first..=last).map_err(fault)? {
                keys.push(entry.map_err(fault)?.0.value());
            }
            for key in keys {
                $batch.db.tables.$table.remove(key).map_err(fault)?;
            }
        })*
    };
}

impl Batch<'_> {
    /// Forgets a user: their name, their key, and whom they kept at a distance. What they wrote is another matter.
    pub fn forget_user(&mut self, space: &SpaceId, user: &User) -> Answer<()> {
        self.touch();
        let key = self.shared.user_key(space, &user.id);
        self.db.tables.users.remove(key).map_err(fault)?;
        let name: [u8; 48] = encode::key(&[&space.0, &user.identity.0]);
        self.db.tables.user_names.remove(name).map_err(fault)?;
        self.db.tables.custodians.remove(user.identity.0).map_err(fault)?;
        self.shared.keys.forget_name(space, &user.identity);
        self.forget_distances(space, &user.identity)
    }

    /// Forgets all that is kept of a space beside its events, and destroys its keys: nobody gets in, nobody reads.
    pub fn end_space(&mut self, space: &SpaceId) -> Answer<()> {
        self.touch();
        for (id, key) in self.db.api_keys()? {
            if key.space == *space {
                self.db.tables.api_keys.remove(id).map_err(fault)?;
            }
        }
        let users = self.db.users(space, None, usize::MAX)?;
        for (_, user) in users {
            self.forget_user(space, &user)?;
        }
        forget_rows!(self, space, kept_spaces: 16, protections: 16, users: 32, user_names: 48, signing_keys: 24);
        forget_rows!(self, space, webhooks: 24, retentions: 32, distances: 80, reports: 24);
        self.destroy_keys(space)?;
        Ok(())
    }
}
