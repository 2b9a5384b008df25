//! Running a program of which only so much is heard, and which may only compute so long.

use crate::command::{GitError, as_input, bound_reading, told};
use crate::folder::ObjectStore;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::process::{Command, Stdio};

/// Seconds of a processor that a program may use to answer somebody who looks at a page.
const SECONDS_MAX: u64 = 10;
/// Files from this size on are passed over by comparisons, and not read into memory as a whole.
const LARGE_FILE: &str = "core.bigFileThreshold=1m";
/// How much of what git complains about is read.
const COMPLAINT_BYTES_MAX: u64 = 4096;

/// The beginning of what a program said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BoundedText {
    pub bytes: Vec<u8>,
    /// Whether there was more.
    pub is_cut: bool,
}

impl BoundedText {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The parts before each zero byte; what was cut off in the middle is left out.
    pub(super) fn parts(&self) -> Vec<&[u8]> {
        let mut parts: Vec<&[u8]> = self.bytes.split(|byte| *byte == 0).collect();
        // What comes after the last zero is nothing, or a part that is not whole.
        parts.pop();
        parts
    }
}

impl ObjectStore {
    /// A command that reads for people.
    pub(super) fn reading(&self) -> Command {
        let mut command = self.git(None);
        command.arg("-c").arg(LARGE_FILE).arg("-c").arg("core.quotePath=false").arg("--literal-pathspecs");
        command
    }
}

/// Runs a command, and hears at most so many bytes of it.
pub(super) fn run_bounded(
    what: &'static str,
    command: &mut Command,
    input: &[u8],
    bytes_max: usize,
) -> Result<BoundedText, GitError> {
    let mut complaints = tempfile::tempfile()?;
    command.stderr(complaints.try_clone()?).stdout(Stdio::piped());
    if !input.is_empty() {
        command.stdin(as_input(input)?);
    }
    let mut child = command.spawn().map_err(GitError::Missing)?;
    bound_reading(child.id(), SECONDS_MAX);
    let mut bytes = Vec::new();
    let read = match child.stdout.take() {
        Some(stdout) => stdout.take(bytes_max as u64 + 1).read_to_end(&mut bytes),
        None => Ok(0),
    };
    let is_cut = bytes.len() > bytes_max;
    if is_cut || read.is_err() {
        let _ = child.kill();
    }
    let status = child.wait()?;
    read?;
    if is_cut {
        bytes.truncate(bytes_max);
        return Ok(BoundedText { bytes, is_cut });
    }
    if status.success() {
        return Ok(BoundedText { bytes, is_cut });
    }
    let mut said = Vec::new();
    complaints.seek(SeekFrom::Start(0))?;
    complaints.take(COMPLAINT_BYTES_MAX).read_to_end(&mut said)?;
    let why = told(&said);
    let is_over_limit = status.code().is_none() || why.to_ascii_lowercase().contains("out of memory");
    Err(if is_over_limit { GitError::OverLimit { what } } else { GitError::Failed { what, why } })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;

    fn shell(script: &str, bytes_max: usize) -> Result<BoundedText, GitError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        run_bounded("sh", &mut command, b"", bytes_max)
    }

    #[test]
    fn as_much_is_heard_as_is_asked_for() {
        let whole = shell("printf abc", 3).expect("it ends");
        assert_eq!((whole.text().as_str(), whole.is_cut), ("abc", false));
        let beginning = shell("printf abcd", 3).expect("it ends");
        assert_eq!((beginning.text().as_str(), beginning.is_cut), ("abc", true));
        let endless = shell("while :; do echo more; done", 1000).expect("it is ended");
        assert_eq!((endless.bytes.len(), endless.is_cut), (1000, true));
    }

    #[test]
    fn a_program_gets_only_so_much_memory() {
        // It prints nothing before it has all of it.
        let little = shell("perl -e 'my $x = \"a\" x 100_000_000; print \"got it\"'", 100);
        assert_eq!(little.expect("it is little").text(), "got it");
        let much = shell("perl -e 'my $x = \"a\" x 900_000_000; print \"got it\"'", 100);
        assert!(matches!(much, Err(GitError::OverLimit { .. })), "{much:?}");
    }

    #[test]
    fn a_program_that_fails_says_why() {
        let why = shell("echo broken >&2; exit 3", 10).expect_err("it fails").to_string();
        assert!(why.contains("broken"), "{why}");
        assert!(matches!(shell("kill -KILL $$", 10), Err(GitError::OverLimit { .. })));
        let no_memory = shell("echo 'fatal: Out of memory, malloc failed' >&2; exit 128", 10);
        assert!(matches!(no_memory, Err(GitError::OverLimit { .. })));
    }

    #[test]
    fn what_was_cut_off_is_no_part() {
        let parts = |text: &str| {
            let bounded = BoundedText { bytes: text.as_bytes().to_vec(), is_cut: false };
            bounded.parts().iter().map(|part| String::from_utf8_lossy(part).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(parts("a\0b\0"), ["a", "b"]);
        assert_eq!(parts("a\0b\0c"), ["a", "b"]);
        assert_eq!(parts(""), Vec::<String>::new());
    }
}
