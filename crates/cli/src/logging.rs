//! The log goes to standard error: for people, or as JSON lines.

use crate::failure::Failure;
use tracing_subscriber::EnvFilter;

/// Starts logging at this level or filter.
pub(crate) fn start(filter: &str, as_json: bool) -> Result<(), Failure> {
    let parsed = EnvFilter::try_new(filter).map_err(|why| {
        let what_to_do = "pass --log error, warn, info, debug or trace, or a filter such as anteroom_node=debug";
        Failure::new(format!("{filter:?} is not a log level or filter: {why}"), what_to_do)
    })?;
    let builder =
        tracing_subscriber::fmt().with_env_filter(parsed).with_writer(std::io::stderr).log_internal_errors(false);
    // Only tests of this crate could have started it before, and then it goes on as it is.
    let _ = if as_json { builder.json().try_init() } else { builder.with_target(false).try_init() };
    Ok(())
}
