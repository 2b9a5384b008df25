//! Shutdown signals: the first asks for a clean shutdown, the second ends the process at once.

use crate::failure::Failure;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// As shells report a program that SIGINT ended.
const INTERRUPTED_EXIT_CODE: i32 = 130;

#[derive(Debug)]
pub(crate) struct ShutdownSignals {
    requested: Arc<AtomicBool>,
    wake_receiver: mpsc::Receiver<()>,
}

impl ShutdownSignals {
    /// Handles SIGINT and SIGTERM from now on.
    pub(crate) fn listen() -> Result<ShutdownSignals, Failure> {
        let requested = Arc::new(AtomicBool::new(false));
        let (wake_sender, wake_receiver) = mpsc::channel();
        let flag = requested.clone();
        let handler = move || {
            if flag.swap(true, Ordering::AcqRel) {
                std::process::exit(INTERRUPTED_EXIT_CODE);
            }
            tracing::debug!("shutdown requested");
            let _ = wake_sender.send(());
        };
        ctrlc::set_handler(handler)
            .map_err(|why| Failure::new(format!("cannot listen for signals: {why}"), "try again"))?;
        Ok(ShutdownSignals { requested, wake_receiver })
    }

    pub(crate) fn is_shutdown_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Waits for a shutdown request or the timeout. Returns whether shutdown was requested.
    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let _ = self.wake_receiver.recv_timeout(timeout);
        self.is_shutdown_requested()
    }
}
