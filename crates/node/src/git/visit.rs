//! One visit to another git server: what is wanted is fetched, and taken over as if it were pushed.

use super::hunt::wanted;
use super::service::{GitFailure, GitService, HostedRepository, Received};
use engine::protocol::nostr::push::RefUpdate;
use git::{FetchLimits, RemoteServer, Staging};
use model::need::Oid;
use model::{Nanos, NostrKey};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often git runs in one visit, for whomever, and how long all of that may take: a visit counts as one request.
const RUNS_MAX: usize = 12;
const VISIT_TIME: Duration = Duration::from_secs(20 * 60);
/// Of these, so many for objects of one repository that no ref of the server points at, and that it may have all the same.
const UNADVERTISED_MAX: usize = 4;

/// One visit to a server: what it has, and how much may still be asked of it.
pub(super) struct Visit<'a> {
    service: &'a GitService,
    server: RemoteServer,
    advertised: BTreeSet<Oid>,
    turn: u64,
    runs_left: usize,
    began: Nanos,
}

impl Visit<'_> {
    pub(super) fn begin(service: &GitService, server: RemoteServer, advertised: BTreeSet<Oid>, turn: u64) -> Visit<'_> {
        let began = service.node.uptime().unwrap_or_default();
        Visit { service, server, advertised, turn, runs_left: RUNS_MAX, began }
    }

    /// Fetches refs of the newest state, as far as the server has them. Says how many objects came that were asked for.
    pub(super) fn fetch_state(&mut self, owner: &NostrKey, identifier: &str) -> Result<usize, GitFailure> {
        let mut updates = self.wanted(owner, identifier)?;
        updates.retain(|update| update.pull_request().is_none());
        self.fetch(owner, identifier, updates)
    }

    /// Fetches commits of pull requests, each by itself: anybody may send those, and one that is bad must not stop others.
    pub(super) fn fetch_pull_requests(&mut self, owner: &NostrKey, identifier: &str) -> Result<usize, GitFailure> {
        let mut updates = self.wanted(owner, identifier)?;
        updates.retain(|update| update.pull_request().is_some());
        let first = self.turn as usize % updates.len().max(1);
        updates.rotate_left(first);
        // Those that the server certainly has come first.
        updates.sort_by_key(|update| !self.advertised.contains(&update.new));
        let (mut brought, mut why) = (0, None);
        for update in updates {
            match self.fetch(owner, identifier, vec![update]) {
                Ok(count) => brought += count,
                Err(failure) => why = Some(failure),
            }
        }
        match why {
            Some(why) if brought == 0 => Err(why),
            Some(_) | None => Ok(brought),
        }
    }

    fn wanted(&self, owner: &NostrKey, identifier: &str) -> Result<Vec<RefUpdate>, GitFailure> {
        Ok(wanted(&*self.service.node.snapshot()?, owner, identifier)?)
    }

    /// Fetches what these refs need, as far as the server has it, and has it taken over as if it were pushed.
    fn fetch(&mut self, owner: &NostrKey, identifier: &str, mut updates: Vec<RefUpdate>) -> Result<usize, GitFailure> {
        let service = self.service;
        if updates.is_empty() || self.runs_left == 0 {
            return Ok(0);
        }
        let Some(repository) = service.repository(owner, identifier)? else { return Ok(0) };
        let (name, store) = service.store_of(owner, identifier)?;
        let repository = HostedRepository { name, store, ..repository };
        let bytes_max = service.room(&repository, &updates)?.map_err(GitFailure::Writer)?;
        let staging = repository.store.stage()?;
        let oids: BTreeSet<Oid> = updates.iter().map(|update| update.new).collect();
        let came = self.fetch_some(&staging, &oids, bytes_max)?;
        updates.retain(|update| came.contains(&update.new));
        if updates.is_empty() {
            return Ok(0);
        }
        if let Some(why) = service.exceeds_limits(&staging)? {
            return Err(GitFailure::Writer(why));
        }
        match service.receive(&repository, &staging, &updates)? {
            Received::Arrived(_) => Ok(came.len()),
            Received::Incomplete => Err(GitFailure::Writer("objects that the refs need are missing".to_owned())),
            Received::TooLarge(why) => Err(GitFailure::Writer(why)),
            Received::Refused(reasons) => {
                let (name, why) = reasons.into_iter().next().unwrap_or_default();
                Err(GitFailure::Writer(format!("{name}: {why}")))
            }
        }
    }

    /// Fetches those of these objects that the server has: what its refs point at together, some of the others one by one,
    /// which it may have as well. An error only if something did not come that its refs point at.
    fn fetch_some(
        &mut self,
        staging: &Staging,
        oids: &BTreeSet<Oid>,
        bytes_max: u64,
    ) -> Result<BTreeSet<Oid>, GitFailure> {
        let mut came: BTreeSet<Oid> = oids.intersection(&self.advertised).copied().collect();
        if !came.is_empty() {
            self.run(staging, &came, bytes_max)?;
        }
        let mut others: Vec<Oid> = oids.difference(&self.advertised).copied().collect();
        let first = self.turn as usize % others.len().max(1);
        others.rotate_left(first);
        for oid in others.into_iter().take(UNADVERTISED_MAX) {
            if self.run(staging, &[oid].into(), bytes_max).is_ok() {
                came.insert(oid);
            }
        }
        Ok(came)
    }

    fn run(&mut self, staging: &Staging, oids: &BTreeSet<Oid>, bytes_max: u64) -> Result<(), GitFailure> {
        let now = self.service.node.uptime().unwrap_or_default();
        let time_max = VISIT_TIME.saturating_sub(Duration::from_nanos(now.0.saturating_sub(self.began.0)));
        if self.runs_left == 0 || time_max.is_zero() {
            return Err(GitFailure::Writer("the visit has taken long enough; it goes on next time".to_owned()));
        }
        self.runs_left -= 1;
        Ok(staging.fetch(&self.server, oids, FetchLimits { bytes_max, time_max })?)
    }
}
