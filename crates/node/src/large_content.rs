//! Large content on its way in and out: it never passes through the writer.
//!
//! A commit gives an object its name and key ([`BeginObject`]); its bytes are written beside the writer; a small command
//! enters it ([`Deliver`]). What nobody speaks of any more is removed by whoever calls [`remove_forgotten`], after the
//! commit that said so.

use crate::writer_command::{AskError, RequestError, WriterCommand};
use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::rows::ContentLocation;
use model::limits::CONTENT_BYTES_MAX;
use model::{ContentHash, Nanos, ObjectName, SpaceId};
use objects::{ContentWriter, ObjectError, WriteForm};
use std::collections::BTreeSet;
use store::events::content::DeliverResult;
use store::events::objects::NewObject;
use store::{Batch, Store};

/// How long an object may take from its first byte to its row, if nobody says otherwise.
const WRITING_NANOS: u64 = 24 * 3600 * Nanos::SECOND;
/// How many objects are removed between two commits.
const REMOVALS_PER_COMMIT: usize = 100;

/// Begins an object for content that arrived, as it travels.
#[derive(Clone, Copy, Debug)]
pub struct BeginObject {
    pub space: SpaceId,
    /// The content it is for.
    pub hash: ContentHash,
}

impl WriterCommand for BeginObject {
    type Answer = NewObject;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<NewObject> {
        let travels_sealed = match batch.db().space_no(&self.space)? {
            Some(space) => batch.travels_sealed(space, &self.hash)?,
            None => false,
        };
        let until = batch.now().plus(WRITING_NANOS);
        batch.begin_object(&self.space, !travels_sealed, until)
    }
}

/// Where content is that was checked and is to be delivered.
#[derive(Clone, Debug)]
pub enum StagedContent {
    /// Here, because it is small.
    Bytes(Vec<u8>),
    /// In an object that was written, and is so long.
    Object(ObjectName, u64),
}

/// Stores content whose hash was checked.
#[derive(Clone, Debug)]
pub struct Deliver {
    /// The space whose events refer to it.
    pub space: SpaceId,
    /// Its hash, which must be that of the bytes as they travel.
    pub hash: ContentHash,
    pub content: StagedContent,
}

impl WriterCommand for Deliver {
    type Answer = DeliverResult;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<DeliverResult> {
        match &self.content {
            StagedContent::Bytes(bytes) => batch.deliver(&self.space, &self.hash, bytes),
            StagedContent::Object(name, len) => batch.enter_object(&self.space, &self.hash, *len, *name),
        }
    }
}

/// Forgets objects that were being written when the node stopped.
#[derive(Clone, Debug)]
pub struct ForgetUnfinished(pub Vec<ObjectName>);

impl WriterCommand for ForgetUnfinished {
    type Answer = ();
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<()> {
        self.0.iter().try_for_each(|name| batch.forget_object(*name))
    }
}

/// Forgets the rows of objects that were removed.
#[derive(Clone, Debug)]
pub struct NoteRemoved(pub Vec<ObjectName>);

impl WriterCommand for NoteRemoved {
    type Answer = usize;
    type Error = StoreError;

    fn run(&self, batch: &mut Batch<'_>) -> StoreResult<usize> {
        batch.objects_removed(&self.0)
    }
}

/// Content that came, with its bytes where they have to be before it is delivered. What nobody waits for is not written.
pub fn stage(
    store: &Store,
    space: SpaceId,
    hash: ContentHash,
    bytes: Vec<u8>,
    begin: impl FnOnce(BeginObject) -> Result<NewObject, AskError<StoreError>>,
) -> Result<Deliver, AskError<StoreError>> {
    let is_small = bytes.len() as u64 <= store.policy().row_content_bytes_max;
    if is_small || !is_wanted(store, &space, &hash).map_err(AskError::Refused)? {
        return Ok(Deliver { space, hash, content: StagedContent::Bytes(bytes) });
    }
    let object = begin(BeginObject { space, hash })?;
    let write = || -> Result<u64, ObjectError> {
        let form = object.key.clone().map_or(WriteForm::AsItTravels, WriteForm::Encrypted);
        let backend = store.disk().objects();
        let mut writer = ContentWriter::new(backend.as_ref(), object.name, form, CONTENT_BYTES_MAX)?;
        writer.write(&bytes)?;
        Ok(writer.finish()?.len)
    };
    let len = write().map_err(RequestError::from)?;
    Ok(Deliver { space, hash, content: StagedContent::Object(object.name, len) })
}

fn is_wanted(store: &Store, space: &SpaceId, hash: &ContentHash) -> StoreResult<bool> {
    let db = store.snapshot()?;
    let Some(space) = db.space_no(space)? else { return Ok(false) };
    Ok(db.content(space, hash)?.is_some_and(|row| row.place == ContentLocation::Absent))
}

/// Objects that were being written when the node stopped, and that nobody goes on with: those of uploads that paused stay.
pub fn interrupted_objects(store: &Store) -> StoreResult<Vec<ObjectName>> {
    let db = store.snapshot()?;
    let uploads = db.open_uploads()?.into_iter().filter(|(_, _, upload)| upload.pause.is_some());
    let goes_on: BTreeSet<ObjectName> = uploads.map(|(_, _, upload)| upload.object).collect();
    let mut names = db.unfinished_objects(usize::MAX)?;
    names.retain(|name| !goes_on.contains(name));
    Ok(names)
}

/// Removes objects that nobody speaks of any more, then their rows. Says how many are gone. One that cannot be removed
/// stays, and is tried again the next time.
pub fn remove_forgotten(
    store: &Store,
    mut ask: impl FnMut(NoteRemoved) -> Result<usize, AskError<StoreError>>,
) -> Result<usize, AskError<StoreError>> {
    let (backend, mut gone) = (store.disk().objects(), 0);
    loop {
        let names = store.snapshot().and_then(|db| db.forgotten_objects(REMOVALS_PER_COMMIT));
        let names = names.map_err(AskError::Refused)?;
        let is_all = names.len() < REMOVALS_PER_COMMIT;
        let (mut removed, count) = (Vec::new(), names.len());
        for name in names {
            match backend.remove(name) {
                Ok(()) => removed.push(name),
                Err(why) => tracing::warn!(%name, %why, "an object cannot be removed now; it is tried again later"),
            }
        }
        let has_failed = removed.len() < count;
        if !removed.is_empty() {
            gone += ask(NoteRemoved(removed))?;
        }
        if is_all || has_failed {
            return Ok(gone);
        }
    }
}
