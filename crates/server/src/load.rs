//! Shedding load: a request that would wait for too long is refused at once, while that is cheap, and told when to come
//! again. Without it everybody waits ever longer, and nobody is told.
//!
//! Two things make requests wait. Writes wait for the writer: for as many as are under way, at the pace at which it has
//! answered lately. And everything waits for the threads that serve requests: a task that wants to wake every few
//! milliseconds measures by how much it wakes too late. A write waits for them twice: until it is read, which it has done
//! when it is looked at, and when its answer is there. A request is refused when all of this together is more than half of
//! what it may wait: the rest is for what was let in at the same time.

use crate::problem::Problem;
use engine::access::Action;
use model::Nanos;
use node::Node;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How often the lag of the threads is measured.
const LOOK: Duration = Duration::from_millis(5);
/// Over how long the pace of the writer is measured.
const PACE_NANOS: u64 = 100_000_000;
/// So many writes may always be under way: before anything was measured, and when one commit takes long.
const WRITES_MIN: u64 = 256;
/// How soon to come again: the queue empties within the time that it may take.
const COME_AGAIN_SECONDS: u64 = 1;

/// How busy the node is.
#[derive(Debug)]
pub struct LoadMeter {
    /// What a request may wait.
    wait_max: u64,
    /// By how much the threads are late, in nanoseconds.
    lag: AtomicU64,
    /// Writes that were handed to the writer and not answered.
    writes: AtomicU64,
    /// Writes that were answered since the start.
    answered: AtomicU64,
    /// Writes that are answered in a second; zero while that is unknown.
    pace: AtomicU64,
    /// Requests that were refused since the start.
    refused: AtomicU64,
}

/// A write that is under way. It goes with the command: whoever does not wait for the answer leaves the work behind.
pub(crate) struct WriteUnderWay(Arc<LoadMeter>);

impl WriteUnderWay {
    /// The writer has answered.
    pub(crate) fn answered(self) {
        self.0.answered.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for WriteUnderWay {
    fn drop(&mut self) {
        self.0.writes.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LoadMeter {
    pub(crate) fn new(wait_max: Duration) -> LoadMeter {
        let zero = || AtomicU64::new(0);
        LoadMeter {
            wait_max: nanos(wait_max),
            lag: zero(),
            writes: zero(),
            answered: zero(),
            pace: zero(),
            refused: zero(),
        }
    }

    /// Counts a write until it is answered.
    pub(crate) fn begin_write(self: &Arc<LoadMeter>) -> WriteUnderWay {
        self.writes.fetch_add(1, Ordering::Relaxed);
        WriteUnderWay(self.clone())
    }

    /// Refuses what would wait too long. Whether the node lives, and what the operator does about it, is always answered.
    pub(crate) fn admit(&self, action: Action) -> Result<(), Problem> {
        let is_write = match action {
            Action::Look | Action::Operate => return Ok(()),
            Action::Read | Action::Administer | Action::Vouch => false,
            Action::Write | Action::Change | Action::Own | Action::Submit => true,
        };
        if self.wait(is_write) <= self.wait_max / 2 {
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(Problem::overloaded("the node is busy: this would have to wait for too long").after(COME_AGAIN_SECONDS))
    }

    /// How many requests were refused since the start.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// How long a request would wait, in nanoseconds.
    fn wait(&self, is_write: bool) -> u64 {
        let lag = self.lag.load(Ordering::Relaxed);
        let (writes, pace) = (self.writes.load(Ordering::Relaxed), self.pace.load(Ordering::Relaxed));
        if !is_write || writes < WRITES_MIN || pace == 0 {
            return lag;
        }
        lag.saturating_mul(2).saturating_add(writes.saturating_mul(Nanos::SECOND) / pace)
    }

    /// As if the threads were late by so much: for tests.
    #[cfg(feature = "test_support")]
    pub(crate) fn be_late(&self, lag: Duration) {
        self.lag.store(nanos(lag), Ordering::Relaxed);
    }

    /// As if the writer answered so many writes in a second: for tests.
    #[cfg(feature = "test_support")]
    pub(crate) fn be_slow(&self, writes_per_second: u64) {
        self.pace.store(writes_per_second, Ordering::Relaxed);
    }

    /// Takes note that the threads are late by so much. It falls slowly, because they are not late for everybody alike.
    fn note_lag(&self, lag: u64) {
        let before = self.lag.load(Ordering::Relaxed);
        self.lag.store(lag.max(before - before / 8), Ordering::Relaxed);
    }

    /// Takes note that so many writes were answered in so long, while there were some to answer.
    fn note_pace(&self, answered: u64, nanos: u64) {
        let now = answered.saturating_mul(Nanos::SECOND) / nanos.max(1);
        let before = self.pace.load(Ordering::Relaxed);
        let mixed = if before == 0 { now } else { (3 * before + now) / 4 };
        // Never zero again: a writer that answers nothing for a while is slow, not unknown.
        self.pace.store(mixed.max(u64::from(before > 0)), Ordering::Relaxed);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Measures for as long as the server runs.
pub(crate) async fn measure(meter: Arc<LoadMeter>, node: Node) {
    // Without a clock that nobody sets nothing can be measured, and nothing is refused.
    let Some(mut began) = node.uptime() else { return std::future::pending().await };
    let (mut since, mut counted) = (began, 0);
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(now) = node.uptime() else { continue };
        meter.note_lag(now.0.saturating_sub(began.0).saturating_sub(nanos(LOOK)));
        began = now;
        let elapsed = now.0.saturating_sub(since.0);
        if elapsed >= PACE_NANOS {
            let answered = meter.answered.load(Ordering::Relaxed);
            // A pace says something only where there was always something to do.
            if meter.writes.load(Ordering::Relaxed) >= WRITES_MIN / 2 {
                meter.note_pace(answered - counted, elapsed);
            }
            (since, counted) = (now, answered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(writes: u64, pace: u64, lag_ms: u64) -> LoadMeter {
        let meter = LoadMeter::new(Duration::from_secs(1));
        meter.writes.store(writes, Ordering::Relaxed);
        meter.pace.store(pace, Ordering::Relaxed);
        meter.lag.store(lag_ms * 1_000_000, Ordering::Relaxed);
        meter
    }

    #[test]
    fn what_would_wait_too_long_is_refused_and_told_when_to_come_again() {
        let busy = meter(6000, 10_000, 0);
        let refused = busy.admit(Action::Write).expect_err("six tenths of a second are too long");
        assert_eq!((refused.status, refused.retry_after), (503, Some(1)));
        assert!(busy.admit(Action::Read).is_ok(), "reads do not wait for the writer");
        assert_eq!(busy.refused(), 1);
        assert!(meter(5000, 10_000, 0).admit(Action::Write).is_ok());
        assert!(meter(5000, 10_000, 1).admit(Action::Change).is_err(), "both waits count");
        let late = meter(3000, 10_000, 101);
        assert!(late.admit(Action::Write).is_err(), "the answer waits for a thread as well");
        assert!(late.admit(Action::Read).is_ok());
        let late = meter(0, 0, 501);
        for action in [Action::Read, Action::Write, Action::Administer] {
            assert!(late.admit(action).is_err(), "{action:?}");
        }
        for action in [Action::Look, Action::Operate] {
            assert!(late.admit(action).is_ok(), "{action:?}");
        }
    }

    #[test]
    fn a_few_writes_are_let_in_however_slow_the_writer_was() {
        assert!(meter(WRITES_MIN - 1, 1, 0).admit(Action::Write).is_ok());
        assert!(meter(WRITES_MIN, 1, 0).admit(Action::Write).is_err());
        assert!(meter(1_000_000, 0, 0).admit(Action::Write).is_ok(), "nothing was measured yet");
    }

    #[test]
    fn writes_are_counted_while_they_are_under_way() {
        let meter = Arc::new(meter(0, 0, 0));
        let (answered, turned_away) = (meter.begin_write(), meter.begin_write());
        assert_eq!(meter.writes.load(Ordering::Relaxed), 2);
        answered.answered();
        drop(turned_away);
        assert_eq!((meter.writes.load(Ordering::Relaxed), meter.answered.load(Ordering::Relaxed)), (0, 1));
    }

    #[test]
    fn lag_is_believed_at_once_and_forgotten_slowly_and_the_pace_is_smoothed() {
        let meter = meter(0, 0, 0);
        meter.note_lag(800);
        meter.note_lag(0);
        assert_eq!(meter.lag.load(Ordering::Relaxed), 700);
        meter.note_pace(1000, Nanos::SECOND / 10);
        assert_eq!(meter.pace.load(Ordering::Relaxed), 10_000);
        meter.note_pace(200, Nanos::SECOND / 10);
        assert_eq!(meter.pace.load(Ordering::Relaxed), 8000);
        (0..100).for_each(|_| meter.note_pace(0, Nanos::SECOND / 10));
        assert_eq!(meter.pace.load(Ordering::Relaxed), 1);
    }

    /// A clock on which more than half a second passes whenever somebody asks for the time since the start.
    #[derive(Debug, Default)]
    struct LateClock(AtomicU64);

    impl node::Clock for LateClock {
        fn now(&self) -> Nanos {
            Nanos(1_800_000_000 * Nanos::SECOND)
        }

        fn uptime(&self) -> Option<Nanos> {
            Some(Nanos(self.0.fetch_add(Nanos::SECOND * 6 / 10, Ordering::Relaxed)))
        }
    }

    #[tokio::test]
    async fn threads_that_come_too_late_make_the_node_refuse() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = store::FolderDisk::new(folder.path()).expect("a disk");
        let store = store::Store::open(Arc::new(disk), store::MasterKey::new(&[5; 32]), store::StoreOptions::default());
        let (clock, sources) = (Arc::new(LateClock::default()), Arc::new(node::fetch::hunter::NoSources));
        let node = Node::start(store.expect("a store"), clock, sources, node::NodeOptions::default());
        let meter = Arc::new(meter(0, 0, 0));
        assert!(meter.admit(Action::Read).is_ok());
        let measuring = tokio::spawn(measure(meter.clone(), node.clone()));
        let refused = async {
            while meter.admit(Action::Read).is_ok() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), refused).await.expect("it is late");
        measuring.abort();
        node.stop();
    }
}
