//! The schedule of groups to hunt for: rows that mirror what is pending.

use crate::database::batch::Batch;
use crate::database::db::{Db, fault};
use crate::encode;
use crate::tables::TableReads;
use engine::fetch::{self, BackoffPolicy, ScheduleRow};
use engine::reads::{Reads, StoreResult};
use model::reader::{ByteReader, TooShort};
use model::{Group, Nanos, Need, Seq};
use redb::ReadableTable as _;

/// How a kind of group is hunted.
pub fn rhythm(group: &Group) -> BackoffPolicy {
    match group {
        Group::Content(..) => BackoffPolicy::Content,
        Group::Repository(_) | Group::Relays => BackoffPolicy::Git,
        Group::Space(_) | Group::Author(..) => BackoffPolicy::Space,
    }
}

/// How many needs of a space one look goes through.
const NEEDS_LOOKED_AT_MAX: usize = 10_000;

fn due_key(next: fetch::Nanoseconds, group: &[u8]) -> Vec<u8> {
    [next.to_be_bytes().as_slice(), group].concat()
}

impl Batch<'_> {
    pub(crate) fn want(&mut self, group: &Group, origin: fetch::NeedOrigin) -> StoreResult<()> {
        let old = self.db.schedule_row(group)?;
        let new = fetch::on_new_need(old, rhythm(group), origin, self.now.0);
        self.put_schedule(group, Some(new))
    }

    /// Writes or removes the row of a group, keeping the order by time beside it.
    pub fn put_schedule(&mut self, group: &Group, new: Option<ScheduleRow>) -> StoreResult<()> {
        let key = group.to_key();
        let old = self.db.schedule_row(group)?;
        if old == new {
            return Ok(());
        }
        self.touch();
        if let Some(old) = old {
            self.db.tables.schedule_due.remove(due_key(old.next, &key).as_slice()).map_err(fault)?;
        }
        match new {
            Some(row) => {
                self.db.tables.schedule.insert(key.as_slice(), encode_schedule(&row)).map_err(fault)?;
                self.db.tables.schedule_due.insert(due_key(row.next, &key).as_slice(), ()).map_err(fault)?;
            }
            None => {
                self.db.tables.schedule.remove(key.as_slice()).map_err(fault)?;
            }
        }
        Ok(())
    }
}

impl<V: TableReads> Db<V> {
    /// The schedule row of a group.
    pub fn schedule_row(&self, group: &Group) -> StoreResult<Option<ScheduleRow>> {
        let found = self.tables.schedule().get(group.to_key().as_slice()).map_err(fault)?;
        found.map(|guard| decode_schedule(&guard.value())).transpose()
    }

    /// Groups that are due, earliest first.
    pub fn due_groups(&self, now: Nanos, most: usize) -> StoreResult<Vec<(Group, ScheduleRow)>> {
        let mut due = Vec::new();
        for entry in self.tables.schedule_due().iter().map_err(fault)?.take(most) {
            let (key, _) = entry.map_err(fault)?;
            let Some((next, group)) = key.value().split_first_chunk::<8>() else {
                continue;
            };
            if u64::from_be_bytes(*next) > now.0 {
                break;
            }
            let group = Group::from_key(group).map_err(|_| encode::broken("a schedule key"))?;
            if let Some(row) = self.schedule_row(&group)? {
                due.push((group, row));
            }
        }
        Ok(due)
    }

    /// When the first group that is not due yet will be.
    pub fn next_due(&self, after: Nanos) -> StoreResult<Option<Nanos>> {
        let from = due_key(after.0.saturating_add(1), &[]);
        let mut range = self.tables.schedule_due().range(from.as_slice()..).map_err(fault)?;
        let Some(entry) = range.next() else { return Ok(None) };
        let (key, _) = entry.map_err(fault)?;
        Ok(key.value().first_chunk::<8>().map(|next| Nanos(u64::from_be_bytes(*next))))
    }

    /// Every row of the schedule.
    pub fn schedule(&self) -> StoreResult<Vec<(Group, ScheduleRow)>> {
        let mut rows = Vec::new();
        for entry in self.tables.schedule().iter().map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let group = Group::from_key(key.value()).map_err(|_| encode::broken("a schedule key"))?;
            rows.push((group, decode_schedule(&value.value())?));
        }
        Ok(rows)
    }

    /// The unmet needs of a group, collected anew, at most so many.
    pub fn needs_of(&self, group: &Group, most: usize) -> StoreResult<Vec<Need>> {
        match group {
            Group::Content(space, hash) => self.content_need(*space, hash),
            Group::Author(space, author) => {
                let (Some(space), Some(author)) = (self.space_no(space)?, self.author_no(author)?) else {
                    return Ok(Vec::new());
                };
                let prefix: [u8; 8] = crate::keys::key(&[&space.0.to_be_bytes(), &author.0.to_be_bytes()]);
                let from: [u8; 24] = crate::keys::key(&[&prefix]);
                let to: [u8; 24] = crate::keys::key(&[&prefix, &[0xff; 16]]);
                let mut needs = Vec::new();
                for entry in self.tables.gaps().range(from..=to).map_err(fault)?.take(most) {
                    let key = entry.map_err(fault)?.0.value();
                    needs.push(Need::Event(model::EventId(crate::keys::key(&[&key[8..]]))));
                }
                Ok(needs)
            }
            Group::Space(space) => self.space_needs(space, most),
            Group::Repository(_) | Group::Relays => Ok(Vec::new()),
        }
    }

    fn content_need(&self, space: model::SpaceId, hash: &model::ContentHash) -> StoreResult<Vec<Need>> {
        let Some(no) = self.space_no(&space)? else {
            return Ok(Vec::new());
        };
        let waits = !self.waiting_for_content(no, hash, Seq(0), 1)?.is_empty();
        Ok(if waits { vec![Need::Content(space, *hash)] } else { Vec::new() })
    }

    /// Events and keys that events of this space wait for and that are not here themselves. Where there are more than
    /// one request can ask for, each attempt begins at another place, so that nobody can crowd the others out.
    fn space_needs(&self, space: &model::SpaceId, most: usize) -> StoreResult<Vec<Need>> {
        let attempts = self.schedule_row(&Group::Space(*space))?.map_or(0, |row| row.attempts);
        let from = [space.0.as_slice(), &[1, (attempts.wrapping_mul(97) % 256) as u8]].concat();
        let to = [space.0.as_slice(), &[0xff]].concat();
        let mut needs = Vec::new();
        let ranges = [(from.as_slice(), to.as_slice()), (space.0.as_slice(), from.as_slice())];
        for (from, to) in ranges {
            for entry in self.tables.hunted().range::<&[u8]>(from..to).map_err(fault)?.take(NEEDS_LOOKED_AT_MAX) {
                let (key, _) = entry.map_err(fault)?;
                let mut reader = model::reader::ByteReader::new(key.value().get(16..).unwrap_or_default());
                let need = Need::read_key(&mut reader).map_err(|_| encode::broken("a hunted key"))?;
                if needs.len() < most && self.is_hunted(&need)? {
                    needs.push(need);
                }
                if needs.len() >= most {
                    return Ok(needs);
                }
            }
        }
        Ok(needs)
    }

    /// Whether anything waits for what a group brings, be it here already and waiting itself.
    pub(crate) fn is_waited_for(&self, group: &Group) -> StoreResult<bool> {
        let Group::Space(space) = group else { return Ok(!self.needs_of(group, 1)?.is_empty()) };
        let to = [space.0.as_slice(), &[0xff]].concat();
        Ok(self.tables.hunted().range::<&[u8]>(space.0.as_slice()..to.as_slice()).map_err(fault)?.next().is_some())
    }

    fn is_hunted(&self, need: &Need) -> StoreResult<bool> {
        Ok(match need {
            Need::Event(id) => self.seq(id)?.is_none(),
            Need::Key(_) => true,
            Need::Time(_) | Need::Content(..) => false,
            Need::Address { .. } | Need::GitObject { .. } | Need::GitData { .. } => false,
        })
    }

    /// The space of a known event, opened or not.
    pub fn space_of(&self, seq: Seq) -> StoreResult<Option<model::SpaceId>> {
        let Some(row) = self.event(seq)? else { return Ok(None) };
        if let Some(meta) = row.meta {
            return self.space_id(meta.space).map(Some);
        }
        Ok(self.kept(seq)?.and_then(|kept| match kept.blob.form() {
            model::blob::BlobForm::Plain => None,
            model::blob::BlobForm::Sealed { space, .. } | model::blob::BlobForm::Addressed { space, .. } => Some(space),
        }))
    }
}

fn encode_schedule(row: &ScheduleRow) -> [u8; 21] {
    let last = row.last.map_or(0, |last| last.max(1));
    crate::keys::key(&[
        &[encode::ROW_VERSION],
        &row.attempts.to_be_bytes(),
        &last.to_be_bytes(),
        &row.next.to_be_bytes(),
    ])
}

fn decode_schedule(bytes: &[u8; 21]) -> StoreResult<ScheduleRow> {
    let read = || {
        let mut reader = ByteReader::new(bytes);
        let _version = reader.u8()?;
        let attempts = reader.u32()?;
        let last = reader.u64()?;
        Ok::<_, TooShort>(ScheduleRow { attempts, last: (last > 0).then_some(last), next: reader.u64()? })
    };
    read().map_err(|_| encode::broken("a schedule row"))
}
