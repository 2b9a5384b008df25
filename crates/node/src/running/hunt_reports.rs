//! What the handle tells of the fetcher: domains, and sources with their latest answers.

use crate::fetch::answers::AskedSource;
use crate::fetch::reports::{DomainState, SourceReport};
use crate::locks;
use crate::running::Node;
use model::{Group, Nanos};
use std::collections::BTreeMap;

impl Node {
    /// The domains that are being asked, or were of late.
    pub fn domain_states(&self) -> Vec<DomainState> {
        locks::lock(&self.inner.domain_states).clone()
    }

    /// How many requests were sent to each domain since the start; those to domains beyond a hundred together.
    pub fn domain_requests(&self) -> BTreeMap<String, u64> {
        locks::lock(&self.inner.domain_requests).0.clone()
    }

    /// Where the needs of a group can be fetched from, with the latest answers.
    pub fn source_reports(&self, group: &Group) -> Vec<SourceReport> {
        let places = self.snapshot().map(|db| self.inner.source.places(&db, group)).unwrap_or_default();
        let (asked, domains) = (self.asked(group), self.domain_states());
        let report = |url: &str, domain: Option<&str>| {
            let answer: Option<&AskedSource> = asked.iter().find(|asked| asked.place == url);
            SourceReport {
                url: url.to_owned(),
                asked_at: answer.map(|asked| asked.at).map(|Nanos(at)| at),
                brought: answer.map_or(0, |asked| asked.brought),
                unasked: answer.map_or(0, |asked| asked.unasked),
                failed: answer.and_then(|asked| asked.failed.clone()),
                domain: domain.and_then(|domain| domains.iter().find(|state| state.name == domain).cloned()),
            }
        };
        let mut reports: Vec<SourceReport> =
            places.iter().map(|place| report(&place.url, Some(&place.domain))).collect();
        // Those that are no sources any more have answered, too.
        let gone = asked.iter().filter(|asked| places.iter().all(|place| place.url != asked.place));
        reports.extend(gone.map(|asked| report(&asked.place, None)));
        reports
    }
}
