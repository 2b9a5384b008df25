//! What a push may do: what events say, and no more commits before their events than there is room for.

use super::service::{GitFailure, GitService, HostedRepository, for_all};
use engine::protocol::nostr::maintainers::announcement;
use engine::protocol::nostr::push::{PushDecision, RefUpdate, decide, decide_contribution};
use model::nostr::{Announcement, is_contribution};

/// Commits of one repository that wait for the events of their pull requests.
const PUSHED_MAX: usize = 32;
/// The same, of all repositories.
const PUSHED_TOTAL_MAX: usize = 1000;
/// The same, of all contributors without one.
const CONTRIBUTED_TOTAL_MAX: usize = 200;

impl GitService {
    /// Whether a push may do this, as of now. What is only mirrored here is pushed elsewhere.
    pub fn decide(&self, repository: &HostedRepository, updates: &[RefUpdate]) -> Result<PushDecision, GitFailure> {
        let db = self.node.snapshot()?;
        let announced = announcement(&*db, &repository.owner, &repository.identifier)?;
        let is_listed = |own: &Announcement| {
            let lists = db.policy().service.is_some_and(|service| own.lists(service));
            lists && self.access.allows(&own.owner, &own.identifier)
        };
        if announced.as_ref().is_some_and(|own| !is_listed(own)) {
            let clones = announced.map(|own| own.clones.join(" ")).unwrap_or_default();
            let why = format!("this node only mirrors the repository; push to {clones}");
            return Ok(PushDecision::Refused(for_all(updates, &why)));
        }
        self.decide_updates(repository, updates)
    }

    /// Whether this is what events say, however it comes.
    pub(super) fn decide_updates(
        &self,
        repository: &HostedRepository,
        updates: &[RefUpdate],
    ) -> Result<PushDecision, GitFailure> {
        let db = self.node.snapshot()?;
        let HostedRepository { owner, identifier, .. } = repository;
        let decision = match db.policy().service.filter(|_| is_contribution(identifier)) {
            Some(service) => decide_contribution(&*db, service, owner, identifier, updates)?,
            None => decide(&*db, owner, identifier, updates)?,
        };
        let PushDecision::Allowed { before_their_events } = &decision else { return Ok(decision) };
        if before_their_events.is_empty() {
            return Ok(decision);
        }
        let mut waiting = db.pushed_commits()?;
        // Contributors share a small room of their own.
        let total_max = if is_contribution(identifier) { CONTRIBUTED_TOTAL_MAX } else { PUSHED_TOTAL_MAX };
        waiting.retain(|pushed| is_contribution(&pushed.identifier) == is_contribution(identifier));
        let of_this = waiting.iter().filter(|pushed| (pushed.owner, &pushed.identifier) == (*owner, identifier));
        let is_room = of_this.count() + before_their_events.len() <= PUSHED_MAX && waiting.len() < total_max;
        let why = match is_room {
            true if self.access.writers.is_empty() => return Ok(decision),
            true => {
                "only those whom the operator lists may publish here; the event of the pull request has to come first"
            }
            false => "too many commits wait for the events of their pull requests; publish the event first",
        };
        let named = updates.iter().filter(|update| update.pull_request().is_some());
        Ok(PushDecision::Refused(named.map(|update| (update.name.clone(), why.to_owned())).collect()))
    }
}
