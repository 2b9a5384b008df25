//! Issues, pull requests and patches of a repository, with their status and what people say about them.

use super::{
    BTreeSet, NostrFilter, NostrId, NostrKey, Oid, PULL_REQUEST, PULL_REQUEST_UPDATE, QueryError, RepositoryReader,
    ShownRepository, TableReads, TagFilter, VerifiedNostr, next_page, one_line, tip_of, values,
};
use model::nostr::{ANNOUNCEMENT, event_ids, named_repositories};
use std::collections::BTreeMap;

/// The kind of a patch, which carries what it changes.
const PATCH: u16 = 1617;
/// The kind of an issue.
const ISSUE: u16 = 1621;
/// Kinds of what people say: a comment (NIP-22), a reply as it was before, a note.
const COMMENTS: [u16; 3] = [1111, 1622, 1];
/// Kinds of what became of an issue, a pull request or a patch.
const OPENED: u16 = 1630;
const APPLIED: u16 = 1631;
const CLOSED: u16 = 1632;
const DRAFT: u16 = 1633;
/// Discussions of one page.
const LIST_MAX: usize = 50;
/// How much of a subject is shown.
const SUBJECT_CHARS_MAX: usize = 200;
/// Discussions whose statuses are asked for together.
const STATUS_PART: usize = 100;

/// What people discuss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiscussionKind {
    Issue,
    PullRequest,
    Patch,
}

impl DiscussionKind {
    fn of(kind: u16) -> Option<DiscussionKind> {
        Some(match kind {
            ISSUE => DiscussionKind::Issue,
            PULL_REQUEST => DiscussionKind::PullRequest,
            PATCH => DiscussionKind::Patch,
            _ => return None,
        })
    }
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiscussionStatus {
    Open,
    Draft,
    /// Merged, or resolved.
    Applied,
    Closed,
}

impl DiscussionStatus {
    fn of(kind: u16) -> Option<DiscussionStatus> {
        Some(match kind {
            OPENED => DiscussionStatus::Open,
            APPLIED => DiscussionStatus::Applied,
            CLOSED => DiscussionStatus::Closed,
            DRAFT => DiscussionStatus::Draft,
            _ => return None,
        })
    }

    /// Whether somebody still has to do something about it.
    pub fn is_open(self) -> bool {
        matches!(self, DiscussionStatus::Open | DiscussionStatus::Draft)
    }
}

/// An issue, a pull request or a patch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Discussion {
    pub id: NostrId,
    pub kind: DiscussionKind,
    pub author: NostrKey,
    /// Seconds.
    pub created_at: u64,
    pub subject: String,
    pub text: String,
    pub labels: Vec<String>,
    pub status: DiscussionStatus,
    /// The commit of a pull request, of its latest version.
    pub tip: Option<Oid>,
}

/// A page of discussions, the latest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DiscussionList {
    pub discussions: Vec<Discussion>,
    /// From when on the next page is read, in seconds.
    pub next: Option<u64>,
}

/// What an entry of a discussion is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    Comment,
    /// What became of it, by somebody who may say so.
    Status(DiscussionStatus),
    /// A new version of a pull request.
    NewVersion(Oid),
}

/// What somebody said or did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscussionEntry {
    pub id: NostrId,
    pub kind: EntryKind,
    pub author: NostrKey,
    /// Seconds.
    pub at: u64,
    pub text: String,
}

/// A discussion with all that was said, the first first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DiscussionThread {
    pub discussion: Discussion,
    pub entries: Vec<DiscussionEntry>,
    /// Whether more was said than is shown.
    pub has_more: bool,
}

fn tagged(letter: char, values: BTreeSet<String>) -> Vec<TagFilter> {
    vec![TagFilter { letter, values }]
}

/// The subject of an event, or the first line that says something.
fn subject_of(event: &VerifiedNostr) -> String {
    let told = event.value("subject").map(|subject| one_line(subject, SUBJECT_CHARS_MAX));
    let in_mail = || event.content.lines().find_map(|line| line.strip_prefix("Subject: "));
    let first = || event.content.lines().find(|line| !line.trim().is_empty());
    let of_text = || match event.kind {
        PATCH => in_mail().or_else(first),
        _ => first(),
    };
    let subject =
        told.filter(|told| !told.is_empty()).or_else(|| of_text().map(|line| one_line(line, SUBJECT_CHARS_MAX)));
    subject.unwrap_or_else(|| "without a subject".to_owned())
}

/// Whether a patch goes on with a series, and is no discussion of its own.
fn continues_series(event: &VerifiedNostr) -> bool {
    let is_root = event.tags_of("t").any(|values| values.first().is_some_and(|value| value == "root"));
    event.kind == PATCH && !is_root && event.tag("e").is_some()
}

fn discussion_of(event: &VerifiedNostr) -> Option<Discussion> {
    let mut labels = values(event, "t");
    labels.retain(|label| !matches!(label.as_str(), "root" | "root-revision"));
    Some(Discussion {
        id: event.id,
        kind: DiscussionKind::of(event.kind)?,
        author: event.author,
        created_at: event.created_at,
        subject: subject_of(event),
        text: event.content.clone(),
        labels,
        status: DiscussionStatus::Open,
        tip: tip_of(event),
    })
}

/// Whether an event is later than another: of two of one moment the one with the lowest id counts.
fn is_later(event: &VerifiedNostr, than: &VerifiedNostr) -> bool {
    (event.created_at, std::cmp::Reverse(event.id)) > (than.created_at, std::cmp::Reverse(than.id))
}

impl<V: TableReads> RepositoryReader<'_, V> {
    /// Issues, or pull requests and patches, of a repository: those that are open, or the others. From a moment (in
    /// seconds) on back.
    pub fn discussions(
        &self,
        of: &ShownRepository,
        kinds: &[DiscussionKind],
        open: bool,
        until: Option<u64>,
    ) -> Result<DiscussionList, QueryError> {
        let address = |maintainer: &NostrKey| format!("{ANNOUNCEMENT}:{maintainer}:{}", of.identifier);
        let filter = NostrFilter {
            kinds: Some([ISSUE, PULL_REQUEST, PATCH].into_iter().filter(|kind| is_one_of(*kind, kinds)).collect()),
            tags: tagged('a', of.maintainers.iter().map(address).collect()),
            until,
            ..NostrFilter::default()
        };
        let (events, has_more) = self.find(&filter)?;
        let mut found: Vec<Discussion> =
            events.iter().filter(|event| !continues_series(event)).filter_map(discussion_of).collect();
        self.add_statuses(of, &mut found)?;
        found.retain(|discussion| discussion.status.is_open() == open);
        let last = events.last().map(|event| event.created_at);
        let next = next_page(found.get(LIST_MAX).map(|left| left.created_at), last.filter(|_| has_more), until);
        found.truncate(LIST_MAX);
        Ok(DiscussionList { discussions: found, next })
    }

    /// Enters what became of each: the latest that its author or a maintainer says.
    fn add_statuses(&self, of: &ShownRepository, discussions: &mut [Discussion]) -> Result<(), QueryError> {
        for part in discussions.chunks_mut(STATUS_PART) {
            let ids = part.iter().map(|discussion| discussion.id.to_string()).collect();
            let kinds = Some(BTreeSet::from([OPENED, APPLIED, CLOSED, DRAFT]));
            let (events, _) = self.find(&NostrFilter { kinds, tags: tagged('e', ids), ..NostrFilter::default() })?;
            let mut latest: BTreeMap<NostrId, &VerifiedNostr> = BTreeMap::new();
            let authors: BTreeMap<NostrId, NostrKey> = part.iter().map(|one| (one.id, one.author)).collect();
            for event in &events {
                for id in event_ids(event, &["e"]) {
                    let may = authors.get(&id) == Some(&event.author) || of.maintainers.contains(&event.author);
                    if may && latest.get(&id).is_none_or(|other| is_later(event, other)) {
                        latest.insert(id, event);
                    }
                }
            }
            for discussion in part {
                let status = latest.get(&discussion.id).and_then(|event| DiscussionStatus::of(event.kind));
                discussion.status = status.unwrap_or(DiscussionStatus::Open);
            }
        }
        Ok(())
    }

    /// One discussion of a repository, with what was said.
    pub fn discussion(&self, of: &ShownRepository, id: &NostrId) -> Result<Option<DiscussionThread>, QueryError> {
        let (found, _) = self.find(&NostrFilter { ids: Some([*id].into()), ..NostrFilter::default() })?;
        let Some(root) = found.into_iter().next() else { return Ok(None) };
        let names = named_repositories(&root, &["a"]);
        let is_about =
            names.iter().any(|named| named.identifier == of.identifier && of.maintainers.contains(&named.author));
        let Some(mut discussion) = discussion_of(&root).filter(|_| is_about) else { return Ok(None) };
        let mut events: BTreeMap<NostrId, VerifiedNostr> = BTreeMap::new();
        let mut has_more = false;
        for letter in ['E', 'e'] {
            let tags = tagged(letter, [id.to_string()].into());
            let (said, is_cut) = self.find(&NostrFilter { tags, ..NostrFilter::default() })?;
            has_more |= is_cut;
            events.extend(said.into_iter().map(|event| (event.id, event)));
        }
        let mut entries: Vec<DiscussionEntry> =
            events.values().filter_map(|event| entry_of(event, &discussion, of)).collect();
        // Of two of one moment the one with the lowest id counts, and stands last.
        entries.sort_by_key(|entry| (entry.at, std::cmp::Reverse(entry.id)));
        for entry in &entries {
            match entry.kind {
                EntryKind::Status(status) => discussion.status = status,
                EntryKind::NewVersion(tip) => discussion.tip = Some(tip),
                EntryKind::Comment => {}
            }
        }
        Ok(Some(DiscussionThread { discussion, entries, has_more }))
    }
}

fn is_one_of(kind: u16, kinds: &[DiscussionKind]) -> bool {
    DiscussionKind::of(kind).is_some_and(|kind| kinds.contains(&kind))
}

/// What an event is in a discussion; statuses and new versions only of those who may say so.
fn entry_of(event: &VerifiedNostr, discussion: &Discussion, of: &ShownRepository) -> Option<DiscussionEntry> {
    let may = event.author == discussion.author || of.maintainers.contains(&event.author);
    let kind = match (DiscussionStatus::of(event.kind), event.kind) {
        (Some(status), _) if may => EntryKind::Status(status),
        (None, PULL_REQUEST_UPDATE) if event.author == discussion.author => EntryKind::NewVersion(tip_of(event)?),
        (None, kind) if COMMENTS.contains(&kind) => EntryKind::Comment,
        _ => return None,
    };
    Some(DiscussionEntry {
        id: event.id,
        kind,
        author: event.author,
        at: event.created_at,
        text: event.content.clone(),
    })
}
