//! How fetching from elsewhere goes: hunts, the domains that are asked, and the relays that events are gathered from.

use maud::{Markup, html};
use model::Nanos;
use node::Node;
use node::explain::HuntState;
use node::fetch::reports::{DomainState, SourceReport};
use server::relay_reports::RelayReport;
use std::collections::BTreeMap;

/// Domains that are shown.
const DOMAINS_MAX: usize = 100;
/// Relays that are shown.
const RELAYS_MAX: usize = 100;

/// A length of time in its greatest unit.
pub(crate) fn duration_text(nanos: u64) -> String {
    let seconds = nanos / Nanos::SECOND;
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    match units.iter().find(|(length, _)| seconds >= *length) {
        Some((length, unit)) => {
            let number = seconds / length;
            format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
        }
        None => "less than a second".to_owned(),
    }
}

/// How the search for something goes: who was asked, how often, with what answer, and when next.
pub(crate) fn hunt_status(node: &Node, hunted: Option<&HuntState>) -> Markup {
    let now = node.now().0;
    let Some(hunted) = hunted else { return html! { "nothing can be requested; it has to arrive by itself" } };
    let sources = node.source_reports(&hunted.group);
    let was_asked = sources.iter().any(|source| source.asked_at.is_some());
    html! {
        @match (hunted.attempts, hunted.last) {
            _ if sources.is_empty() => "this node knows no source to ask; it waits until the event is delivered",
            (0, _) | (_, None) if was_asked => "will be requested again, because another event waits for it",
            (0, _) | (_, None) => "not requested yet",
            (attempts, Some(last)) => { "requested " (attempts) @if attempts == 1 { " time" } @else { " times" } ", last "
                (duration_text(now.saturating_sub(last))) " ago" }
        }
        @match hunted.next {
            Some(next) if next <= now => "; next attempt now",
            Some(next) => { "; next attempt in " (duration_text(next - now)) }
            None => {}
        }
        @if !sources.is_empty() { ul { @for source in &sources { (source_answer(now, source)) } } }
    }
}

/// What a source answered last, and when its domain has room again.
fn source_answer(now: u64, source: &SourceReport) -> Markup {
    html! {
        li {
            (source.url)
            @match source.asked_at {
                None => ": not asked yet",
                Some(at) => { ", " (duration_text(now.saturating_sub(at))) " ago: "
                    @match (source.brought, &source.failed) {
                        (0, Some(why)) => { "no answer (" (why) ")" },
                        (0, None) => "does not have it",
                        (1, _) => "delivered 1 item",
                        (many, _) => { "delivered " (many) " items" },
                    }
                    @if let (1.., Some(why)) = (source.brought, &source.failed) { ", then failed (" (why) ")" }
                    @if source.unasked > 0 { ", and " (source.unasked) " that were not requested or not valid" }
                }
            }
            @match &source.domain {
                Some(DomainState { is_free: false, free_at: Some(at), .. }) => {
                    "; its domain takes the next request in " (duration_text(at.saturating_sub(now)))
                }
                Some(DomainState { is_free: false, .. }) => "; its domain takes no more requests at a time",
                Some(_) | None => {}
            }
        }
    }
}

/// The domains that are being asked, or were within the last minute.
pub(crate) fn domain_list(node: &Node) -> Markup {
    let (domains, now) = (node.domain_states(), node.now().0);
    html! {
        @if !domains.is_empty() {
            h2 { "Domains" }
            p.note { "Hosts that were asked within the last minute, and how much of their limits is used." }
            table {
                thead { tr { th { "Domain" } th { "Requests under way" } th { "In the last minute" } th { "Waiting" } th { "Next request" } } }
                tbody {
                    @for domain in domains.iter().take(DOMAINS_MAX) {
                        tr {
                            td { (domain.name) } td { (domain.in_flight) } td { (domain.started) } td { (domain.queued) }
                            td {
                                @match (domain.is_free, domain.free_at) {
                                    (true, _) => "at once",
                                    (false, Some(at)) => { "in " (duration_text(at.saturating_sub(now))) },
                                    (false, None) => "after another one",
                                }
                            }
                        }
                    }
                }
            }
            @if domains.len() > DOMAINS_MAX { p.note { "There are " (domains.len() - DOMAINS_MAX) " more." } }
        }
    }
}

/// The relays that events about repositories are gathered from.
pub(crate) fn relay_list(reports: &BTreeMap<String, RelayReport>, now: u64) -> Markup {
    html! {
        @if !reports.is_empty() {
            h2 { "Relays" }
            p.note { "Other relays that events about git repositories are gathered from." }
            div.wide { table {
                thead { tr { th { "Relay" } th { "Connection" } th.number { "New events" } } }
                tbody {
                    @for (relay, report) in reports.iter().take(RELAYS_MAX) {
                        tr {
                            td { (relay) }
                            td {
                                @match (&report.failed, report.next) {
                                    _ if report.is_live => "live",
                                    (Some(why), Some(next)) => { "failed (" (why) "); tried again in " (duration_text(next.saturating_sub(now))) },
                                    _ => "comparing what both sides have",
                                }
                            }
                            td.number { (report.gathered) }
                        }
                    }
                }
            } }
            @if reports.len() > RELAYS_MAX { p.note { "There are " (reports.len() - RELAYS_MAX) " more." } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relays_are_listed_with_how_it_goes() {
        assert_eq!(relay_list(&BTreeMap::new(), 0).into_string(), "");
        let live = RelayReport { is_live: true, gathered: 7, ..RelayReport::default() };
        let next = Some(90 * Nanos::SECOND);
        let failed = RelayReport { failed: Some("refused <x>".into()), next, ..RelayReport::default() };
        let reports = BTreeMap::from([("wss://a".to_owned(), live), ("wss://b".to_owned(), failed)]);
        let shown = relay_list(&reports, 30 * Nanos::SECOND).into_string();
        for part in ["<td>live</td>", ">7<", "failed (refused &lt;x&gt;); tried again in 1 minute"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}
