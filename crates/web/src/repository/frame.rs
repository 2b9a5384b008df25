//! What surrounds every page of a repository: its name, who maintains it, and tabs.

use super::open::{BRANCHES, OpenRepository, Revision, TAGS, short_name};
use crate::article::time;
use crate::shell::{NavItem, PageFrame, query_string};
use crate::waiting::home_space_name;
use axum::response::Response;
use maud::{Markup, html};
use model::nostr::npub;
use model::{Nanos, NostrKey};
use server::Problem;
use std::collections::BTreeMap;

/// Branches and tags that can be chosen from; the others are on their own page.
const CHOICES_MAX: usize = 200;

/// The tabs of a repository.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Files,
    Commits,
    Branches,
    Issues,
    PullRequests,
}

/// A link to a page of a repository.
pub(super) fn link(base: &str, page: &str, query: &[(&str, &str)]) -> String {
    let query: Vec<(&str, &str)> = query.iter().copied().filter(|(_, value)| !value.is_empty()).collect();
    let page = if page.is_empty() { String::new() } else { format!("/{page}") };
    match query.is_empty() {
        true => format!("{base}{page}"),
        false => format!("{base}{page}?{}", query_string(&query)),
    }
}

/// Somebody as others know them: the name that they give themselves, and their key.
pub(super) fn person(names: &BTreeMap<NostrKey, String>, key: &NostrKey) -> Markup {
    let key_text = npub(key);
    let short = format!("{}…{}", &key_text[..12], &key_text[key_text.len() - 6..]);
    html! {
        span.person title=(key_text) {
            @if let Some(name) = names.get(key) { b { (name) } " " span.note { (short) } } @else { (short) }
        }
    }
}

/// A moment that an event or a commit names, in seconds. Anybody can write any number.
pub(super) fn moment(seconds: i64) -> Markup {
    let nanos = u64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(Nanos::SECOND));
    match nanos {
        Some(nanos) => time(nanos),
        None => html! { span.note { "at an unknown time" } },
    }
}

/// A size as people read it.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None if bytes == 1 => "1 byte".to_owned(),
        None => format!("{bytes} bytes"),
    }
}

impl OpenRepository {
    /// What it is called.
    pub(super) fn name(&self) -> &str {
        self.shown.card.as_ref().map_or(self.shown.identifier.as_str(), |card| card.name.as_str())
    }

    /// A page of this repository.
    pub(super) fn respond(&self, tab: Tab, title: &str, body: &Markup) -> Result<Response, Problem> {
        let names = self.with_reader(|reader| reader.names(self.shown.maintainers.iter().copied()))?;
        let own = home_space_name(&self.state, &self.context)?;
        let title = if title.is_empty() { self.name().to_owned() } else { format!("{title} · {}", self.name()) };
        let whole = html! {
            div.repository {
                (self.heading(&names))
                (self.tabs(tab))
                (body)
            }
        };
        Ok(PageFrame::new(&title, NavItem::Code, &self.context).of(&own).respond(&whole))
    }

    fn heading(&self, names: &BTreeMap<NostrKey, String>) -> Markup {
        html! {
            p { a href="/repositories" { "← All repositories" } }
            h1 { a href=(self.base) { (self.name()) } }
            @if let Some(card) = &self.shown.card {
                @if !card.description.is_empty() { p { (card.description) } }
                @for topic in &card.topics { span.chip { (topic) } }
            }
            p.note {
                "Maintained by "
                @for (number, key) in self.shown.maintainers.iter().enumerate() {
                    @if number > 0 { ", " } (person(names, key))
                }
                @if self.shown.is_mirror { ". A read-only mirror: it is pushed to elsewhere" } "."
            }
        }
    }

    fn tabs(&self, here: Tab) -> Markup {
        let tabs = [
            (Tab::Files, "", "Files"),
            (Tab::Commits, "commits", "Commits"),
            (Tab::Branches, "branches", "Branches"),
            (Tab::Issues, "issues", "Issues"),
            (Tab::PullRequests, "pulls", "Pull requests"),
        ];
        html! {
            nav.tabs aria-label="Repository" {
                @for (tab, page, text) in tabs {
                    a href=(self.link(page, &[])) aria-current=[(tab == here).then_some("page")] { (text) }
                }
            }
        }
    }

    /// A choice of branches and tags for a page.
    pub(super) fn choose_revision(&self, page: &str, path: &str, shown: &Revision) -> Markup {
        let of = |beginning: &'static str| {
            self.refs.keys().filter(move |name| name.starts_with(beginning)).take(CHOICES_MAX)
        };
        let is_ref = self.refs.contains_key(&shown.name);
        html! {
            form.row action=(self.link(page, &[])) {
                @if !path.is_empty() { input type="hidden" name="path" value=(path); }
                label { span.sr { "Branch, tag or commit" }
                    select name="at" {
                        @if !is_ref { option value=(shown.name) selected { (shown.label()) } }
                        @for (title, beginning) in [("Branches", BRANCHES), ("Tags", TAGS)] {
                            optgroup label=(title) {
                                @for name in of(beginning) {
                                    option value=(name) selected[*name == shown.name] { (short_name(name)) }
                                }
                            }
                        }
                    }
                }
                button.quiet { "Show" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_say_only_what_is_there() {
        assert_eq!(link("/a.git", "", &[]), "/a.git");
        assert_eq!(
            link("/a.git", "files", &[("at", "refs/heads/m"), ("path", "")]),
            "/a.git/files?at=refs%2Fheads%2Fm"
        );
    }

    #[test]
    fn sizes_and_moments_are_readable_whatever_somebody_wrote() {
        assert_eq!((size(1), size(1023), size(1536)), ("1 byte".into(), "1023 bytes".into(), "1.5 KiB".into()));
        assert_eq!(size(u64::MAX), "17179869184.0 GiB");
        assert!(moment(0).into_string().contains("1970-01-01"));
        for odd in [-1, i64::MIN, i64::MAX] {
            assert!(moment(odd).into_string().contains("unknown time"), "{odd}");
        }
    }
}
