//! Fetching objects from other servers.
//!
//! Whoever calls has asked the server for its refs, and knows by which address it answered. Git connects to that address and
//! to no other, whatever its name leads to by now, and follows nobody elsewhere: no redirects, no alternates, no bundles.

use crate::command::{GitError, as_input, bound_time, told, with};
use crate::files::lines;
use crate::staging::{OBJECT_ENTRY_BYTES, Staging};
use model::need::Oid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, kill_process_group, pidfd_open, prlimit};
use std::collections::BTreeSet;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::IpAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::Duration;

/// As much as git can be asked for.
const WHOLE_HISTORY: &str = "--depth=2147483647";
/// What git says that is looked at.
const TOLD_BYTES_MAX: u64 = 4096;

/// A git server, and the address by which it is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteServer {
    /// Of the repository, without what git adds to it.
    pub url: String,
    /// The name in the URL; none if that is an address.
    pub host: Option<String>,
    pub port: u16,
    pub address: IpAddr,
}

/// What one fetch may cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchLimits {
    /// Bytes of the largest file that it writes: a pack.
    pub bytes_max: u64,
    pub time_max: Duration,
}

/// The objects that the refs of a server point at, from its answer to `info/refs` in the oldest version of the protocol;
/// none if it is no such answer.
pub fn advertised_objects(answer: &[u8]) -> Option<BTreeSet<Oid>> {
    let (mut rest, mut oids, mut is_service) = (answer, BTreeSet::new(), false);
    while let Some((digits, after)) = rest.split_first_chunk::<4>() {
        let mut length = [0; 2];
        hex::decode_to_slice(digits, &mut length).ok()?;
        match usize::from(u16::from_be_bytes(length)) {
            0 => rest = after,
            length => {
                let line = after.get(..length.checked_sub(4)?)?;
                rest = &after[line.len()..];
                is_service = is_service || line.starts_with(b"# service=git-upload-pack");
                let mut oid = [0; 20];
                // Others are what the server can do.
                if line.get(40) == Some(&b' ') && hex::decode_to_slice(&line[..40], &mut oid).is_ok() {
                    oids.insert(oid);
                }
            }
        }
    }
    // A server without refs names an object that there is none of.
    oids.remove(&[0; 20]);
    (is_service && rest.is_empty()).then_some(oids)
}

impl Staging {
    /// Fetches these objects, with all that they reach and the store lacks. All of them come, or it fails.
    pub fn fetch(&self, from: &RemoteServer, oids: &BTreeSet<Oid>, limits: FetchLimits) -> Result<(), GitError> {
        let mut command = self.git();
        command.env("GIT_ALLOW_PROTOCOL", "http:https").process_group(0);
        // An object has to fit into memory, and so has a list of all of them.
        let memory = self.limits.object_bytes_max.max(u64::from(self.limits.objects_max) * OBJECT_ENTRY_BYTES);
        command.env("GIT_ALLOC_LIMIT", memory.to_string());
        if let Some(host) = &from.host {
            let address = match from.address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            };
            command.arg("-c").arg(format!("http.curloptResolve={host}:{}:{address}", from.port));
        }
        for setting in [
            "http.followRedirects=false",
            "http.proxy=",
            "http.lowSpeedLimit=1024",
            "http.lowSpeedTime=30",
            "http.userAgent=anteroom",
            "credential.helper=",
            "protocol.version=2",
            "transfer.bundleURI=false",
        ] {
            command.arg("-c").arg(setting);
        }
        let options = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--stdin"];
        // All of the history. Git's old protocol, which brings objects that nobody has checked, cannot be asked for a depth.
        with(&mut command, &options).arg(WHOLE_HISTORY).arg("--").arg(&from.url);
        command.stdin(as_input(lines(oids).as_bytes())?);
        run_within(&mut command, limits)?;
        let count = self.object_count()?;
        if count > u64::from(self.limits.objects_max) {
            let why = format!("the pack has {count} objects; at most {} are taken", self.limits.objects_max);
            return Err(GitError::Failed { what: "fetch", why });
        }
        Ok(())
    }
}

/// Runs a program and those that it starts; they are ended when they take too long.
fn run_within(command: &mut Command, limits: FetchLimits) -> Result<(), GitError> {
    let mut complaints = tempfile::tempfile()?;
    command.stdout(std::process::Stdio::null()).stderr(complaints.try_clone()?);
    let mut child = command.spawn().map_err(GitError::Missing)?;
    bound_time(child.id());
    let pid = Pid::from_child(&child);
    let bytes = Some(limits.bytes_max);
    // What it started already has no such limit; it starts those that write only after it has heard from the server.
    if let Err(why) = prlimit(Some(pid), Resource::Fsize, Rlimit { current: bytes, maximum: bytes }) {
        tracing::debug!(%why, "the size of what git fetches could not be bounded");
    }
    let is_done = has_ended_within(&child, limits.time_max)?;
    if !is_done {
        // Those that it started are in its group.
        let _ = kill_process_group(pid, Signal::KILL);
    }
    let status = child.wait()?;
    if status.success() {
        return Ok(());
    }
    let mut said = Vec::new();
    complaints.seek(SeekFrom::Start(0))?;
    complaints.take(TOLD_BYTES_MAX).read_to_end(&mut said)?;
    let why = match is_done {
        false => format!("it took longer than {} seconds", limits.time_max.as_secs()),
        true if said.is_empty() => format!("it was ended: {status}"),
        true => told(&said),
    };
    Err(GitError::Failed { what: "fetch", why })
}

/// Waits until a program has ended, but not longer than that. Says whether it has.
fn has_ended_within(child: &Child, time_max: Duration) -> Result<bool, GitError> {
    let end = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).map_err(std::io::Error::from)?;
    let (seconds, nanos) = (time_max.as_secs(), time_max.subsec_nanos());
    let timeout = Timespec { tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX), tv_nsec: i64::from(nanos) };
    let mut ends = [PollFd::new(&end, PollFlags::IN)];
    // An interruption is rare enough to count as the end of patience.
    Ok(poll(&mut ends, Some(&timeout)).is_ok_and(|ready| ready > 0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;

    #[test]
    fn the_refs_of_a_server_are_read_and_nothing_else_is_taken_for_them() {
        let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
        let (one, two) = ("11".repeat(20), "22".repeat(20));
        let service = line("# service=git-upload-pack\n");
        let refs = [line(&format!("{one} HEAD\0side-band\n")), line(&format!("{two} refs/tags/a^{{}}\n"))].concat();
        let answer = format!("{service}0000{refs}0000");
        assert_eq!(advertised_objects(answer.as_bytes()), Some([[0x11; 20], [0x22; 20]].into()));
        let empty = format!("{service}0000{}0000", line(&format!("{} capabilities^{{}}\0x\n", "00".repeat(20))));
        assert_eq!(advertised_objects(empty.as_bytes()), Some(BTreeSet::new()));
        let without_service = format!("{refs}0000");
        for bad in ["", "0000", "<html>", "0003", "ffff", &without_service, &answer[..answer.len() - 6]] {
            assert_eq!(advertised_objects(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_all_that_it_started() {
        let limits = FetchLimits { bytes_max: 1 << 20, time_max: Duration::from_millis(50) };
        let mut command = Command::new("sh");
        command.process_group(0).args(["-c", "sleep 1000 & wait"]);
        let why = run_within(&mut command, limits).expect_err("it takes too long").to_string();
        assert!(why.contains("took longer"), "{why}");
        let limits = FetchLimits { time_max: Duration::from_secs(600), ..limits };
        assert!(run_within(&mut Command::new("true"), limits).is_ok());
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        let until_limited = "while [ \"$(ulimit -f)\" = unlimited ]; do :; done; head -c 4000000 /dev/zero > large";
        command.current_dir(&folder).args(["-c", until_limited]);
        assert!(run_within(&mut command, limits).is_err(), "a file that is too large");
    }
}
