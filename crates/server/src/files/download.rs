//! Files on their way out: ranges, conditions, and headers by which nothing of them runs on this origin. Bytes are read on a
//! thread that may wait, as fast as they are taken.

use crate::conditional::is_known;
use crate::problem::Problem;
use crate::state::ServerState;
use axum::body::{Body, Bytes};
use axum::response::{IntoResponse as _, Response};
use engine::reads::Reads as _;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use model::files::FileStatus;
use model::{FileId, SpaceId};
use node::files::reading::FileReader;
use objects::ObjectError;
use std::ops::Range;
use store::shared::files::FileRecord;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use super::PIECES_MAX;

/// The media types that are shown in a page. Nothing of what runs scripts is among them.
const SHOWN_TYPES: [&str; 5] = ["image/jpeg", "image/png", "image/webp", "image/gif", "image/avif"];

impl ServerState {
    /// The bytes of a file, or of a part of it.
    pub async fn send_file(
        &self,
        space: SpaceId,
        file: FileId,
        record: &FileRecord,
        headers: &HeaderMap,
        as_download: bool,
    ) -> Result<Response, Problem> {
        let db = self.node.snapshot()?;
        let is_here = |status| !matches!(status, FileStatus::Created | FileStatus::Uploading);
        let version = db.file_version(&space, file, record.version)?;
        let content = version.and_then(|row| row.content).filter(|_| is_here(record.status));
        let content = content.ok_or_else(|| not_downloadable(record))?;
        let number = db.space_no(&space)?.ok_or_else(|| Problem::not_found("there is no such space"))?;
        let tag = format!("\"{}\"", hex::encode(&content.hash.0[..16]));
        let mut answer = headers_of(record, &tag, as_download);
        if is_known(headers, &tag) {
            *answer.status_mut() = StatusCode::NOT_MODIFIED;
            return Ok(answer);
        }
        let turn = self.transfers.downloads.clone().try_acquire_owned();
        let turn = turn.map_err(|_| Problem::overloaded("too many downloads are under way").after(5))?;
        // Where objects are may have to be asked for first.
        let opened = tokio::task::spawn_blocking(move || FileReader::open(&*db, (&space, number), &content)).await;
        let reader = opened.map_err(|_| Problem::broken("the file could not be read"))??;
        let reader = reader.ok_or_else(|| Problem::not_found("the bytes of this file are not here yet"))?;
        let len = reader.len();
        let range = match wanted_range(headers, &tag, len) {
            WantedRange::All => 0..len,
            WantedRange::Part(range) => {
                *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
                let said = format!("bytes {}-{}/{len}", range.start, range.end.saturating_sub(1));
                answer
                    .headers_mut()
                    .extend(HeaderValue::from_str(&said).ok().map(|said| (header::CONTENT_RANGE, said)));
                range
            }
            WantedRange::Unsatisfiable => {
                let mut problem = Problem::range(format!("the file has {len} bytes")).into_response();
                let said = HeaderValue::from_str(&format!("bytes */{len}")).ok();
                problem.headers_mut().extend(said.map(|said| (header::CONTENT_RANGE, said)));
                return Ok(problem);
            }
        };
        answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
        *answer.body_mut() = read_in_background(reader, range, turn);
        Ok(answer)
    }
}

fn not_downloadable(record: &FileRecord) -> Problem {
    let status = record.status;
    if record.is_purged {
        return Problem::not_found("the file was purged: its bytes are gone for ever");
    }
    Problem::status_conflict(format!(
        "the file is {status}, so there is nothing to download; wait until it is uploaded"
    ))
}

/// The headers of an answer with the bytes of a file: nothing of it runs on this origin.
fn headers_of(record: &FileRecord, tag: &str, as_download: bool) -> Response {
    let is_shown = SHOWN_TYPES.contains(&record.media_type.as_str()) && !as_download;
    let media_type = if record.media_type.is_empty() { "application/octet-stream" } else { &record.media_type };
    let disposition = if is_shown { "inline" } else { "attachment" };
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    let texts = [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::CONTENT_DISPOSITION, format!("{disposition}{}", disposition_name(&record.name))),
        (header::ETAG, tag.to_owned()),
    ];
    headers.extend(texts.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::from_str(&text).ok()?))));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache, no-transform"));
    let policy = "default-src 'none'; sandbox; frame-ancestors 'none'";
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

/// The name of a file as RFC 6266 has it, for every browser.
fn disposition_name(name: &str) -> String {
    let mut encoded = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => encoded.push(char::from(byte)),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    if encoded.is_empty() { encoded } else { format!("; filename*=UTF-8''{encoded}") }
}

/// What of a file is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
enum WantedRange {
    All,
    Part(Range<u64>),
    Unsatisfiable,
}

/// Reads `Range`: one range. Several at once, or what is no range of bytes, are answered with the whole file, as the RFC
/// allows.
fn wanted_range(headers: &HeaderMap, tag: &str, len: u64) -> WantedRange {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if text(header::IF_RANGE).is_some_and(|expected| expected != tag) {
        return WantedRange::All;
    }
    let Some(range) = text(header::RANGE).and_then(|range| range.strip_prefix("bytes=")) else {
        return WantedRange::All;
    };
    let Some((first, last)) = range.split_once('-').filter(|_| !range.contains(',')) else { return WantedRange::All };
    let (first, last) = (first.trim(), last.trim());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // What is larger than any number is beyond any file.
    let number = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
    let (from, to) = match (is_number(first), is_number(last)) {
        (true, true) if number(first) > number(last) => return WantedRange::All,
        (true, true) => (number(first), number(last).saturating_add(1).min(len)),
        (true, false) if last.is_empty() => (number(first), len),
        (false, true) if first.is_empty() => (len.saturating_sub(number(last)), len),
        _ => return WantedRange::All,
    };
    if from >= len || from >= to { WantedRange::Unsatisfiable } else { WantedRange::Part(from..to) }
}

/// A body that is read from a file as fast as it is taken.
fn read_in_background(mut reader: FileReader, range: Range<u64>, turn: OwnedSemaphorePermit) -> Body {
    let (pieces, coming) = mpsc::channel::<Result<Bytes, std::io::Error>>(PIECES_MAX);
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let read = reader.read::<BrokenOff>(range, &mut |piece| {
            let sent = pieces.blocking_send(Ok(Bytes::copy_from_slice(piece)));
            sent.map_err(|_| BrokenOff::Closed)
        });
        if let Err(BrokenOff::Object(why)) = read {
            tracing::warn!(%why, "a file could not be read to its end");
            let _ = pieces.blocking_send(Err(std::io::Error::other(why)));
        }
    });
    Body::from_stream(futures_util::stream::unfold(coming, |mut coming| async move {
        coming.recv().await.map(|piece| (piece, coming))
    }))
}

/// Why a file was not read to its end.
enum BrokenOff {
    Closed,
    Object(ObjectError),
}

impl From<ObjectError> for BrokenOff {
    fn from(why: ObjectError) -> BrokenOff {
        BrokenOff::Object(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> WantedRange {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_str(text).expect("a header"));
        wanted_range(&headers, "\"t\"", 100)
    }

    #[test]
    fn one_range_is_answered_and_nonsense_with_the_whole_file() {
        assert_eq!(range("bytes=0-9"), WantedRange::Part(0..10));
        assert_eq!(range("bytes=90-"), WantedRange::Part(90..100));
        assert_eq!(range("bytes=-5"), WantedRange::Part(95..100));
        assert_eq!(range("bytes=-500"), WantedRange::Part(0..100));
        assert_eq!(range("bytes=99-18446744073709551616"), WantedRange::Part(99..100));
        for beyond in ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=18446744073709551615-"] {
            assert_eq!(range(beyond), WantedRange::Unsatisfiable, "{beyond}");
        }
        for nonsense in ["bytes=5-1", "bytes=a-b", "bytes=-", "bytes=0-1,5-6", "lines=0-1", "bytes=1"] {
            assert_eq!(range(nonsense), WantedRange::All, "{nonsense}");
        }
    }

    #[test]
    fn a_range_of_another_version_is_the_whole_file() {
        let mut headers = HeaderMap::new();
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-9"));
        headers.insert(header::IF_RANGE, HeaderValue::from_static("\"old\""));
        assert_eq!(wanted_range(&headers, "\"t\"", 100), WantedRange::All);
        headers.insert(header::IF_RANGE, HeaderValue::from_static("\"t\""));
        assert_eq!(wanted_range(&headers, "\"t\"", 100), WantedRange::Part(0..10));
    }

    #[test]
    fn names_cannot_end_a_header() {
        assert_eq!(disposition_name("a\"\r\nX: y é.png"), "; filename*=UTF-8''a%22%0D%0AX%3A%20y%20%C3%A9.png");
    }
}
