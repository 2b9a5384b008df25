//! Administration at random moments: it changes how things rest, never what is shown.

use super::Run;
use super::ending::difference;
use crate::requests::{SimReply, SimRequest};
use engine::reads::{StoreError, StoreResult};
use model::Nanos;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use store::maintenance::backup;
use store::tables::{Snapshot, export_rows};
use store::{FolderDisk, MasterKey, Store, StoreOptions};

/// One of so many runs ends with a backup, which is written to a real disk.
const RUNS_PER_BACKUP: usize = 8;

impl Run<'_> {
    pub(super) fn administer(&mut self, at: usize) -> Result<(), String> {
        match self.random.below(3) {
            0 => self.rebuild(at),
            1 => {
                let spaces = self.spaces();
                let space = *self.random.pick(&spaces);
                let steps = 1 + self.random.below(4);
                for _ in 0..steps {
                    let most = 1 + self.random.below(5);
                    self.ask(at, vec![SimRequest::Rotate(space, most)])?;
                }
                if !self.nodes[at].disk.is_dead() {
                    self.reached.reach("rotated");
                }
                Ok(())
            }
            _ => self.rewrap(at),
        }
    }

    /// What is rotated or wrapped anew half way is brought to its end.
    pub(super) fn finish_administration(&mut self, at: usize) -> Result<(), String> {
        let rotations = self.spaces().into_iter().map(|space| SimRequest::Rotate(space, 1000));
        let requests: Vec<SimRequest> = rotations.chain([SimRequest::Rewrap(1000)]).collect();
        for request in requests {
            let mut rounds = 0;
            while self.nodes[at].request(vec![request.clone()])? != [SimReply::Swept(true)] {
                rounds += 1;
                if rounds > 100 {
                    return Err(format!("node {at}: {request:?} does not end"));
                }
            }
        }
        self.nodes[at].verify()
    }

    /// Views that are rebuilt show what they showed.
    fn rebuild(&mut self, at: usize) -> Result<(), String> {
        self.say(|| format!("node {at} rebuilds its views"));
        let node = &mut self.nodes[at];
        let now = Nanos(node.now);
        let (before, rebuilt) = {
            let core = node.core()?;
            match core.settle(now) {
                Err(_) if node.disk.is_dead() => (None, Ok(0)),
                Err(fault) => return Err(fault.to_string()),
                Ok(()) => (Some(node.lines()?), core.store().rebuild_views(now, &mut |_| ())),
            }
        };
        match (rebuilt, before) {
            _ if node.disk.is_dead() => self.restart(at),
            (Err(fault), _) => Err(format!("node {at} cannot rebuild: {fault}")),
            (Ok(_), Some(before)) => {
                self.reached.reach("rebuilt");
                difference(at, &before, &node.lines()?)
            }
            (Ok(_), None) => Ok(()),
        }
    }

    /// The folder moves to another master key, half of it now and the rest later.
    fn rewrap(&mut self, at: usize) -> Result<(), String> {
        let node = &mut self.nodes[at];
        if node.disk.is_dead() {
            return Ok(());
        }
        // Nothing crashes while it is closed and opened.
        node.disk.crash_at(None);
        let new = [node.master[0].wrapping_add(1); 32];
        node.core = None;
        let store = node.open_store(self.policy)?;
        let begun = store.begin_rewrap(&MasterKey::new(&new)).map_err(|fault| fault.to_string())?;
        if begun {
            node.master = new;
            self.reached.reach("rewrapped");
        }
        node.open(self.policy)?;
        self.say(|| format!("node {at} moves to another master key: {begun}"));
        let most = 1 + self.random.below(4);
        self.ask(at, vec![SimRequest::Rewrap(most)])
    }

    /// A backup has every row of every table, and every file.
    pub(super) fn restore(&mut self) -> Result<(), String> {
        if self.random.below(RUNS_PER_BACKUP) > 0 {
            return Ok(());
        }
        for node in &self.nodes {
            let folder = temporary_folder().map_err(|why| why.to_string())?;
            let told = self.compare_backup(node, &folder);
            let _ = std::fs::remove_dir_all(&folder);
            told.map_err(|why| format!("node {}: {why}", node.index))?;
        }
        self.reached.reach("restored");
        Ok(())
    }

    fn compare_backup(&self, node: &super::SimNode, folder: &Path) -> Result<(), String> {
        let (file, into, store) = (folder.join("backup"), folder.join("restored"), node.core()?.store());
        store.backup(&file, Nanos(node.now), &mut |_| ()).map_err(|why| why.to_string())?;
        let options = StoreOptions {
            policy: self.policy,
            cache_bytes: 4 << 20,
            reserve_bytes: 0,
            random: store::KeySource::Seed(1),
        };
        let master = || MasterKey::new(&node.master);
        backup::restore(&file, &into, &master(), options, false, Nanos(node.now), &mut |_| ())
            .map_err(|why| why.to_string())?;
        let disk = FolderDisk::new(&into).map_err(|why| why.to_string())?;
        let restored = Store::open(Arc::new(disk), master(), options).map_err(|why| why.to_string())?;
        let (own, theirs) = (all_rows(store), all_rows(&restored));
        difference(node.index, &own.map_err(|why| why.to_string())?, &theirs.map_err(|why| why.to_string())?)
    }
}

/// Every row, as a line. What a folder knows of itself is its own.
fn all_rows(store: &Store) -> StoreResult<BTreeSet<String>> {
    let mut rows = BTreeSet::new();
    let db = store.snapshot()?;
    let tables: &Snapshot = db.tables();
    export_rows::<StoreError>(tables, &mut |table, key, value| {
        if table != "about_v1" {
            rows.insert(format!("{table} {key:02x?} {value:02x?}"));
        }
        Ok(())
    })?;
    Ok(rows)
}

fn temporary_folder() -> std::io::Result<std::path::PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("anteroom-simulator-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
