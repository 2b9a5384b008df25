//! The pace of an import: how much of it may be under way, and when nothing is.

use crate::locks;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Records under way hold at most this much, and at most one record more.
const BYTES_UNDER_WAY_MAX: u64 = 96 << 20;
/// How often whoever waits looks whether waiting still makes sense.
const PATIENCE: Duration = Duration::from_millis(500);

/// What is under way.
#[derive(Debug, Default)]
pub(super) struct ImportWindow {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    records: u64,
    bytes: u64,
}

/// The place of one record under way. It is given back when the record was answered, or forgotten on the way.
#[derive(Debug)]
pub(super) struct ImportSlot {
    pace: Arc<ImportWindow>,
    bytes: u64,
}

impl ImportWindow {
    fn lock(&self) -> MutexGuard<'_, State> {
        locks::lock(&self.state)
    }

    /// Waits for room and takes a place; none if that became pointless.
    pub(super) fn enter(self: &Arc<ImportWindow>, bytes: u64, is_pointless: &dyn Fn() -> bool) -> Option<ImportSlot> {
        self.wait(is_pointless, |state| state.bytes >= BYTES_UNDER_WAY_MAX).then(|| {
            let mut state = self.lock();
            state.records += 1;
            state.bytes += bytes;
            ImportSlot { pace: self.clone(), bytes }
        })
    }

    /// Waits until nothing is under way. Says whether it came to that before it became pointless.
    pub(super) fn drain(&self, is_pointless: &dyn Fn() -> bool) -> bool {
        self.wait(is_pointless, |state| state.records > 0)
    }

    fn wait(&self, is_pointless: &dyn Fn() -> bool, must_wait: impl Fn(&State) -> bool) -> bool {
        let mut state = self.lock();
        while must_wait(&state) {
            let (guard, waited) = locks::after_wait(self.changed.wait_timeout(state, PATIENCE));
            state = guard;
            if waited.timed_out() && is_pointless() {
                return false;
            }
        }
        true
    }
}

impl Drop for ImportSlot {
    fn drop(&mut self) {
        let mut state = self.pace.lock();
        state.records -= 1;
        state.bytes -= self.bytes;
        drop(state);
        self.pace.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_waits_while_as_much_as_may_be_is_under_way() {
        let window = Arc::new(ImportWindow::default());
        let almost = window.enter(BYTES_UNDER_WAY_MAX - 1, &|| true).expect("room");
        let last = window.enter(1, &|| true).expect("room for one more");
        assert!(window.enter(1, &|| true).is_none(), "it is full");
        assert!(!window.drain(&|| true), "two are under way");
        drop(almost);
        drop(window.enter(1, &|| true).expect("room again"));
        drop(last);
        assert!(window.drain(&|| true));
    }

    #[test]
    fn whoever_waits_is_woken_when_there_is_room() {
        let window = Arc::new(ImportWindow::default());
        let slot = window.enter(BYTES_UNDER_WAY_MAX, &|| true).expect("room");
        let (waiting, looks) = (window.clone(), std::sync::atomic::AtomicU32::new(0));
        std::thread::scope(|scope| {
            // Whoever is not woken gives up at the first look.
            let waiter = scope
                .spawn(|| waiting.enter(1, &|| looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 3).is_some());
            drop(slot);
            assert!(waiter.join().expect("it ends"));
        });
    }
}
