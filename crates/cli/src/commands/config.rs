//! `anteroom config`: the settings in force, and where each came from.

use super::Done;
use crate::config::{Value, sample};
use crate::context::Context;
use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;

/// Show the settings in force and where each came from
#[derive(Debug, Args)]
pub(crate) struct ShowConfig {
    /// Print a configuration file with every setting and its meaning instead
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
    pub(super) fn run(&self, context: &Context) -> Done {
        if self.sample {
            context.show(&Sample { sample: sample() })?;
        } else {
            context.show(&Answer { settings: context.loaded.values.iter().map(shown).collect() })?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn shown(value: &Value) -> (String, Shown) {
    (value.key.clone(), Shown { value: value.value.clone(), from: value.origin.to_string() })
}
