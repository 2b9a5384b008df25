//! The framing of git's protocol: lines with their length in front, and lists of refs that a push wants to change.

use engine::protocol::nostr::push::RefUpdate;

/// The longest list of commands that is read: some ten thousand refs.
pub(crate) const COMMANDS_BYTES_MAX: usize = 2 << 20;
/// Refs that one push may change.
const UPDATES_MAX: usize = 10_000;

/// Why what a client sent is no list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadCommands {
    /// More bytes are needed to tell.
    Incomplete,
    Malformed(&'static str),
}

/// What a push asks for, from its first lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PushCommands {
    pub(crate) updates: Vec<RefUpdate>,
    /// Whether the client understands a report on each ref.
    pub(crate) wants_report: bool,
    /// Whether the report comes in a band of its own.
    pub(crate) has_side_band: bool,
}

/// Reads the commands at the beginning of a push.
pub(crate) fn parse_commands(bytes: &[u8]) -> Result<PushCommands, BadCommands> {
    let mut commands = PushCommands::default();
    let mut rest = bytes;
    loop {
        let (digits, after) = rest.split_first_chunk::<4>().ok_or(BadCommands::Incomplete)?;
        let length = std::str::from_utf8(digits).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok());
        let length = length.ok_or(BadCommands::Malformed("a length is four hexadecimal digits"))?;
        if length == 0 {
            return Ok(commands);
        }
        if length < 4 {
            return Err(BadCommands::Malformed("a line is shorter than its length"));
        }
        let (line, after) = after.split_at_checked(length - 4).ok_or(BadCommands::Incomplete)?;
        rest = after;
        let line = std::str::from_utf8(line).map_err(|_| BadCommands::Malformed("a ref is not UTF-8"))?;
        let line = line.trim_end_matches('\n');
        if line.starts_with("shallow ") {
            continue;
        }
        if line.starts_with("push-cert") {
            return Err(BadCommands::Malformed("signed pushes are not taken: events authorise pushes"));
        }
        let (command, capabilities) = line.split_once('\0').unwrap_or((line, ""));
        if !capabilities.is_empty() {
            let mut words = capabilities.split(' ');
            commands.wants_report = words.clone().any(|word| word == "report-status" || word == "report-status-v2");
            commands.has_side_band = words.any(|word| word == "side-band-64k");
        }
        if commands.updates.len() == UPDATES_MAX {
            return Err(BadCommands::Malformed("a push changes too many refs"));
        }
        commands.updates.push(parse_update(command)?);
    }
}

fn parse_update(command: &str) -> Result<RefUpdate, BadCommands> {
    let bad = BadCommands::Malformed("a command is two object ids and a ref");
    let mut parts = command.splitn(3, ' ');
    let (Some(old), Some(new), Some(name)) = (parts.next(), parts.next(), parts.next()) else { return Err(bad) };
    let (mut from, mut to) = ([0; 20], [0; 20]);
    hex::decode_to_slice(old, &mut from).map_err(|_| bad)?;
    hex::decode_to_slice(new, &mut to).map_err(|_| bad)?;
    Ok(RefUpdate { name: name.to_owned(), old: from, new: to })
}

/// One line with its length.
pub(crate) fn line(text: &[u8]) -> Vec<u8> {
    [format!("{:04x}", text.len() + 4).as_bytes(), text].concat()
}

/// The end of a list.
pub(crate) const FLUSH: &[u8] = b"0000";

/// The answer to a push that is refused: a reason for each ref, as git shows it.
pub(crate) fn refusal(commands: &PushCommands, reasons: &[(String, String)]) -> Vec<u8> {
    if !commands.wants_report {
        return Vec::new();
    }
    let mut report = line(b"unpack ok\n");
    for update in &commands.updates {
        let own = reasons.iter().find(|(name, _)| *name == update.name).map(|(_, why)| why.as_str());
        let why = own.unwrap_or("not changed, because another ref of this push is refused");
        report.extend(line(format!("ng {} {why}\n", update.name).as_bytes()));
    }
    report.extend(FLUSH);
    if !commands.has_side_band {
        return report;
    }
    let mut answer = Vec::new();
    for part in report.chunks(32 * 1024) {
        answer.extend(line(&[&[1], part].concat()));
    }
    answer.extend(FLUSH);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "0000000000000000000000000000000000000000";
    const NEW: &str = "1111111111111111111111111111111111111111";

    #[test]
    fn commands_are_read_up_to_the_pack() {
        let first = format!("{OLD} {NEW} refs/heads/main\0 report-status side-band-64k agent=git/2");
        let second = format!("{NEW} {OLD} refs/tags/v1\n");
        let bytes = [line(first.as_bytes()), line(second.as_bytes()), FLUSH.to_vec(), b"PACK...".to_vec()].concat();
        let commands = parse_commands(&bytes).unwrap();
        assert!(commands.wants_report && commands.has_side_band);
        let names: Vec<_> = commands.updates.iter().map(|update| update.name.as_str()).collect();
        assert_eq!(names, ["refs/heads/main", "refs/tags/v1"]);
        assert_eq!((commands.updates[0].new, commands.updates[1].new), ([0x11; 20], [0; 20]));
        for end in 0..bytes.len() - b"PACK...".len() {
            assert_eq!(parse_commands(&bytes[..end]), Err(BadCommands::Incomplete), "{end}");
        }
    }

    #[test]
    fn nonsense_is_no_list_of_commands() {
        for text in ["zzzz", "0003", "0008abcd", "000cpush-cert"] {
            assert!(matches!(parse_commands(text.as_bytes()), Err(BadCommands::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn each_ref_of_a_refused_push_has_a_reason() {
        let update = |name: &str| RefUpdate { name: name.into(), old: [0; 20], new: [1; 20] };
        let commands = PushCommands {
            updates: vec![update("refs/heads/a"), update("refs/heads/b")],
            wants_report: true,
            has_side_band: false,
        };
        let report = String::from_utf8(refusal(&commands, &[("refs/heads/b".into(), "no".into())])).unwrap();
        assert!(report.contains("ng refs/heads/b no\n") && report.contains("ng refs/heads/a not changed"), "{report}");
        let banded = refusal(&PushCommands { has_side_band: true, ..commands.clone() }, &[]);
        assert_eq!((banded[4], &banded[banded.len() - 4..]), (1, FLUSH));
        assert!(refusal(&PushCommands { wants_report: false, ..commands }, &[]).is_empty());
    }
}
