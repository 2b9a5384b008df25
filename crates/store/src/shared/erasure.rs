//! Forgetting people and spaces: what is kept of them beside events.
//!
//! What refers goes before what it refers to, so that whoever is cut off leaves less, and nothing that leads nowhere.

use crate::database::batch::Batch;
use crate::keys::*;
use crate::shared::users::User;
use crate::shared::{
    Accounts, ApiKeys, Blocks, Custodians, HostedSpaces, Invitations, Protections, ReportNumbers, Reports, Retentions,
    Sessions, SharedTable, SigningKeys, ThreadRetentions, UserNames, Users, Webhooks,
};
use engine::reads::StoreResult;
use model::{Identity, SpaceId};
use std::ops::RangeInclusive;

impl Batch<'_> {
    /// Forgets a user: their account, what they reported, whom they blocked, their name, and their key. What they wrote
    /// is another matter. The key goes last, so that no user is left who cannot act.
    pub fn forget_user(&mut self, space: &SpaceId, user: &User) -> StoreResult<()> {
        self.forget_account(space, &user.id)?;
        self.forget_reports(space, &user.identity)?;
        self.forget_blocks(space, &user.identity)?;
        self.clear_shared::<UserNames>(&UserNameKey::new(*space, user.identity))?;
        let key = self.shared.user_key(space, &user.id);
        self.clear_shared::<Users>(&key)?;
        self.clear_shared::<Custodians>(&IdentityKey::new(user.identity))?;
        self.shared.keys.erase(space, &user.identity);
        Ok(())
    }

    /// Forgets the key of an identity that this node acted for: nobody does any more.
    pub fn forget_custodian(&mut self, space: &SpaceId, identity: &Identity) -> StoreResult<()> {
        self.clear_shared::<Custodians>(&IdentityKey::new(*identity))?;
        self.shared.keys.erase(space, identity);
        Ok(())
    }

    /// Closes a space: its API keys and its keeper are forgotten, and its keys destroyed, so that nobody gets in and
    /// nobody reads. The rest follows with [`Batch::forget_some`]. Ways in go first, then the space, then the identity
    /// that owned it.
    pub fn end_space(&mut self, space: &SpaceId) -> StoreResult<()> {
        self.touch();
        for (id, key) in self.db.api_keys()? {
            if key.space == *space {
                self.clear_shared::<ApiKeys>(&ApiKeyName::new(id))?;
            }
        }
        self.clear_shared_range::<SigningKeys>(SigningKeyName::of_space(*space), usize::MAX)?;
        self.clear_shared_range::<Webhooks>(WebhookKey::of_space(*space), usize::MAX)?;
        self.db.tables.webhook_progress.remove_range(WebhookKey::of_space(*space), usize::MAX)?;
        let kept = self.db.hosted_space(space)?;
        self.clear_shared::<HostedSpaces>(&SpaceIdKey::new(*space))?;
        self.clear_shared::<Protections>(&SpaceIdKey::new(*space))?;
        if let Some(kept) = kept {
            self.forget_custodian(space, &kept.keeper)?;
        }
        self.destroy_keys(space)?;
        Ok(())
    }

    /// Forgets at most so many rows of what is kept of an ended space and its users. Says how many. A table is begun when
    /// those before it are empty. Nobody acts in an ended space, so the key of an identity goes before the name by which
    /// it is found.
    pub fn forget_some(&mut self, space: &SpaceId, most: usize) -> StoreResult<usize> {
        self.touch();
        let mut gone = 0;
        let is_full = self.forget_page::<Invitations>(InvitationKey::of_space(*space), most, &mut gone)?
            || self.forget_page::<Sessions>(SessionKey::of_space(*space), most, &mut gone)?
            || self.forget_page::<Accounts>(UserKey::of_space(*space), most, &mut gone)?
            || self.forget_page::<Reports>(ReportNo::of_space(*space), most, &mut gone)?
            || self.forget_page::<Blocks>(BlockKey::of_space(*space), most, &mut gone)?
            || self.forget_page::<ThreadRetentions>(ThreadIdKey::of_space(*space), most, &mut gone)?
            || {
                gone += self.forget_files_of(space, most.saturating_sub(gone))?;
                gone >= most
            }
            || self.forget_names(space, most, &mut gone)?
            || self.forget_page::<Users>(UserKey::of_space(*space), most, &mut gone)?;
        if !is_full {
            gone += usize::from(self.clear_shared::<ReportNumbers>(&SpaceIdKey::new(*space))?);
            gone += usize::from(self.clear_shared::<Retentions>(&SpaceIdKey::new(*space))?);
        }
        Ok(gone)
    }

    /// Forgets rows of a table until there are so many in all. Says whether there are.
    fn forget_page<T: SharedTable>(
        &mut self,
        range: RangeInclusive<T::Key>,
        most: usize,
        gone: &mut usize,
    ) -> StoreResult<bool> {
        *gone += self.clear_shared_range::<T>(range, most.saturating_sub(*gone))?;
        Ok(*gone >= most)
    }

    /// Forgets the keys and names of users until there are so many rows in all. Says whether there are.
    fn forget_names(&mut self, space: &SpaceId, most: usize, gone: &mut usize) -> StoreResult<bool> {
        let rows = self.db.tables.user_names.range(UserNameKey::of_space(*space))?.take(most.saturating_sub(*gone));
        let names = rows.map(|row| Ok(row?.key())).collect::<StoreResult<Vec<UserNameKey>>>()?;
        for name in &names {
            self.clear_shared::<Custodians>(&IdentityKey::new(name.identity()))?;
            self.clear_shared::<UserNames>(name)?;
            self.shared.keys.erase(space, &name.identity());
        }
        *gone += names.len();
        Ok(*gone >= most)
    }
}
