//! One schedule row, led through needs, retries and hunts in random order.

use super::super::{BackoffPolicy, HuntDelays, Nanoseconds, ScheduleRow, on_hunt_ended, on_new_need, on_retry};
use super::backoffs::{ORIGINS, RHYTHMS, expected_delay, expected_rest, is_jittered};
use super::ensure;
use super::random::DriverRandom;

const SECOND: Nanoseconds = 1_000_000_000;
const STEPS: u32 = 40;

pub(super) fn check(random: &mut DriverRandom) -> Result<(), String> {
    let rhythm = random.pick(RHYTHMS);
    let mut life = Life { rhythm, row: None, now: random.between(0, 1_000 * SECOND) };
    for _ in 0..STEPS {
        life.now += random.between(1, 100 * SECOND);
        match life.row {
            Some(row) if random.one_in(2) => life.hunt(random, row)?,
            Some(_) | None => life.interrupt(random)?,
        }
    }
    Ok(())
}

/// One group's row and the time.
struct Life {
    rhythm: BackoffPolicy,
    row: Option<ScheduleRow>,
    now: Nanoseconds,
}

impl Life {
    /// A need or, if there is something to retry, perhaps a person who asks.
    fn interrupt(&mut self, random: &mut DriverRandom) -> Result<(), String> {
        match self.row {
            Some(row) if random.one_in(3) => self.retry(row),
            Some(_) | None => self.need(random),
        }
    }

    fn need(&mut self, random: &mut DriverRandom) -> Result<(), String> {
        let origin = random.pick(ORIGINS);
        let wanted = self.now + expected_delay(self.rhythm, origin);
        let row = on_new_need(self.row, self.rhythm, origin, HuntDelays::default(), self.now);
        let expected = match (self.row, self.rhythm) {
            (None, _) => ScheduleRow::first(wanted),
            (Some(before), BackoffPolicy::Content) => before,
            (Some(before), _) if before.next <= self.now => {
                let again = before.again.into_iter().chain([wanted]).min();
                ScheduleRow { attempts: 0, again, joined: before.joined + 1, ..before }
            }
            (Some(before), _) => ScheduleRow { attempts: 0, next: before.next.min(wanted), ..before },
        };
        ensure(row == expected, || format!("a need made {row:?} of {:?}, not {expected:?}", self.row))?;
        self.row = Some(row);
        Ok(())
    }

    fn retry(&mut self, before: ScheduleRow) -> Result<(), String> {
        let row = on_retry(before, self.now);
        let expected = ScheduleRow { next: self.now, ..before };
        ensure(row == expected, || format!("a retry made {row:?} of {before:?}"))?;
        self.row = Some(row);
        Ok(())
    }

    /// A hunt that begins when the row is due, is perhaps interrupted, and ends.
    fn hunt(&mut self, random: &mut DriverRandom, due: ScheduleRow) -> Result<(), String> {
        self.now = self.now.max(due.next);
        let began = self.now;
        let interrupted = random.one_in(2);
        if interrupted {
            self.now += random.between(1, 20 * SECOND);
            self.interrupt(random)?;
        }
        self.now += random.between(1, 20 * SECOND);
        let pending = !random.one_in(6);
        let before = self.row.unwrap_or(due);
        let jitter = random.between(0, 200) as u16;
        self.row = on_hunt_ended(&before, due.mark(), pending, self.rhythm, began, self.now, jitter);
        match (pending, interrupted && before != due) {
            (false, _) => ensure(self.row.is_none(), || "a group with nothing pending stays scheduled".to_owned()),
            (true, true) => self.was_left_alone(due, before),
            (true, false) => self.was_moved_on(before, began),
        }
    }

    /// After a hunt during which somebody set another time.
    fn was_left_alone(&self, due: ScheduleRow, before: ScheduleRow) -> Result<(), String> {
        // A person's time is now at the latest; the needs that joined have their own.
        let (next, again) = match before.again {
            Some(again) if before.next == due.next => (again, None),
            again => (before.next, again),
        };
        let expected = ScheduleRow { next: next.max(self.now), again, ..before };
        ensure(self.row == Some(expected), || format!("an interrupted hunt made {:?} of {before:?}", self.row))
    }

    /// After a hunt that nobody interrupted.
    fn was_moved_on(&self, before: ScheduleRow, began: Nanoseconds) -> Result<(), String> {
        let complaint = || format!("a hunt from {began} to {} made {:?} of {before:?}", self.now, self.row);
        let Some(row) = self.row else { return Err(complaint()) };
        let rest = row.next.saturating_sub(self.now);
        let counted = row.attempts == before.attempts + 1 && row.last == Some(began) && row.again.is_none();
        ensure(counted && is_jittered(rest, expected_rest(self.rhythm, row.attempts)), complaint)
    }
}
