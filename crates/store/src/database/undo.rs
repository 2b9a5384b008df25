//! Noticing what one part of a batch changed, so that it can be undone by running the batch again without it.

use crate::database::batch::Batch;

impl Batch<'_> {
    /// Does a part of the batch's work. Says whether it changed anything.
    pub fn watch_changes<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, bool) {
        let was_changed = std::mem::replace(&mut self.is_changed, false);
        let answer = work(self);
        let has_changed = self.is_changed;
        self.is_changed |= was_changed;
        (answer, has_changed)
    }
}
