//! Moments as people write them: date and time in UTC, in the Gregorian calendar.

use crate::Nanos;
use std::fmt;

const DAY_SECONDS: u64 = 86_400;

/// Date and time of day in UTC, to the second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct CivilTime {
    pub year: u64,
    /// From 1.
    pub month: u64,
    /// Of the month, from 1.
    pub day: u64,
    /// From 0 to 23.
    pub hour: u64,
    pub minute: u64,
    pub second: u64,
}

impl CivilTime {
    /// Converts a time to UTC date and time of day.
    pub fn of(at: Nanos) -> CivilTime {
        let seconds = at.0 / Nanos::SECOND;
        let (year, month, day) = date(seconds / DAY_SECONDS);
        let second = seconds % DAY_SECONDS;
        CivilTime { year, month, day, hour: second / 3600, minute: second / 60 % 60, second: second % 60 }
    }
}

/// Year, month and day, from the number of days since 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from the first of March of the year 0, so that the leap day is the last of a year.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// A moment as RFC 3339 writes it, with nanoseconds: `2026-03-21T17:04:09.000000001Z`. Such texts sort as the moments do,
/// and no client rounds them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Rfc3339(pub Nanos);

impl fmt::Display for Rfc3339 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CivilTime { year, month, day, hour, minute, second } = CivilTime::of(self.0);
        let nanos = self.0.0 % Nanos::SECOND;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{nanos:09}Z")
    }
}

impl serde::Serialize for Rfc3339 {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_with_every_digit() {
        assert_eq!(Rfc3339(Nanos(0)).to_string(), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(Rfc3339(Nanos(1_774_112_649_000_000_001)).to_string(), "2026-03-21T17:04:09.000000001Z");
        assert_eq!(Rfc3339(Nanos(951_782_400_120_000_000)).to_string(), "2000-02-29T00:00:00.120000000Z");
        assert_eq!(Rfc3339(Nanos(u64::MAX)).to_string(), "2554-07-21T23:34:33.709551615Z");
        assert_eq!(serde_json::json!(Rfc3339(Nanos(5))), "1970-01-01T00:00:00.000000005Z");
    }
}
