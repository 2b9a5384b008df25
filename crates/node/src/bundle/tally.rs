//! What became of the records of a bundle, counted by whoever answers.

use crate::locks;
use crate::writer_command::RequestError;
use engine::rows::{Outcome, TurnedAway};
use model::stage::RefusalReason;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use store::events::content::DeliverResult;

/// How many dropped records are described, not only counted.
const DESCRIBED_MAX: usize = 10;

/// A record that was dropped at the door.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct DroppedRecord {
    /// The byte of the bundle at which it begins.
    pub at: u64,
    pub why: String,
}

/// What became of the records of a bundle, each counted as it came in.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Imported {
    pub records: u64,
    pub bytes: u64,
    /// Events that were applied at once.
    pub applied: u64,
    /// Events that were held at first; most are applied as soon as what they need has come.
    pub held: u64,
    /// Events that are carried for others.
    pub carried: u64,
    /// Events that were refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Events that were here already.
    pub known: u64,
    /// Events that were turned away, by reason.
    pub turned_away: BTreeMap<&'static str, u64>,
    /// Contents that were stored.
    pub contents: u64,
    /// Contents that were here already.
    pub contents_known: u64,
    /// Contents that no event here refers to, which are not kept.
    pub contents_unwanted: u64,
    /// Records that were dropped at the door, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    pub first_dropped: Vec<DroppedRecord>,
    /// Events that met a broken rule and were left alone.
    pub parked: u64,
    /// Records of keys that were not read, because no passphrase was given.
    pub keys_unread: u64,
    /// Spaces whose keys came.
    pub spaces_with_keys: u64,
    /// Spaces that are served here from now on.
    pub spaces_adopted: u64,
    /// Users of those spaces who are new here.
    pub users_adopted: u64,
    /// Events that waited and were given up while it ran: there was no room for more, or their time was over.
    pub expired: u64,
    /// Events that were carried for others and were given up while it ran, for want of room.
    pub carried_dropped: u64,
    /// How many events wait here when the import is over, whoever brought them.
    pub waiting: u64,
}

/// Something that need not be checked, because the store has an answer already.
pub(super) enum KnownRecord {
    Event,
    Refused(RefusalReason),
    Content,
    /// Content that nothing here refers to.
    Unwanted,
}

#[derive(Debug, Default)]
pub(super) struct ImportTally {
    inner: Mutex<ImportCounts>,
}

#[derive(Debug, Default)]
pub(super) struct ImportCounts {
    pub(super) imported: Imported,
    pub(super) failure: Option<(u64, RequestError)>,
}

impl ImportTally {
    pub(super) fn lock(&self) -> MutexGuard<'_, ImportCounts> {
        locks::lock(&self.inner)
    }

    pub(super) fn count_record(&self) -> u64 {
        let mut counts = self.lock();
        counts.imported.records += 1;
        counts.imported.records
    }

    pub(super) fn count_known(&self, known: KnownRecord) {
        let imported = &mut self.lock().imported;
        match known {
            KnownRecord::Event => imported.known += 1,
            KnownRecord::Refused(why) => *imported.refused.entry(why.to_string()).or_default() += 1,
            KnownRecord::Content => imported.contents_known += 1,
            KnownRecord::Unwanted => imported.contents_unwanted += 1,
        }
    }

    pub(super) fn count_dropped(&self, at: u64, word: &'static str, why: String) {
        let imported = &mut self.lock().imported;
        *imported.dropped.entry(word).or_default() += 1;
        if imported.first_dropped.len() < DESCRIBED_MAX {
            imported.first_dropped.push(DroppedRecord { at, why });
        }
    }

    pub(super) fn count_outcome(&self, outcome: &Outcome) {
        count_outcome(&mut self.lock().imported, outcome);
    }

    pub(super) fn count_delivered(&self, delivered: DeliverResult) {
        let imported = &mut self.lock().imported;
        match delivered {
            DeliverResult::Stored => imported.contents += 1,
            DeliverResult::Known => imported.contents_known += 1,
            DeliverResult::Unwanted => imported.contents_unwanted += 1,
        }
    }

    pub(super) fn count_parked(&self) {
        self.lock().imported.parked += 1;
    }

    pub(super) fn fail(&self, at: u64, why: RequestError) {
        self.lock().failure.get_or_insert((at, why));
    }
}

fn count_outcome(imported: &mut Imported, outcome: &Outcome) {
    match outcome {
        Outcome::Applied(_) => imported.applied += 1,
        Outcome::Held(..) => imported.held += 1,
        Outcome::Carried(_) => imported.carried += 1,
        Outcome::Known(_) => imported.known += 1,
        Outcome::Refused(why) => *imported.refused.entry(why.to_string()).or_default() += 1,
        Outcome::TurnedAway(why) => {
            let why = match why {
                TurnedAway::Clash => "another event has the same id",
                TurnedAway::NoRoom => "no room for more that waits",
                TurnedAway::Version => "this release does not know its version",
            };
            *imported.turned_away.entry(why).or_default() += 1;
        }
    }
}
