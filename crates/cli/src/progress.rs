//! A progress bar on standard error. It is hidden with `--json` and when standard error is not a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

#[derive(Debug)]
pub(crate) struct ProgressDisplay(ProgressBar);

impl ProgressDisplay {
    /// Without a total it shows a spinner.
    pub(crate) fn for_bytes(json: bool, label: &'static str, total: Option<u64>) -> ProgressDisplay {
        let template = match total {
            Some(_) => "{msg} [{bar:30}] {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
            None => "{msg} {spinner} {bytes}, {bytes_per_sec}",
        };
        ProgressDisplay::new(json, label, total, template)
    }

    pub(crate) fn for_count(json: bool, label: &'static str) -> ProgressDisplay {
        ProgressDisplay::new(json, label, None, "{msg} {spinner} {human_pos}, {per_sec}")
    }

    /// How many of so many are done.
    pub(crate) fn for_count_of(json: bool, label: &'static str, total: u64) -> ProgressDisplay {
        ProgressDisplay::new(json, label, Some(total), "{msg} [{bar:30}] {human_pos} of {human_len}")
    }

    fn new(json: bool, label: &'static str, total: Option<u64>, template: &str) -> ProgressDisplay {
        // The library shows nothing if standard error is not a terminal.
        let target = if json { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(total, target).with_message(label);
        match ProgressStyle::with_template(template) {
            Ok(style) => ProgressDisplay(bar.with_style(style)),
            Err(_) => ProgressDisplay(bar),
        }
    }

    /// The total may change, too.
    pub(crate) fn set_of(&self, position: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(position);
    }

    pub(crate) fn set(&self, position: u64) {
        self.0.set_position(position);
    }
}

impl Drop for ProgressDisplay {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
