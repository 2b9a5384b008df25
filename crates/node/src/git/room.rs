//! How much may be pushed to a repository.

use super::service::{GitFailure, GitService, HostedRepository};
use engine::protocol::nostr::push::RefUpdate;
use git::StoreName;
use model::NostrKey;
use model::nostr::is_contribution;
use std::collections::BTreeSet;
use store::nostr::KeptRepository;

/// Objects of a pack with commits of pull requests.
const PULL_REQUEST_OBJECTS_MAX: u32 = 500_000;

impl GitService {
    /// How many more bytes may be pushed to a repository, or why none may.
    pub fn room(
        &self,
        repository: &HostedRepository,
        updates: &[RefUpdate],
    ) -> Result<Result<u64, String>, GitFailure> {
        let kept = self.repositories_like(&repository.owner, &repository.identifier)?;
        let is_new = !kept.iter().any(|kept| kept.identifier == repository.identifier);
        let count = kept.len() + usize::from(is_new);
        if count > self.limits.owner_repositories_max {
            return Ok(Err(format!(
                "its owner has {count} repositories here; at most {} take pushes (git.owner_repositories_max)",
                self.limits.owner_repositories_max
            )));
        }
        let room = self.room_of(repository)?;
        // Anybody may push those.
        let is_pull_request = updates.iter().any(|update| update.pull_request().is_some());
        let most = if is_pull_request { self.limits.pull_request_bytes_max } else { u64::MAX };
        Ok(match room.min(self.limits.pack_bytes_max).min(most) {
            0 => Err("the repository, or all of its owner, are as large as they may be".to_owned()),
            room => Ok(room),
        })
    }

    /// The repositories of an owner, announced ones or those for pull requests, whichever that one is. Anybody may push to the
    /// latter in somebody's name, and uses up nothing of the former.
    fn repositories_like(&self, owner: &NostrKey, identifier: &str) -> Result<Vec<KeptRepository>, GitFailure> {
        let mut all = self.node.snapshot()?.git_repositories_of(owner)?;
        all.retain(|kept| is_contribution(&kept.identifier) == is_contribution(identifier));
        Ok(all)
    }

    /// How many bytes fit into a repository, however they come.
    pub(super) fn room_of(&self, repository: &HostedRepository) -> Result<u64, GitFailure> {
        let repositories = self.repositories_like(&repository.owner, &repository.identifier)?;
        let stores: BTreeSet<StoreName> = repositories.into_iter().map(|row| StoreName(row.store)).collect();
        let mut of_all = 0;
        for store in stores {
            of_all += self.folder.store(store).bytes()?;
        }
        let limits = &self.limits;
        let of_repository = limits.repository_bytes_max.saturating_sub(repository.store.bytes()?);
        Ok(of_repository.min(limits.owner_bytes_max.saturating_sub(of_all)))
    }

    /// How many objects a push may bring.
    pub fn objects_max(&self, updates: &[RefUpdate]) -> u32 {
        let is_pull_request = updates.iter().any(|update| update.pull_request().is_some());
        self.limits.objects_max.min(if is_pull_request { PULL_REQUEST_OBJECTS_MAX } else { u32::MAX })
    }
}
