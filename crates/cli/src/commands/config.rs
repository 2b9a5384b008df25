//! `anteroom config`: shows all settings.

use super::CommandResult;
use crate::config::{EffectiveSetting, sample_file};
use crate::context::Context;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;

/// Show all settings and where each value comes from
#[derive(Debug, Args)]
pub(crate) struct ShowConfig {
    /// Print a configuration file that documents every setting instead
    #[arg(long)]
    sample: bool,
}

#[derive(Debug, Serialize)]
struct Answer {
    settings: BTreeMap<String, Shown>,
}

#[derive(Debug, Serialize)]
struct Shown {
    value: String,
    from: String,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |(key, shown): (&String, &Shown)| (format!("{key} = {}", shown.value), shown.from.clone());
        let lines: Vec<(String, String)> = self.settings.iter().map(text).collect();
        let width = lines.iter().map(|(line, _)| line.chars().count()).max().unwrap_or(0);
        lines.iter().try_for_each(|(line, from)| writeln!(f, "{line:<width$}  # {from}"))
    }
}

#[derive(Debug, Serialize)]
struct Sample {
    sample: String,
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sample)
    }
}

impl ShowConfig {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        if self.sample {
            context.print(&Sample { sample: sample_file() })?;
        } else {
            context.print(&Answer { settings: context.settings.effective.iter().map(describe).collect() })?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn describe(setting: &EffectiveSetting) -> (String, Shown) {
    (setting.name.clone(), Shown { value: setting.value.clone(), from: setting.origin.to_string() })
}
