//! Taking over from a damaged folder what no event says: keys, and what the nodes of a space agree on. Everything else
//! follows from the events, which are brought in anew.

use crate::at_rest::{INDEX, PREVIOUS};
use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::database::open::Store;
use crate::maintenance::verify_rows::name_row;
use crate::tables::{Snapshot, TableClass, Tables, census, export_rows, import_row};
use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::rows::{ContentLocation, Origin};
use model::stage::ContentState;
use model::{ContentHash, EventId, Seq, SpaceId, SpaceNo};
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// One transaction takes over so many rows.
const ROWS_PER_TRANSACTION: usize = 10_000;
/// Tables beside the shared ones whose rows are taken over as they are.
const TAKEN_OVER: [&str; 7] =
    ["keys_v1", "storage_keys_v1", "destroyed_keys_v1", "prekeys_v1", "transits_v1", "current_keys_v1", "joined_v1"];
/// Shared rows that are not taken over: requests that might have been repeated.
const LEFT_OUT: &str = "idempotency_v1";
/// What is taken over of what describes the folder.
const TAKEN_OVER_ABOUT: [&str; 4] = [PREVIOUS, INDEX, "last job", "next version"];

/// What was taken over from another folder.
#[derive(Clone, Default, Debug)]
pub struct TakenOver {
    /// How many rows.
    pub rows: u64,
    /// Rows that cannot be read, in whichever table.
    pub damaged: Vec<String>,
}

/// An event as it can be brought in anew.
#[derive(Clone, Debug)]
pub struct KeptEvent {
    pub id: EventId,
    pub blob: Vec<u8>,
    /// Its inline content as it travels, if it can be read.
    pub inline: Option<Vec<u8>>,
    pub origin: Origin,
    /// Its content was dropped or deleted here.
    pub is_dropped: bool,
}

impl Store {
    /// Takes over rows of another folder under the same master key. To be opened anew afterwards, so that the keys are at
    /// hand.
    pub fn take_over(&self, from: &Db<Snapshot>) -> StoreResult<TakenOver> {
        let shared = census(&from.tables)?
            .into_iter()
            .filter(|(class, name, _)| *class == TableClass::Shared && *name != LEFT_OUT);
        let mut names: HashSet<&str> = shared.map(|(_, name, _)| name).collect();
        names.extend(TAKEN_OVER);
        let (mut taken, mut waiting) = (TakenOver::default(), Vec::new());
        export_rows::<StoreError>(&from.tables, &mut |name, key, stored| {
            let is_wanted = names.contains(name)
                || (name == "about_v1" && TAKEN_OVER_ABOUT.iter().any(|about| about.as_bytes() == key));
            match stored {
                Some(stored) if is_wanted => waiting.push((name, key.to_vec(), stored.to_vec())),
                Some(_) => {}
                None => taken.damaged.push(name_row(name, key)),
            }
            if waiting.len() >= ROWS_PER_TRANSACTION { self.write_taken(&mut waiting, &mut taken) } else { Ok(()) }
        })?;
        self.write_taken(&mut waiting, &mut taken)?;
        Ok(taken)
    }

    fn write_taken(
        &self,
        waiting: &mut Vec<(&'static str, Vec<u8>, Vec<u8>)>,
        taken: &mut TakenOver,
    ) -> StoreResult<()> {
        self.write_raw(|transaction| {
            let mut tables = Tables::open(transaction)?;
            for (name, key, stored) in waiting.drain(..) {
                import_row(&mut tables, name, &key, &stored)?;
                taken.rows += 1;
            }
            Ok(())
        })
    }
}

impl Db<Snapshot> {
    /// The numbers that events may have.
    pub fn event_numbers(&self) -> RangeInclusive<u64> {
        let next = self.about_number("next event").ok();
        let last = || Some(self.tables.events.last().ok()??.key().seq().0);
        1..=next.map(|next| next.saturating_sub(1)).or_else(last).unwrap_or(0)
    }

    /// An event as it can be brought in anew; none if its row is gone.
    pub fn kept_event(&self, seq: Seq) -> StoreResult<Option<KeptEvent>> {
        self.with_event(seq, |parts| KeptEvent {
            id: parts.row.id,
            blob: parts.blob.to_vec(),
            inline: self.open_inline(&parts).ok().flatten(),
            origin: parts.row.origin,
            is_dropped: matches!(parts.row.content, ContentState::Pruned | ContentState::Deleted { .. }),
        })
    }

    /// The contents that are here beside the events, as far as their rows can be read.
    pub fn kept_contents(&self) -> StoreResult<Vec<(SpaceId, SpaceNo, ContentHash)>> {
        let mut contents = Vec::new();
        for entry in self.tables.contents.iter()? {
            let Some(entry) = self.unless_damaged(entry)? else { break };
            let (key, Ok(row)) = (entry.key(), entry.value()) else { continue };
            if let (true, Ok(space)) = (row.place != ContentLocation::Absent, self.space_id(key.space())) {
                contents.push((space, key.space(), key.hash()));
            }
        }
        Ok(contents)
    }
}

impl Batch<'_> {
    /// Lets jobs that were under way begin anew: their cursors are of the folder they come from.
    pub fn restart_jobs(&mut self) -> StoreResult<()> {
        for (number, mut job) in self.db.jobs(u64::MAX, usize::MAX)? {
            if job.ended_at.is_none() {
                job.cursor.clear();
                self.keep_job(number, &job)?;
            }
        }
        Ok(())
    }
}
