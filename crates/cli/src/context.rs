//! The context that every command gets: settings, clock and output format.

use crate::arguments::Global;
use crate::clock::SystemClock;
use crate::config::{SettingInputs, Settings, check_variable_name, load};
use crate::failure::Failure;
use crate::{logging, output};
use model::nostr::ServiceName;
use node::{Clock as _, Node};
use serde::Serialize;
use std::fmt::Display;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) settings: Arc<Settings>,
    pub(crate) json: bool,
    pub(crate) clock: SystemClock,
    /// Set while a running node executes the command for another process.
    pub(crate) inside: Option<InsideNode>,
    /// How others name this node in URLs, once that is known.
    pub(crate) service: OnceLock<ServiceName>,
}

/// The node that executes a command, and what the command has printed.
#[derive(Debug)]
pub(crate) struct InsideNode {
    pub(crate) node: Node,
    printed: Mutex<Printed>,
}

/// What a command has printed.
#[derive(Clone, Default, Debug)]
pub(crate) struct Printed {
    pub(crate) output: String,
    pub(crate) errors: String,
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
        Ok(Context {
            settings: Arc::new(settings),
            json: global.json,
            clock: SystemClock,
            inside: None,
            service: OnceLock::new(),
        })
    }

    /// For a command that this node executes for another process.
    pub(crate) fn inside(settings: Arc<Settings>, node: Node, json: bool) -> Context {
        let inside = InsideNode { node, printed: Mutex::default() };
        Context { settings, json, clock: SystemClock, inside: Some(inside), service: OnceLock::new() }
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.settings.data_dir
    }

    /// In Unix nanoseconds.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now().0
    }

    pub(crate) fn print<T: Serialize + Display>(&self, answer: &T) -> Result<(), Failure> {
        let text = output::render(self.json, answer)?;
        match &self.inside {
            Some(inside) => inside.print(|printed| printed.output.push_str(&text)),
            None => output::write_stdout(&text)?,
        }
        Ok(())
    }

    pub(crate) fn print_error(&self, text: &str) {
        match &self.inside {
            Some(inside) => inside.print(|printed| printed.errors.push_str(text)),
            None => output::write_stderr(text),
        }
    }

    /// What a command that runs inside a node has printed.
    pub(crate) fn printed(&self) -> Printed {
        let mut all = Printed::default();
        if let Some(inside) = &self.inside {
            inside.print(|printed| all = printed.clone());
        }
        all
    }
}

impl InsideNode {
    fn print(&self, print: impl FnOnce(&mut Printed)) {
        print(&mut self.printed.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
