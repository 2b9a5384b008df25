//! Forgetting people and spaces: what this node keeps of them beside events.

use crate::database::batch::Batch;
use crate::database::db::fault;

use crate::shared::users::User;
use engine::reads::StoreResult;
use model::{Identity, SpaceId};
use redb::ReadableTable as _;

/// Removes at most so many rows of each table whose keys begin with a space. Says how many.
macro_rules! forget_rows {
    ($batch:ident, $space:ident, $most:expr, $($table:ident: $length:literal),*) => {{
        let mut gone = 0;
        $({
            let first = crate::keys::key::<$length>(&[&$space.0]);
            let last = crate::keys::key::<$length>(&[&$space.0, &[0xff; $length]]);
            let mut keys = Vec::new();
            for entry in $batch.db.tables.$table.range(first..=last).map_err(fault)?.take($most) {
                keys.push(entry.map_err(fault)?.0.value());
            }
            gone += keys.len();
            for key in keys {
                $batch.db.tables.$table.remove(key).map_err(fault)?;
            }
        })*
        gone
    }};
}

impl Batch<'_> {
    /// Forgets a user: their name, their key, their account, what they reported, and whom they kept at a distance. What they wrote is another matter.
    pub fn forget_user(&mut self, space: &SpaceId, user: &User) -> StoreResult<()> {
        self.touch();
        let key = self.shared.user_key(space, &user.id);
        self.db.tables.users.remove(key).map_err(fault)?;
        let name: [u8; 48] = crate::keys::key(&[&space.0, &user.identity.0]);
        self.db.tables.user_names.remove(name).map_err(fault)?;
        self.db.tables.custodians.remove(user.identity.0).map_err(fault)?;
        self.shared.keys.erase(space, &user.identity);
        self.forget_account(space, &user.id)?;
        self.forget_reports(space, &user.identity)?;
        self.forget_distances(space, &user.identity)
    }

    /// Closes a space: its API keys and its keeper are forgotten, and its keys destroyed, so that nobody gets in and
    /// nobody reads. The rest follows with [`Batch::forget_some`].
    pub fn end_space(&mut self, space: &SpaceId) -> StoreResult<()> {
        self.touch();
        for (id, key) in self.db.api_keys()? {
            if key.space == *space {
                self.db.tables.api_keys.remove(id).map_err(fault)?;
            }
        }
        if let Some(kept) = self.db.kept_space(space)? {
            self.db.tables.custodians.remove(kept.keeper.0).map_err(fault)?;
            self.shared.keys.erase(space, &kept.keeper);
        }
        forget_rows!(self, space, usize::MAX, kept_spaces: 16, protections: 16, signing_keys: 24, webhooks: 24);
        self.destroy_keys(space)?;
        Ok(())
    }

    /// Forgets about so many rows of what is kept of an ended space and its users. Says how many.
    pub fn forget_some(&mut self, space: &SpaceId, most: usize) -> StoreResult<usize> {
        self.touch();
        let first = crate::keys::key::<48>(&[&space.0]);
        let last = crate::keys::key::<48>(&[&space.0, &[0xff; 32]]);
        let mut names = Vec::new();
        for entry in self.db.tables.user_names.range(first..=last).map_err(fault)?.take(most) {
            names.push(entry.map_err(fault)?.0.value());
        }
        for name in &names {
            self.db.tables.custodians.remove(crate::keys::key::<32>(&[&name[16..]])).map_err(fault)?;
            self.db.tables.user_names.remove(name).map_err(fault)?;
            self.shared.keys.erase(space, &Identity(crate::keys::key(&[&name[16..]])));
        }
        let mut gone = names.len();
        gone += forget_rows!(self, space, most, users: 32, retentions: 32, distances: 80, reports: 24);
        gone += forget_rows!(self, space, most, accounts: 32, sessions: 48, invitations: 48);
        Ok(gone)
    }
}
