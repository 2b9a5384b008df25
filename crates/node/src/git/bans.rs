//! What the operator has banned since the node ran last goes from the disk.

use super::service::{GitFailure, GitService};
use crate::nostr::LookAtRefs;
use engine::Opened;
use engine::reads::Reads as _;
use engine::rows::Alignment;
use git::StoreName;
use model::nostr::NostrId;
use store::Db;
use store::nostr::KeptRepository;
use store::tables::Snapshot;

impl GitService {
    /// Has banned repositories, and pull requests of banned authors in others, looked at.
    pub(super) fn look_at_banned(&self) -> Result<(), GitFailure> {
        if self.access.banned.is_empty() && self.access.banned_repositories.is_empty() {
            return Ok(());
        }
        let db = self.node.snapshot()?;
        let mut looked_at = Vec::new();
        for kept in db.git_repositories()? {
            let pull_requests = match self.access.is_banned(&kept.owner, &kept.identifier) {
                true => vec![None],
                false => self.banned_pull_requests(&db, &kept)?.into_iter().map(Some).collect(),
            };
            let alignment =
                |pull_request| Alignment { owner: kept.owner, identifier: kept.identifier.clone(), pull_request };
            looked_at.extend(pull_requests.into_iter().map(alignment));
        }
        drop(db);
        if looked_at.is_empty() { Ok(()) } else { Ok(self.node.ask(LookAtRefs(looked_at))?) }
    }

    fn banned_pull_requests(&self, db: &Db<Snapshot>, kept: &KeptRepository) -> Result<Vec<NostrId>, GitFailure> {
        let store = self.folder.store(StoreName(kept.store));
        if !store.exists() {
            return Ok(Vec::new());
        }
        let mut banned = Vec::new();
        for id in pull_requests_of(store.refs(&kept.owner)?.into_keys()) {
            if self.is_of_banned_author(db, &id)? {
                banned.push(id);
            }
        }
        Ok(banned)
    }

    /// Whether an event is by somebody of whom nothing is served.
    pub(super) fn is_of_banned_author(&self, db: &Db<Snapshot>, id: &NostrId) -> Result<bool, GitFailure> {
        if self.access.banned.is_empty() {
            return Ok(false);
        }
        let event = db.seq(&id.short())?.map(|seq| db.open_event(seq)).transpose()?.flatten();
        Ok(matches!(event, Some(Opened::Nostr(event)) if self.access.banned.contains(&event.author)))
    }
}

/// The pull requests among refs.
pub(super) fn pull_requests_of(names: impl Iterator<Item = String>) -> Vec<NostrId> {
    names.filter_map(|name| name.strip_prefix("refs/nostr/")?.parse().ok()).collect()
}
