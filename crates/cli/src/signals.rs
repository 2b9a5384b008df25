//! Being asked to stop: the first signal asks politely, the second ends the process at once.

use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// The exit code of a program that was interrupted.
const INTERRUPTED: i32 = 130;

/// Knows whether somebody asked us to stop.
#[derive(Debug)]
pub(crate) struct Signals {
    asked: Arc<AtomicBool>,
    woken: mpsc::Receiver<()>,
}

impl Signals {
    /// Listens for interrupts and requests to terminate from now on.
    pub(crate) fn listen() -> Result<Signals, Failure> {
        let asked = Arc::new(AtomicBool::new(false));
        let (wake, woken) = mpsc::channel();
        let flag = asked.clone();
        let handler = move || {
            if flag.swap(true, Ordering::AcqRel) {
                std::process::exit(INTERRUPTED);
            }
            tracing::debug!("asked to stop");
            let _ = wake.send(());
        };
        ctrlc::set_handler(handler)
            .map_err(|why| Failure::new(format!("cannot listen for signals: {why}"), "try again"))?;
        Ok(Signals { asked, woken })
    }

    /// Whether somebody asked.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Waits until somebody asks, or so long. Says whether somebody did.
    pub(crate) fn wait(&self, at_most: Duration) -> bool {
        let _ = self.woken.recv_timeout(at_most);
        self.is_asked()
    }
}
