//! Reading: one implementation of the engine's [`Reads`], over a snapshot or over the writer's own tables.

use crate::at_rest::{Inline, content_name};
use crate::database::keyring::KeyringSecrets;
use crate::database::open::StoreShared;
use crate::disk::Disk;
use crate::encode::{self, Usage};
use crate::errors::broken;
use crate::keys::*;
use crate::tables::{Row, RowRange, Rows, Stored, TableReads};
use engine::Opened;
use engine::policy::Policy;
use engine::reads::{KeptBlob, Reads, StoreResult};
use engine::rows::{ContentLocation, ContentRow, EventRow, MembershipLimit, Owner};
use model::files::WantedBytes;
use model::stage::RefusalReason;
use model::{AuthorKey, AuthorNo, Blob, ContentHash, EventId, Need, Seq, SpaceId, SpaceNo, Stamp};
use redb::ReadableTable;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

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
    pub(crate) rows: BTreeMap<Seq, PendingRow>,
    pub(crate) usage: HashMap<UsageKey, Usage>,
    /// Rows of the timeline.
    pub(crate) timeline: BTreeMap<EventStamp, Vec<u8>>,
    pub(crate) held_counts: HashMap<OwnerKey, u64>,
    /// Became ready in this batch, and is not in the table. Most of them are posted before the batch ends.
    pub(crate) ready: BTreeSet<Seq>,
    /// How many of a space wait for an event, where this batch has changed it.
    pub(crate) hunters: BTreeMap<(Need, SpaceId), u64>,
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
        if let Some(pending) = self.pending.rows.get(&seq) {
            let row = pending.row.clone();
            let inline = pending.inline.as_ref().map(Inline::borrowed);
            return Ok(Some(read(encode::EventParts { row, blob: &pending.blob, inline })));
        }
        match self.tables.events().get_row(EventNo::new(seq))? {
            Some(row) => Ok(Some(read(encode::decode_event(row.value()?)?))),
            None => Ok(None),
        }
    }

    /// The stamps and events of a range of stamp order, from the first after a key on.
    pub(crate) fn after<K: StampedKey>(
        table: &Rows<impl ReadableTable<K, Stored<Seq>>, K, Seq>,
        from: K,
        to: K,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>> {
        let bounds = (std::ops::Bound::Excluded(from), std::ops::Bound::Included(to));
        stamped(table.range(bounds)?.take(most))
    }

    /// The last of a range of stamp order.
    pub(crate) fn last<K: StampedKey>(mut range: RowRange<'_, K, Seq>) -> StoreResult<Option<(Stamp, Seq)>> {
        Ok(stamped(range.next_back().into_iter())?.pop())
    }

    /// What ends or lessens a membership before a stamp, counting, in order, as far as the first that is enough.
    pub(crate) fn limits_before(
        &self,
        membership: Seq,
        before: Stamp,
        is_enough: impl Fn(&MembershipLimit) -> bool,
    ) -> StoreResult<Vec<MembershipLimit>> {
        let range = EventStamp::new(membership, Stamp::FIRST)..EventStamp::new(membership, before);
        let mut limits = Vec::new();
        for row in self.tables.limits().range(range)? {
            let row = row?;
            limits.push(MembershipLimit { from: row.key().stamp(), cap: row.value()?.0 });
            if limits.last().is_some_and(&is_enough) {
                break;
            }
        }
        Ok(limits)
    }

    /// What an author uses in a space.
    pub fn usage(&self, space: SpaceNo, author: AuthorNo) -> StoreResult<Usage> {
        self.usage_row(&UsageKey::new(space, author))
    }

    pub(crate) fn usage_row(&self, key: &UsageKey) -> StoreResult<Usage> {
        if let Some(usage) = self.pending.usage.get(key) {
            return Ok(*usage);
        }
        Ok(self.tables.usage().get(key)?.unwrap_or_default())
    }

    /// A number or text that describes the data folder.
    pub(crate) fn about(&self, name: &str) -> StoreResult<Option<Vec<u8>>> {
        match self.tables.about().get_row(name)? {
            Some(row) => Ok(Some(row.value()?.to_vec())),
            None => Ok(None),
        }
    }

    /// A number that describes the data folder; zero where it is not said.
    pub(crate) fn about_number(&self, name: &str) -> StoreResult<u64> {
        let bytes = self.about(name)?.unwrap_or_default();
        Ok(bytes.try_into().map(u64::from_be_bytes).unwrap_or(0))
    }
}

impl<V: TableReads> Reads for Db<V> {
    fn seq(&self, id: &EventId) -> StoreResult<Option<Seq>> {
        self.tables.ids().get(EventIdKey::new(*id))
    }

    fn event(&self, seq: Seq) -> StoreResult<Option<EventRow>> {
        self.with_event(seq, |parts| parts.row)
    }

    fn kept(&self, seq: Seq) -> StoreResult<Option<KeptBlob>> {
        let kept = self.with_event(seq, |parts| {
            let blob = Blob::parse_kept(parts.blob.to_vec()).map_err(|_| broken("a blob"))?;
            Ok(KeptBlob { blob, inline: self.open_inline(&parts)? })
        })?;
        kept.transpose()
    }

    fn open_event(&self, seq: Seq) -> StoreResult<Option<Opened>> {
        let Some(kept) = self.kept(seq)? else { return Ok(None) };
        Ok(engine::protocol::reopen(self, &kept.blob))
    }

    fn refused(&self, id: &EventId) -> StoreResult<Option<RefusalReason>> {
        Ok(self.tables.refused().get(EventIdKey::new(*id))?.map(|row| row.why))
    }

    fn space_id(&self, space: SpaceNo) -> StoreResult<SpaceId> {
        self.tables.space_ids().get(SpaceNoKey::new(space))?.ok_or_else(|| broken("a space number"))
    }

    fn author_key(&self, author: AuthorNo) -> StoreResult<AuthorKey> {
        self.tables.author_ids().get(AuthorNoKey::new(author))?.ok_or_else(|| broken("an author number"))
    }

    fn space_no(&self, space: &SpaceId) -> StoreResult<Option<SpaceNo>> {
        self.tables.spaces().get(SpaceIdKey::new(*space))
    }

    fn number_of(&self, author: &AuthorKey) -> StoreResult<Option<AuthorNo>> {
        self.tables.authors().get(AuthorName::of(*author))
    }

    fn joined(&self, space: &SpaceId) -> StoreResult<bool> {
        self.tables.joined().contains(SpaceIdKey::new(*space))
    }

    fn content(&self, space: SpaceNo, hash: &ContentHash) -> StoreResult<Option<ContentRow>> {
        self.tables.contents().get(ContentKey::new(space, *hash))
    }

    fn wanted_bytes(&self, seq: Seq) -> StoreResult<Option<WantedBytes>> {
        self.tables.file_bytes().get(EventNo::new(seq))
    }

    fn content_bytes(&self, space: SpaceNo, hash: &ContentHash, most: u64) -> StoreResult<Option<Vec<u8>>> {
        match self.content(space, hash)? {
            Some(row) if row.len > most => Ok(None),
            Some(ContentRow { place: ContentLocation::Row, .. }) => {
                match self.tables.content_bytes().get_row(ContentKey::new(space, *hash))? {
                    Some(row) => self.open_at_rest(&self.space_id(space)?, &content_name(hash), row.value()?),
                    None => Ok(None),
                }
            }
            Some(ContentRow { place: ContentLocation::Object(name), .. }) => self.object_bytes(space, hash, name),
            Some(ContentRow { place: ContentLocation::Absent, .. }) | None => Ok(None),
        }
    }

    fn waiting(&self, need: &Need, after: Seq, most: usize) -> StoreResult<Vec<Seq>> {
        let (from, to) = (WaitingKey::new(need, after), WaitingKey::new(need, Seq(u64::MAX)));
        let bounds = (std::ops::Bound::Excluded(from), std::ops::Bound::Included(to));
        self.tables.waiting().range(bounds)?.take(most).map(|row| row?.key().seq()).collect()
    }

    fn waiting_for_content(
        &self,
        space: SpaceNo,
        hash: &ContentHash,
        after: Seq,
        most: usize,
    ) -> StoreResult<Vec<Seq>> {
        let key = |seq| ContentWaitingKey::new(space, *hash, seq);
        let bounds = (std::ops::Bound::Excluded(key(after)), std::ops::Bound::Included(key(Seq(u64::MAX))));
        self.tables.content_waiting().range(bounds)?.take(most).map(|row| Ok(row?.key().seq())).collect()
    }

    fn by_author(&self, space: SpaceNo, author: AuthorNo, after: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let (from, to) = (AuthorStamp::new(space, author, after), AuthorStamp::new(space, author, Stamp::LAST));
        Self::after(self.tables.by_author(), from, to, most)
    }

    fn last_by_author(
        &self,
        space: SpaceNo,
        author: AuthorNo,
        upto: Stamp,
        most: usize,
    ) -> StoreResult<Vec<(Stamp, Seq)>> {
        let range = AuthorStamp::new(space, author, Stamp::FIRST)..=AuthorStamp::new(space, author, upto);
        stamped(self.tables.by_author().range(range)?.rev().take(most))
    }

    fn held_count(&self, owner: Owner) -> StoreResult<u64> {
        let key = OwnerKey::new(owner);
        if let Some(count) = self.pending.held_counts.get(&key) {
            return Ok(*count);
        }
        Ok(self.tables.held_counts().get(key)?.unwrap_or(0))
    }

    fn held_total(&self) -> StoreResult<u64> {
        Ok(self.held_total)
    }

    fn oldest_held(&self, owner: Owner) -> StoreResult<Option<Seq>> {
        let oldest = self.tables.held_by_owner().range(HeldByOwnerKey::of_owner(owner))?.next().transpose()?;
        Ok(oldest.map(|row| row.key().seq()))
    }

    fn carried(&self, space: &SpaceId, after: Seq, most: usize) -> StoreResult<Vec<Seq>> {
        let key = |seq| CarriedKey::new(*space, seq);
        let bounds = (std::ops::Bound::Excluded(key(after)), std::ops::Bound::Included(key(Seq(u64::MAX))));
        self.tables.carried().range(bounds)?.take(most).map(|row| Ok(row?.key().seq())).collect()
    }

    fn carried_count(&self, space: &SpaceId) -> StoreResult<u64> {
        Ok(self.tables.carried_counts().get(SpaceIdKey::new(*space))?.unwrap_or(0))
    }

    fn carried_total(&self) -> StoreResult<u64> {
        self.tables.carried_order().len()
    }

    fn oldest_carried(&self) -> StoreResult<Option<(SpaceId, Seq)>> {
        let Some(row) = self.tables.carried_order().first()? else { return Ok(None) };
        Ok(Some((row.value()?, row.key().seq())))
    }

    fn is_gap(&self, space: SpaceNo, author: AuthorNo, parent: &EventId) -> StoreResult<bool> {
        self.tables.gaps().contains(GapKey::new(space, author, *parent))
    }

    fn next_position(&self) -> StoreResult<u64> {
        Ok(self.next_position)
    }
}

/// The stamps and events of rows in stamp order.
pub(crate) fn stamped<'a, K: StampedKey>(
    rows: impl Iterator<Item = StoreResult<Row<'a, K, Seq>>>,
) -> StoreResult<Vec<(Stamp, Seq)>> {
    let mut found = Vec::new();
    for row in rows {
        let row = row?;
        found.push((K::stamp_of(&row.key()), row.value()?));
    }
    Ok(found)
}
