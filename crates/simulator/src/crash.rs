//! A crash at every single operation of a scripted workload, and a second one while it recovers.
//!
//! The workload runs once on a disk that records. Every beginning of the record is then a disk that a machine might
//! find after a crash: unsynced writes kept, dropped or torn. Each of them is opened, verified, and asked for everything
//! that was acknowledged by then.

use crate::disk::{CrashLoss, Recorded, SimDisk};
use crate::protocol::space::world::World;
use crate::random::SeededRandom;
use crate::requests::{SimReply, SimRequest};
use crate::staging::stage;
use engine::chains;
use engine::policy::Policy;
use engine::reads::Reads as _;
use engine::rows::{Origin, Outcome};
use model::ids::BadId;
use model::{EventId, Nanos};
use node::WriterCore;
use node::node_commands::Collect;
use std::sync::Arc;
use store::disk::TEMPORARY;
use store::{MasterKey, Store, StoreOptions};

/// A workload that ran once, ready to be crashed anywhere.
pub struct Script {
    record: Vec<Recorded>,
    acknowledged: Vec<(usize, EventId)>,
    policy: Policy,
    now: Nanos,
    /// How many commits it made.
    pub commits: usize,
}

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Script({} commits, {} operations)", self.commits, self.record.len())
    }
}

fn open(disk: &SimDisk, policy: Policy) -> Result<Store, String> {
    let options = StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, random: store::KeySource::Seed(1) };
    Store::open(Arc::new(disk.clone()), MasterKey::new(&[42; 32]), options).map_err(|why| why.to_string())
}

impl Script {
    /// Runs worlds of seeds from one on until there are enough commits, one item a commit.
    pub fn new(commits_min: usize) -> Script {
        let policy = Policy {
            inline_bytes_max: 0,
            row_content_bytes_max: 2000,
            releases_max: 3,
            grace_nanos: 1,
            ..Policy::default()
        };
        let disk = SimDisk::new();
        disk.record();
        let core = WriterCore::new(open(&disk, policy).expect("an empty disk opens"));
        let mut script = Script { record: Vec::new(), acknowledged: Vec::new(), policy, now: Nanos(0), commits: 0 };
        let mut seed = 0;
        while script.commits < commits_min {
            seed += 1;
            let mut random = SeededRandom::new(seed);
            let world = World::new(&mut random, 1);
            if world.inline_max == 0 {
                script.play(&core, &disk, &world, &mut random);
            }
        }
        script.record = disk.take_record();
        script
    }

    fn play(&mut self, core: &WriterCore, disk: &SimDisk, world: &World, random: &mut SeededRandom) {
        self.now = Nanos(self.now.0.max(world.end + 3600 * Nanos::SECOND));
        let mut requests: Vec<SimRequest> = vec![SimRequest::add_prekey(world.prekeys[0])];
        let keys = core.store().keys().clone();
        for made in world.key_events[0].iter().chain(&world.events) {
            let arrival = chains::receive_blob(&*keys, &self.policy, made.blob.clone(), None, Origin::Import);
            requests.push(SimRequest::arrive(arrival.expect("an honest event")));
            if !made.wire.is_empty() {
                requests.push(SimRequest::deliver(made.envelope.space, made.hash(), made.wire.clone()));
            }
        }
        requests.extend(world.events.iter().step_by(7).map(|made| SimRequest::prune(made.id)));
        requests.extend([SimRequest::Collect(Collect), SimRequest::Collect(Collect)]);
        random.shuffle(&mut requests[1..]);
        for request in requests {
            self.now = self.now.plus(1000);
            let request = stage(core, request, self.now).expect("a healthy disk");
            let done = core.run(vec![request], self.now).expect("a healthy disk");
            self.commits += 1;
            for reply in done.answers {
                if let Ok(SimReply::Arrived(id, Outcome::Applied(_) | Outcome::Held(..) | Outcome::Carried(_))) = reply
                {
                    self.acknowledged.push((disk.recorded(), id));
                }
            }
        }
    }

    /// How many operations there are to crash at.
    pub fn operations(&self) -> usize {
        self.record.len()
    }

    /// Crashes after each operation of a range, in every way. An error names the operation and the loss.
    pub fn crash_at_each(&self, from: usize, to: usize) -> Result<(), String> {
        let disk = SimDisk::new();
        self.record[..from].iter().for_each(|op| disk.replay(op));
        for at in from..to.min(self.record.len()) {
            disk.replay(&self.record[at]);
            for loss in [CrashLoss::Kept, CrashLoss::Dropped, CrashLoss::Torn] {
                let mut random = SeededRandom::new((at * 3) as u64 + loss as u64);
                self.recover(&disk, at + 1, loss, &mut random)
                    .map_err(|what| format!("crash after operation {at}, unsynced writes {loss:?}: {what}"))?;
            }
        }
        Ok(())
    }

    fn recover(
        &self,
        disk: &SimDisk,
        operations: usize,
        loss: CrashLoss,
        random: &mut SeededRandom,
    ) -> Result<(), String> {
        let mut disk = disk.fork().recover(loss, random);
        disk.crash_at(Some(1 + random.below(16) as u64));
        let first = open(&disk, self.policy);
        let store = match first {
            Ok(store) if !disk.is_dead() => store,
            Ok(_) | Err(_) if disk.is_dead() => {
                let second = *random.pick(&[CrashLoss::Kept, CrashLoss::Dropped, CrashLoss::Torn]);
                disk = disk.recover(second, random);
                open(&disk, self.policy).map_err(|what| format!("after a second crash: {what}"))?
            }
            Ok(store) => store,
            Err(what) => return Err(what),
        };
        disk.crash_at(None);
        let report = store.verify(self.now).map_err(|fault| fault.to_string())?;
        if let Some(problem) = report.problems.first() {
            return Err(problem.clone());
        }
        let db = store.snapshot().map_err(|fault| fault.to_string())?;
        // Nothing ever lists objects: each of them, finished or not, has a row that says when it goes.
        for file in disk.object_names() {
            let name = file.trim_end_matches(TEMPORARY).parse().map_err(|why: BadId| why.to_string())?;
            if db.object_row(name).map_err(|fault| fault.to_string())?.is_none() {
                return Err(format!("the object {file} has no row"));
            }
        }
        for (_, id) in self.acknowledged.iter().take_while(|(at, _)| *at <= operations) {
            // What waited may have been refused since, with what it waited for.
            let kept = db.is_known(id).and_then(|known| Ok(known || db.refused(id)?.is_some()));
            if !kept.map_err(|fault| fault.to_string())? {
                return Err(format!("{id} was acknowledged and is lost"));
            }
        }
        Ok(())
    }
}
