//! Formats numbers, times and sizes, and escapes text from other people for the terminal.

use model::Nanos;
use model::calendar::CivilTime;
use node::explain::HuntState;
use node::fetch::reports::{DomainState, SourceReport};

/// For example `2026-03-21 17:04:09 UTC`.
pub(crate) fn format_time(nanos: u64) -> String {
    let CivilTime { year, month, day, hour, minute, second } = CivilTime::of(Nanos(nanos));
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// In the largest unit, for example `3 days`.
pub(crate) fn format_duration(nanos: u64) -> String {
    let seconds = nanos / Nanos::SECOND;
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    match units.iter().find(|(length, _)| seconds >= *length) {
        Some((length, unit)) => format_count(seconds / length, unit),
        None => "less than a second".to_owned(),
    }
}

/// With the distance from now, for example `2026-03-21 17:04:09 UTC (3 days ago)`.
pub(crate) fn format_time_relative(now: u64, at: u64) -> String {
    if at <= now {
        format!("{} ({} ago)", format_time(at), format_duration(now - at))
    } else {
        format!("{} (in {})", format_time(at), format_duration(at - now))
    }
}

/// The attempts of a hunt so far, and the next one.
pub(crate) fn format_hunt(now: u64, hunted: &HuntState) -> String {
    let tried = match (hunted.attempts, hunted.last) {
        (0, _) | (_, None) => "no attempt yet".to_owned(),
        (attempts, Some(last)) => {
            let attempts = format_count(u64::from(attempts), "attempt");
            format!("{attempts}, the last one {}", format_time_relative(now, last))
        }
    };
    match hunted.next {
        None => format!("{tried}; nobody is known who could be asked: it waits until somebody brings it"),
        Some(next) if next <= now => format!("{tried}; next attempt as soon as the node runs"),
        Some(next) => format!("{tried}; next attempt {}", format_time_relative(now, next)),
    }
}

/// A source, what it answered last, and when it can be asked again.
pub(crate) fn format_source(now: u64, source: &SourceReport) -> String {
    let answered = match (source.asked_at, &source.failed) {
        (None, _) => "not asked yet".to_owned(),
        (Some(at), Some(why)) => {
            format!("asked {}: {}", format_time_relative(now, at), escape_controls(why).replace('\n', " "))
        }
        (Some(at), None) if source.brought == 0 => format!("asked {}: does not have it", format_time_relative(now, at)),
        (Some(at), None) => {
            format!(
                "asked {}: brought {}",
                format_time_relative(now, at),
                format_count(source.brought as u64, "object")
            )
        }
    };
    let free = match &source.domain {
        Some(DomainState { is_free: false, free_at: Some(at), .. }) => {
            format!("; its domain takes the next request {}", format_time_relative(now, *at))
        }
        Some(DomainState { is_free: false, .. }) => "; its domain takes no more requests at a time".to_owned(),
        Some(_) | None => String::new(),
    };
    format!("{}: {answered}{free}", escape_controls(&source.url))
}

/// For example `1 event` or `2 events`.
pub(crate) fn format_count(number: u64, unit: &str) -> String {
    if number == 1 { format!("1 {unit}") } else { format!("{number} {unit}s") }
}

/// For example `3.2 MiB`.
pub(crate) fn format_size(bytes: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(length, _)| bytes >= *length) {
        Some((length, unit)) => format!("{:.1} {unit}", bytes as f64 / *length as f64),
        None => format_count(bytes, "byte"),
    }
}

/// Replaces control characters, which could change how a terminal displays text that other people wrote.
pub(crate) fn escape_controls(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => escaped.push(letter),
            // Control characters, and the marks that change the direction of text.
            _ if letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') => {
                escaped.extend(letter.escape_unicode());
            }
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// A list under a heading, its first lines at least; another text if there is nothing.
pub(crate) fn format_list(items: &[String], heading: &str, nothing: &str) -> String {
    const LINES_MAX: usize = 100;
    if items.is_empty() {
        return nothing.to_owned();
    }
    let more = items.len().saturating_sub(LINES_MAX);
    let lines = items.iter().take(LINES_MAX).map(|item| format!("  {}", escape_controls(item)));
    let more = (more > 0).then(|| format!("  and {more} more"));
    std::iter::once(format!("{} {heading}", format_count(items.len() as u64, "item")))
        .chain(lines)
        .chain(more)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Object stores of git among other things; nothing, if there are none.
pub(crate) fn format_git_stores(count: u64) -> String {
    if count == 0 { String::new() } else { format!(", {}", format_count(count, "git store")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_774_112_649, "2026-03-21 17:04:09 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(format_time(seconds * Nanos::SECOND), text);
        }
        assert!(format_time(u64::MAX).starts_with("2554"));
    }

    #[test]
    fn durations_and_sizes_have_one_unit() {
        assert_eq!(format_duration(0), "less than a second");
        assert_eq!(format_duration(119 * Nanos::SECOND), "1 minute");
        assert_eq!(format_duration(u64::MAX), "213503 days");
        assert_eq!(
            (format_size(1), format_size(1023), format_size(1536)),
            ("1 byte".into(), "1023 bytes".into(), "1.5 KiB".into())
        );
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape_controls("a\u{1b}[2Jb\nc\u{202e}"), "a\\u{1b}[2Jb\nc\\u{202e}");
    }
}
