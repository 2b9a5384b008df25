//! A progress bar on standard error, where a person looks; nothing elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A progress bar, or nothing.
#[derive(Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// A bar over so many bytes, or over an unknown number of them.
    pub(crate) fn bytes(json: bool, doing: &'static str, total: Option<u64>) -> Bar {
        let template = match total {
            Some(_) => "{msg} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            None => "{msg} {spinner} {bytes}, {bytes_per_sec}",
        };
        Bar::new(json, doing, total, template)
    }

    /// A count of things.
    pub(crate) fn count(json: bool, doing: &'static str) -> Bar {
        Bar::new(json, doing, None, "{msg} {spinner} {human_pos}, {per_sec}")
    }

    fn new(json: bool, doing: &'static str, total: Option<u64>, template: &str) -> Bar {
        // Standard error that is not a terminal shows no bar by itself.
        let target = if json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(total, target).with_message(doing);
        match ProgressStyle::with_template(template) {
            Ok(style) => Bar(bar.with_style(style)),
            Err(_) => Bar(bar),
        }
    }

    /// So far.
    pub(crate) fn at(&self, position: u64) {
        self.0.set_position(position);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
