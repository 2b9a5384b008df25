//! Forgetting people and spaces: what this node keeps of them beside events.

use crate::database::batch::Batch;
use crate::keys::*;
use crate::shared::users::User;
use engine::reads::StoreResult;
use model::SpaceId;

impl Batch<'_> {
    /// Forgets a user: their name, their key, their account, what they reported, and whom they kept at a distance. What they wrote is another matter.
    pub fn forget_user(&mut self, space: &SpaceId, user: &User) -> StoreResult<()> {
        self.touch();
        let key = self.shared.user_key(space, &user.id);
        self.db.tables.users.remove(key)?;
        self.db.tables.user_names.remove(UserNameKey::new(*space, user.identity))?;
        self.db.tables.custodians.remove(IdentityKey::new(user.identity))?;
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
                self.db.tables.api_keys.remove(ApiKeyName::new(id))?;
            }
        }
        if let Some(kept) = self.db.kept_space(space)? {
            self.db.tables.custodians.remove(IdentityKey::new(kept.keeper))?;
            self.shared.keys.erase(space, &kept.keeper);
        }
        let tables = &mut self.db.tables;
        tables.kept_spaces.remove(SpaceIdKey::new(*space))?;
        tables.protections.remove(SpaceIdKey::new(*space))?;
        tables.signing_keys.remove_range(SigningKeyName::of_space(*space), usize::MAX)?;
        tables.webhooks.remove_range(WebhookKey::of_space(*space), usize::MAX)?;
        self.destroy_keys(space)?;
        Ok(())
    }

    /// Forgets about so many rows of what is kept of an ended space and its users. Says how many.
    pub fn forget_some(&mut self, space: &SpaceId, most: usize) -> StoreResult<usize> {
        self.touch();
        let rows = self.db.tables.user_names.range(UserNameKey::of_space(*space))?.take(most);
        let names = rows.map(|row| Ok(row?.key())).collect::<StoreResult<Vec<UserNameKey>>>()?;
        let tables = &mut self.db.tables;
        for name in &names {
            tables.custodians.remove(IdentityKey::new(name.identity()))?;
            tables.user_names.remove(name)?;
            self.shared.keys.erase(space, &name.identity());
        }
        let mut gone = names.len();
        gone += tables.users.remove_range(UserKey::of_space(*space), most)?;
        gone += usize::from(tables.retentions.remove(SpaceIdKey::new(*space))?);
        gone += tables.thread_retentions.remove_range(ThreadIdKey::of_space(*space), most)?;
        gone += tables.distances.remove_range(BlockKey::of_space(*space), most)?;
        gone += tables.reports.remove_range(ReportNo::of_space(*space), most)?;
        gone += tables.accounts.remove_range(UserKey::of_space(*space), most)?;
        gone += tables.sessions.remove_range(SessionKey::of_space(*space), most)?;
        gone += tables.invitations.remove_range(InvitationKey::of_space(*space), most)?;
        Ok(gone)
    }
}
