//! The framing of git's protocol: lines with their length in front, and lists of refs that a push wants to change.

use engine::protocol::nostr::push::RefUpdate;
use std::collections::BTreeMap;

/// The longest list of commands that is read: some ten thousand refs.
pub(crate) const COMMANDS_BYTES_MAX: usize = 2 << 20;
/// Refs that one push may change.
const UPDATES_MAX: usize = 10_000;

/// What a push asks for, from its first lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PushCommands {
    pub(crate) updates: Vec<RefUpdate>,
    /// Whether the client understands a report on each ref.
    pub(crate) wants_report: bool,
    /// Whether the report comes in a band of its own.
    pub(crate) has_side_band: bool,
}

/// Reads the commands at the beginning of a push, as its bytes come.
#[derive(Debug, Default)]
pub(crate) struct CommandReader {
    read: Vec<u8>,
    /// Up to here all lines were understood.
    at: usize,
    commands: PushCommands,
}

impl CommandReader {
    /// Takes more bytes. At the end of the list: what it asks for, and what follows it.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<Option<(PushCommands, Vec<u8>)>, &'static str> {
        self.read.extend_from_slice(bytes);
        while let Some((digits, after)) = self.read[self.at..].split_first_chunk::<4>() {
            let mut length = [0; 2];
            hex::decode_to_slice(digits, &mut length).map_err(|_| "a length is four hexadecimal digits")?;
            let length = usize::from(u16::from_be_bytes(length));
            if length == 0 {
                let rest = after.to_vec();
                return Ok(Some((std::mem::take(&mut self.commands), rest)));
            }
            let text = length.checked_sub(4).ok_or("a line is shorter than its length")?;
            let Some(line) = after.get(..text) else { break };
            read_line(&mut self.commands, line)?;
            self.at += length;
        }
        if self.read.len() > COMMANDS_BYTES_MAX { Err("the list of refs is too long") } else { Ok(None) }
    }
}

fn read_line(commands: &mut PushCommands, line: &[u8]) -> Result<(), &'static str> {
    let line = std::str::from_utf8(line).map_err(|_| "a ref is not UTF-8")?;
    let line = line.trim_end_matches('\n');
    if line.starts_with("shallow ") {
        return Ok(());
    }
    if line.starts_with("push-cert") {
        return Err("signed pushes are not taken: events authorise pushes");
    }
    let (command, capabilities) = line.split_once('\0').unwrap_or((line, ""));
    if !capabilities.is_empty() {
        let mut words = capabilities.split(' ');
        commands.wants_report = words.clone().any(|word| word == "report-status" || word == "report-status-v2");
        commands.has_side_band = words.any(|word| word == "side-band-64k");
    }
    if commands.updates.len() == UPDATES_MAX {
        return Err("a push changes too many refs");
    }
    commands.updates.push(parse_update(command)?);
    Ok(())
}

fn parse_update(command: &str) -> Result<RefUpdate, &'static str> {
    let bad = "a command is two object ids and a ref";
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

/// What became of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PushResult {
    /// All refs are what was asked for.
    Done,
    /// Nothing was changed: the reason for each ref that may not be changed so.
    Refused(BTreeMap<String, String>),
    /// Nothing was changed: the pack cannot be taken.
    BadPack(String),
}

/// The answer to a push: what became of each ref, as git shows it.
pub(crate) fn report(commands: &PushCommands, result: &PushResult) -> Vec<u8> {
    if !commands.wants_report {
        return Vec::new();
    }
    let mut report = match result {
        PushResult::Done | PushResult::Refused(_) => line(b"unpack ok\n"),
        PushResult::BadPack(why) => line(format!("unpack {}\n", why.replace('\n', " ")).as_bytes()),
    };
    for RefUpdate { name, .. } in &commands.updates {
        let told = match result {
            PushResult::Done => format!("ok {name}\n"),
            PushResult::Refused(reasons) => {
                let others = "not changed, because another ref of this push is refused";
                format!("ng {name} {}\n", reasons.get(name).map_or(others, String::as_str))
            }
            PushResult::BadPack(_) => format!("ng {name} the pack was not taken\n"),
        };
        report.extend(line(told.as_bytes()));
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
    fn commands_are_read_up_to_the_pack_however_they_are_cut() {
        let first = format!("{OLD} {NEW} refs/heads/main\0 report-status side-band-64k agent=git/2");
        let second = format!("{NEW} {OLD} refs/tags/v1\n");
        let bytes = [line(first.as_bytes()), line(second.as_bytes()), FLUSH.to_vec(), b"PACK...".to_vec()].concat();
        let list = bytes.len() - b"PACK...".len();
        for cut in 0..list {
            let mut reader = CommandReader::default();
            assert_eq!(reader.take(&bytes[..cut]), Ok(None), "{cut}");
            let (commands, rest) = reader.take(&bytes[cut..]).unwrap().unwrap();
            assert_eq!(rest, b"PACK...");
            assert!(commands.wants_report && commands.has_side_band);
            let names: Vec<_> = commands.updates.iter().map(|update| update.name.as_str()).collect();
            assert_eq!(names, ["refs/heads/main", "refs/tags/v1"]);
            assert_eq!((commands.updates[0].new, commands.updates[1].new), ([0x11; 20], [0; 20]));
        }
    }

    #[test]
    fn nonsense_is_no_list_of_commands() {
        for text in ["zzzz", "+fff", "0003", "0008abcd", "000dpush-cert"] {
            assert!(CommandReader::default().take(text.as_bytes()).is_err(), "{text}");
        }
        let update = line(format!("{OLD} {NEW} refs/heads/x").as_bytes());
        let (mut most, mut long) = (CommandReader::default(), CommandReader::default());
        assert_eq!(most.take(&update.repeat(UPDATES_MAX)), Ok(None));
        assert_eq!(most.take(&update), Err("a push changes too many refs"));
        let shallow = line(format!("shallow {}", "x".repeat(60_000)).as_bytes());
        let told: Vec<_> = (0..40).map(|_| long.take(&shallow)).collect();
        assert_eq!(told.last(), Some(&Err("the list of refs is too long")));
    }

    fn commands(has_side_band: bool) -> PushCommands {
        let update = |name: &str| RefUpdate { name: name.into(), old: [0; 20], new: [1; 20] };
        PushCommands {
            updates: vec![update("refs/heads/a"), update("refs/heads/b")],
            wants_report: true,
            has_side_band,
        }
    }

    #[test]
    fn the_report_says_what_became_of_each_ref() {
        let told = |result: &PushResult| String::from_utf8(report(&commands(false), result)).unwrap();
        let refused = told(&PushResult::Refused([("refs/heads/b".to_owned(), "no".to_owned())].into()));
        assert!(
            refused.contains("ng refs/heads/b no\n") && refused.contains("ng refs/heads/a not changed"),
            "{refused}"
        );
        let done = told(&PushResult::Done);
        assert!(done.contains("unpack ok\n") && done.contains("ok refs/heads/a\n") && !done.contains("ng "), "{done}");
        let bad = told(&PushResult::BadPack("too\nlarge".into()));
        assert!(
            bad.contains("unpack too large\n") && bad.contains("ng refs/heads/a ") && !bad.contains("ok "),
            "{bad}"
        );
        let banded = report(&commands(true), &PushResult::Done);
        assert_eq!((banded[4], &banded[banded.len() - 4..]), (1, FLUSH));
        let silent = PushCommands { wants_report: false, ..commands(false) };
        assert!(report(&silent, &PushResult::Done).is_empty());
    }
}
