//! What the content of a space takes, for its quota: summed once, and kept up with every commit.

use crate::database::batch::Batch;
use crate::encode::usage_index;
use crate::keys::UsageKey;
use engine::change::RowChange;
use engine::reads::StoreResult;
use model::stage::ContentState;
use model::{AuthorNo, SpaceNo};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes of processed content by space, as of the latest commit, for the spaces that were asked about.
#[derive(Debug, Default)]
pub(crate) struct SpaceUse(Mutex<HashMap<SpaceNo, u64>>);

impl SpaceUse {
    fn lock(&self) -> MutexGuard<'_, HashMap<SpaceNo, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a commit that failed nobody knows what was committed: it is summed again.
    pub(crate) fn forget_unless<T>(&self, committed: StoreResult<T>) -> StoreResult<T> {
        if committed.is_err() {
            self.lock().clear();
        }
        committed
    }

    /// Takes over what a committed batch has changed.
    pub(crate) fn add(&self, changes: BTreeMap<SpaceNo, i64>) {
        let mut used = self.lock();
        for (space, change) in changes {
            if let Some(bytes) = used.get_mut(&space) {
                *bytes = bytes.saturating_add_signed(change);
            }
        }
    }
}

/// What a batch has claimed for spaces, and has changed of their use.
#[derive(Debug, Default)]
pub(crate) struct QuotaClaims {
    claimed: HashMap<SpaceNo, u64>,
    changes: BTreeMap<SpaceNo, i64>,
}

impl QuotaClaims {
    pub(crate) fn change(&mut self, row_change: RowChange, space: SpaceNo, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let change = self.changes.entry(space).or_default();
        *change = match row_change {
            RowChange::Put => change.saturating_add(bytes),
            RowChange::Remove => change.saturating_sub(bytes),
        };
    }

    pub(crate) fn changes(&mut self) -> BTreeMap<SpaceNo, i64> {
        std::mem::take(&mut self.changes)
    }
}

impl Batch<'_> {
    /// Claims storage for a space, if it then keeps no more than so much.
    pub fn claim_bytes(&mut self, space: SpaceNo, bytes: u64, most: u64) -> StoreResult<bool> {
        let claimed = self.quota.claimed.get(&space).copied().unwrap_or(0);
        let fits = self.used_bytes(space)?.saturating_add(claimed).saturating_add(bytes) <= most;
        if fits {
            self.quota.claimed.insert(space, claimed.saturating_add(bytes));
        }
        Ok(fits)
    }

    /// What the space uses as of the latest commit. What somebody only promises takes nothing from the others.
    fn used_bytes(&self, space: SpaceNo) -> StoreResult<u64> {
        if let Some(used) = self.shared.used.lock().get(&space) {
            return Ok(*used);
        }
        let mut used = 0;
        for row in self.db.tables.usage.range(UsageKey::of_space(space))? {
            used += row?.value()?.by_state[usage_index(ContentState::Processed)].1;
        }
        self.shared.used.lock().insert(space, used);
        Ok(used)
    }

    pub(crate) fn change_usage(
        &mut self,
        row_change: RowChange,
        (space, author): (SpaceNo, AuthorNo),
        state: ContentState,
        (events, len): (u64, u64),
    ) -> StoreResult<()> {
        let key = UsageKey::new(space, author);
        let mut usage = self.db.usage_row(&key)?;
        let slot = &mut usage.by_state[usage_index(state)];
        *slot = match row_change {
            RowChange::Put => (slot.0.saturating_add(events), slot.1.saturating_add(len)),
            RowChange::Remove => (slot.0.saturating_sub(events), slot.1.saturating_sub(len)),
        };
        self.db.pending.usage.insert(key, usage);
        if state == ContentState::Processed {
            self.quota.change(row_change, space, len);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::reads::StoreError;

    #[test]
    fn what_is_known_follows_commits_and_is_forgotten_when_one_fails() {
        let (used, space) = (SpaceUse::default(), SpaceNo(1));
        used.add(BTreeMap::from([(space, 5)]));
        assert_eq!(used.lock().get(&space), None, "what nobody asked about is not summed");
        used.lock().insert(space, 10);
        used.add(BTreeMap::from([(space, -4)]));
        assert_eq!(used.forget_unless(Ok(())), Ok(()));
        assert_eq!(used.lock().get(&space), Some(&6));
        assert_eq!(used.forget_unless::<()>(Err(StoreError::Full)), Err(StoreError::Full));
        assert_eq!(used.lock().get(&space), None);
    }
}
