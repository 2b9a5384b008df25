//! Pushes: which refs one wants to change is read first and decided about; only what is allowed reaches git.

use crate::fetch::{answer, spawn};
use crate::pack_lines::{BadCommands, COMMANDS_BYTES_MAX, PushCommands, parse_commands, refusal};
use crate::problems::GitProblem;
use crate::request::{blocking, hosted, is_compressed};
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Path, State};
use axum::response::Response;
use engine::protocol::nostr::push::{NO_OBJECT, PushDecision};
use flate2::write::GzDecoder;
use futures_util::StreamExt as _;
use git::Staging;
use http::HeaderMap;
use node::git::GitService;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const ANSWER_TYPE: &str = "application/x-git-receive-pack-result";
/// The longest report of git about a push.
const REPORT_BYTES_MAX: u64 = 4 << 20;

/// `POST git-receive-pack`: a push.
pub(crate) async fn receive_pack(
    State(service): State<Arc<GitService>>,
    Path((npub, name)): Path<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, GitProblem> {
    let repository = hosted(&service, &npub, &name).await?;
    let mut input = PushInput::new(body, is_compressed(&headers)?);
    let (commands, beginning) = input.read_commands().await?;
    // Git asks with an empty list whether it may send a long body.
    if commands.updates.is_empty() {
        return Ok(answer(ANSWER_TYPE, Body::empty()));
    }
    let (asked, updates) = (repository.clone(), commands.updates.clone());
    let decided = blocking(&service, move |service| service.decide(&asked, &updates)).await?;
    let decision = decided.map_err(|why| GitProblem::broken("the push could not be decided", why))?;
    let before_their_events = match decision {
        PushDecision::Allowed { before_their_events } => before_their_events,
        PushDecision::NoRepository => return Err(GitProblem::not_found()),
        PushDecision::Refused(reasons) => {
            tracing::info!(owner = %repository.owner, identifier = repository.identifier, refs = reasons.len(), "a push was refused");
            // Whoever sends a pack does not listen before it has been taken.
            input.skip().await;
            return Ok(answer(ANSWER_TYPE, Body::from(refusal(&commands, &reasons))));
        }
    };
    let staged = repository.clone();
    let staging = blocking(&service, move |_| Ok(staged.store.stage(&staged.owner)?)).await?;
    let staging = staging.map_err(|why| GitProblem::broken("the push could not begin", why))?;
    let report = receive(&staging, beginning, input).await?;
    let arrived = blocking(&service, move |service| {
        if has_all(&staging, &commands)? {
            service.receive(&repository, &staging, &commands.updates, &before_their_events)?;
        }
        Ok(())
    });
    arrived.await?.map_err(|why| GitProblem::broken("the push could not be taken over", why))?;
    Ok(answer(ANSWER_TYPE, Body::from(report)))
}

/// Whether git did all that the push asked for; otherwise nothing of it is taken over.
fn has_all(staging: &Staging, commands: &PushCommands) -> Result<bool, git::GitError> {
    let refs = staging.refs()?;
    Ok(commands.updates.iter().all(|update| match update.new {
        NO_OBJECT => !refs.contains_key(&update.name),
        new => refs.get(&update.name) == Some(&new),
    }))
}

/// Has git receive a push in its staging. Answers with git's report.
async fn receive(staging: &Staging, beginning: Bytes, mut input: PushInput) -> Result<Vec<u8>, GitProblem> {
    let mut child = spawn(staging.receive_pack(), Stdio::piped())?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else {
        return Err(GitProblem::broken("git takes nothing", "no input"));
    };
    let feeding = async move {
        let mut fed = stdin.write_all(&beginning).await.is_ok();
        loop {
            match input.next().await {
                // What git does not want any more, such as the rest of a pack that is too large, is read all the same.
                Ok(Some(bytes)) => fed = fed && stdin.write_all(&bytes).await.is_ok(),
                Ok(None) => return Ok(()),
                Err(why) => return Err(why),
            }
        }
    };
    let reading = async move {
        let mut report = Vec::new();
        let read = stdout.take(REPORT_BYTES_MAX).read_to_end(&mut report).await;
        read.map(|_| report).map_err(|why| GitProblem::broken("git could not be read", why))
    };
    let (fed, report) = tokio::join!(feeding, reading);
    fed?;
    let _ = child.wait().await;
    report
}

/// The body of a push, decompressed as it comes.
struct PushInput {
    body: BodyDataStream,
    decoder: Option<GzDecoder<Vec<u8>>>,
}

impl PushInput {
    fn new(body: Body, is_compressed: bool) -> PushInput {
        PushInput { body: body.into_data_stream(), decoder: is_compressed.then(|| GzDecoder::new(Vec::new())) }
    }

    /// The next bytes.
    async fn next(&mut self) -> Result<Option<Bytes>, GitProblem> {
        let Some(bytes) = self.body.next().await else { return Ok(None) };
        let bytes = bytes.map_err(|_| GitProblem::bad_request("the push was cut off"))?;
        let Some(decoder) = &mut self.decoder else { return Ok(Some(bytes)) };
        let bad = |_| GitProblem::bad_request("the body is not gzip");
        decoder.write_all(&bytes).and_then(|()| decoder.flush()).map_err(bad)?;
        Ok(Some(std::mem::take(decoder.get_mut()).into()))
    }

    /// Reads until it is known which refs are to be changed, with what was read for that.
    async fn read_commands(&mut self) -> Result<(PushCommands, Bytes), GitProblem> {
        let mut read = Vec::new();
        loop {
            match parse_commands(&read) {
                Ok(commands) => return Ok((commands, read.into())),
                Err(BadCommands::Malformed(why)) => return Err(GitProblem::bad_request(why)),
                Err(BadCommands::Incomplete) if read.len() > COMMANDS_BYTES_MAX => {
                    return Err(GitProblem::bad_request("the list of refs is too long"));
                }
                Err(BadCommands::Incomplete) => {}
            }
            let more = self.next().await?.ok_or_else(|| GitProblem::bad_request("the push ends too early"))?;
            read.extend_from_slice(&more);
        }
    }

    /// Reads what is left and keeps nothing.
    async fn skip(&mut self) {
        while let Some(Ok(_)) = self.body.next().await {}
    }
}
