//! The context that every command gets: settings, clock and output format.

use crate::arguments::Global;
use crate::clock::SystemClock;
use crate::config::{SettingInputs, Settings, check_variable_name, load};
use crate::failure::Failure;
use crate::{logging, output};
use node::Clock as _;
use serde::Serialize;
use std::fmt::Display;
use std::path::Path;

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Settings,
    pub(crate) json: bool,
    pub(crate) clock: SystemClock,
}

impl Context {
    /// Reads the settings and starts the log.
    pub(crate) fn new(global: &Global) -> Result<Context, Failure> {
        let inputs = SettingInputs {
            data_dir: global.data_dir.clone(),
            master_key: global.master_key.clone(),
            config: global.config.clone(),
            listen: global.listen.clone(),
            log: global.log.clone(),
            set: &global.set,
            environment: &|name| std::env::var_os(name),
        };
        let settings = load(&inputs)?;
        // With --json the output is one document, so the log is off unless it was configured.
        let filter = if global.json && settings.is_default("log") { "off" } else { &settings.log };
        logging::start(filter, global.log_json)?;
        for (name, _) in std::env::vars_os() {
            if let Some(warning) = name.to_str().and_then(check_variable_name) {
                tracing::warn!("{warning}");
            }
        }
        Ok(Context { settings, json: global.json, clock: SystemClock })
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.settings.data_dir
    }

    /// In Unix nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().0
    }

    pub(crate) fn print<T: Serialize + Display>(&self, answer: &T) -> Result<(), Failure> {
        output::print(self.json, answer)
    }
}
