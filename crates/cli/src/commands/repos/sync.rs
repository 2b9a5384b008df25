//! `anteroom repos sync`: a hunt now for what events about a repository wait for, and how it goes.

use super::{RepositoryArgument, needs_of, not_announced};
use crate::commands::in_node::{self, NodeCommand};
use crate::commands::repos::{Repos, ReposAction};
use crate::commands::retry::Hunting;
use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::{escape_controls, format_count};
use crate::operator_client::OperatorClient;
use crate::progress::ProgressDisplay;
use clap::Args;
use engine::protocol::nostr::maintainers::announcement;
use model::Group;
use node::node_commands::HuntNow;
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Debug, Args, Serialize, Deserialize)]
pub(in crate::commands) struct SyncArguments {
    #[command(flatten)]
    repository: RepositoryArgument,
    /// Wait until everything has come, or every source was asked that has room; exits with 1 if something is still missing
    #[arg(long)]
    #[serde(default)]
    pub(in crate::commands) wait: bool,
    /// Set by whoever waits: asks how the hunt goes, and begins none.
    #[arg(skip)]
    #[serde(default)]
    only_asks: bool,
}

/// What was missing when somebody asked, and what is missing now.
#[derive(Debug, Serialize, Deserialize)]
struct SyncState {
    repository: String,
    /// What events wait for.
    missing: usize,
    /// Whether no hunt is due or goes on.
    is_over: bool,
    #[serde(skip)]
    is_running: bool,
}

impl fmt::Display for SyncState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let repository = escape_controls(&self.repository);
        match (self.missing, self.is_running) {
            (0, _) => writeln!(f, "nothing about {repository} is missing"),
            (missing, true) => writeln!(
                f,
                "the node fetches {} of {repository} now; `anteroom repos show {repository}` shows how it goes",
                format_count(missing as u64, "thing")
            ),
            (_, false) => writeln!(f, "the node fetches what {repository} waits for as soon as it runs"),
        }
    }
}

/// What came of a hunt that somebody waited for.
#[derive(Debug, Serialize)]
struct SyncEnded {
    repository: String,
    came: usize,
    missing: usize,
}

impl fmt::Display for SyncEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (repository, came) = (escape_controls(&self.repository), format_count(self.came as u64, "thing"));
        match self.missing {
            0 => writeln!(f, "{came} came; nothing about {repository} is missing any more"),
            missing => writeln!(
                f,
                "{came} came, {} still missing; `anteroom repos show {repository}` says what the sources answered",
                match missing {
                    1 => "1 is".to_owned(),
                    _ => format!("{missing} are"),
                }
            ),
        }
    }
}

pub(super) fn run(context: &Context, arguments: &SyncArguments) -> Result<u8, Failure> {
    if arguments.wait {
        return Err(Failure::new("no node is running that could be waited for", "start it, or leave out --wait"));
    }
    let (owner, identifier) = arguments.repository.parse()?;
    let hunting = Hunting::open(context)?;
    let db = hunting.snapshot()?;
    if announcement(&*db, &owner, &identifier)?.is_none() {
        return Err(not_announced(&arguments.repository));
    }
    let missing = needs_of(&db, &owner, &identifier)?.len();
    let group = Group::Repository(identifier);
    // The next attempt lies in the past while a hunt is due or goes on.
    let is_at_rest = db.schedule_row(&group)?.is_none_or(|row| row.next > hunting.now().0);
    drop(db);
    let begins = !arguments.only_asks && missing > 0;
    if begins {
        // All repositories of an identifier are one group.
        hunting.hunt(HuntNow::ForGroup(group))?;
    }
    let is_over = missing == 0 || is_at_rest && !begins;
    let (repository, is_running) = (arguments.repository.repository.clone(), context.inside.is_some());
    context.print(&SyncState { repository, missing, is_over, is_running })?;
    Ok(0)
}

/// Asks the node to fetch, and then how far it is, until there is nothing more to wait for.
pub(in crate::commands) fn run_and_wait(
    context: &Context,
    client: &OperatorClient,
    arguments: &SyncArguments,
) -> Result<u8, Failure> {
    let repository = &arguments.repository.repository;
    let ask = |only_asks: bool| -> Result<SyncState, Failure> {
        let of = RepositoryArgument { repository: repository.clone() };
        let action = ReposAction::Sync(SyncArguments { repository: of, wait: false, only_asks });
        let answered = in_node::ask_for_json(client, &NodeCommand::Repos(Repos { action }))?;
        serde_json::from_value(answered)
            .map_err(|why| Failure::new(format!("the node answers something else: {why}"), "is it of this version?"))
    };
    let mut state = ask(false)?;
    let mut came = 0;
    let bar = ProgressDisplay::for_count_of(context.json, "fetching", state.missing as u64);
    while !state.is_over {
        client.wait_for_next_poll();
        let before = state.missing;
        state = ask(true)?;
        // More may have begun to wait.
        came += before.saturating_sub(state.missing);
        bar.set_of(came as u64, (came + state.missing) as u64);
    }
    drop(bar);
    let missing = state.missing;
    context.print(&SyncEnded { repository: repository.clone(), came, missing })?;
    Ok(u8::from(missing > 0))
}
