//! Numbers, moments and sizes as people read them.

use model::Nanos;
use model::calendar::CivilTime;
use node::explain::HuntState;

/// A moment as `2026-03-21 17:04:09 UTC`.
pub(crate) fn moment(nanos: u64) -> String {
    let CivilTime { year, month, day, hour, minute, second } = CivilTime::of(Nanos(nanos));
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A length of time in its greatest unit, such as `3 days`.
pub(crate) fn span(nanos: u64) -> String {
    let seconds = nanos / Nanos::SECOND;
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    match units.iter().find(|(length, _)| seconds >= *length) {
        Some((length, unit)) => count(seconds / length, unit),
        None => "less than a second".to_owned(),
    }
}

/// A moment with how far it is from now.
pub(crate) fn moment_from(now: u64, at: u64) -> String {
    if at <= now {
        format!("{} ({} ago)", moment(at), span(now - at))
    } else {
        format!("{} (in {})", moment(at), span(at - now))
    }
}

/// How a hunt goes: what was tried, and when it is tried next.
pub(crate) fn hunt(now: u64, hunted: &HuntState) -> String {
    let tried = match (hunted.attempts, hunted.last) {
        (0, _) | (_, None) => "not tried yet".to_owned(),
        (attempts, Some(last)) => {
            let attempts = count(u64::from(attempts), "attempt");
            format!("{attempts} so far, the last {}", moment_from(now, last))
        }
    };
    if hunted.next <= now {
        format!("{tried}; due as soon as the node runs")
    } else {
        format!("{tried}; next {}", moment_from(now, hunted.next))
    }
}

/// A number and its unit: `1 event`, `2 events`.
pub(crate) fn count(number: u64, unit: &str) -> String {
    if number == 1 { format!("1 {unit}") } else { format!("{number} {unit}s") }
}

/// A size such as `3.2 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(length, _)| bytes >= *length) {
        Some((length, unit)) => format!("{:.1} {unit}", bytes as f64 / *length as f64),
        None => count(bytes, "byte"),
    }
}

/// Text that others wrote, with everything that could play tricks on a terminal spelled out.
pub(crate) fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => tamed.push(letter),
            // Controls, and the marks that change the direction of what follows.
            _ if letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                tamed.extend(letter.escape_unicode());
            }
            _ => tamed.push(letter),
        }
    }
    tamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_774_112_649, "2026-03-21 17:04:09 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(moment(seconds * Nanos::SECOND), text);
        }
        assert!(moment(u64::MAX).starts_with("2554"));
    }

    #[test]
    fn spans_and_sizes_have_one_unit() {
        assert_eq!(span(0), "less than a second");
        assert_eq!(span(119 * Nanos::SECOND), "1 minute");
        assert_eq!(span(u64::MAX), "213503 days");
        assert_eq!((size(1), size(1023), size(1536)), ("1 byte".into(), "1023 bytes".into(), "1.5 KiB".into()));
    }

    #[test]
    fn nothing_plays_tricks_on_a_terminal() {
        assert_eq!(tame("a\u{1b}[2Jb\nc\u{202e}"), "a\\u{1b}[2Jb\nc\\u{202e}");
    }
}
