//! Uploads that come in several goes.
//!
//! How far one has come is a row, written whenever a go ends. Between two goes its writer is kept in memory, so that nothing
//! has to be read again; when the node has started again, or there are too many, it is made anew from the row.

use super::upload::ComingBytes;
use crate::context::RequestContext;
use crate::problem::Problem;
use crate::secrets::random_bytes;
use crate::state::ServerState;
use axum::body::Bytes;
use engine::access::Action;
use futures_util::Stream;
use model::{FileId, SpaceId};
use node::commands::Caller;
use node::commands::files::{FileCommand, FileRequest, NewFile};
use node::files::upload::{Upload, UploadError, UploadRequest};
use queries::Viewer;
use std::collections::HashSet;
use store::shared::files::FileRecord;

/// After so many bytes of a request, what has come is made durable.
const CHECKPOINT_BYTES: u64 = 32 << 20;

/// How far an upload has come.
#[derive(Clone, Debug)]
pub struct UploadState {
    pub file: FileId,
    pub record: FileRecord,
    /// How many bytes have come, durably.
    pub offset: u64,
    /// How many there will be.
    pub size: u64,
    /// When it is given up if nothing comes; none if it is whole.
    pub until: Option<model::Nanos>,
}

impl ServerState {
    /// Begins an upload of that many bytes.
    pub async fn begin_upload(
        &self,
        context: &RequestContext,
        new: NewFile,
        size: u64,
    ) -> Result<UploadState, Problem> {
        let file = FileId(random_bytes()?);
        let (space, caller) = (context.space()?, context.caller.clone());
        let request = UploadRequest { new: Some(new), ..self.upload_request(space, caller.clone(), file)? };
        let node = self.node.clone();
        let open: HashSet<FileId> = node.snapshot()?.open_uploads()?.into_iter().map(|(_, file, _)| file).collect();
        self.transfers.kept.sweep(|file| open.contains(&file));
        let begun = tokio::task::spawn_blocking(move || Upload::begin_resumable(node, request, size)).await;
        let upload = begun.map_err(|_| Problem::broken("the upload could not be begun"))??;
        let slot = self.transfers.kept.slot(file);
        *slot.lock().await = Some(upload);
        drop(slot);
        if size == 0 {
            // There is nothing to wait for.
            self.receive_more(context, file, 0, futures_util::stream::empty::<Result<Bytes, axum::Error>>()).await?;
        }
        self.upload_state(space, &caller, file)
    }

    /// How far an upload has come, for whoever may go on with it. One that was finished has come to its end.
    pub fn upload_state(&self, space: SpaceId, caller: &Caller, file: FileId) -> Result<UploadState, Problem> {
        let unknown = || Problem::not_found("there is no such upload, or it was given up; begin another");
        let db = self.node.snapshot()?;
        let record = db.file(&space, file)?.ok_or_else(unknown)?;
        let viewer = Viewer::resolve(&*db, space, caller, Action::Write, self.node.now())?;
        if viewer.identity() != Some(&record.owner) {
            return Err(unknown());
        }
        if let Some(open) = db.open_upload(&space, file)? {
            let pause = open.pause.ok_or_else(unknown)?;
            let until = Some(open.until);
            return Ok(UploadState { file, record, offset: pause.offset, size: pause.size, until });
        }
        let size = record.size.filter(|_| record.version > 0).ok_or_else(unknown)?;
        Ok(UploadState { file, record, offset: size, size, until: None })
    }

    /// Receives more bytes of an upload, from where it has come to.
    pub async fn receive_more<E>(
        &self,
        context: &RequestContext,
        file: FileId,
        offset: u64,
        body: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<UploadState, Problem> {
        let (space, caller) = (context.space()?, context.caller.clone());
        let state = self.upload_state(space, &caller, file)?;
        if state.offset != offset {
            let why = format!("the upload has come to {}, not to {offset}", state.offset);
            return Err(Problem::status_conflict(why));
        }
        if state.until.is_none() {
            return Ok(state);
        }
        let slot = self.transfers.kept.slot(file);
        let busy = |_| Problem::status_conflict("somebody is sending bytes of this upload right now; try again soon");
        let mut kept = slot.try_lock_owned().map_err(busy)?;
        let request = self.upload_request(space, caller.clone(), file)?;
        let node = self.node.clone();
        let work = move |coming: ComingBytes| {
            let upload = match kept.take() {
                Some(upload) => upload,
                None => Upload::resume(node, request)?,
            };
            let (left, outcome) = take_pieces(upload, offset, state.size, coming);
            *kept = left;
            outcome
        };
        let outcome = self.hand_over((space, caller.user.clone()), body, work).await;
        let state = self.upload_state(space, &caller, file);
        if state.as_ref().is_ok_and(|state| state.until.is_none()) || state.is_err() {
            self.transfers.kept.forget(file);
        }
        outcome.and(state)
    }

    /// Gives an upload up.
    pub async fn end_upload(&self, context: &RequestContext, file: FileId) -> Result<(), Problem> {
        let (space, caller) = (context.space()?, context.caller.clone());
        if self.upload_state(space, &caller, file)?.until.is_none() {
            return Err(Problem::status_conflict("the upload is finished; delete the file instead"));
        }
        let slot = self.transfers.kept.slot(file);
        let busy = |_| Problem::status_conflict("somebody is sending bytes of this upload right now; try again soon");
        let mut kept = slot.try_lock_owned().map_err(busy)?;
        kept.take();
        let command = FileCommand::Fail("whoever uploaded it gave it up".to_owned(), None);
        let random = random_bytes()?;
        let done = self.ask(FileRequest { space, caller, file, command, idempotency: None, random }).await;
        drop(kept);
        self.transfers.kept.forget(file);
        done.map(drop)
    }
}

/// Takes what comes. What has come is durable in the end, whatever happened; an upload that is whole is finished. Answers
/// with the writer, if it goes on.
fn take_pieces(
    mut upload: Upload,
    offset: u64,
    size: u64,
    mut coming: ComingBytes,
) -> (Option<Upload>, Result<(), UploadError>) {
    // Somebody else went on with it in between.
    if upload.offset() != offset {
        return (Some(upload), Err(UploadError::BrokenOff("another request went on with this upload")));
    }
    let (mut written, mut durable) = (Ok(()), offset);
    while let (Some(piece), Ok(())) = (coming.next(), &written) {
        // What is more than was announced is left out, and refused.
        written = match upload.offset() + piece.len() as u64 > size {
            true => Err(UploadError::TooLarge(size)),
            false => upload.write(&piece),
        };
        // A node that is killed loses only so much of a long request.
        if written.is_ok() && upload.offset() - durable >= CHECKPOINT_BYTES {
            durable = upload.offset();
            written = upload.pause().map(drop);
        }
    }
    // What could not be written is not in the object: it goes on from where it was durable last.
    if matches!(written, Err(UploadError::Object(_))) {
        return (None, written);
    }
    // However the body ended: all that was announced is here.
    if upload.is_whole() {
        return (None, upload.finish().map(drop));
    }
    let written = written.and(coming.end().map_err(UploadError::BrokenOff));
    match upload.pause() {
        Ok(_) => (Some(upload), written),
        // What cannot be made durable is not kept in memory either: it goes on from its row.
        Err(why) => (None, written.and(Err(why))),
    }
}
