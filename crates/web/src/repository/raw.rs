//! Files, patches and archives themselves: as plain text, as a picture, or as a download, so that nothing in them runs here.

use super::commits::named_commit;
use super::files::{FileQuery, is_binary};
use super::open::{OpenRepository, Revision};
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use server::Problem;
use server::conditional::is_known;
use server::extract::{Path, Query};
use server::git_programs::{DownloadLimits, spawn, stream_whole};
use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Nothing in a file may run, load or show anything, nor count as this site.
const POLICY: HeaderValue = HeaderValue::from_static("default-src 'none'; sandbox; frame-ancestors 'none'");
/// What is read of a file to tell what it is.
const BEGINNING_BYTES: usize = 8192;
/// The largest archive or patch.
const ARCHIVE_BYTES_MAX: u64 = 2 << 30;
/// Seconds of a processor that making one may take.
const ARCHIVE_SECONDS_MAX: u64 = 120;
/// How long a download may take.
const DOWNLOAD_TIME_MAX: Duration = Duration::from_secs(600);

/// The kind of a picture that browsers show and in which nothing can run, by its beginning.
pub(super) fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        _ if is_webp => Some("image/webp"),
        _ => None,
    }
}

/// How a file is served: its type, and whether it is shown or saved.
fn served_as(beginning: &[u8]) -> (&'static str, &'static str) {
    match image_type(beginning) {
        Some(kind) => (kind, "inline"),
        None if is_binary(beginning) => ("application/octet-stream", "attachment"),
        None => ("text/plain; charset=utf-8", "inline"),
    }
}

/// A file as it is.
pub(crate) async fn show_file(
    repository: OpenRepository,
    headers: HeaderMap,
    Query(query): Query<FileQuery>,
) -> Result<Response, Problem> {
    let Revision { commit, .. } = repository.need_revision(query.at.as_deref()).await?;
    let path = query.clean_path().to_owned();
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let found = repository.read(move |store| store.find_path(&commit, &path)).await?.filter(|found| !found.is_folder);
    let found = found.ok_or_else(|| Problem::not_found("there is no such file in that commit"))?;
    let tag = format!("\"{}\"", hex::encode(found.oid));
    if is_known(&headers, &tag) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
    }
    let oid = found.oid;
    let beginning = repository.read(move |store| store.read_file(&oid, BEGINNING_BYTES)).await?;
    let (kind, disposition) = served_as(&beginning.bytes);
    let body = match beginning.is_cut {
        false => Body::from(beginning.bytes),
        true => {
            let command = repository.store.write_file(&oid);
            stream_program(repository, command, found.bytes)?
        }
    };
    let mut response = answer(kind, &format!("{disposition}{}", file_name(&name)), body);
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(found.bytes));
    Ok(response)
}

/// What a program says, as the body of an answer.
fn stream_program(repository: OpenRepository, command: Command, bytes_max: u64) -> Result<Body, Problem> {
    let broken = |why: std::io::Error| {
        tracing::error!(%why, "git cannot be started");
        Problem::broken("the repository cannot be read")
    };
    let mut child = spawn(command, Stdio::null(), Stdio::null()).map_err(broken)?;
    child.id().into_iter().for_each(|id| git::bound_reading(id, ARCHIVE_SECONDS_MAX));
    let stdout = child.stdout.take().ok_or_else(|| Problem::broken("git says nothing"))?;
    let limits = DownloadLimits { bytes_max, time_max: DOWNLOAD_TIME_MAX };
    Ok(stream_whole(child, stdout, repository.permit, limits))
}

/// The name that a file is saved under.
fn file_name(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!("; filename*=UTF-8''{}", crate::shell::percent_encode(name)) }
}

/// An answer in which nothing runs.
fn answer(kind: &'static str, disposition: &str, body: Body) -> Response {
    let mut response = ([(header::CONTENT_TYPE, kind)], body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    // Somebody may push meanwhile: what is kept has to be asked for again.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    if let Ok(disposition) = HeaderValue::from_str(disposition) {
        headers.insert(header::CONTENT_DISPOSITION, disposition);
    }
    response
}

/// Which commit.
#[derive(Debug, Deserialize)]
pub(crate) struct ArchiveQuery {
    at: Option<String>,
}

/// All files of a commit.
pub(crate) async fn send_archive(
    repository: OpenRepository,
    Query(query): Query<ArchiveQuery>,
) -> Result<Response, Problem> {
    let revision = repository.need_revision(query.at.as_deref()).await?;
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' };
    let words = format!("{}-{}", repository.shown.identifier, revision.label());
    let folder: String = words.chars().map(plain).take(120).collect();
    // A folder of that name would be another one.
    let folder = folder.trim_start_matches('.').to_owned();
    let command = repository.store.write_archive(&revision.commit, &folder);
    let body = stream_program(repository, command, ARCHIVE_BYTES_MAX)?;
    Ok(answer("application/gzip", &format!("attachment{}", file_name(&format!("{folder}.tar.gz"))), body))
}

/// A commit as a patch that can be mailed and applied.
pub(crate) async fn send_patch(
    repository: OpenRepository,
    Path(parameters): Path<HashMap<String, String>>,
) -> Result<Response, Problem> {
    let revision = named_commit(&repository, &parameters).await?;
    let command = repository.store.write_patch(&revision.commit);
    let body = stream_program(repository, command, ARCHIVE_BYTES_MAX)?;
    Ok(answer("text/plain; charset=utf-8", "inline", body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_text_pictures_or_downloads() {
        for (beginning, expected) in [
            (b"<html><script>".as_slice(), ("text/plain; charset=utf-8", "inline")),
            (b"<svg onload=alert(1)>", ("text/plain; charset=utf-8", "inline")),
            (b"", ("text/plain; charset=utf-8", "inline")),
            (b"%PDF-1.7\n\0", ("application/octet-stream", "attachment")),
            (b"\x89PNG\r\n\x1a\n\0", ("image/png", "inline")),
            (b"\xff\xd8\xff\xe0\0", ("image/jpeg", "inline")),
            (b"GIF89a\0", ("image/gif", "inline")),
            (b"RIFF\0\0\0\0WEBPVP8 ", ("image/webp", "inline")),
            (b"RIFF\0\0\0\0WAVEfmt ", ("application/octet-stream", "attachment")),
        ] {
            assert_eq!(served_as(beginning), expected);
        }
    }

    #[test]
    fn names_of_files_cannot_end_a_header() {
        assert_eq!(file_name("a\"\r\nX: y.txt"), "; filename*=UTF-8''a%22%0D%0AX%3A%20y.txt");
        assert_eq!(file_name(""), "");
    }
}
