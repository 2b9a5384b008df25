//! Logging to standard error, as text or as JSON lines.

use crate::failure::Failure;
use std::io::IsTerminal as _;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

pub(crate) fn start(filter: &str, as_json: bool) -> Result<(), Failure> {
    let parsed = parse_filter(filter).ok_or_else(|| {
        let what_to_do = "pass --log off, error, warn, info, debug or trace, or a filter such as anteroom_node=debug";
        Failure::new(format!("{filter:?} is not a log level or filter"), what_to_do)
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .log_internal_errors(false);
    // An error means that logging was already started, which only tests do.
    let _ = if as_json { builder.json().try_init() } else { builder.with_target(false).try_init() };
    Ok(())
}

/// A single word must be a level: the library would accept any other word as the name of a log target.
fn parse_filter(filter: &str) -> Option<EnvFilter> {
    let is_level = filter.parse::<LevelFilter>().is_ok();
    let is_filter = filter.contains('=');
    if is_level || is_filter { EnvFilter::try_new(filter).ok() } else { None }
}
