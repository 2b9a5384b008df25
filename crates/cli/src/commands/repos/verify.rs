//! `anteroom repos verify`: whether git repositories are what rows and events say.

use super::{Context, Db, Failure, Snapshot, check_repository as check_argument, folder_of, named};
use crate::data_folder;
use crate::formatting::escape_controls;
use crate::progress::ProgressDisplay;
use clap::Args;
use git::{GitFolder, StoreName};
use model::nostr::npub;
use node::git::{check_repository, check_store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use store::nostr::KeptRepository;

#[derive(Debug, Args, Serialize, Deserialize)]
pub(in crate::commands) struct VerifyArguments {
    /// The repository; all of them if none is named
    #[arg(value_name = "NPUB/IDENTIFIER", value_parser = check_argument)]
    repository: Option<String>,
}

#[derive(Debug, Serialize)]
struct Verified {
    repositories: usize,
    problems: Vec<String>,
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.repositories == 1 { "repository" } else { "repositories" };
        writeln!(f, "{} {noun} checked", self.repositories)?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "problem: {}", escape_controls(problem)))?;
        match self.problems.len() {
            0 => writeln!(f, "no problems found"),
            _ => writeln!(
                f,
                "what to do: stop the node, then `anteroom salvage FOLDER` brings everything readable into a new folder; what is \
                 missing there is fetched again from other servers"
            ),
        }
    }
}

pub(super) fn run(context: &Context, arguments: &VerifyArguments) -> Result<u8, Failure> {
    let asked = arguments.repository.as_deref().map(named).transpose()?;
    let folder = folder_of(context)?;
    let (db, _store) = data_folder::open_snapshot(context)?;
    let mut all = db.git_repositories()?;
    if let Some((owner, identifier)) = &asked {
        all.retain(|kept| kept.owner == *owner && kept.identifier == *identifier);
        if all.is_empty() {
            let what = format!("nothing is kept of {}/{identifier}", npub(owner));
            return Err(Failure::new(what, "`anteroom repos list` lists all repositories"));
        }
    }
    let mut problems = check(context, &db, &folder, &all)?;
    // While a node runs, a push may come between two looks: only what is wrong twice is wrong.
    if context.inside.is_some() && !problems.is_empty() {
        let (db, _store) = data_folder::open_snapshot(context)?;
        let again: BTreeSet<String> = check(context, &db, &folder, &all)?.into_iter().collect();
        problems.retain(|problem| again.contains(problem));
    }
    let is_good = problems.is_empty();
    context.print(&Verified { repositories: all.len(), problems })?;
    Ok(u8::from(!is_good))
}

fn check(
    context: &Context,
    db: &Db<Snapshot>,
    folder: &GitFolder,
    all: &[KeptRepository],
) -> Result<Vec<String>, Failure> {
    let failed =
        |why| Failure::new(format!("git repositories cannot be checked: {why}"), "install git, then try again");
    let bar = ProgressDisplay::for_count(context.json || context.inside.is_some(), "checking repositories");
    let (mut problems, mut stores) = (Vec::new(), BTreeSet::new());
    for (number, kept) in all.iter().enumerate() {
        // Co-maintainers share one.
        let name = StoreName(kept.store);
        if stores.insert(name) && folder.store(name).exists() {
            problems.extend(check_store(folder, name).map_err(failed)?);
        }
        problems.extend(check_repository(db, folder, kept).map_err(failed)?);
        bar.set(number as u64 + 1);
    }
    Ok(problems)
}
