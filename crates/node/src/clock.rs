//! The clock is an argument: only the command line makes a real one. It is watched, because it may be set wrong.

use crate::locks;
use model::Nanos;
use std::sync::{Arc, Mutex};

/// Something that tells the time.
pub trait Clock: Send + Sync + std::fmt::Debug + 'static {
    fn now(&self) -> Nanos;

    /// The time since some moment, which nobody can set; none if there is no such clock.
    fn uptime(&self) -> Option<Nanos> {
        None
    }
}

/// A clock that differs by more than this from what has passed was set; less is adjustment.
pub const CLOCK_STEP_MIN: u64 = 60 * Nanos::SECOND;
/// A clock that was set is believed when it has gone on from there for so long.
pub const CLOCK_TRUST_NANOS: u64 = 300 * Nanos::SECOND;

/// By how much a clock was set that is not believed yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockJump {
    /// Forwards if positive.
    pub by_nanos: i64,
    /// When, by the clock that nobody sets.
    since: Nanos,
}

/// A clock that is compared with one that nobody sets. When it jumps, in either direction, the time goes on as if it had
/// not, until the clock is back or has gone on for a while: events are stamped with nothing that one wrong reading says,
/// and nothing expires because of one.
#[derive(Debug)]
pub(crate) struct WatchedClock {
    clock: Arc<dyn Clock>,
    watched: Mutex<Watched>,
}

#[derive(Default, Debug)]
struct Watched {
    /// What the clock told last, and when, while it was believed.
    believed: Option<(Nanos, Nanos)>,
    jump: Option<ClockJump>,
}

impl WatchedClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> WatchedClock {
        WatchedClock { clock, watched: Mutex::default() }
    }

    pub(crate) fn now(&self) -> Nanos {
        let Some(uptime) = self.clock.uptime() else { return self.clock.now() };
        locks::lock(&self.watched).read(self.clock.now(), uptime)
    }

    pub(crate) fn uptime(&self) -> Option<Nanos> {
        self.clock.uptime()
    }

    /// By how much the clock was set, while that is not believed.
    pub(crate) fn jump(&self) -> Option<ClockJump> {
        locks::lock(&self.watched).jump
    }
}

impl Watched {
    /// The time to go by when the clock tells this.
    fn read(&mut self, told: Nanos, uptime: Nanos) -> Nanos {
        let expected = match self.believed {
            Some((then, at)) => then.plus(uptime.0.saturating_sub(at.0)),
            None => told,
        };
        let by_nanos = difference(told, expected);
        if by_nanos.unsigned_abs() < CLOCK_STEP_MIN {
            if self.jump.take().is_some() {
                tracing::warn!("the system clock is back where it was; it is believed again");
            }
            self.believed = Some((told, uptime));
            return told;
        }
        match self.jump {
            Some(jump) if jump.by_nanos.abs_diff(by_nanos) < CLOCK_STEP_MIN => {
                if uptime.0.saturating_sub(jump.since.0) < CLOCK_TRUST_NANOS {
                    return expected;
                }
                tracing::warn!(
                    seconds = by_nanos / 1_000_000_000,
                    "the system clock has stayed where it was set; it is believed now"
                );
                (self.jump, self.believed) = (None, Some((told, uptime)));
                told
            }
            Some(_) | None => {
                tracing::error!(
                    seconds = by_nanos / 1_000_000_000,
                    "the system clock jumped; the node goes on by the time that has passed until the clock is back, or \
                     has stayed there for five minutes"
                );
                self.jump = Some(ClockJump { by_nanos, since: uptime });
                expected
            }
        }
    }
}

fn difference(one: Nanos, other: Nanos) -> i64 {
    i64::try_from(i128::from(one.0) - i128::from(other.0)).unwrap_or(if one > other { i64::MAX } else { i64::MIN })
}

#[cfg(test)]
mod tests {
    use super::{CLOCK_STEP_MIN, CLOCK_TRUST_NANOS, Watched};
    use model::Nanos;
    use proptest::prelude::*;

    const YEAR: u64 = 365 * 24 * 3600 * Nanos::SECOND;
    const START: u64 = 50 * YEAR;

    /// Reads at an uptime what the clock tells then.
    fn read(watched: &mut Watched, told: u64, uptime: u64) -> u64 {
        watched.read(Nanos(told), Nanos(uptime)).0
    }

    #[test]
    fn a_moment_a_year_ahead_is_not_believed_and_the_clock_is_when_it_is_back() {
        let mut watched = Watched::default();
        let second = Nanos::SECOND;
        assert_eq!(read(&mut watched, START, 0), START);
        assert_eq!(read(&mut watched, START + second + YEAR, second), START + second);
        assert_eq!(watched.jump.map(|jump| jump.by_nanos), Some(YEAR as i64));
        assert_eq!(read(&mut watched, START + 9 * second + YEAR, 9 * second), START + 9 * second);
        assert_eq!(read(&mut watched, START + 10 * second, 10 * second), START + 10 * second);
        assert_eq!(watched.jump, None);
    }

    #[test]
    fn a_minute_is_a_step_and_less_is_not() {
        for (by, is_step) in [(CLOCK_STEP_MIN - 1, false), (CLOCK_STEP_MIN, true)] {
            let mut watched = Watched::default();
            read(&mut watched, START, 0);
            read(&mut watched, START + by, 0);
            assert_eq!(watched.jump.is_some(), is_step, "{by}");
        }
    }

    #[test]
    fn a_moment_in_the_past_is_not_believed_either() {
        let mut watched = Watched::default();
        assert_eq!(read(&mut watched, START, 0), START);
        assert_eq!(read(&mut watched, 0, Nanos::SECOND), START + Nanos::SECOND);
        assert_eq!(watched.jump.map(|jump| jump.by_nanos), Some(-((START + Nanos::SECOND) as i64)));
    }

    #[test]
    fn a_clock_that_stays_where_it_was_set_is_believed_after_five_minutes_and_not_before() {
        for ahead in [true, false] {
            let mut watched = Watched::default();
            let told = |uptime: u64| if ahead { START + YEAR + uptime } else { START - YEAR + uptime };
            assert_eq!(read(&mut watched, START, 0), START);
            assert_eq!(read(&mut watched, told(1), 1), START + 1);
            let almost = CLOCK_TRUST_NANOS;
            assert_eq!(read(&mut watched, told(almost), almost), START + almost);
            let enough = CLOCK_TRUST_NANOS + 1;
            assert_eq!(read(&mut watched, told(enough), enough), told(enough));
            assert_eq!(watched.jump, None);
            assert_eq!(read(&mut watched, told(enough + 1), enough + 1), told(enough + 1));
        }
    }

    #[test]
    fn a_clock_that_jumps_on_and_on_is_never_believed() {
        let mut watched = Watched::default();
        assert_eq!(read(&mut watched, START, 0), START);
        for jumps in 1..20 {
            let uptime = jumps * CLOCK_TRUST_NANOS;
            assert_eq!(read(&mut watched, START + jumps * YEAR, uptime), START + uptime);
        }
    }

    proptest! {
        /// However the clock is adjusted in small steps, it is what it says; the time never leaves what has passed by more
        /// than a step unless the clock has stayed there.
        #[test]
        fn small_adjustments_are_followed(steps in prop::collection::vec((0..3600_u64, -59_i64..60), 1..50)) {
            let mut watched = Watched::default();
            let (mut uptime, mut told) = (0, START);
            read(&mut watched, told, uptime);
            for (passed, adjusted) in steps {
                uptime += passed * Nanos::SECOND;
                told = (told + passed * Nanos::SECOND).saturating_add_signed(adjusted * 1_000_000_000);
                prop_assert_eq!(read(&mut watched, told, uptime), told);
                prop_assert_eq!(watched.jump, None);
            }
            prop_assert!(CLOCK_STEP_MIN == 60 * Nanos::SECOND);
        }
    }
}
