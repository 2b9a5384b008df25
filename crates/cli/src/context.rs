//! What every command has at hand: the settings, the clock, and how to answer.

use crate::arguments::Global;
use crate::clock::SystemClock;
use crate::config::{Given, Loaded, load, unknown_variable};
use crate::failure::Failure;
use crate::{logging, output};
use node::Clock as _;
use serde::Serialize;
use std::fmt::Display;
use std::path::Path;

/// What every command has at hand.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) loaded: Loaded,
    pub(crate) json: bool,
    pub(crate) clock: SystemClock,
}

impl Context {
    /// Reads the settings and starts the log.
    pub(crate) fn new(global: &Global) -> Result<Context, Failure> {
        let given = Given {
            data_dir: global.data_dir.clone(),
            master_key: global.master_key.clone(),
            config: global.config.clone(),
            listen: global.listen.clone(),
            log: global.log.clone(),
            set: &global.set,
            environment: &|name| std::env::var_os(name),
        };
        let loaded = load(&given)?;
        // Who reads JSON wants one document, not the log around it, unless both were asked for.
        let filter = if global.json && loaded.is_default("log") { "off" } else { &loaded.log };
        logging::start(filter, global.log_json)?;
        for (name, _) in std::env::vars_os() {
            if let Some(warning) = name.to_str().and_then(unknown_variable) {
                tracing::warn!("{warning}");
            }
        }
        Ok(Context { loaded, json: global.json, clock: SystemClock })
    }

    /// The data folder.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.loaded.data_dir
    }

    /// Now, in Unix nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().0
    }

    /// Shows an answer.
    pub(crate) fn show<T: Serialize + Display>(&self, answer: &T) -> Result<(), Failure> {
        output::show(self.json, answer)
    }
}
