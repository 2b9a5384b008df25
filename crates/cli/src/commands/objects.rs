//! `anteroom objects`: the place where large content is kept.

use super::CommandResult;
use crate::context::Context;
use crate::failure::Failure;
use crate::object_store::{bucket, open_disk};
use crate::random::random_bytes;
use clap::{Args, Subcommand};
use model::ObjectName;
use objects::{ObjectCheck, check_conditions, check_objects};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;
use store::Disk as _;

/// Check the place where large content is kept
#[derive(Debug, Args)]
pub(crate) struct Objects {
    #[command(subcommand)]
    action: ObjectsAction,
}

#[derive(Debug, Subcommand)]
enum ObjectsAction {
    /// Write, read and remove objects of random names, to see whether the place does what the node relies on
    Check,
}

#[derive(Debug, Serialize)]
struct Checked {
    /// `folder` or `s3`.
    place: &'static str,
    checks: Vec<CheckLine>,
    good: bool,
}

#[derive(Debug, Serialize)]
struct CheckLine {
    what: &'static str,
    problem: Option<String>,
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "objects are kept in: {}", self.place)?;
        for CheckLine { what, problem } in &self.checks {
            match problem {
                None => writeln!(f, "  good    {what}")?,
                Some(why) => writeln!(f, "  FAILED  {what}: {why}")?,
            }
        }
        match self.good {
            true => write!(f, "it does what the node relies on"),
            false => write!(f, "do not use it before that is mended: files could not be kept or read"),
        }
    }
}

impl Objects {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        match self.action {
            ObjectsAction::Check => check(context),
        }
    }
}

fn check(context: &Context) -> CommandResult {
    if !context.data_dir().is_dir() {
        let what = format!("there is no data folder at {}", context.data_dir().display());
        return Err(Failure::new(what, "run `anteroom init` to create one, or pass --data-dir"));
    }
    let backend = open_disk(context)?.objects();
    let name = || random_bytes().map(ObjectName);
    let mut checks = check_objects(backend.as_ref(), [name()?, name()?]);
    if let Some(bucket) = bucket(context)? {
        checks.extend(check_conditions(&bucket, name()?));
    }
    let good = checks.iter().all(|check| check.problem.is_none());
    let lines = checks.into_iter().map(|ObjectCheck { what, problem }| CheckLine { what, problem });
    context.print(&Checked { place: backend.word(), checks: lines.collect(), good })?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
