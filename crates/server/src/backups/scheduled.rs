//! Scheduled backups.
//!
//! They stand in one folder under names that say which node made them and when, in UTC:
//! `anteroom-{node}-{date}T{time}Z.backup`. The names are all there is to remember: the newest says when the next is due,
//! also after a restart. One that fails is tried again when the next is due. When a new one is whole, the oldest beyond
//! the number to keep are removed. One that lacks what could not be read gets the ending `.damaged` and replaces none.
//! Nothing else in that folder is ever touched.

use super::{BackupTaskError, Backups};
use engine::reads::StoreResult;
use model::Nanos;
use model::calendar::CivilTime;
use node::Node;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use store::disk::TEMPORARY;

/// How often to look whether a backup is due.
const LOOK: Duration = Duration::from_secs(60);
const ENDING: &str = ".backup";
/// What is added to the name of a backup that lacks what could not be read.
const DAMAGED: &str = ".damaged";
/// What a name holds between its beginning and its ending, a digit for each zero.
const STAMP: &str = "00000000T000000Z";

/// When backups are made, and how many are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackupPlan {
    /// Where they are kept. Made if only the last part of the path is missing.
    pub folder: PathBuf,
    /// How many nanoseconds are between them.
    pub every_nanos: u64,
    /// How many of them are kept.
    pub keep: usize,
}

impl Backups {
    /// Makes backups when they are due, for as long as it is let.
    pub(crate) async fn run_schedule(self: Arc<Backups>) {
        loop {
            let backups = self.clone();
            let looked = tokio::task::spawn_blocking(move || backups.run_due()).await;
            if let Err(why) = looked {
                tracing::error!(%why, "a scheduled backup broke off");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether backups are scheduled.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.plan.is_some()
    }

    /// Makes a backup if one is due.
    pub fn run_due(&self) {
        let Some(plan) = &self.plan else { return };
        let now = self.node.now();
        let begun_at = self.locked().begun_at;
        if begun_at.is_some_and(|at| now < at.plus(plan.every_nanos)) {
            return;
        }
        let names = match Names::of(&self.node) {
            Ok(names) => names,
            Err(fault) => {
                self.locked().begun_at = Some(now);
                return self.failed(&fault.into(), now);
            }
        };
        if !names.is_due(plan, now) {
            let mut state = self.locked();
            if state.newest.is_none() {
                state.newest = names.newest(&plan.folder);
            }
            return;
        }
        // If this fails, writing fails as well, and says so.
        let _ = DirBuilder::new().mode(0o700).create(&plan.folder);
        match self.make(&plan.folder.join(names.at(now))) {
            // Somebody asked for one that is still being written; ours comes after it.
            Err(BackupTaskError::Busy) => return,
            Err(BackupTaskError::Failed(_)) => {}
            // It is kept beside the good ones, and replaces none of them.
            Ok(made) if made.done.damaged > 0 => names.set_apart(plan, &made.file),
            Ok(_) => names.thin_out(plan),
        }
        self.locked().begun_at = Some(now);
    }
}

/// The names that this node gives to backups.
struct Names {
    /// What all of them begin with.
    start: String,
}

impl Names {
    /// A node is known by its home space, which it keeps for ever.
    fn of(node: &Node) -> StoreResult<Names> {
        let spaces = node.snapshot()?.hosted_spaces()?;
        let home = spaces.iter().find(|(_, kept)| kept.name == "home").or(spaces.first());
        let space = home.map(|(space, _)| space.0).unwrap_or_default();
        Ok(Names { start: format!("anteroom-{}-", hex::encode(&space[..4])) })
    }

    /// The name of a backup that is begun then. Names sort as their times do.
    fn at(&self, at: Nanos) -> String {
        let CivilTime { year, month, day, hour, minute, second } = CivilTime::of(at);
        format!("{}{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z{ENDING}", self.start)
    }

    /// Whether this node gave that name.
    fn is_ours(&self, name: &str) -> bool {
        let stamp = name.strip_prefix(&self.start).and_then(|rest| rest.strip_suffix(ENDING)).unwrap_or_default();
        let shape: String = stamp.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
        shape == STAMP
    }

    /// Our backups in a folder, the oldest first.
    fn listed(&self, folder: &Path) -> Vec<String> {
        self.files(folder, |name| self.is_ours(name))
    }

    /// What a crash left half written. Only one backup is written at a time, and none now.
    fn half_written(&self, folder: &Path) -> Vec<String> {
        self.files(folder, |name| name.strip_suffix(TEMPORARY).is_some_and(|name| self.is_ours(name)))
    }

    fn files(&self, folder: &Path, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        let names = files.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| wanted(name)).collect();
        names.sort_unstable();
        names
    }

    /// When the newest was written, and its size.
    fn newest(&self, folder: &Path) -> Option<(Nanos, u64)> {
        let metadata = fs::metadata(folder.join(self.listed(folder).last()?)).ok()?;
        let since = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        Some((Nanos(u64::try_from(since.as_nanos()).ok()?), metadata.len()))
    }

    fn is_due(&self, plan: &BackupPlan, now: Nanos) -> bool {
        let listed = self.listed(&plan.folder);
        // A clock that was wrong may have left names from the future: they say nothing of when the next is due.
        let newest = listed.iter().rev().find(|name| **name <= self.at(now));
        newest.is_none_or(|name| *name <= self.at(now.minus(plan.every_nanos)))
    }

    /// Gives a backup that lacks something a name that is not counted, in place of an earlier one of its kind.
    fn set_apart(&self, plan: &BackupPlan, file: &Path) {
        let is_damaged = |name: &str| name.strip_suffix(DAMAGED).is_some_and(|name| self.is_ours(name));
        let earlier = self.files(&plan.folder, is_damaged);
        let mut apart = file.as_os_str().to_owned();
        apart.push(DAMAGED);
        match fs::rename(file, PathBuf::from(apart)) {
            Ok(()) => earlier.iter().for_each(|name| drop(fs::remove_file(plan.folder.join(name)))),
            Err(why) => tracing::warn!(%why, "a backup that lacks something could not be renamed"),
        }
    }

    /// Removes the oldest beyond the number to keep, and what was left half written.
    fn thin_out(&self, plan: &BackupPlan) {
        let mut listed = self.listed(&plan.folder);
        listed.truncate(listed.len().saturating_sub(plan.keep.max(1)));
        for name in listed.into_iter().chain(self.half_written(&plan.folder)) {
            match fs::remove_file(plan.folder.join(&name)) {
                Ok(()) => tracing::info!(name, "an old backup was removed"),
                Err(why) => tracing::warn!(name, %why, "an old backup could not be removed; remove it by hand"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_this_node_gives_are_its_own() {
        let names = Names { start: "anteroom-01020304-".into() };
        let name = names.at(Nanos(1_774_112_649 * Nanos::SECOND));
        assert_eq!(name, "anteroom-01020304-20260321T170409Z.backup");
        assert!(names.is_ours(&name));
        for other in [
            "",
            "mine.backup",
            "anteroom-01020305-20260321T170409Z.backup",
            "anteroom-01020304-20260321T170409Z.backup.part",
            "anteroom-01020304-20260321T170409Z.backup.old",
            "anteroom-01020304-20260321X170409Z.backup",
            "anteroom-01020304-2026321T170409Z.backup",
            "anteroom-01020304-.backup",
        ] {
            assert!(!names.is_ours(other), "{other}");
        }
    }
}
