//! Background threads: each has a name, and a panic in it is logged under that name.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, JoinHandle};

/// Starts a thread. Names of more than 15 bytes are cut off by the system.
pub(crate) fn spawn(name: &'static str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    Builder::new().name(name.to_owned()).spawn(move || {
        run_logged(name, work);
    })
}

/// Runs the work of a thread, and logs if it panics. Says whether it came to its end.
pub(crate) fn run_logged(name: &'static str, work: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(()) => true,
        Err(panic) => {
            tracing::error!(thread = name, panic = panic_text(&*panic), "a background thread panicked");
            false
        }
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&'static str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
