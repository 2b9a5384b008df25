//! Reading: one implementation of the engine's [`Reads`], over a snapshot or over the writer's own tables.

use crate::at_rest::{Inline, content_name};
use crate::database::keyring::KeyringSecrets;
use crate::database::open::StoreShared;
use crate::disk::Disk;
use crate::encode::{self, Usage, broken};
use crate::tables::TableReads;
use engine::Opened;
use engine::policy::Policy;
use engine::reads::{KeptBlob, Reads, StoreError, StoreResult};
use engine::receive;
use engine::rows::{ContentLocation, ContentRow, EventRow, MembershipLimit, Owner};
use model::payload::MemberRole;
use model::stage::RefusalReason;
use model::{AuthorNo, Blob, ContentHash, EventId, Identity, Need, Seq, SpaceId, SpaceNo, Stamp};
use redb::{ReadableTable, StorageError};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Turns an engine's fault into ours, telling a full disk apart.
pub(crate) fn fault(error: impl Into<redb::Error>) -> StoreError {
    let error = error.into();
    match &error {
        redb::Error::Io(io) if io.kind() == std::io::ErrorKind::StorageFull => StoreError::Full,
        other => StoreError::Store(other.to_string()),
    }
}

fn storage(error: StorageError) -> StoreError {
    fault(error)
}

/// An event row that this batch has changed and not written yet.
#[derive(Clone, Debug)]
pub(crate) struct PendingRow {
    pub(crate) row: EventRow,
    pub(crate) blob: Vec<u8>,
    pub(crate) inline: Option<Inline<'static>>,
    /// Whether the timeline has a copy of what it says now.
    pub(crate) is_copied: bool,
}

/// What a batch has decided but not yet put into the tables: rows that change several times are written once.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pub(crate) rows: BTreeMap<u64, PendingRow>,
    pub(crate) usage: HashMap<[u8; 8], Usage>,
    pub(crate) held_counts: HashMap<[u8; 5], u64>,
    pub(crate) keys: KeyringSecrets,
}

/// Everything that can be read, as of one moment, with what this batch has added.
pub struct Db<V> {
    pub(crate) tables: V,
    pub(crate) keys: Arc<KeyringSecrets>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) policy: Policy,
    pub(crate) is_settled: bool,
    pub(crate) shared: Arc<StoreShared>,
    pub(crate) pending: Pending,
    pub(crate) held_total: u64,
    pub(crate) next_position: u64,
}

impl<V> std::fmt::Debug for Db<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Db")
    }
}

impl<V: TableReads> Db<V> {
    /// The tables.
    pub fn tables(&self) -> &V {
        &self.tables
    }

    /// The local limits.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Reads an event's row and hands its parts to a function, without copying its blob.
    pub(crate) fn with_event<T>(
        &self,
        seq: Seq,
        read: impl FnOnce(encode::EventParts<'_>) -> T,
    ) -> StoreResult<Option<T>> {
        if let Some(pending) = self.pending.rows.get(&seq.0) {
            let row = pending.row.clone();
            let inline = pending.inline.as_ref().map(Inline::borrowed);
            return Ok(Some(read(encode::EventParts { row, blob: &pending.blob, inline })));
        }
        match self.tables.events().get(seq.0).map_err(storage)? {
            Some(guard) => Ok(Some(read(encode::decode_event(guard.value())?))),
            None => Ok(None),
        }
    }

    /// Key and value pairs of a range of stamp order, from the first after a key on.
    pub(crate) fn after<const N: usize>(
        table: &impl ReadableTable<[u8; N], u64>,
        from: [u8; N],
        to: [u8; N],
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>> {
        let mut found = Vec::new();
        let bounds = (std::ops::Bound::Excluded(from), std::ops::Bound::Included(to));
        for entry in table.range::<[u8; N]>(bounds).map_err(storage)?.take(most) {
            let (key, value) = entry.map_err(storage)?;
            found.push((encode::stamp_at_end(&key.value()), Seq(value.value())));
        }
        Ok(found)
    }

    /// The last entry of a range of stamp order.
    pub(crate) fn last<const N: usize>(
        table: &impl ReadableTable<[u8; N], u64>,
        from: [u8; N],
        to: [u8; N],
    ) -> StoreResult<Option<(Stamp, Seq)>> {
        match table.range::<[u8; N]>(from..=to).map_err(storage)?.next_back() {
            Some(entry) => {
                let (key, value) = entry.map_err(storage)?;
                Ok(Some((encode::stamp_at_end(&key.value()), Seq(value.value()))))
            }
            None => Ok(None),
        }
    }

    /// What ends or lessens a membership before a stamp, counting, in order, as far as the first that is enough.
    pub(crate) fn limits_before(
        &self,
        membership: Seq,
        before: Stamp,
        is_enough: impl Fn(&MembershipLimit) -> bool,
    ) -> StoreResult<Vec<MembershipLimit>> {
        let from = encode::number_stamp(membership, Stamp::FIRST);
        let to = encode::number_stamp(membership, before);
        let mut limits = Vec::new();
        for entry in self.tables.limits().range(from..to).map_err(storage)? {
            let (key, value) = entry.map_err(storage)?;
            let cap = MemberRole::from_code(value.value());
            limits.push(MembershipLimit { from: encode::stamp_at_end(&key.value()), cap });
            if limits.last().is_some_and(&is_enough) {
                break;
            }
        }
        Ok(limits)
    }

    /// What an author uses in a space.
    pub fn usage(&self, space: SpaceNo, author: AuthorNo) -> StoreResult<Usage> {
        let key = crate::keys::key(&[&space.0.to_be_bytes(), &author.0.to_be_bytes()]);
        self.usage_row(&key)
    }

    pub(crate) fn usage_row(&self, key: &[u8; 8]) -> StoreResult<Usage> {
        if let Some(usage) = self.pending.usage.get(key) {
            return Ok(*usage);
        }
        match self.tables.usage().get(key).map_err(storage)? {
            Some(guard) => encode::decode_usage(guard.value()),
            None => Ok(Usage::default()),
        }
    }

    /// A number or text that describes the data folder.
    pub(crate) fn about(&self, name: &str) -> StoreResult<Option<Vec<u8>>> {
        Ok(self.tables.about().get(name).map_err(storage)?.map(|guard| guard.value().to_vec()))
    }

    /// A number that describes the data folder; zero where it is not said.
    pub(crate) fn about_number(&self, name: &str) -> StoreResult<u64> {
        let bytes = self.about(name)?.unwrap_or_default();
        Ok(bytes.try_into().map(u64::from_be_bytes).unwrap_or(0))
    }
}

impl<V: TableReads> Reads for Db<V> {
    fn seq(&self, id: &EventId) -> StoreResult<Option<Seq>> {
        Ok(self.tables.ids().get(id.0).map_err(storage)?.map(|guard| Seq(guard.value())))
    }

    fn event(&self, seq: Seq) -> StoreResult<Option<EventRow>> {
        self.with_event(seq, |parts| parts.row)
    }

    fn kept(&self, seq: Seq) -> StoreResult<Option<KeptBlob>> {
        let kept = self.with_event(seq, |parts| {
            let blob = Blob::parse(parts.blob.to_vec()).map_err(|_| broken("a blob"))?;
            Ok(KeptBlob { blob, inline: self.open_inline(&parts)? })
        })?;
        kept.transpose()
    }

    fn open_event(&self, seq: Seq) -> StoreResult<Option<Opened>> {
        let Some(kept) = self.kept(seq)? else { return Ok(None) };
        Ok(receive::reopen(self, &kept.blob))
    }

    fn refused(&self, id: &EventId) -> StoreResult<Option<RefusalReason>> {
        let found = self.tables.refused().get(id.0).map_err(storage)?;
        Ok(found.and_then(|guard| RefusalReason::from_code(guard.value()[0])))
    }

    fn space_id(&self, space: SpaceNo) -> StoreResult<SpaceId> {
        let found = self.tables.space_ids().get(space.0).map_err(storage)?;
        found.map(|guard| SpaceId(guard.value())).ok_or_else(|| broken("a space number"))
    }

    fn identity(&self, author: AuthorNo) -> StoreResult<Identity> {
        let found = self.tables.author_ids().get(author.0).map_err(storage)?;
        found.map(|guard| Identity(guard.value())).ok_or_else(|| broken("an author number"))
    }

    fn space_no(&self, space: &SpaceId) -> StoreResult<Option<SpaceNo>> {
        Ok(self.tables.spaces().get(space.0).map_err(storage)?.map(|guard| SpaceNo(guard.value())))
    }

    fn author_no(&self, identity: &Identity) -> StoreResult<Option<AuthorNo>> {
        Ok(self.tables.authors().get(identity.0).map_err(storage)?.map(|guard| AuthorNo(guard.value())))
    }

    fn joined(&self, space: &SpaceId) -> StoreResult<bool> {
        Ok(self.tables.joined().get(space.0).map_err(storage)?.is_some())
    }

    fn content(&self, space: SpaceNo, hash: &ContentHash) -> StoreResult<Option<ContentRow>> {
        let found = self.tables.contents().get(encode::content_key(space, hash)).map_err(storage)?;
        found.map(|guard| encode::decode_content(guard.value())).transpose()
    }

    fn content_bytes(&self, space: SpaceNo, hash: &ContentHash, most: u64) -> StoreResult<Option<Vec<u8>>> {
        match self.content(space, hash)? {
            Some(row) if row.len > most => Ok(None),
            Some(ContentRow { place: ContentLocation::Row, .. }) => {
                let found = self.tables.content_bytes().get(encode::content_key(space, hash)).map_err(storage)?;
                match found {
                    Some(guard) => self.open_at_rest(&self.space_id(space)?, &content_name(hash), guard.value()),
                    None => Ok(None),
                }
            }
            Some(ContentRow { place: ContentLocation::File, .. }) => {
                let space = self.space_id(space)?;
                let read = self.disk.read_file(&crate::encode::file_name(&space, hash));
                let stored = read.map_err(|error| StoreError::Store(error.to_string()))?;
                self.open_at_rest(&space, &content_name(hash), &stored)
            }
            Some(ContentRow { place: ContentLocation::Absent, .. }) | None => Ok(None),
        }
    }

    fn waiting(&self, need: &Need, after: Seq, most: usize) -> StoreResult<Vec<Seq>> {
        let prefix = need.to_key();
        let from = [prefix.as_slice(), &after.0.to_be_bytes()].concat();
        let to = [prefix.as_slice(), &[0xff; 8]].concat();
        let bounds = (std::ops::Bound::Excluded(from.as_slice()), std::ops::Bound::Included(to.as_slice()));
        let mut found = Vec::new();
        for entry in self.tables.waiting().range::<&[u8]>(bounds).map_err(storage)?.take(most) {
            found.push(seq_at_end(entry.map_err(storage)?.0.value()));
        }
        Ok(found)
    }

    fn waiting_for_content(
        &self,
        space: SpaceNo,
        hash: &ContentHash,
        after: Seq,
        most: usize,
    ) -> StoreResult<Vec<Seq>> {
        let key = |seq: u64| crate::keys::key::<44>(&[&space.0.to_be_bytes(), &hash.0, &seq.to_be_bytes()]);
        let bounds = (std::ops::Bound::Excluded(key(after.0)), std::ops::Bound::Included(key(u64::MAX)));
        let mut found = Vec::new();
        for entry in self.tables.content_waiting().range::<[u8; 44]>(bounds).map_err(storage)?.take(most) {
            found.push(seq_at_end(&entry.map_err(storage)?.0.value()));
        }
        Ok(found)
    }

    fn by_author(&self, space: SpaceNo, author: AuthorNo, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let (from, to) = (encode::author_stamp(space, author, after), encode::author_stamp(space, author, Stamp::LAST));
        Self::after(self.tables.by_author(), from, to, most)
    }

    fn last_by_author(
        &self,
        space: SpaceNo,
        author: AuthorNo,
        upto: Stamp,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>> {
        let from = encode::author_stamp(space, author, Stamp::FIRST);
        let to = encode::author_stamp(space, author, upto);
        let mut found = Vec::new();
        for entry in self.tables.by_author().range(from..=to).map_err(storage)?.rev().take(most) {
            let (key, value) = entry.map_err(storage)?;
            found.push((encode::stamp_at_end(&key.value()), Seq(value.value())));
        }
        Ok(found)
    }

    fn held_count(&self, owner: Owner) -> StoreResult<u64> {
        let key = encode::owner_key(owner);
        if let Some(count) = self.pending.held_counts.get(&key) {
            return Ok(*count);
        }
        Ok(self.tables.held_counts().get(key).map_err(storage)?.map_or(0, |guard| guard.value()))
    }

    fn held_total(&self) -> StoreResult<u64> {
        Ok(self.held_total)
    }

    fn oldest_held(&self, owner: Owner) -> StoreResult<Option<Seq>> {
        let owner = encode::owner_key(owner);
        let key = |seq: u64| crate::keys::key::<13>(&[&owner, &seq.to_be_bytes()]);
        match self.tables.held_by_owner().range(key(0)..=key(u64::MAX)).map_err(storage)?.next() {
            Some(entry) => Ok(Some(seq_at_end(&entry.map_err(storage)?.0.value()))),
            None => Ok(None),
        }
    }

    fn carried(&self, space: &SpaceId, after: Seq, most: usize) -> StoreResult<Vec<Seq>> {
        let key = |seq: u64| crate::keys::key::<24>(&[&space.0, &seq.to_be_bytes()]);
        let bounds = (std::ops::Bound::Excluded(key(after.0)), std::ops::Bound::Included(key(u64::MAX)));
        let mut found = Vec::new();
        for entry in self.tables.carried().range::<[u8; 24]>(bounds).map_err(storage)?.take(most) {
            found.push(seq_at_end(&entry.map_err(storage)?.0.value()));
        }
        Ok(found)
    }

    fn carried_count(&self, space: &SpaceId) -> StoreResult<u64> {
        Ok(self.tables.carried_counts().get(space.0).map_err(storage)?.map_or(0, |guard| guard.value()))
    }

    fn carried_total(&self) -> StoreResult<u64> {
        redb::ReadableTableMetadata::len(self.tables.carried_order()).map_err(storage)
    }

    fn oldest_carried(&self) -> StoreResult<Option<(SpaceId, Seq)>> {
        let first = self.tables.carried_order().first().map_err(storage)?;
        Ok(first.map(|(seq, space)| (SpaceId(space.value()), Seq(seq.value()))))
    }

    fn is_gap(&self, space: SpaceNo, author: AuthorNo, parent: &EventId) -> StoreResult<bool> {
        let key = crate::keys::key::<24>(&[&space.0.to_be_bytes(), &author.0.to_be_bytes(), &parent.0]);
        Ok(self.tables.gaps().get(key).map_err(storage)?.is_some())
    }

    fn next_position(&self) -> StoreResult<u64> {
        Ok(self.next_position)
    }
}

/// The number at the end of a key.
pub(crate) fn seq_at_end(key: &[u8]) -> Seq {
    Seq(key.last_chunk::<8>().map_or(0, |tail| u64::from_be_bytes(*tail)))
}
