//! Git programs that answer requests: how many run at a time and for whom, and what they say as the body of an answer.

use axum::body::{Body, Bytes};
use futures_util::stream::unfold;
use queries::sync::lock;
use std::collections::HashMap;
use std::pin::Pin;
use std::process::{Command as StdCommand, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Programs that run at a time.
const PROGRAMS_MAX: usize = 64;
/// Of these, so many for one address.
const PROGRAMS_PER_NETWORK_MAX: usize = 16;
/// Requests of one address that run a program or wait for their turn; a page has pictures.
const REQUESTS_PER_NETWORK_MAX: usize = 64;
/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(20);
/// What is read from a program at a time.
const CHUNK_BYTES: usize = 64 * 1024;

/// Why no program may run now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TooManyPrograms {
    #[error("at most {PROGRAMS_PER_NETWORK_MAX} requests for git repositories of one address at a time; try again")]
    OfNetwork,
    #[error("too many requests for git repositories; try again")]
    Together,
}

/// The programs that run, and those that wait.
#[derive(Debug)]
pub struct GitPrograms {
    programs: Arc<Semaphore>,
    /// Whose programs run or wait, by address.
    networks: Arc<Mutex<HashMap<u64, NetworkPrograms>>>,
}

/// The programs of one address.
#[derive(Debug)]
struct NetworkPrograms {
    turns: Arc<Semaphore>,
    /// Those that run or wait.
    count: usize,
}

/// The right to run a program, as long as it is kept.
#[derive(Debug)]
pub struct ProgramPermit {
    _permit: OwnedSemaphorePermit,
    _turn: OwnedSemaphorePermit,
    _network: NetworkPermit,
}

/// One of the programs of an address.
#[derive(Debug)]
struct NetworkPermit {
    network: u64,
    networks: Arc<Mutex<HashMap<u64, NetworkPrograms>>>,
}

impl Drop for NetworkPermit {
    fn drop(&mut self) {
        let mut networks = lock(&self.networks);
        if let Some(programs) = networks.get_mut(&self.network) {
            programs.count -= 1;
            if programs.count == 0 {
                networks.remove(&self.network);
            }
        }
    }
}

impl Default for GitPrograms {
    fn default() -> GitPrograms {
        GitPrograms { programs: Arc::new(Semaphore::new(PROGRAMS_MAX)), networks: Arc::default() }
    }
}

impl GitPrograms {
    /// Waits until one more program may run for somebody at that address; it may as long as the answer is kept.
    pub async fn permit(&self, network: u64) -> Result<ProgramPermit, TooManyPrograms> {
        let (of_network, turns) = self.count_program(network)?;
        let turn = tokio::time::timeout(TURN, turns.acquire_owned()).await;
        let turn = turn.map_err(|_| TooManyPrograms::OfNetwork)?.map_err(|_| TooManyPrograms::OfNetwork)?;
        let permit = tokio::time::timeout(TURN, self.programs.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| TooManyPrograms::Together)?.map_err(|_| TooManyPrograms::Together)?;
        Ok(ProgramPermit { _permit: permit, _turn: turn, _network: of_network })
    }

    fn count_program(&self, network: u64) -> Result<(NetworkPermit, Arc<Semaphore>), TooManyPrograms> {
        let mut networks = lock(&self.networks);
        let programs = networks
            .entry(network)
            .or_insert_with(|| NetworkPrograms { turns: Arc::new(Semaphore::new(PROGRAMS_PER_NETWORK_MAX)), count: 0 });
        if programs.count >= REQUESTS_PER_NETWORK_MAX {
            return Err(TooManyPrograms::OfNetwork);
        }
        programs.count += 1;
        Ok((NetworkPermit { network, networks: self.networks.clone() }, programs.turns.clone()))
    }
}

/// Starts a program. It ends when nobody waits for it any more.
pub fn spawn(command: StdCommand, input: Stdio, complaints: Stdio) -> std::io::Result<Child> {
    let mut command = Command::from(command);
    command.stdin(input).stdout(Stdio::piped()).stderr(complaints).kill_on_drop(true);
    command.spawn()
}

/// What a program says, as it says it. If it fails, it has told the client why.
pub fn stream(child: Child, stdout: ChildStdout, permit: ProgramPermit) -> Body {
    let chunks = unfold((child, stdout, permit), |(child, mut stdout, permit)| async move {
        let chunk = read_chunk(&mut stdout).await.transpose()?;
        Some((chunk, (child, stdout, permit)))
    });
    Body::from_stream(chunks)
}

/// What one download may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DownloadLimits {
    pub bytes_max: u64,
    /// From its beginning to its end, however fast the client reads.
    pub time_max: Duration,
}

/// A program whose output is sent, and what it may still take.
struct Download {
    child: Child,
    stdout: ChildStdout,
    permit: Arc<ProgramPermit>,
    bytes_left: u64,
    end: Pin<Box<tokio::time::Sleep>>,
}

impl Download {
    /// What is sent next; nothing at the end.
    async fn next(&mut self) -> std::io::Result<Option<Bytes>> {
        let chunk = tokio::select! {
            biased;
            () = &mut self.end => return Err(std::io::Error::other("the download takes too long")),
            chunk = read_chunk(&mut self.stdout) => chunk?,
        };
        let Some(chunk) = chunk else {
            let status = self.child.wait().await?;
            return if status.success() {
                Ok(None)
            } else {
                Err(std::io::Error::other(format!("git ended: {status}")))
            };
        };
        let left = self.bytes_left.checked_sub(chunk.len() as u64);
        self.bytes_left = left.ok_or_else(|| std::io::Error::other("git says more than is served"))?;
        Ok(Some(chunk))
    }
}

/// The same, of a program that has to succeed within limits: otherwise the answer breaks off, so that nobody takes it for the
/// whole, and the program is ended.
pub fn stream_whole(child: Child, stdout: ChildStdout, permit: Arc<ProgramPermit>, limits: DownloadLimits) -> Body {
    let end = Box::pin(tokio::time::sleep(limits.time_max));
    let download = Download { child, stdout, permit, bytes_left: limits.bytes_max, end };
    let chunks = unfold(Some(download), |download| async move {
        let mut download = download?;
        match download.next().await {
            Ok(chunk) => chunk.map(|chunk| (Ok(chunk), Some(download))),
            Err(why) => {
                drop(download.permit);
                Some((Err(why), None))
            }
        }
    });
    Body::from_stream(chunks)
}

/// What a program says next; nothing at its end.
async fn read_chunk(stdout: &mut ChildStdout) -> std::io::Result<Option<Bytes>> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let length = stdout.read(&mut chunk).await?;
    chunk.truncate(length);
    Ok((length > 0).then(|| Bytes::from(chunk)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used)]
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_address_gets_its_share_and_no_more() {
        let programs = GitPrograms::default();
        let mut kept = Vec::new();
        for _ in 0..PROGRAMS_PER_NETWORK_MAX {
            kept.push(programs.permit(1).await.expect("a permit"));
        }
        assert_eq!(programs.permit(1).await.err(), Some(TooManyPrograms::OfNetwork));
        let other = programs.permit(2).await.expect("others have theirs");
        let (waiting, ()) = tokio::join!(programs.permit(1), async { drop(kept.pop()) });
        kept.push(waiting.expect("one has ended"));
        let mut waiting = Vec::new();
        for _ in 0..REQUESTS_PER_NETWORK_MAX - PROGRAMS_PER_NETWORK_MAX {
            waiting.push(programs.count_program(1).expect("it may wait"));
        }
        assert!(programs.count_program(1).is_err(), "no more may wait");
        drop((kept, other, waiting));
        assert!(lock(&programs.networks).is_empty(), "nothing is counted that does not run");
    }

    async fn said_within(script: &str, bytes_max: u64, time_max: Duration) -> Option<String> {
        let permit = Arc::new(GitPrograms::default().permit(1).await.expect("a permit"));
        let limits = DownloadLimits { bytes_max, time_max };
        let mut command = StdCommand::new("sh");
        command.args(["-c", script]);
        let mut child = spawn(command, Stdio::null(), Stdio::null()).expect("a program");
        let stdout = child.stdout.take().expect("its output");
        let read = axum::body::to_bytes(stream_whole(child, stdout, permit, limits), 1 << 20).await;
        read.ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    async fn said(script: &str, bytes_max: u64) -> Option<String> {
        said_within(script, bytes_max, Duration::from_secs(600)).await
    }

    #[tokio::test]
    async fn an_answer_that_is_not_whole_breaks_off() {
        assert_eq!(said("printf abc", 3).await.as_deref(), Some("abc"));
        assert_eq!(said("printf abcd", 3).await, None);
        assert_eq!(said("printf abc; exit 1", 10).await, None);
        assert_eq!(said("while :; do echo more; done", 100_000).await, None, "it is ended");
        let silent = said_within("printf abc; exec sleep 600", 10, Duration::from_millis(50));
        assert_eq!(silent.await, None, "it takes too long");
    }

    #[tokio::test(start_paused = true)]
    async fn all_together_wait_for_their_turn() {
        let programs = GitPrograms::default();
        let mut kept = Vec::new();
        for number in 0..PROGRAMS_MAX {
            kept.push(programs.permit((number / PROGRAMS_PER_NETWORK_MAX) as u64).await.expect("a permit"));
        }
        assert_eq!(programs.permit(99).await.err(), Some(TooManyPrograms::Together));
        let (waiting, ()) = tokio::join!(programs.permit(99), async { kept.truncate(PROGRAMS_MAX - 1) });
        assert!(waiting.is_ok());
    }
}
