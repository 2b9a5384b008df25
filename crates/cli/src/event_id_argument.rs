//! How an event is named on the command line.

use model::EventId;
use model::nostr::NostrId;

/// The id of an event: 32 hexadecimal digits, or the 64 by which Nostr clients know it.
pub(crate) fn parse_event_id(text: &str) -> Result<EventId, String> {
    let of_nostr = |_| text.parse().map(|id: NostrId| id.short());
    let what = |_| format!("an event id is 32 hexadecimal digits, or 64 of a Nostr event; this has {}", text.len());
    text.parse().or_else(of_nostr).map_err(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_named_by_both_kinds_of_ids() {
        let nostr = NostrId([0xab; 32]);
        assert_eq!(parse_event_id(&nostr.to_string()), Ok(nostr.short()));
        assert_eq!(parse_event_id(&nostr.short().to_string()), Ok(nostr.short()));
        for text in ["", "ab", &"AB".repeat(16), &"ab".repeat(33), &"zz".repeat(32)] {
            assert!(parse_event_id(text).is_err_and(|why| why.contains("64 of a Nostr event")), "{text}");
        }
    }
}
