//! Jobs: work over many rows that goes on in the background, a bounded part with each commit, and survives a stop.
//!
//! A row tells what is to be done, how far it has come, and at the end what came of it; it names spaces and identities,
//! never users or content, so it rests plain.

use crate::database::batch::Batch;
use crate::database::db::Db;
use crate::errors::broken;
use crate::keys::JobNo;
use crate::shared::Jobs;
use crate::tables::TableReads;
use engine::reads::StoreResult;
use model::{Identity, Nanos, SpaceId};
use serde::{Deserialize, Serialize};

/// How many jobs that have ended are remembered.
const ENDED_MAX: usize = 200;

/// The number of the job that had its turn last.
const LAST: &str = "last job";

/// What is to be done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum JobKind {
    /// Purge what retention says, in one space or in all.
    Retain(Option<SpaceId>),
    /// Purge everything that an identity wrote in a space.
    Erase(SpaceId, Identity),
    /// Drop the content of a space that was ended.
    EndSpace(SpaceId),
    /// Encrypt what rests otherwise than its space's protection says.
    Encrypt,
    /// Move a space to a new storage key.
    Rotate(SpaceId),
    /// Move all secrets to the master key that the folder was opened with.
    Rewrap,
}

impl JobKind {
    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            JobKind::Retain(_) => "retain",
            JobKind::Erase(..) => "erase",
            JobKind::EndSpace(_) => "end space",
            JobKind::Encrypt => "encrypt",
            JobKind::Rotate(_) => "rotate",
            JobKind::Rewrap => "rewrap",
        }
    }

    /// The space it is about, if it is about one.
    pub fn space(&self) -> Option<SpaceId> {
        match self {
            JobKind::Retain(space) => *space,
            JobKind::Erase(space, _) | JobKind::EndSpace(space) | JobKind::Rotate(space) => Some(*space),
            JobKind::Encrypt | JobKind::Rewrap => None,
        }
    }
}

/// What was done so far: the receipt of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct JobReceipt {
    /// Rows that were looked at.
    pub seen: u64,
    /// Values that were written anew.
    pub rewritten: u64,
    /// Events whose content was purged by a delete event, which travels to others.
    pub deleted: u64,
    /// Events whose content was dropped on this node only.
    pub pruned: u64,
}

/// A job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Job {
    /// What is to be done.
    pub work: JobKind,
    /// Who asked for it: a key, the operator, or the schedule.
    pub who: String,
    /// When it was asked for.
    pub begun_at: Nanos,
    /// When its first part was done; none while it waits for its turn.
    pub started_at: Option<Nanos>,
    /// The job of the same work that has to end before this one starts.
    pub after: Option<u64>,
    /// When it ended; none while it goes on.
    pub ended_at: Option<Nanos>,
    /// Where it goes on.
    pub cursor: Vec<u8>,
    /// What was done so far.
    pub receipt: JobReceipt,
    /// Why it ended before it was done.
    pub failed: Option<String>,
}

impl Batch<'_> {
    /// Begins a job, unless the same waits for its turn. Says its number. One that has started may be past what it is
    /// asked for now (a rule that changed, a message that came): then another one follows it.
    pub fn begin_job(&mut self, work: JobKind, who: &str) -> StoreResult<u64> {
        let mut after = None;
        for number in self.db.open_jobs()? {
            match self.db.job(number)?.filter(|job| job.work == work) {
                Some(job) if job.started_at.is_none() => return Ok(number),
                Some(_) => after = Some(number),
                None => {}
            }
        }
        let number = self.db.tables.jobs.last()?.map_or(1, |row| row.key().number().saturating_add(1));
        let job = Job {
            work,
            who: who.to_owned(),
            begun_at: self.now,
            started_at: None,
            after,
            ended_at: None,
            cursor: Vec::new(),
            receipt: JobReceipt::default(),
            failed: None,
        };
        self.keep_job(number, &job)?;
        Ok(number)
    }

    /// Keeps how far a job has come. One that has ended makes room for others.
    pub fn keep_job(&mut self, number: u64, job: &Job) -> StoreResult<()> {
        self.db.tables.about.insert(LAST, &number.to_be_bytes())?;
        self.set_shared::<Jobs>(&JobNo::new(number), job)?;
        if job.ended_at.is_none() {
            return self.db.tables.open_jobs.insert(JobNo::new(number), ());
        }
        self.db.tables.open_jobs.remove(JobNo::new(number))?;
        let oldest = self.db.tables.jobs.first()?.map(|row| row.key());
        let count = self.db.tables.jobs.len()?;
        if let Some(oldest) = oldest.filter(|_| count > ENDED_MAX as u64)
            && !self.db.tables.open_jobs.contains(oldest)?
        {
            self.clear_shared::<Jobs>(&oldest)?;
        }
        Ok(())
    }
}

impl<V: TableReads> Db<V> {
    /// The numbers of the jobs that are under way, the oldest first.
    pub fn open_jobs(&self) -> StoreResult<Vec<u64>> {
        let numbers = self.tables.open_jobs().iter()?;
        numbers.map(|row| Ok(row?.key().number())).collect()
    }

    /// Whether that work is under way or waits for its turn.
    pub fn is_job_open(&self, work: &JobKind) -> StoreResult<bool> {
        for number in self.open_jobs()? {
            if self.job(number)?.is_some_and(|job| job.work == *work) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The job whose turn it is: the next after the one that had it last, and not one that follows another.
    pub fn next_job(&self) -> StoreResult<Option<(u64, Job)>> {
        let open = self.tables.open_jobs();
        let (from_start, following) = (JobNo::new(0), JobNo::new(self.about_number(LAST)?.saturating_add(1)));
        for row in open.range(following..)?.chain(open.range(from_start..)?) {
            let number = row?.key().number();
            let job = self.job(number)?.ok_or_else(|| broken("a job"))?;
            let waits = job.after.map(|before| open.contains(JobNo::new(before))).transpose()?;
            if waits != Some(true) {
                return Ok(Some((number, job)));
            }
        }
        Ok(None)
    }

    /// The job of that number, under way or ended.
    pub fn job(&self, number: u64) -> StoreResult<Option<Job>> {
        self.shared::<Jobs>(&JobNo::new(number))
    }

    /// Jobs before a number, the latest first.
    pub fn jobs(&self, before: u64, most: usize) -> StoreResult<Vec<(u64, Job)>> {
        let jobs = self.shared_range::<Jobs>(..JobNo::new(before))?.rev().take(most);
        jobs.map(|row| row.map(|(key, job)| (key.number(), job))).collect()
    }
}
