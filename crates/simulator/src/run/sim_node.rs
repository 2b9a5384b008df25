//! A simulated node: opening it, asking it, and checking what it holds.

use super::SimNode;
use crate::coverage::Coverage;
use crate::protocol::space::cast::MadeEvent;
use crate::protocol::space::reference::ReferenceModel;
use crate::protocol::space::world::{AttachedFile, World};
use crate::requests::{SimReply, SimRequest};
use crate::staging::stage;
use engine::policy::Policy;
use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::rows::Outcome;
use model::{ContentState, EventId, Nanos};
use node::WriterCore;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use store::{MasterKey, Store, StoreOptions};

impl SimNode {
    pub(super) fn open(&mut self, policy: Policy) -> Result<(), String> {
        self.core = Some(WriterCore::new(self.open_store(policy)?));
        Ok(())
    }

    pub(super) fn open_store(&self, policy: Policy) -> Result<Store, String> {
        let options =
            StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, random: store::KeySource::Seed(1) };
        let disk = Arc::new(self.disk.clone());
        Store::open(disk, MasterKey::new(&self.master), options).map_err(|why| why.to_string())
    }

    pub(super) fn core(&self) -> Result<&WriterCore, String> {
        self.core.as_ref().ok_or_else(|| "the node is down".to_owned())
    }

    pub(super) fn request(&mut self, requests: Vec<SimRequest>) -> Result<Vec<SimReply>, String> {
        let (core, now) = (self.core()?, Nanos(self.now));
        let staged = requests.into_iter().map(|request| stage(core, request, now)).collect::<StoreResult<Vec<_>>>();
        let done = staged.and_then(|requests| core.run(requests, now));
        match done {
            Ok(done) => {
                let replies = done.answers.into_iter().collect::<Result<Vec<_>, _>>().map_err(|why| why.to_string())?;
                replies.iter().for_each(|reply| self.hear(reply));
                Ok(replies)
            }
            Err(StoreError::Store(_) | StoreError::Full) if self.disk.is_dead() => Ok(Vec::new()),
            Err(fault) => Err(fault.to_string()),
        }
    }

    pub(super) fn hear(&mut self, reply: &SimReply) {
        if let SimReply::Arrived(
            id,
            Outcome::Applied(_) | Outcome::Held(..) | Outcome::Carried(_) | Outcome::Known(_),
        ) = reply
        {
            self.acknowledged.insert(*id);
        }
    }

    pub(super) fn settle(&mut self) -> Result<(), String> {
        self.core()?.settle(Nanos(self.now)).map_err(|fault| fault.to_string())
    }

    pub(super) fn is_applied(&self, id: &EventId) -> bool {
        let applied = || {
            let db = self.core().ok()?.store().snapshot().ok()?;
            let seq = db.seq(id).ok()??;
            db.event(seq).ok()?.map(|row| row.is_applied())
        };
        !self.disk.is_dead() && applied() == Some(true)
    }

    /// An acknowledged event is there after any crash, unless its time was up.
    pub(super) fn check_acknowledged(&self) -> Result<(), String> {
        let db = self.core()?.store().snapshot().map_err(|fault| fault.to_string())?;
        for id in &self.acknowledged {
            let known = db.is_known(id).map_err(|fault| fault.to_string())?;
            let expired = db.expired_recently(id).map_err(|fault| fault.to_string())?;
            let refused = db.refused(id).map_err(|fault| fault.to_string())?.is_some();
            if !known && !expired && !refused {
                return Err(format!("node {} acknowledged {id} and lost it", self.index));
            }
        }
        Ok(())
    }

    pub(super) fn verify(&self) -> Result<(), String> {
        let report = self.core()?.store().verify(Nanos(self.now)).map_err(|fault| fault.to_string())?;
        match report.problems.first() {
            Some(problem) => Err(format!("node {}: {problem}", self.index)),
            None => Ok(()),
        }
    }

    pub(super) fn lines(&self) -> Result<BTreeSet<String>, String> {
        let db = self.core()?.store().snapshot().map_err(|fault| fault.to_string())?;
        let mut lines = BTreeSet::new();
        db.dump(&mut |line| {
            lines.insert(line);
        })
        .map_err(|fault| fault.to_string())?;
        Ok(lines)
    }

    /// Which states there are now.
    pub(super) fn survey(&self, reached: &mut Coverage) -> Result<(), String> {
        let mut look = || -> Result<(), StoreError> {
            let db = self.core().map_err(StoreError::Broken)?.store().snapshot()?;
            for (stage, count) in db.stages()? {
                if count > 0 {
                    reached.reach(format!("stage {stage}"));
                }
            }
            for seq in db.all_events()? {
                if let Some(row) = db.event(seq)? {
                    reached.reach(format!("content {}", row.content.word()));
                }
            }
            for (_, entry) in db.journal(None, 0, usize::MAX)? {
                reached.reach_journal(entry.kind);
            }
            Ok(())
        };
        look().map_err(|fault| fault.to_string())
    }

    pub(super) fn pruned(&self) -> Result<BTreeSet<EventId>, String> {
        let read = || {
            let db = self.core().map_err(StoreError::Broken)?.store().snapshot()?;
            let mut pruned = BTreeSet::new();
            for seq in db.all_events()? {
                pruned.extend(db.event(seq)?.filter(|row| row.content == ContentState::Pruned).map(|row| row.id));
            }
            Ok(pruned)
        };
        read().map_err(|fault: StoreError| fault.to_string())
    }

    /// One effect per cause: each event is applied once, and its content processed once unless it was taken away.
    pub(super) fn check_journal(&self) -> Result<(), String> {
        use engine::rows::JournalKind::*;
        let db = self.core()?.store().snapshot().map_err(|fault| fault.to_string())?;
        let entries = db.journal(None, 0, usize::MAX).map_err(|fault| fault.to_string())?;
        let mut applied: BTreeMap<_, i64> = BTreeMap::new();
        let mut processed: BTreeMap<_, i64> = BTreeMap::new();
        for (_, entry) in entries {
            match entry.kind {
                Applied => *applied.entry(entry.seq).or_default() += 1,
                Processed => *processed.entry(entry.seq).or_default() += 1,
                Deleted | Pruned => *processed.entry(entry.seq).or_default() = 0,
                Undeleted | Hidden | Shown | BytesArrived => {}
            }
            if applied.get(&entry.seq).is_some_and(|count| *count > 1) {
                return Err(format!("{} was applied twice", entry.seq));
            }
            if processed.get(&entry.seq).is_some_and(|count| *count > 1) {
                return Err(format!("the content of {} was processed twice", entry.seq));
            }
        }
        Ok(())
    }

    /// What can be applied is applied; what cannot waits or is gone.
    pub(super) fn check_stages(&self, model: &ReferenceModel<'_>, world: &World) -> Result<(), String> {
        for made in world.events.iter().filter(|made| !world.lost.contains(&made.id)) {
            let readable = self.gets_keys || made.envelope.key.is_zero();
            let want = readable && model.is_valid(made);
            if self.is_applied(&made.id) != want {
                let (id, kind) = (made.id, made.envelope.kind);
                return Err(format!(
                    "node {}: {kind} {id} should{} be applied",
                    self.index,
                    if want { "" } else { " not" }
                ));
            }
            if want {
                self.check_content(model, made, world)?;
            }
        }
        Ok(())
    }

    /// Also what does not count, and is shown nowhere, keeps no content that was deleted.
    fn check_content(&self, model: &ReferenceModel<'_>, made: &MadeEvent, world: &World) -> Result<(), String> {
        let read = || {
            let db = self.core().map_err(StoreError::Broken)?.store().snapshot()?;
            let row = db.seq(&made.id)?.map(|seq| db.event(seq)).transpose()?.flatten();
            row.ok_or_else(|| StoreError::Broken("an applied event without a row".into()))
        };
        let state = read().map_err(|fault| fault.to_string())?.content;
        let told = match state {
            ContentState::Deleted { by } => format!("deleted:{by}"),
            ContentState::Invalid => "invalid".to_owned(),
            ContentState::Missing | ContentState::Pruned => "absent".to_owned(),
            ContentState::Processed => "here".to_owned(),
        };
        let want = model.content(made);
        let want = if want.starts_with("here:") { "here" } else { &want };
        if told == want {
            return self.check_bytes(made, world, told == "here");
        }
        let (id, kind) = (made.id, made.envelope.kind);
        Err(format!("node {}: the content of {kind} {id} is {told}, not {want}", self.index))
    }

    /// A file event whose content is here speaks of its bytes, and waits for them only if they exist nowhere.
    fn check_bytes(&self, made: &MadeEvent, world: &World, is_here: bool) -> Result<(), String> {
        let read = || {
            let db = self.core().map_err(StoreError::Broken)?.store().snapshot()?;
            let seq =
                db.seq(&made.id)?.ok_or_else(|| StoreError::Broken("an applied event without a number".into()))?;
            let Some(wanted) = db.wanted_bytes(seq)? else { return Ok(None) };
            let space = db.space_no(&made.envelope.space)?.unwrap_or_default();
            let waits = engine::content::is_waiting_for_bytes(&*db, space, seq, &wanted)?;
            Ok(Some((wanted.hash, wanted.len, waits)))
        };
        let found = read().map_err(|fault: StoreError| fault.to_string())?;
        let file = world.files.iter().find(|file| file.event == made.id).filter(|_| is_here);
        let is_elsewhere = |file: &AttachedFile| {
            let is_it = |other: &MadeEvent| other.hash() == file.hash && other.envelope.space == file.space;
            file.wire.is_none() && !world.events.iter().any(is_it)
        };
        let expected = file.map(|file| (file.hash, file.len, is_elsewhere(file)));
        if found == expected {
            return Ok(());
        }
        Err(format!("node {}: file {} has bytes {found:?}, not {expected:?}", self.index, made.id))
    }

    /// After the grace nothing is kept that nobody refers to, and every file is spoken of.
    pub(super) fn check_collected(&self) -> Result<(), String> {
        let db = self.core()?.store().snapshot().map_err(|fault| fault.to_string())?;
        let (unused, objects) = db.unused_and_objects().map_err(|fault| fault.to_string())?;
        let objects: Vec<String> = objects.iter().map(ToString::to_string).collect();
        let on_disk = self.disk.object_names();
        if unused > 0 {
            return Err(format!("node {}: {unused} contents outlived their grace", self.index));
        }
        let rows = db.object_count().map_err(|fault| fault.to_string())?;
        if rows != objects.len() as u64 {
            return Err(format!(
                "node {}: {rows} rows of objects, but {} contents in objects",
                self.index,
                objects.len()
            ));
        }
        if objects != on_disk {
            return Err(format!("node {}: objects {on_disk:?}, rows speak of {objects:?}", self.index));
        }
        Ok(())
    }
}

impl SimNode {
    /// Whether an event comes within a second of another of its space that is applied here, and is itself ahead of a time.
    pub(super) fn follows_what_is_ahead(&self, world: &World, made: &MadeEvent, bound: u64) -> bool {
        let Some(db) = self.core.as_ref().and_then(|core| core.store().snapshot().ok()) else { return true };
        let is_applied = |id: &EventId| {
            let row = db.seq(id).ok().flatten().and_then(|seq| db.event(seq).ok().flatten());
            row.is_some_and(|row| row.is_applied())
        };
        let at = made.envelope.created_at.0;
        let is_followed = |other: &&MadeEvent| {
            let before = other.envelope.created_at.0;
            other.id != made.id
                && other.envelope.space == made.envelope.space
                && (bound + 1..=at).contains(&before)
                && at - before <= Nanos::SECOND
        };
        world.events.iter().filter(is_followed).any(|other| is_applied(&other.id))
    }
}
