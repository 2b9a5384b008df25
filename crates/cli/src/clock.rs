//! The system clock. No other module reads the time.

use model::Nanos;
use node::Clock;
use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Nanos {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Goes on while the machine sleeps.
    fn uptime(&self) -> Option<Nanos> {
        let since = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(since.tv_sec).ok()?.checked_mul(Nanos::SECOND)?;
        Some(Nanos(seconds.saturating_add(u64::try_from(since.tv_nsec).ok()?)))
    }
}
