//! What holds between shared rows, also after any prefix of a write of several of them, and between them and the rows of
//! this node that follow from them.

use crate::database::db::Db;
use crate::keys::*;
use crate::shared::{
    Accounts, Audit, Custodians, HostedSpaces, Invitations, Jobs, ReportNumbers, Reports, Requests, Sealing, Sessions,
    SharedTable, SigningKeys, UserNames, Users, Webhooks,
};
use crate::tables::TableReads;
use engine::reads::{StoreError, StoreResult};
use std::collections::BTreeSet;

/// A row that can be read; the others are told by [`Db::check_opens`].
fn unless_broken<T>(row: StoreResult<T>) -> StoreResult<Option<T>> {
    match row {
        Ok(row) => Ok(Some(row)),
        Err(StoreError::Broken(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

impl<V: TableReads> Db<V> {
    /// Everything that is wrong between shared rows.
    pub(crate) fn shared_problems(&self) -> StoreResult<Vec<String>> {
        let mut problems = Vec::new();
        self.check_user_names(&mut problems)?;
        self.check_reports(&mut problems)?;
        self.check_jobs(&mut problems)?;
        self.check_requests(&mut problems)?;
        for row in self.tables.webhook_progress().iter()? {
            let key = row?.key();
            if !self.tables.webhooks().contains(key)? {
                problems.push(format!("the progress of a webhook of {} that is not there", key.space()));
            }
        }
        self.check_opens::<HostedSpaces>(&mut problems)?;
        self.check_opens::<Users>(&mut problems)?;
        self.check_opens::<Accounts>(&mut problems)?;
        self.check_opens::<Sessions>(&mut problems)?;
        self.check_opens::<Invitations>(&mut problems)?;
        self.check_opens::<SigningKeys>(&mut problems)?;
        self.check_opens::<Webhooks>(&mut problems)?;
        self.check_opens::<Custodians>(&mut problems)?;
        self.check_opens::<Audit>(&mut problems)?;
        self.check_opens::<UserNames>(&mut problems)?;
        self.check_opens::<Reports>(&mut problems)?;
        self.check_opens::<Jobs>(&mut problems)?;
        self.check_opens::<Requests>(&mut problems)?;
        match self.webhooks(None) {
            Ok(_) => {}
            Err(StoreError::Broken(why)) => problems.push(why),
            Err(fault) => return Err(fault),
        }
        Ok(problems)
    }

    /// Rows can be read where they stand. What rests under a key that is gone cannot, unless it was destroyed on purpose.
    fn check_opens<T: SharedTable>(&self, problems: &mut Vec<String>) -> StoreResult<()> {
        for row in self.shared_rows::<T>(..)? {
            match row {
                Ok((_, Some(_))) => {}
                Ok((key, None)) => match T::sealing(&key) {
                    Sealing::Space(space) if self.is_destroyed(&space)? => {}
                    Sealing::Space(space) => {
                        problems.push(format!("{} of {space} rests under a key that is gone", T::WHAT))
                    }
                    Sealing::Plain | Sealing::Master(_) => {}
                },
                Err(StoreError::Broken(why)) => problems.push(why),
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// A name leads to a user.
    fn check_user_names(&self, problems: &mut Vec<String>) -> StoreResult<()> {
        for row in self.shared_range::<UserNames>(..)? {
            let Some((key, user)) = unless_broken(row)? else { continue };
            if !self.tables.users().contains(self.shared.user_key(&key.space(), &user))? {
                problems.push(format!("{} has the name of a user who is not there", key.identity()));
            }
        }
        Ok(())
    }

    /// The number of a report was taken before the report had it.
    fn check_reports(&self, problems: &mut Vec<String>) -> StoreResult<()> {
        for row in self.shared_range::<Reports>(..)? {
            let Some((key, _)) = unless_broken(row)? else { continue };
            let last = self.shared::<ReportNumbers>(&SpaceIdKey::new(key.space()))?;
            if last.is_none_or(|last| last < key.number()) {
                problems.push(format!("report {} of {} has a number that was not given", key.number(), key.space()));
            }
        }
        Ok(())
    }

    /// The jobs that are under way are those that are listed as such.
    fn check_jobs(&self, problems: &mut Vec<String>) -> StoreResult<()> {
        let mut listed: BTreeSet<u64> = self.open_jobs()?.into_iter().collect();
        for row in self.shared_range::<Jobs>(..)? {
            let Some((key, job)) = unless_broken(row)? else { continue };
            if listed.remove(&key.number()) != job.ended_at.is_none() {
                problems.push(format!("job {} is wrongly listed as under way or ended", key.number()));
            }
        }
        problems.extend(listed.into_iter().map(|number| format!("job {number} is listed but not there")));
        Ok(())
    }

    /// Every request that may be repeated is found by its age, so that it goes.
    fn check_requests(&self, problems: &mut Vec<String>) -> StoreResult<()> {
        for row in self.shared_range::<Requests>(..)? {
            let Some((key, asked)) = unless_broken(row)? else { continue };
            if !self.tables.idempotency_order().contains(RequestOrderKey::new(asked.at, key.hash()))? {
                problems.push("an idempotency row that is not found by its age".to_owned());
            }
        }
        Ok(())
    }
}
