//! Running the `git` program: nothing of the environment, no hooks, no configuration but ours, and limits.

use rustix::process::Resource;
use std::ffi::OsStr;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Why git did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("the program `git` cannot be started: {0}; install git 2.37 or later")]
    Missing(std::io::Error),
    #[error("git {what} failed: {why}")]
    Failed { what: &'static str, why: String },
    #[error("the folder of git repositories failed: {0}")]
    Folder(#[from] std::io::Error),
    #[error("git {what} answered something that cannot be understood")]
    Answer { what: &'static str },
    #[error("git {what} needs more time or memory than it may have")]
    OverLimit { what: &'static str },
}

/// What one push may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GitLimits {
    /// Bytes of a pack as it travels.
    pub pack_bytes_max: u64,
    /// Bytes of one object, inflated.
    pub object_bytes_max: u64,
    /// Objects of a pack.
    pub objects_max: u32,
    /// Bytes of a pack with commits of pull requests, which anybody may push.
    pub pull_request_bytes_max: u64,
    /// Bytes of the packs of one repository; nothing is pushed to it beyond.
    pub repository_bytes_max: u64,
    /// Bytes of the packs of all repositories of one owner.
    pub owner_bytes_max: u64,
    /// Repositories of one owner.
    pub owner_repositories_max: usize,
}

impl Default for GitLimits {
    fn default() -> GitLimits {
        GitLimits {
            pack_bytes_max: 2 << 30,
            object_bytes_max: 128 << 20,
            objects_max: 5_000_000,
            pull_request_bytes_max: 64 << 20,
            repository_bytes_max: 4 << 30,
            owner_bytes_max: 16 << 30,
            owner_repositories_max: 100,
        }
    }
}

/// Seconds of a processor that one program may use.
const PROGRAM_SECONDS_MAX: u64 = 3600;
/// Memory of a program that reads for a page or a download: a large object, what it is made of, and lists.
const READING_BYTES_MAX: u64 = 512 << 20;
/// The first version of git that can be told by which address a name is reached.
const VERSION_MIN: (u32, u32) = (2, 37);
/// How much of what git says on standard error is repeated.
const WHY_BYTES_MAX: usize = 400;

/// A git program that reads nothing but what it is given.
pub(crate) fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_ALLOW_PROTOCOL", "file")
        .env("GIT_DIR", folder);
    let settings = [
        "core.hooksPath=/dev/null",
        "core.fsync=all",
        "core.bigFileThreshold=1000g",
        "safe.directory=*",
        "gc.auto=0",
        "maintenance.auto=false",
        "pack.windowMemory=256m",
        "receive.autogc=false",
        "transfer.fsckObjects=true",
        "transfer.unpackLimit=1",
        "transfer.advertiseSID=false",
        "receive.denyDeleteCurrent=ignore",
        "receive.advertisePushOptions=false",
        "uploadpack.allowFilter=true",
        "uploadpack.allowTipSHA1InWant=true",
        "uploadpack.allowReachableSHA1InWant=true",
    ];
    for setting in settings {
        command.arg("-c").arg(setting);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command with this on standard input; it has to succeed.
pub(crate) fn run(what: &'static str, command: &mut Command, input: &[u8]) -> Result<Vec<u8>, GitError> {
    let output = output(command, input)?;
    if !output.status.success() {
        return Err(GitError::Failed { what, why: told(&output.stderr) });
    }
    Ok(output.stdout)
}

/// Runs a command with this on standard input, whatever it comes to.
pub(crate) fn output(command: &mut Command, input: &[u8]) -> Result<Output, GitError> {
    if !input.is_empty() {
        command.stdin(as_input(input)?);
    }
    let child = command.spawn().map_err(GitError::Missing)?;
    bound_time(child.id());
    child.wait_with_output().map_err(GitError::Folder)
}

/// These bytes as the standard input of a program: a file without a name, so that nobody has to write while somebody else
/// reads.
pub fn as_input(bytes: &[u8]) -> Result<Stdio, GitError> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file.into())
}

/// Bounds how long a program, and those that it starts, may compute. One that has ended already needs no bound.
pub fn bound_time(program: u32) {
    bound_resource(program, Resource::Cpu, PROGRAM_SECONDS_MAX);
}

/// Bounds what a program that reads for somebody may use: so many seconds of a processor, and memory. A tree of a few objects
/// can have more paths than any memory has room for.
pub fn bound_reading(program: u32, seconds: u64) {
    bound_resource(program, Resource::Cpu, seconds);
    bound_resource(program, Resource::Data, READING_BYTES_MAX);
}

fn bound_resource(program: u32, resource: Resource, most: u64) {
    let pid = i32::try_from(program).ok().and_then(rustix::process::Pid::from_raw);
    let limit = rustix::process::Rlimit { current: Some(most), maximum: Some(most) };
    if let Some(pid) = pid
        && let Err(why) = rustix::process::prlimit(Some(pid), resource, limit)
    {
        tracing::debug!(%why, "what a program uses could not be bounded");
    }
}

/// What a program said, short.
pub fn told(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim();
    text[..text.floor_char_boundary(WHY_BYTES_MAX)].to_owned()
}

/// Adds arguments that are ours.
pub(crate) fn with<'a>(command: &'a mut Command, arguments: &[&str]) -> &'a mut Command {
    command.args(arguments.iter().map(OsStr::new))
}

/// Whether this version of git can be kept to one address, as `git --version` tells it.
pub(crate) fn can_pin_addresses(version: &str) -> bool {
    let number = version.trim().strip_prefix("git version ").unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().unwrap_or_default());
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) >= VERSION_MIN
}

#[cfg(test)]
mod tests {
    use super::can_pin_addresses;

    #[test]
    fn old_versions_of_git_cannot_be_kept_to_an_address() {
        for (version, can) in [
            ("git version 2.37.0\n", true),
            ("git version 2.39.5 (Apple Git-154)", true),
            ("git version 3.0.1", true),
            ("git version 2.36.9", false),
            ("git version 1.99", false),
            ("", false),
        ] {
            assert_eq!(can_pin_addresses(version), can, "{version}");
        }
    }
}
