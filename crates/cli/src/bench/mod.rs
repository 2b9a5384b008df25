//! Benchmarks: each prints a table and, last, one line of flat JSON.
//!
//! Figures are ratios to a limit or a peer measured in the same run, beside the absolutes: machines differ and
//! neighbours are noisy.

mod baseline;
mod commit;
mod event_generator;
mod http;
mod ingest;
mod live;
mod machine;
mod open;
mod release;
mod timeline;
mod web;

use anyhow::{Result, bail};
use std::path::PathBuf;

/// The benchmarks, in the order in which they run.
pub(crate) const NAMES: [&str; 8] = ["ingest", "release", "timeline", "open", "commit", "http", "live", "web"];

/// How a benchmark runs.
#[derive(Debug)]
pub(crate) struct Scale {
    /// Smaller stores, done within a minute.
    pub(crate) quick: bool,
    /// Where the stores are made; a folder of its own below the system's temporary one if none.
    pub(crate) dir: Option<PathBuf>,
}

/// Runs one benchmark, or all of them.
pub(crate) fn run(name: Option<&str>, quick: bool, dir: Option<PathBuf>) -> Result<()> {
    let scale = Scale { quick, dir };
    match name {
        Some("ingest") => ingest::run(&scale),
        Some("release") => release::run(&scale),
        Some("timeline") => timeline::run(&scale),
        Some("open") => open::run(&scale),
        Some("commit") => commit::run(&scale),
        Some("http") => http::run(&scale),
        Some("live") => live::run(&scale),
        Some("web") => web::run(&scale),
        Some(open::WRITER) => open::write_for_ever(scale.dir.as_deref().unwrap_or(std::path::Path::new("."))),
        Some(other) => bail!("there is no benchmark {other:?}; there are {}", NAMES.join(", ")),
        None => NAMES.iter().try_for_each(|name| run(Some(name), quick, scale.dir.clone())),
    }
}

/// A row of the table and a field of the JSON line.
#[derive(Debug)]
pub(crate) struct Figure {
    name: &'static str,
    value: f64,
    meaning: &'static str,
}

/// A figure with its meaning.
pub(crate) fn figure(name: &'static str, value: f64, meaning: &'static str) -> Figure {
    Figure { name, value, meaning }
}

/// Prints the table and the JSON line.
pub(crate) fn print(bench: &str, figures: &[Figure]) -> Result<()> {
    println!("{bench} on {}", machine::description());
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
