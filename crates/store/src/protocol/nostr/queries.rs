//! What doors and workers of the `nostr` protocol read: events by filter, and repositories that wait for something.

use crate::database::db::{Db, stamped};
use crate::errors::broken;
use crate::keys::*;
use crate::tables::TableReads;
use engine::reads::{Reads as _, StoreResult};
use engine::rows::{Alignment, PushedCommit};
use model::need::Oid;
use model::nostr::{AddressName, NostrId, VerifiedNostr};
use model::stage::ContentState;
use model::{AuthorNo, EventId, Nanos, Need, NostrKey, Seq, SpaceNo, Stamp};
use std::collections::BTreeSet;
use std::ops::Bound;

/// A list of Nostr events in the order of their stamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NostrIndex {
    /// All of them.
    Times,
    /// Those of a kind.
    Kind(u16),
    /// Those of an author.
    Author(SpaceNo, AuthorNo),
    /// Those with a tag.
    Tag(u8, AddressName),
}

/// A git repository of which something is kept here.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KeptRepository {
    pub owner: NostrKey,
    pub identifier: String,
    /// The object store that its objects are in.
    pub store: [u8; 16],
}

impl<V: TableReads> Db<V> {
    /// Events of a list before a stamp and not before a time, the latest first, at most so many.
    pub fn nostr_events(
        &self,
        index: NostrIndex,
        since: Nanos,
        before: Stamp,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>> {
        let since = Stamp { at: since, id: EventId::ZERO };
        match index {
            NostrIndex::Times => {
                let range = NostrTimeKey::new(since)..NostrTimeKey::new(before);
                stamped(self.tables.nostr_times().range(range)?.rev().take(most))
            }
            NostrIndex::Kind(kind) => {
                let range = NostrKindKey::new(kind, since)..NostrKindKey::new(kind, before);
                stamped(self.tables.nostr_kinds().range(range)?.rev().take(most))
            }
            NostrIndex::Tag(letter, value) => {
                let range = NostrTagKey::new(letter, value, since)..NostrTagKey::new(letter, value, before);
                stamped(self.tables.nostr_tags().range(range)?.rev().take(most))
            }
            NostrIndex::Author(space, author) => {
                let mut found = self.last_by_author(space, author, before.just_before(), most)?;
                found.retain(|(stamp, _)| *stamp >= since && *stamp < before);
                Ok(found)
            }
        }
    }

    /// How many events are applied, which the database knows without counting.
    pub fn nostr_event_count(&self) -> StoreResult<u64> {
        self.tables.nostr_times().len()
    }

    /// An applied event that is not deleted, and its JSON.
    pub fn shown_nostr_event(&self, seq: Seq) -> StoreResult<Option<(VerifiedNostr, String)>> {
        let found = self.with_event(seq, |parts| {
            let is_shown = parts.row.is_applied() && parts.row.content == ContentState::Processed;
            let event = VerifiedNostr::kept(parts.blob).ok().filter(|_| is_shown)?;
            Some((event, String::from_utf8_lossy(parts.blob.get(1..)?).into_owned()))
        })?;
        Ok(found.flatten())
    }

    /// Held events that wait for a need whose key begins so, each once, at most so many.
    pub(super) fn waiting_under(&self, beginning: &[u8], most: usize) -> StoreResult<Vec<Seq>> {
        let mut seqs = BTreeSet::new();
        for row in self.tables.waiting().range(WaitingKey::of_keys(beginning))? {
            if seqs.len() >= most {
                break;
            }
            seqs.insert(row?.key().seq()?);
        }
        Ok(seqs.into_iter().collect())
    }

    /// What events wait for in repositories of an identifier, at most so many.
    pub(crate) fn repository_needs(&self, identifier: &str, most: usize) -> StoreResult<Vec<Need>> {
        let mut needs = Vec::new();
        for beginning in Need::keys_of_repository(identifier) {
            for row in self.tables.waiting().range(WaitingKey::of_keys(&beginning))? {
                if needs.len() >= most {
                    return Ok(needs);
                }
                let (need, _) = row?.key().parts()?;
                if needs.last() != Some(&need) {
                    needs.push(need);
                }
            }
        }
        Ok(needs)
    }

    /// Repositories whose announcements wait for their first data, at most so many.
    pub fn repositories_waiting_for_data(&self, most: usize) -> StoreResult<BTreeSet<(NostrKey, String)>> {
        let mut repositories = BTreeSet::new();
        for row in self.tables.waiting().range(WaitingKey::of_keys(&Need::keys_of_data()))? {
            if repositories.len() >= most {
                break;
            }
            if let (Need::GitData { owner, identifier }, _) = row?.key().parts()? {
                repositories.insert((owner, identifier));
            }
        }
        Ok(repositories)
    }

    /// Whether an id was refused, or expired, and is remembered for that.
    pub fn is_refused_or_expired(&self, id: &EventId) -> StoreResult<bool> {
        Ok(self.refused(id)?.is_some() || self.tables.expired().get(EventIdKey::new(*id))?.is_some())
    }

    /// Owners of repositories of an identifier whose events wait for objects, at most so many, from those on whose key begins
    /// with that byte, and then the others.
    pub fn owners_waiting_for_objects(&self, identifier: &str, first: u8, most: usize) -> StoreResult<Vec<NostrKey>> {
        let [_, objects, _] = Need::keys_of_repository(identifier);
        let mut owners: Vec<NostrKey> = Vec::new();
        let all = WaitingKey::of_keys(&objects);
        let begin = WaitingKey::of_keys(&[objects.as_slice(), &[first]].concat()).start;
        for mut range in [begin.clone()..all.end, all.start..begin] {
            // From each owner straight to the next one: some wait for thousands of objects.
            while owners.len() < most
                && let Some(row) = self.tables.waiting().range(range.clone())?.next().transpose()?
                && let (Need::GitObject { owner, .. }, _) = row.key().parts()?
            {
                owners.push(owner);
                range.start = WaitingKey::of_keys(&Need::keys_of_objects(&owner, identifier)).end;
            }
        }
        Ok(owners)
    }

    /// Repositories whose refs have to be made what events say, each with a number that another change of it has not; at
    /// most so many.
    pub fn repositories_to_align(&self, most: usize) -> StoreResult<Vec<(Alignment, u64)>> {
        self.tables.git_align().iter()?.take(most).map(|row| read_alignment(&row?)).collect()
    }

    /// The same of one repository.
    pub fn alignments_of(
        &self,
        owner: &NostrKey,
        name: &AddressName,
        most: usize,
    ) -> StoreResult<Vec<(Alignment, u64)>> {
        let rows = self.tables.git_align().range(GitAlignKey::of_repository(*owner, *name))?;
        rows.take(most).map(|row| read_alignment(&row?)).collect()
    }

    /// All repositories of which something is kept.
    pub fn git_repositories(&self) -> StoreResult<Vec<KeptRepository>> {
        self.tables.git_stores().iter()?.map(read_repository).collect()
    }

    /// Those whose rows can be read, and how many cannot.
    pub fn readable_git_repositories(&self) -> (Vec<KeptRepository>, usize) {
        let (mut kept, mut damaged) = (Vec::new(), 0);
        let Ok(rows) = self.tables.git_stores().iter() else { return (kept, 1) };
        for row in rows {
            let is_over = row.is_err();
            match read_repository(row) {
                Ok(repository) => kept.push(repository),
                Err(_) => damaged += 1,
            }
            // Where a page is damaged, going through them in order ends.
            if is_over {
                break;
            }
        }
        (kept, damaged)
    }

    /// Those of one owner.
    pub fn git_repositories_of(&self, owner: &NostrKey) -> StoreResult<Vec<KeptRepository>> {
        self.tables.git_stores().range(GitRepositoryKey::of_owner(*owner))?.map(read_repository).collect()
    }

    /// Objects that are in a repository with all that they reach, after one of them, at most so many.
    pub fn present_objects(
        &self,
        owner: &NostrKey,
        name: &AddressName,
        after: Option<Oid>,
        most: usize,
    ) -> StoreResult<Vec<Oid>> {
        let key = |oid| GitObjectKey::new(*owner, *name, oid);
        let from = after.map_or(Bound::Included(key([0; 20])), |oid| Bound::Excluded(key(oid)));
        let rows = self.tables.git_present().range((from, Bound::Included(key([0xff; 20]))))?;
        rows.take(most).map(|row| Ok(row?.key().oid())).collect()
    }

    /// The commit that was pushed for a pull request whose event was not here.
    pub fn pushed_commit(&self, of: &Alignment) -> StoreResult<Option<PushedCommit>> {
        let key = align_key(of);
        let Some(row) = self.tables.git_pushed().get_row(key)? else { return Ok(None) };
        read_pushed(key, row.value()?).map(Some)
    }

    /// All commits that were pushed for pull requests whose events were not here.
    pub fn pushed_commits(&self) -> StoreResult<Vec<PushedCommit>> {
        let read = |row: StoreResult<crate::tables::Row<'_, GitAlignKey, crate::tables::Bytes>>| {
            let row = row?;
            read_pushed(row.key(), row.value()?)
        };
        self.tables.git_pushed().iter()?.map(read).collect()
    }
}

impl crate::database::batch::Batch<'_> {
    /// The refs of a repository are what events say.
    pub fn note_aligned(&mut self, alignment: &Alignment, version: u64) -> StoreResult<()> {
        let key = align_key(alignment);
        let kept = self.db.tables.git_align.get_row(key)?.map(|row| read_align(row.value()?)).transpose()?;
        // A change that came meanwhile has to be looked at again.
        if kept.is_some_and(|(kept, _)| kept == version) {
            self.is_changed = true;
            self.db.tables.git_align.remove(key)?;
        }
        Ok(())
    }
}

fn read_repository(
    row: StoreResult<crate::tables::Row<'_, GitRepositoryKey, crate::tables::Bytes>>,
) -> StoreResult<KeptRepository> {
    let row = row?;
    let (store, identifier) = read_store(row.value()?)?;
    Ok(KeptRepository { owner: row.key().owner(), identifier, store })
}

/// Where the objects of a repository are, and how it is called.
pub(super) fn read_store(value: &[u8]) -> StoreResult<([u8; 16], String)> {
    let (store, identifier) = value.split_first_chunk().ok_or_else(|| broken("a row of `git_stores`"))?;
    Ok((*store, String::from_utf8_lossy(identifier).into_owned()))
}

fn align_key(alignment: &Alignment) -> GitAlignKey {
    let pull_request = alignment.pull_request.unwrap_or(NostrId::ZERO);
    GitAlignKey::new(alignment.owner, AddressName::of(&alignment.identifier), pull_request)
}

fn read_alignment(row: &crate::tables::Row<'_, GitAlignKey, crate::tables::Bytes>) -> StoreResult<(Alignment, u64)> {
    let (version, identifier) = read_align(row.value()?)?;
    let pull_request = Some(row.key().pull_request()).filter(|id| *id != NostrId::ZERO);
    Ok((Alignment { owner: row.key().owner(), identifier, pull_request }, version))
}

fn read_align(value: &[u8]) -> StoreResult<(u64, String)> {
    let (version, identifier) = value.split_first_chunk().ok_or_else(|| broken("a row of `git_align`"))?;
    Ok((u64::from_be_bytes(*version), String::from_utf8_lossy(identifier).into_owned()))
}

fn read_pushed(key: GitAlignKey, value: &[u8]) -> StoreResult<PushedCommit> {
    let read = || {
        let (oid, rest) = value.split_first_chunk()?;
        let (until, identifier) = rest.split_first_chunk()?;
        Some(PushedCommit {
            owner: key.owner(),
            identifier: String::from_utf8(identifier.to_vec()).ok()?,
            pull_request: key.pull_request(),
            oid: *oid,
            until: Nanos(u64::from_be_bytes(*until)),
        })
    };
    read().ok_or_else(|| broken("a row of `git_pushed`"))
}
