//! Telling refs, and answering fetches: what the `git` program says is passed on as it says it.

use crate::app::{GitApp, blocking};
use crate::pack_lines;
use crate::problems::GitProblem;
use crate::request::{RepositoryPath, hosted, is_compressed, protocol};
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use server::context::RequestContext;
use server::git_programs;
use std::collections::HashMap;
use std::io::Read as _;
use std::process::{Command as StdCommand, Stdio};
use std::sync::Arc;
use tokio::io::AsyncReadExt as _;
use tokio::process::Child;

/// The longest request for a fetch: wants and haves of a large repository.
const REQUEST_BYTES_MAX: usize = 8 << 20;
/// The longest list of refs.
const REFS_BYTES_MAX: u64 = 256 << 20;

/// `GET info/refs`: the refs of a repository.
pub(crate) async fn tell_refs(
    State(app): State<Arc<GitApp>>,
    path: RepositoryPath,
    context: RequestContext,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Result<Response, GitProblem> {
    let asked = match query.get("service").map(String::as_str) {
        Some("git-upload-pack") => "upload-pack",
        Some("git-receive-pack") => "receive-pack",
        _ => return Err(GitProblem(StatusCode::FORBIDDEN, "only the smart protocol of git is served".into())),
    };
    let repository = hosted(&app, path).await?;
    let version = protocol(&headers);
    let command = repository.store.advertise(&repository.owner, asked, version.as_deref());
    let _program = app.program(context.via.network).await?;
    let mut child = spawn(command, Stdio::null(), Stdio::null())?;
    let mut told = Vec::new();
    // Since version 2 the list does not repeat what was asked for.
    if asked == "receive-pack" || version.as_deref() != Some("version=2") {
        told.extend(pack_lines::line(format!("# service=git-{asked}\n").as_bytes()));
        told.extend(pack_lines::FLUSH);
    }
    let stdout = child.stdout.take().ok_or_else(|| GitProblem::broken("git says nothing", "no output"))?;
    let read = stdout.take(REFS_BYTES_MAX).read_to_end(&mut told).await;
    read.map_err(|why| GitProblem::broken("git could not be read", why))?;
    let status = child.wait().await.map_err(|why| GitProblem::broken("git did not end", why))?;
    if !status.success() {
        return Err(GitProblem::broken("the refs could not be told", status));
    }
    Ok(answer(&format!("application/x-git-{asked}-advertisement"), Body::from(told)))
}

/// `POST git-upload-pack`: a fetch.
pub(crate) async fn upload_pack(
    State(app): State<Arc<GitApp>>,
    path: RepositoryPath,
    context: RequestContext,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, GitProblem> {
    let repository = hosted(&app, path).await?;
    let request = read_request(&headers, body).await?;
    let command = repository.store.upload_pack(&repository.owner, protocol(&headers).as_deref());
    let input = blocking(&app, move |_| Ok(git::as_input(&request)?)).await?;
    let program = app.program(context.via.network).await?;
    let mut child = spawn(command, input, Stdio::null())?;
    let stdout = child.stdout.take().ok_or_else(|| GitProblem::broken("git says nothing", "no output"))?;
    Ok(answer("application/x-git-upload-pack-result", git_programs::stream(child, stdout, program)))
}

/// The whole of a request that is bounded, decompressed.
async fn read_request(headers: &HeaderMap, body: Body) -> Result<Bytes, GitProblem> {
    let too_long = || GitProblem(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long".into());
    let is_compressed = is_compressed(headers)?;
    let read = Limited::new(body, REQUEST_BYTES_MAX).collect().await.map_err(|_| too_long())?.to_bytes();
    if !is_compressed {
        return Ok(read);
    }
    let mut plain = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&read[..]).take(REQUEST_BYTES_MAX as u64 + 1);
    decoder.read_to_end(&mut plain).map_err(|_| GitProblem::bad_request("the body is not gzip"))?;
    if plain.len() > REQUEST_BYTES_MAX { Err(too_long()) } else { Ok(plain.into()) }
}

/// Starts git. It ends when nobody waits for it any more.
pub(crate) fn spawn(command: StdCommand, input: Stdio, complaints: Stdio) -> Result<Child, GitProblem> {
    let child = git_programs::spawn(command, input, complaints);
    let child = child.map_err(|why| GitProblem::broken("git cannot be started", why))?;
    child.id().into_iter().for_each(git::bound_time);
    Ok(child)
}

/// An answer that nobody keeps.
pub(crate) fn answer(kind: &str, body: Body) -> Response {
    let headers = [(header::CONTENT_TYPE, kind.to_owned()), (header::CACHE_CONTROL, "no-cache".to_owned())];
    (headers, body).into_response()
}
