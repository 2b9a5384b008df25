//! Benchmarks. Each prints a table and, as the last line, one line of flat JSON.
//!
//! Beside absolute figures there are ratios to a baseline measured in the same run, because machines differ and other
//! processes disturb.

mod backend;
mod baseline;
mod child_node;
mod commit;
mod event_generator;
mod files;
mod git;
mod hosting;
mod http;
mod hunt;
mod ingest;
mod live;
mod machine;
mod open;
mod overload;
mod relay;
mod release;
mod timeline;
mod web;

use anyhow::{Result, bail};
use std::path::PathBuf;
use store::maintenance::size::DatabaseSize;

/// In the order in which they run.
pub(crate) const NAMES: [&str; 13] = [
    "ingest", "release", "timeline", "open", "commit", "http", "overload", "live", "web", "relay", "git", "hunt",
    "files",
];

#[derive(Debug)]
pub(crate) struct BenchOptions {
    /// Small databases; each benchmark ends within a minute.
    pub(crate) quick: bool,
    /// Where the databases are created; the system's temporary folder if none.
    pub(crate) dir: Option<PathBuf>,
}

/// Runs all benchmarks if no name is given.
pub(crate) fn run(name: Option<&str>, quick: bool, dir: Option<PathBuf>) -> Result<()> {
    let options = BenchOptions { quick, dir };
    match name {
        Some("ingest") => ingest::run(&options),
        Some("release") => release::run(&options),
        Some("timeline") => timeline::run(&options),
        Some("open") => open::run(&options),
        Some("commit") => commit::run(&options),
        Some("http") => http::run(&options),
        Some("overload") => overload::run(&options),
        Some("live") => live::run(&options),
        Some("web") => web::run(&options),
        Some("relay") => relay::run(&options),
        Some("git") => git::run(&options),
        Some("hunt") => hunt::run(&options),
        Some("files") => files::run(&options),
        Some(open::WRITER) => open::write_until_killed(options.dir.as_deref().unwrap_or(std::path::Path::new("."))),
        Some(overload::NODE) => {
            overload::serve_until_killed(options.dir.as_deref().unwrap_or(std::path::Path::new(".")))
        }
        Some(other) => bail!("there is no benchmark {other:?}; there are {}", NAMES.join(", ")),
        None => NAMES.iter().try_for_each(|name| run(Some(name), quick, options.dir.clone())),
    }
}

/// One row of the table, and one field of the JSON line.
#[derive(Debug)]
pub(crate) struct Figure {
    name: &'static str,
    value: f64,
    meaning: &'static str,
}

pub(crate) fn figure(name: &'static str, value: f64, meaning: &'static str) -> Figure {
    Figure { name, value, meaning }
}

/// The room that the largest tables take, for each of so many events.
pub(crate) fn print_tables(size: &DatabaseSize, events: u64) {
    for table in size.tables.iter().take(8) {
        let per_event = |bytes: u64| bytes / events.max(1);
        eprintln!(
            "  {:16} {:4} bytes stored per event, {:4} unfilled",
            table.name,
            per_event(table.stored_bytes),
            per_event(table.unfilled_bytes)
        );
    }
}

pub(crate) fn print_figures(bench: &str, figures: &[Figure]) -> Result<()> {
    println!("{bench} on {}", machine::describe_machine());
    for figure in figures {
        println!("  {:24} {:>14.3}  {}", figure.name, figure.value, figure.meaning);
    }
    let mut line = serde_json::Map::new();
    line.insert("bench".into(), bench.into());
    for figure in figures {
        let rounded = (figure.value * 1000.0).round() / 1000.0;
        line.insert(figure.name.into(), serde_json::json!(rounded));
    }
    println!("{}", serde_json::Value::Object(line));
    Ok(())
}
