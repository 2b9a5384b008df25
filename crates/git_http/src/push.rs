//! Pushes: which refs one wants to change is read first and decided about; only what is allowed reaches git.

use crate::app::{GitApp, blocking};
use crate::fetch::{answer, spawn};
use crate::pack_lines::{CommandReader, PushCommands, PushResult, report};
use crate::problems::GitProblem;
use crate::request::{RepositoryPath, hosted, is_compressed};
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::State;
use axum::response::Response;
use engine::protocol::nostr::push::{NO_OBJECT, PushDecision};
use flate2::write::GzDecoder;
use futures_util::StreamExt as _;
use git::{Staging, told};
use http::{HeaderMap, StatusCode};
use node::git::{HostedRepository, Received};
use server::context::RequestContext;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::{Sleep, sleep};

const ANSWER_TYPE: &str = "application/x-git-receive-pack-result";
/// The most that git says about a pack that is repeated.
const TOLD_BYTES_MAX: u64 = 16 << 10;
/// Compressed bytes that are decompressed at a time: what they become is a thousand times as much at most.
const COMPRESSED_BYTES: usize = 8 << 10;
/// A push in which so many bytes have not come after so long is cut off: it keeps a program from others.
const PATIENCE: Duration = Duration::from_secs(30);
const PATIENCE_BYTES: usize = 16 << 10;
/// What git says of a pack that it has taken: a word, a tab, a name and a line feed.
const PACK_NAME_BYTES: usize = 5 + 40 + 1;
/// The beginning of a pack: its name, its version, and how many objects it has.
const PACK_HEADER_BYTES: usize = 12;

/// `POST git-receive-pack`: a push.
pub(crate) async fn receive_pack(
    State(app): State<Arc<GitApp>>,
    path: RepositoryPath,
    context: RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, GitProblem> {
    let repository = hosted(&app, path).await?;
    let mut input = PushInput::new(body, is_compressed(&headers)?);
    let commands = input.read_commands().await?;
    // Git asks with an empty list whether it may send a long body.
    if commands.updates.is_empty() {
        return Ok(answer(ANSWER_TYPE, Body::empty()));
    }
    let network = context.via.network;
    let result = push(&app, network, &repository, &commands, &mut input).await?;
    if result != PushResult::Done {
        tracing::info!(owner = %repository.owner, identifier = repository.identifier, ?result, "a push was refused");
        // Whoever sends a pack does not listen before it has been taken.
        input.skip().await;
    }
    Ok(answer(ANSWER_TYPE, Body::from(report(&commands, &result))))
}

async fn push(
    app: &Arc<GitApp>,
    network: u64,
    repository: &HostedRepository,
    commands: &PushCommands,
    input: &mut PushInput,
) -> Result<PushResult, GitProblem> {
    let (asked, updates) = (repository.clone(), commands.updates.clone());
    let decided =
        blocking(app, move |service| Ok((service.decide(&asked, &updates)?, service.room(&asked, &updates)?))).await?;
    // A push that only deletes brings no pack.
    let has_pack = commands.updates.iter().any(|update| update.new != NO_OBJECT);
    let bytes_max = match decided {
        (PushDecision::Allowed { .. }, Ok(bytes)) => bytes,
        (PushDecision::Allowed { .. }, Err(_)) if !has_pack => 0,
        (PushDecision::Allowed { .. }, Err(why)) => return Ok(PushResult::BadPack(why)),
        (PushDecision::NoRepository, _) => return Err(GitProblem::not_found()),
        (PushDecision::Refused(reasons), _) => return Ok(PushResult::Refused(reasons)),
    };
    let _program = app.program(network).await?;
    let staged = repository.clone();
    let staging = blocking(app, move |_| Ok(staged.store.stage()?)).await?;
    let objects_max = app.service.objects_max(&commands.updates);
    if has_pack && let Err(why) = take_pack(&staging, input, bytes_max, objects_max).await? {
        return Ok(PushResult::BadPack(why));
    }
    let (repository, updates) = (repository.clone(), commands.updates.clone());
    let received = blocking(app, move |service| service.receive(&repository, &staging, &updates)).await?;
    Ok(match received {
        Received::Arrived(_) => PushResult::Done,
        Received::Incomplete => {
            PushResult::BadPack("objects that the refs need are missing, or nested too deep".to_owned())
        }
        Received::TooLarge(why) => PushResult::BadPack(why),
        Received::Refused(reasons) => PushResult::Refused(reasons),
    })
}

/// Has git take the pack of a push into its staging; or says why it does not.
async fn take_pack(
    staging: &Staging,
    input: &mut PushInput,
    bytes_max: u64,
    most: u32,
) -> Result<Result<(), String>, GitProblem> {
    let count = match input.object_count().await? {
        Some(count) if count <= most => count,
        Some(count) => {
            return Ok(Err(format!("the pack has {count} objects; at most {most} are taken (git.push_objects_max)")));
        }
        None => return Ok(Err("no pack follows the list of refs".to_owned())),
    };
    let (mut stdin, input_of_git) = socket().map_err(|why| GitProblem::broken("git takes nothing", why))?;
    let mut child = spawn(staging.index_pack(bytes_max, count), input_of_git, Stdio::piped())?;
    let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(GitProblem::broken("git takes nothing", "no input"));
    };
    let feeding = async move {
        let mut fed = true;
        // What git does not want any more, such as the rest of a pack that is too large, is read all the same.
        while let Some(bytes) = input.next().await? {
            fed = fed && stdin.write_all(&bytes).await.is_ok();
        }
        Ok::<bool, GitProblem>(fed)
    };
    let (fed, told_name, why) = tokio::join!(feeding, read_some(stdout), read_some(stderr));
    let fed = fed?;
    let status = child.wait().await.map_err(|why| GitProblem::broken("git did not end", why))?;
    // Git passes on what follows a pack, or does not take it.
    let has_more = !fed || told_name.len() > PACK_NAME_BYTES;
    Ok(match status.success() {
        true if has_more => Err("something follows the pack".to_owned()),
        true => Ok(()),
        false => Err(told(&why)),
    })
}

/// The standard input of a program, and the end that is written to. A socket, because a pipe can be written to as soon as a
/// page of it was read: writer and reader would wake each other for every page. A socket waits until most of it is empty.
fn socket() -> std::io::Result<(UnixStream, Stdio)> {
    let (ours, theirs) = UnixStream::pair()?;
    let theirs = theirs.into_std()?;
    theirs.set_nonblocking(false)?;
    Ok((ours, OwnedFd::from(theirs).into()))
}

/// Reads all that a program says, and keeps the beginning.
async fn read_some(mut from: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut kept = Vec::new();
    let read = (&mut from).take(TOLD_BYTES_MAX).read_to_end(&mut kept).await;
    if read.is_ok() {
        let _ = tokio::io::copy(&mut from, &mut tokio::io::sink()).await;
    }
    kept
}

/// The body of a push, decompressed as it comes.
struct PushInput {
    body: PatientBody,
    decoder: Option<GzDecoder<Vec<u8>>>,
    /// What came and was not decompressed yet.
    compressed: Bytes,
    /// What was read and not taken yet.
    ahead: Vec<u8>,
}

impl PushInput {
    fn new(body: Body, is_compressed: bool) -> PushInput {
        let decoder = is_compressed.then(|| GzDecoder::new(Vec::new()));
        PushInput { body: PatientBody::new(body), decoder, compressed: Bytes::new(), ahead: Vec::new() }
    }

    /// The next bytes.
    async fn next(&mut self) -> Result<Option<Bytes>, GitProblem> {
        if !self.ahead.is_empty() {
            return Ok(Some(std::mem::take(&mut self.ahead).into()));
        }
        if self.compressed.is_empty() {
            let Some(bytes) = self.body.next().await? else { return Ok(None) };
            self.compressed = bytes;
        }
        let Some(decoder) = &mut self.decoder else { return Ok(Some(std::mem::take(&mut self.compressed))) };
        let part = self.compressed.split_to(self.compressed.len().min(COMPRESSED_BYTES));
        let bad = |_| GitProblem::bad_request("the body is not gzip");
        decoder.write_all(&part).and_then(|()| decoder.flush()).map_err(bad)?;
        Ok(Some(std::mem::take(decoder.get_mut()).into()))
    }

    /// Reads until it is known which refs are to be changed.
    async fn read_commands(&mut self) -> Result<PushCommands, GitProblem> {
        let mut reader = CommandReader::default();
        loop {
            let more = self.next().await?.ok_or_else(|| GitProblem::bad_request("the push ends too early"))?;
            if let Some((commands, rest)) = reader.take(&more).map_err(GitProblem::bad_request)? {
                self.ahead = rest;
                return Ok(commands);
            }
        }
    }

    /// How many objects the pack says it has, if one follows.
    async fn object_count(&mut self) -> Result<Option<u32>, GitProblem> {
        let mut read = Vec::new();
        while read.len() < PACK_HEADER_BYTES {
            match self.next().await? {
                Some(more) => read.extend_from_slice(&more),
                None => break,
            }
        }
        let header = read.first_chunk::<PACK_HEADER_BYTES>();
        let count = header.filter(|header| header.starts_with(b"PACK")).and_then(|header| header.last_chunk().copied());
        self.ahead = read;
        Ok(count.map(u32::from_be_bytes))
    }

    /// Reads what is left and keeps nothing.
    async fn skip(&mut self) {
        while let Ok(Some(_)) = self.body.next().await {}
    }
}

/// A body whose sender has to keep a certain pace.
struct PatientBody {
    chunks: BodyDataStream,
    /// Bytes since patience was renewed.
    came: usize,
    patience: Pin<Box<Sleep>>,
}

impl PatientBody {
    fn new(body: Body) -> PatientBody {
        PatientBody { chunks: body.into_data_stream(), came: 0, patience: Box::pin(sleep(PATIENCE)) }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, GitProblem> {
        // What is there already is taken, however long nobody looked.
        let chunk = tokio::select! {
            biased;
            chunk = self.chunks.next() => chunk,
            () = &mut self.patience => {
                let why = "the push has stopped half way, or comes too slowly".to_owned();
                return Err(GitProblem(StatusCode::REQUEST_TIMEOUT, why));
            }
        };
        let Some(chunk) = chunk else { return Ok(None) };
        let chunk = chunk.map_err(|_| GitProblem::bad_request("the push was cut off"))?;
        self.came += chunk.len();
        if self.came >= PATIENCE_BYTES {
            (self.came, self.patience) = (0, Box::pin(sleep(PATIENCE)));
        }
        Ok(Some(chunk))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use futures_util::stream;

    /// A body of so many chunks, with a pause before each.
    fn drip(bytes: usize, pause: Duration, count: usize) -> PatientBody {
        let chunks = stream::unfold(count, move |left| async move {
            sleep(pause).await;
            (left > 0).then(|| (Ok::<_, std::io::Error>(Bytes::from(vec![0; bytes])), left - 1))
        });
        PatientBody::new(Body::from_stream(chunks))
    }

    async fn read(mut body: PatientBody) -> Result<usize, StatusCode> {
        let mut read = 0;
        while let Some(chunk) = body.next().await.map_err(|problem| problem.0)? {
            read += chunk.len();
        }
        Ok(read)
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_pushes_keeps_a_pace() {
        let pause = PATIENCE - Duration::from_secs(1);
        assert_eq!(read(drip(PATIENCE_BYTES, pause, 9)).await, Ok(9 * PATIENCE_BYTES));
        assert_eq!(read(drip(PATIENCE_BYTES, PATIENCE * 2, 1)).await, Err(StatusCode::REQUEST_TIMEOUT), "a pause");
        assert_eq!(read(drip(1, pause, 9)).await, Err(StatusCode::REQUEST_TIMEOUT), "drop by drop");
        assert_eq!(read(drip(PATIENCE_BYTES / 4, pause / 8, 40)).await, Ok(10 * PATIENCE_BYTES), "in small parts");
    }
}
