//! Files on their way in: bytes that come are handed to an upload on a thread that may wait; in between a few pieces at most,
//! so that memory does not grow with files.

use crate::context::RequestContext;
use crate::problem::Problem;
use crate::secrets::random_bytes;
use crate::state::ServerState;
use axum::body::Bytes;
use axum::extract::multipart::Field;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Multipart, Request};
use bytes::BytesMut;
use futures_util::{Stream, StreamExt as _};
use model::limits::BODY_BYTES_MAX;
use model::{FileId, Nanos, SpaceId};
use node::commands::Caller;
use node::commands::files::{FileCommand, FileRequest, FileResult, NewFile};
use node::files::upload::{Upload, UploadError, UploadRequest};
use store::shared::files::FileRecord;
use tokio::sync::{mpsc, oneshot};

use super::{BYTES_PER_MINUTE_MIN, PIECE_SECONDS_MAX, PIECES_MAX};

/// So many bytes are handed over at once.
const GATHERED_BYTES: usize = 256 * 1024;

/// A file that came in a form.
#[derive(Debug)]
pub struct FormUpload {
    /// What stood in the field `text` before the file.
    pub text: String,
    pub file: FileId,
    pub record: FileRecord,
}

fn bad_form(why: &str) -> Problem {
    Problem::bad_request(format!("the form could not be read: {why}"))
}

/// What a part of a form is said to be, without parameters.
fn media_type_of(field: &Field<'_>) -> String {
    let said = field.content_type().unwrap_or_default();
    said.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl ServerState {
    /// Does something about a file.
    pub async fn change_file(
        &self,
        context: &RequestContext,
        file: FileId,
        command: FileCommand,
    ) -> Result<FileResult, Problem> {
        let (space, caller) = (context.space()?, context.caller.clone());
        let random = random_bytes()?;
        self.ask(FileRequest { space, caller, file, command, idempotency: None, random }).await
    }

    /// Receives the first file of a form, of whatever size, and the texts before it, which are bounded.
    pub async fn receive_form(
        &self,
        context: &RequestContext,
        mut request: Request,
        name: Option<String>,
        sha256: Option<[u8; 32]>,
    ) -> Result<FormUpload, Problem> {
        DefaultBodyLimit::disable().apply(&mut request);
        let form = Multipart::from_request(request, &()).await;
        let mut form = form.map_err(|why| bad_form(&why.body_text()))?;
        // Of all texts together.
        let (mut text, mut length) = (Vec::new(), 0);
        loop {
            let next = tokio::time::timeout(PIECE_SECONDS_MAX, form.next_field()).await;
            let next = next.map_err(|_| Problem::slow("nothing of the form came for a minute"))?;
            let next = next.map_err(|why| bad_form(&why.body_text()))?;
            let mut field = next.ok_or_else(|| Problem::unprocessable("the form has no file: choose one first"))?;
            if let Some(said) = field.file_name() {
                // Some browsers send whole paths.
                let said = said.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
                if said.is_empty() {
                    return Err(Problem::unprocessable("the form has no file: choose one first"));
                }
                let name = name.unwrap_or(said);
                let new = NewFile { name, media_type: media_type_of(&field), ..NewFile::default() };
                let (file, record) = self.receive_file(context, new, sha256, field).await?;
                return Ok(FormUpload { text: String::from_utf8_lossy(&text).into_owned(), file, record });
            }
            let is_text = field.name() == Some("text");
            loop {
                let piece = tokio::time::timeout(PIECE_SECONDS_MAX, field.chunk()).await;
                let piece = piece.map_err(|_| Problem::slow("nothing of the form came for a minute"))?;
                let Some(piece) = piece.map_err(|why| bad_form(&why.body_text()))? else { break };
                length += piece.len();
                if length > BODY_BYTES_MAX {
                    let what = format!("the texts of the form have more than {BODY_BYTES_MAX} bytes");
                    return Err(Problem::too_large(what));
                }
                if is_text {
                    text.extend_from_slice(&piece);
                }
            }
        }
    }

    /// Receives the bytes of a new file as they come.
    pub async fn receive_file<E>(
        &self,
        context: &RequestContext,
        new: NewFile,
        sha256: Option<[u8; 32]>,
        body: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<(FileId, FileRecord), Problem> {
        let file = FileId(random_bytes()?);
        let (space, caller) = (context.space()?, context.caller.clone());
        let (idempotency, new) = (context.idempotency, Some(new));
        let request = UploadRequest { new, sha256, idempotency, ..self.upload_request(space, caller, file)? };
        self.receive_bytes(request, body).await
    }

    /// An upload of the bytes of a file that was begun, of the greatest size.
    pub fn upload_request(&self, space: SpaceId, caller: Caller, file: FileId) -> Result<UploadRequest, Problem> {
        let size_max = self.options.limits.file_bytes_max;
        Ok(UploadRequest {
            space,
            caller,
            file,
            new: None,
            sha256: None,
            by_link: None,
            size_max,
            size_min: None,
            idempotency: None,
            random: random_bytes()?,
        })
    }

    /// Receives bytes as they come.
    pub async fn receive_bytes<E>(
        &self,
        request: UploadRequest,
        body: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<(FileId, FileRecord), Problem> {
        let (node, who) = (self.node.clone(), (request.space, request.caller.user.clone()));
        let work = move |mut coming: ComingBytes| -> Result<(FileId, FileRecord), UploadError> {
            let mut upload = Upload::new(node, request);
            while let Some(piece) = coming.next() {
                if let Err(why) = upload.write(&piece) {
                    upload.abort(&why.to_string());
                    return Err(why);
                }
            }
            match coming.end() {
                Ok(()) => upload.finish().map(|done| (done.id, done.record)),
                Err(why) => {
                    upload.abort(why);
                    Err(UploadError::BrokenOff(why))
                }
            }
        };
        self.hand_over(who, body, work).await
    }

    /// Hands a body piece by piece to a thread that may wait, and answers with what comes of it.
    pub(crate) async fn hand_over<T: Send + 'static, E>(
        &self,
        who: (SpaceId, Option<String>),
        mut body: impl Stream<Item = Result<Bytes, E>> + Unpin,
        work: impl FnOnce(ComingBytes) -> Result<T, UploadError> + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = self.transfers.begin_upload(who)?;
        let (pieces, coming) = mpsc::channel::<Bytes>(PIECES_MAX);
        let (end, ended) = oneshot::channel();
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            work(ComingBytes { coming, ended: Some(ended) })
        });
        let (mut rate, mut gathered) = (ArrivalRate::begin(self.node.now()), BytesMut::new());
        let came = loop {
            match tokio::time::timeout(PIECE_SECONDS_MAX, body.next()).await {
                Ok(None) => break Ok(()),
                Ok(Some(Ok(piece))) => {
                    if rate.is_too_slow(self.node.now(), piece.len()) {
                        break Err("too little came in a minute");
                    }
                    // Connections have small buffers: waking the thread for each of them would take longer than its work.
                    gathered.extend_from_slice(&piece);
                    if gathered.len() >= GATHERED_BYTES && pieces.send(gathered.split().freeze()).await.is_err() {
                        break Ok(());
                    }
                }
                Ok(Some(Err(_))) => break Err("the body ended before it was whole"),
                Err(_) => break Err("nothing came for a minute"),
            }
        };
        if !gathered.is_empty() {
            let _ = pieces.send(gathered.freeze()).await;
        }
        drop(pieces);
        let _ = end.send(came);
        let done = work.await.map_err(|_| Problem::broken("an upload could not be finished"))?;
        done.map_err(Problem::from)
    }
}

/// How fast bytes come: a few now and then would hold a place that others wait for.
struct ArrivalRate {
    since: Nanos,
    bytes: usize,
}

impl ArrivalRate {
    fn begin(now: Nanos) -> ArrivalRate {
        ArrivalRate { since: now, bytes: 0 }
    }

    /// Notes that so many have come. Says whether it were too few in the last minute.
    fn is_too_slow(&mut self, now: Nanos, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        if now.0.saturating_sub(self.since.0) < 60 * Nanos::SECOND {
            return false;
        }
        let is_too_slow = self.bytes < BYTES_PER_MINUTE_MIN;
        *self = ArrivalRate::begin(now);
        is_too_slow
    }
}

/// The pieces of a body, as a thread that may wait takes them.
pub(crate) struct ComingBytes {
    coming: mpsc::Receiver<Bytes>,
    ended: Option<oneshot::Receiver<Result<(), &'static str>>>,
}

impl ComingBytes {
    /// The next piece; none at the end, whatever that was.
    pub(crate) fn next(&mut self) -> Option<Bytes> {
        self.coming.blocking_recv()
    }

    /// Whether the body came to its end, or why not. A request that is dropped says nothing.
    pub(crate) fn end(&mut self) -> Result<(), &'static str> {
        let ended = self.ended.take().and_then(|ended| ended.blocking_recv().ok());
        ended.unwrap_or(Err("the connection was closed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trickle_is_too_slow_and_a_slow_connection_is_not() {
        let at = |seconds: u64| Nanos(seconds * Nanos::SECOND);
        let mut rate = ArrivalRate::begin(at(0));
        assert!(!rate.is_too_slow(at(59), 1));
        assert!(rate.is_too_slow(at(60), BYTES_PER_MINUTE_MIN - 2));
        let mut rate = ArrivalRate::begin(at(0));
        assert!(!rate.is_too_slow(at(60), BYTES_PER_MINUTE_MIN));
        assert!(!rate.is_too_slow(at(119), 0));
        assert!(rate.is_too_slow(at(120), 1), "each minute anew");
    }
}
