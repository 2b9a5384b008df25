//! Files whose events were made elsewhere: each gets a record here, which follows its event. What the event says of bytes is
//! noted when it is processed, the bytes arrive when they were found, and the record goes when the event's content does.
//!
//! Records of files that were uploaded here are looked at in the same way, and found to be as their events say.

use super::checks::{check_media_type, check_name};
use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::rows::{ContentLocation, EventRow, Meta};
use model::files::{FileStatus, Manifest, StoredStatus, WantedBytes};
use model::stage::ContentState;
use model::{EventId, FileId, Identity, Seq, SpaceId};
use store::Batch;
use store::shared::files::{FileChangeError, FileContent, FileJob, FileRecord, FileVersion, StatusChange};
use store::views::messages::ShownContent;

/// How the audit log calls whoever follows events.
const WHO: &str = "the node";
/// The media types that renditions are made of, as an event says them; whoever makes them looks at the bytes.
const RENDERABLE: [&str; 6] = ["image/jpeg", "image/png", "image/webp", "image/gif", "application/pdf", "text/plain"];
/// What a file is called whose event gives it no name that a file may have.
const UNNAMED: &str = "file";

/// Brings records in line with so many file events of which something changed. Says whether there may be more.
pub(crate) fn follow_events(batch: &mut Batch<'_>, most: usize) -> StoreResult<bool> {
    let due = batch.db().due_file_events(most)?;
    for seq in &due {
        follow(batch, *seq)?;
        batch.file_event_followed(*seq)?;
    }
    Ok(due.len() == most)
}

/// A file event as it is here.
struct FileEvent {
    space: SpaceId,
    author: Identity,
    id: EventId,
    seq: Seq,
    meta: Meta,
    content: ContentState,
    /// The bytes that it speaks of, while its content is here.
    wanted: Option<WantedBytes>,
    are_bytes_here: bool,
}

impl FileEvent {
    fn read(batch: &Batch<'_>, seq: Seq) -> StoreResult<Option<FileEvent>> {
        let db = batch.db();
        let Some(EventRow { id, meta: Some(meta), content, .. }) = db.event(seq)? else { return Ok(None) };
        let (space, author) = (db.space_id(meta.space)?, db.identity(meta.author)?);
        let wanted = db.wanted_bytes(seq)?;
        let row = wanted.map(|wanted| db.content(meta.space, &wanted.hash)).transpose()?.flatten();
        let are_bytes_here = row.is_some_and(|row| row.place != ContentLocation::Absent);
        Ok(Some(FileEvent { space, author, id, seq, meta, content, wanted, are_bytes_here }))
    }

    /// What its content says, while that is here.
    fn manifest(&self, batch: &Batch<'_>) -> StoreResult<Option<Manifest>> {
        let ShownContent::Here(plain) = batch.db().shown(self.seq)? else { return Ok(None) };
        Ok(model::body::decode(&plain).ok().and_then(|body| Manifest::of_body(&body)))
    }

    fn version(&self, batch: &Batch<'_>, wanted: WantedBytes, manifest: &Manifest) -> FileVersion {
        let status = if self.are_bytes_here { StoredStatus::Uploaded } else { StoredStatus::Created };
        FileVersion {
            content: Some(FileContent { hash: wanted.hash, len: wanted.len }),
            object: None,
            size: Some(manifest.size),
            status,
            created_at: batch.now(),
            updated_at: batch.now(),
            deleted_at: None,
            error: None,
            event: Some(self.id),
            holds_reference: false,
            is_renderable: RENDERABLE.contains(&manifest.media_type.as_str()),
        }
    }
}

fn by(why: &str) -> StatusChange<'_> {
    StatusChange { who: WHO, why }
}

fn follow(batch: &mut Batch<'_>, seq: Seq) -> StoreResult<()> {
    let Some(event) = FileEvent::read(batch, seq)? else { return Ok(()) };
    let known = batch.db().file_of_event(&event.id)?;
    match (known, event.wanted) {
        (Some(file), None) => go_with(batch, &event, file),
        (Some(file), Some(wanted)) => stay_with(batch, &event, file, wanted),
        (None, Some(wanted)) => adopt(batch, &event, wanted),
        (None, None) => Ok(()),
    }
}

/// The content of the event is not here any more: with a delete, the file goes for ever.
fn go_with(batch: &mut Batch<'_>, event: &FileEvent, file: FileId) -> StoreResult<()> {
    let is_deleted = matches!(event.content, ContentState::Deleted { .. });
    if is_deleted && batch.db().file(&event.space, file)?.is_some_and(|record| !record.is_purged) {
        batch.forget_file_of_event(&event.space, file, &event.id)?;
    }
    Ok(())
}

/// The event speaks of bytes that a version of the file is, or was before the event was deleted and came back.
fn stay_with(batch: &mut Batch<'_>, event: &FileEvent, file: FileId, wanted: WantedBytes) -> StoreResult<()> {
    let space = &event.space;
    let Some(record) = batch.db().file(space, file)? else { return Ok(()) };
    let versions = batch.db().file_versions(space, file)?;
    let Some((version, row)) = versions.into_iter().find(|(_, row)| row.event == Some(event.id)) else { return Ok(()) };
    if row.deleted_at.is_some() {
        let content = Some(FileContent { hash: wanted.hash, len: wanted.len });
        batch.put_version(space, (file, version), &FileVersion { content, deleted_at: None, ..row.clone() })?;
    }
    if record.is_purged {
        batch.put_file(space, file, &FileRecord { is_purged: false, deleted_at: None, ..record.clone() })?;
    }
    if !event.are_bytes_here {
        return Ok(());
    }
    if row.status != StoredStatus::Created {
        return Ok(());
    }
    batch.move_version(space, (file, version), StoredStatus::Uploaded, by(ARRIVED)).map_err(fault)?;
    if record.version != version {
        return Ok(());
    }
    if record.status == FileStatus::Created {
        batch.move_file(space, file, FileStatus::Uploaded, by(ARRIVED)).map_err(fault)?;
    }
    if row.is_renderable { queue(batch, space, file) } else { Ok(()) }
}

const ARRIVED: &str = "its bytes have come";

fn fault(why: FileChangeError) -> StoreError {
    match why {
        FileChangeError::Store(fault) => fault,
        other @ (FileChangeError::Unknown | FileChangeError::Edge { .. }) => StoreError::Broken(other.to_string()),
    }
}

fn queue(batch: &mut Batch<'_>, space: &SpaceId, file: FileId) -> StoreResult<()> {
    let due = batch.now();
    batch.put_file_job(space, file, &FileJob { attempts: 0, due, lease: None, reason: None })
}

/// A record for a file that was uploaded elsewhere.
fn adopt(batch: &mut Batch<'_>, event: &FileEvent, wanted: WantedBytes) -> StoreResult<()> {
    let Some(manifest) = event.manifest(batch)?.filter(|_| event.meta.counts) else { return Ok(()) };
    let space = &event.space;
    let said = manifest.id.as_deref().and_then(FileId::from_name);
    if let Some((file, record)) =
        said.map(|file| batch.db().file(space, file).map(|found| (file, found))).transpose()?
    {
        match record {
            None => return begin(batch, event, file, wanted, &manifest),
            Some(record) if record.owner == event.author => {
                return renew(batch, event, (file, record), wanted, &manifest);
            }
            // Whoever takes the id of somebody else's file gets another.
            Some(_) => {}
        }
    }
    let file = FileId(event.id.0);
    if batch.db().file(space, file)?.is_some() { Ok(()) } else { begin(batch, event, file, wanted, &manifest) }
}

fn begin(
    batch: &mut Batch<'_>,
    event: &FileEvent,
    file: FileId,
    wanted: WantedBytes,
    manifest: &Manifest,
) -> StoreResult<()> {
    let why = by("an event speaks of it");
    let row = event.version(batch, wanted, manifest);
    let record = FileRecord {
        owner: event.author,
        name: name_of(manifest),
        media_type: media_type_of(manifest),
        size: Some(manifest.size),
        status: if event.are_bytes_here { FileStatus::Uploaded } else { FileStatus::Created },
        created_at: event.meta.at,
        updated_at: batch.now(),
        deleted_at: None,
        is_purged: false,
        metadata: String::new(),
        derivation: None,
        event: Some(event.id),
        version: 1,
        before_archive: None,
        error: None,
        history: Vec::new(),
    };
    batch.begin_file(&event.space, file, &record, why)?;
    batch.begin_version(&event.space, (file, 1), &row, why)?;
    if row.is_renderable && event.are_bytes_here { queue(batch, &event.space, file) } else { Ok(()) }
}

/// Another version of a file whose record is here: the latest, unless an event of a later time spoke of it before. Versions
/// that come in another order than they were made are not all kept.
fn renew(
    batch: &mut Batch<'_>,
    event: &FileEvent,
    (file, record): (FileId, FileRecord),
    wanted: WantedBytes,
    manifest: &Manifest,
) -> StoreResult<()> {
    let space = &event.space;
    let is_known = batch.db().file_versions(space, file)?.iter().any(|(_, row)| row.event == Some(event.id));
    let latest = record.event.map(|event| batch.db().seq(&event)).transpose()?.flatten();
    let latest = latest.map(|seq| batch.db().event(seq)).transpose()?.flatten();
    let stamp = |id: EventId, meta: &Meta| (meta.at, id);
    let is_older = latest
        .is_some_and(|row| row.meta.as_ref().is_some_and(|meta| stamp(row.id, meta) >= stamp(event.id, &event.meta)));
    // Somebody uploads or works on it here: what comes from elsewhere waits for nobody, and is not mixed into that.
    let is_busy = matches!(record.status, FileStatus::Uploading | FileStatus::Processing);
    if is_known || is_older || is_busy || record.is_purged {
        return Ok(());
    }
    let version = record.version + 1;
    let row = event.version(batch, wanted, manifest);
    let (media_type, size) = (media_type_of(manifest), Some(manifest.size));
    batch.begin_version(space, (file, version), &row, by("an event speaks of a new version"))?;
    let (event_id, updated_at) = (Some(event.id), batch.now());
    batch.put_file(space, file, &FileRecord { version, media_type, size, event: event_id, updated_at, ..record })?;
    if row.is_renderable && event.are_bytes_here { queue(batch, space, file) } else { Ok(()) }
}

fn name_of(manifest: &Manifest) -> String {
    if check_name(&manifest.name).is_ok() { manifest.name.clone() } else { UNNAMED.to_owned() }
}

fn media_type_of(manifest: &Manifest) -> String {
    if check_media_type(&manifest.media_type).is_ok() { manifest.media_type.clone() } else { String::new() }
}
