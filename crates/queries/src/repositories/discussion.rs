//! Issues, pull requests and patches of a repository, with their status and what people say about them.

use super::{
    BTreeSet, EventPlace, NostrFilter, NostrId, NostrKey, Oid, PULL_REQUEST, PULL_REQUEST_UPDATE, QueryError,
    RepositoryReader, ShownRepository, TableReads, TagFilter, VerifiedNostr, cut_page, one_line, tip_of, values,
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
    /// The commit of a pull request; in a thread that of its latest version.
    pub tip: Option<Oid>,
}

/// A page of discussions, the latest first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DiscussionList {
    pub discussions: Vec<Discussion>,
    /// Behind which place the next page begins.
    pub next: Option<EventPlace>,
}

/// What an entry of a discussion is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryKind {
    Comment,
    /// What became of it, by somebody who may say so.
    Status(DiscussionStatus),
    /// A new version of a pull request.
    NewVersion(Oid),
    /// One more patch of a series.
    Patch,
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

impl<V: TableReads> RepositoryReader<'_, V> {
    /// Issues, or pull requests and patches, of a repository: those that are open, or the others.
    pub fn discussions(
        &self,
        of: &ShownRepository,
        kinds: &[DiscussionKind],
        open: bool,
        after: Option<EventPlace>,
    ) -> Result<DiscussionList, QueryError> {
        let address = |maintainer: &NostrKey| format!("{ANNOUNCEMENT}:{maintainer}:{}", of.identifier);
        let filter = NostrFilter {
            kinds: Some([ISSUE, PULL_REQUEST, PATCH].into_iter().filter(|kind| is_one_of(*kind, kinds)).collect()),
            tags: tagged('a', of.maintainers.iter().map(address).collect()),
            ..NostrFilter::default()
        };
        let (events, next) = self.find_after(filter, after)?;
        let begins = events.iter().filter(|event| !continues_series(event));
        let mut found: Vec<Discussion> = begins.filter_map(discussion_of).collect();
        for part in found.chunks_mut(STATUS_PART) {
            let statuses = self.statuses(of, part)?;
            for discussion in part {
                discussion.status = latest_status(of, discussion, &statuses);
            }
        }
        found.retain(|discussion| discussion.status.is_open() == open);
        let place = |discussion: &Discussion| EventPlace { at: discussion.created_at, id: discussion.id };
        let next = cut_page(&mut found, LIST_MAX, place).or(next);
        Ok(DiscussionList { discussions: found, next })
    }

    /// What those who may say so have said of what became of discussions: others cannot crowd it out.
    fn statuses(&self, of: &ShownRepository, about: &[Discussion]) -> Result<Vec<VerifiedNostr>, QueryError> {
        let authors = about.iter().map(|discussion| discussion.author).chain(of.maintainers.iter().copied());
        let filter = NostrFilter {
            kinds: Some([OPENED, APPLIED, CLOSED, DRAFT].into()),
            authors: Some(authors.collect()),
            tags: tagged('e', about.iter().map(|discussion| discussion.id.to_string()).collect()),
            ..NostrFilter::default()
        };
        Ok(self.find(&filter)?.0)
    }

    /// One discussion of a repository, with what was said.
    pub fn discussion(&self, of: &ShownRepository, id: &NostrId) -> Result<Option<DiscussionThread>, QueryError> {
        let (found, _) = self.find(&NostrFilter { ids: Some([*id].into()), ..NostrFilter::default() })?;
        let Some(root) = found.into_iter().next() else { return Ok(None) };
        let names = named_repositories(&root, &["a"]);
        let is_about =
            names.iter().any(|named| named.identifier == of.identifier && of.maintainers.contains(&named.author));
        let Some(mut discussion) = discussion_of(&root).filter(|_| is_about) else { return Ok(None) };
        let statuses = self.statuses(of, std::slice::from_ref(&discussion))?;
        discussion.status = latest_status(of, &discussion, &statuses);
        let mut events: BTreeMap<NostrId, VerifiedNostr> = BTreeMap::new();
        let mut has_more = false;
        // What its author says by itself, so that others cannot crowd it out.
        for (letter, authors) in
            [('E', None), ('e', None), ('E', Some([discussion.author])), ('e', Some([discussion.author]))]
        {
            let (tags, authors) = (tagged(letter, [id.to_string()].into()), authors.map(BTreeSet::from));
            let (said, is_cut) = self.find(&NostrFilter { tags, authors, ..NostrFilter::default() })?;
            has_more |= is_cut;
            events.extend(said.into_iter().map(|event| (event.id, event)));
        }
        events.extend(statuses.into_iter().map(|event| (event.id, event)));
        let mut entries: Vec<DiscussionEntry> =
            events.values().filter_map(|event| entry_of(event, &discussion, of)).collect();
        entries.sort_by_key(|entry| (entry.at, std::cmp::Reverse(entry.id)));
        for entry in &entries {
            if let EntryKind::NewVersion(tip) = entry.kind {
                discussion.tip = Some(tip);
            }
        }
        Ok(Some(DiscussionThread { discussion, entries, has_more }))
    }
}

/// What became of a discussion: the latest that its author or a maintainer says.
fn latest_status(of: &ShownRepository, about: &Discussion, statuses: &[VerifiedNostr]) -> DiscussionStatus {
    let may_say = |event: &&VerifiedNostr| event.author == about.author || of.maintainers.contains(&event.author);
    let is_about = |event: &&VerifiedNostr| event_ids(event, &["e"]).contains(&about.id);
    let said = statuses.iter().filter(may_say).filter(is_about);
    // Of two of one moment the one with the lowest id counts.
    let latest = said.max_by_key(|event| (event.created_at, std::cmp::Reverse(event.id)));
    latest.and_then(|event| DiscussionStatus::of(event.kind)).unwrap_or(DiscussionStatus::Open)
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
        (None, PATCH) => EntryKind::Patch,
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

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;
    use model::nostr::NostrEvent;

    const AUTHOR: u8 = 1;
    const MAINTAINER: u8 = 2;
    const STRANGER: u8 = 3;

    fn event(author: u8, at: u64, kind: u16, tags: &[&[&str]], text: &str) -> VerifiedNostr {
        let tags = tags.iter().map(|tag| tag.iter().map(|value| (*value).to_owned()).collect()).collect();
        NostrEvent::sign(&[author; 32], at, kind, tags, text).expect("signed")
    }

    fn repository() -> ShownRepository {
        let owner = event(MAINTAINER, 1, 1, &[], "").author;
        let maintainers = [owner].into();
        let (clones, relays, links) = Default::default();
        let (card, is_mirror) = (None, false);
        ShownRepository { owner, identifier: "tool".into(), card, clones, relays, links, maintainers, is_mirror }
    }

    #[test]
    fn the_latest_status_of_those_who_may_give_one_counts() {
        let issue = event(AUTHOR, 1, ISSUE, &[], "It breaks");
        let about = discussion_of(&issue).expect("a discussion");
        let id = issue.id.to_string();
        let said = |author, at, kind| event(author, at, kind, &[&["e", &id]], "");
        let status = |statuses: &[VerifiedNostr]| latest_status(&repository(), &about, statuses);
        assert_eq!(status(&[]), DiscussionStatus::Open);
        assert_eq!(status(&[said(AUTHOR, 2, CLOSED)]), DiscussionStatus::Closed);
        assert_eq!(status(&[said(MAINTAINER, 3, APPLIED), said(AUTHOR, 2, CLOSED)]), DiscussionStatus::Applied);
        assert_eq!(status(&[said(STRANGER, 9, CLOSED), said(AUTHOR, 2, DRAFT)]), DiscussionStatus::Draft);
        let elsewhere = event(AUTHOR, 5, CLOSED, &[&["e", &"00".repeat(32)]], "");
        assert_eq!(status(&[elsewhere]), DiscussionStatus::Open);
        let mut both = [said(AUTHOR, 4, CLOSED), said(MAINTAINER, 4, OPENED)];
        both.sort_by_key(|event| event.id);
        let lowest = DiscussionStatus::of(both[0].kind).expect("a status");
        assert_eq!(status(&both), lowest);
        both.reverse();
        assert_eq!(status(&both), lowest);
    }

    #[test]
    fn entries_are_what_people_may_say() {
        let pull = event(AUTHOR, 1, PULL_REQUEST, &[&["c", &"11".repeat(20)]], "");
        let about = discussion_of(&pull).expect("a discussion");
        let kind = |event: VerifiedNostr| entry_of(&event, &about, &repository()).map(|entry| entry.kind);
        let commit = "22".repeat(20);
        let version = |author| event(author, 2, PULL_REQUEST_UPDATE, &[&["c", &commit]], "");
        assert_eq!(kind(version(AUTHOR)), Some(EntryKind::NewVersion([0x22; 20])));
        assert_eq!(kind(version(MAINTAINER)), None, "a pull request is its author's");
        assert_eq!(kind(event(STRANGER, 2, 1111, &[], "hm")), Some(EntryKind::Comment));
        assert_eq!(kind(event(STRANGER, 2, PATCH, &[], "hm")), Some(EntryKind::Patch));
        assert_eq!(kind(event(STRANGER, 2, CLOSED, &[], "")), None);
        assert_eq!(kind(event(MAINTAINER, 2, CLOSED, &[], "")), Some(EntryKind::Status(DiscussionStatus::Closed)));
        assert_eq!(kind(event(STRANGER, 2, 7, &[], "+")), None, "a reaction is no entry");
    }

    #[test]
    fn a_series_of_patches_is_one_discussion_and_has_a_subject() {
        let first = event(AUTHOR, 1, PATCH, &[&["t", "root"], &["t", "ui"]], "From 1\nSubject: [PATCH 1/2] a\n");
        let second = event(AUTHOR, 2, PATCH, &[&["e", &first.id.to_string()]], "Subject: [PATCH 2/2] b");
        assert!(!continues_series(&first) && continues_series(&second));
        let told = discussion_of(&first).expect("a discussion");
        assert_eq!((told.subject.as_str(), told.labels), ("[PATCH 1/2] a", vec!["ui".to_owned()]));
        let subject = |tags: &[&[&str]], text| subject_of(&event(AUTHOR, 1, ISSUE, tags, text));
        assert_eq!(subject(&[&["subject", "So\nit is"]], "x"), "So it is");
        assert_eq!(subject(&[], "\n first line\nsecond"), "first line");
        assert_eq!(subject(&[&["subject", " "]], ""), "without a subject");
        assert_eq!(discussion_of(&event(AUTHOR, 1, 1, &[], "")), None);
    }
}
