//! Moments as people write them: date and time in UTC, in the Gregorian calendar.

use crate::Nanos;

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
