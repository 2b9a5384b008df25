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

    /// Fetches commits of pull requests: those that the server certainly has together, the others one by one. Anybody may
    /// send a pull request, and a bad one must not stop others: what fails together is tried again in halves.
    pub(super) fn fetch_pull_requests(&mut self, owner: &NostrKey, identifier: &str) -> Result<usize, GitFailure> {
        let mut updates = self.wanted(owner, identifier)?;
        updates.retain(|update| update.pull_request().is_some());
        let first = self.turn as usize % updates.len().max(1);
        updates.rotate_left(first);
        let (known, others): (Vec<_>, Vec<_>) =
            updates.into_iter().partition(|update| self.advertised.contains(&update.new));
        // The last one is taken first.
        let mut batches: Vec<Vec<RefUpdate>> = others.into_iter().rev().map(|update| vec![update]).collect();
        batches.push(known);
        let (mut brought, mut why) = (0, None);
        while let Some(mut batch) = batches.pop() {
            let runs_left = self.runs_left;
            match self.fetch(owner, identifier, batch.clone()) {
                Ok(count) => brought += count,
                Err(failure) => {
                    why = Some(failure);
                    // What fails before the server is asked, such as a full repository, fails for all of them.
                    if self.runs_left == runs_left {
                        break;
                    }
                    if batch.len() > 1 {
                        batches.push(batch.split_off(batch.len() / 2));
                        batches.push(batch);
                    }
                }
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
        // What is tried again in halves leaves time for these.
        let share =
            if updates.len() > 1 && updates.iter().any(|update| update.pull_request().is_some()) { 2 } else { 1 };
        let came = self.fetch_some(&staging, &oids, (bytes_max, share))?;
        updates.retain(|update| came.contains(&update.new));
        if updates.is_empty() {
            return Ok(0);
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
        bounds: (u64, u32),
    ) -> Result<BTreeSet<Oid>, GitFailure> {
        let mut came: BTreeSet<Oid> = oids.intersection(&self.advertised).copied().collect();
        if !came.is_empty() {
            self.run(staging, &came, bounds)?;
        }
        let mut others: Vec<Oid> = oids.difference(&self.advertised).copied().collect();
        let first = self.turn as usize % others.len().max(1);
        others.rotate_left(first);
        for oid in others.into_iter().take(UNADVERTISED_MAX) {
            if self.run(staging, &[oid].into(), bounds).is_ok() {
                came.insert(oid);
            }
        }
        Ok(came)
    }

    /// Runs git once, with so many bytes and one of so many parts of the time that is left.
    fn run(
        &mut self,
        staging: &Staging,
        oids: &BTreeSet<Oid>,
        (bytes_max, share): (u64, u32),
    ) -> Result<(), GitFailure> {
        let now = self.service.node.uptime().unwrap_or_default();
        let time_max = VISIT_TIME.saturating_sub(Duration::from_nanos(now.0.saturating_sub(self.began.0)));
        if self.runs_left == 0 || time_max.is_zero() {
            return Err(GitFailure::Writer("the visit has taken long enough; it goes on next time".to_owned()));
        }
        self.runs_left -= 1;
        let time_max = time_max / share;
        Ok(staging.fetch(&self.server, oids, FetchLimits { bytes_max, time_max })?)
    }
}
