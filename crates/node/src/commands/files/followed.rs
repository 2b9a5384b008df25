//! Files whose events were made elsewhere: each gets a record here, which follows its event. What the event says of bytes is
//! noted when it is processed, the bytes arrive when they were found, and the record goes when the event's content does.
//!
//! Records of files that were uploaded here are looked at in the same way, and found to be as their events say.

use super::VERSIONS_MAX;
use super::checks::{check_media_type, check_name};
use super::renditions::{end_older_work, forget_derived};
use crate::pipeline::{policy, stops_on_bugs};
use engine::content;
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

/// Brings records in line with so many file events of which something changed. Says whether there may be more. Files that
/// somebody uploads or works on are looked at again with the commit that ends that.
pub(crate) fn follow_events(batch: &mut Batch<'_>, most: usize) -> StoreResult<bool> {
    let due = batch.db().due_file_events(most)?;
    let mut followed = 0;
    for seq in &due {
        let is_followed = match follow(batch, *seq) {
            // Damage concerns itself alone: the others are followed.
            Err(StoreError::Broken(why)) if !stops_on_bugs() => {
                tracing::error!(%seq, why, "the record of a file does not follow its event; run `anteroom verify`");
                true
            }
            other => other?,
        };
        if is_followed {
            batch.file_event_followed(*seq)?;
            followed += 1;
        }
    }
    Ok(followed > 0 && due.len() == most)
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

/// Says whether the record agrees with the event now.
fn follow(batch: &mut Batch<'_>, seq: Seq) -> StoreResult<bool> {
    let Some(event) = FileEvent::read(batch, seq)? else { return Ok(true) };
    let known = batch.db().file_of_event(&event.id)?;
    match (known, event.wanted) {
        (Some(file), None) => go_with(batch, &event, file)?,
        (Some(file), Some(wanted)) => stay_with(batch, &event, file, wanted)?,
        (None, Some(wanted)) => return adopt(batch, &event, wanted),
        (None, None) => {}
    }
    Ok(true)
}

/// The content of the event is not here any more: with a delete of the latest version the file goes for ever, and the bytes
/// of its older versions are dropped here; with a delete of an older one that version goes.
fn go_with(batch: &mut Batch<'_>, event: &FileEvent, file: FileId) -> StoreResult<()> {
    let Some(record) = batch.db().file(&event.space, file)? else { return Ok(()) };
    if !matches!(event.content, ContentState::Deleted { .. }) {
        return Ok(());
    }
    if !record.is_purged {
        batch.forget_file_of_event(&event.space, file, &event.id)?;
    }
    if record.event != Some(event.id) {
        return Ok(());
    }
    for (_, older) in batch.db().file_versions(&event.space, file)? {
        let seq = older.event.map(|older| batch.db().seq(&older)).transpose()?.flatten();
        if let Some(seq) = seq.filter(|seq| *seq != event.seq) {
            let (_, changes) = content::prune(batch.db(), &policy(batch), seq)?;
            batch.apply(changes)?;
        }
    }
    Ok(())
}

/// The event speaks of bytes that a version of the file is, or was before the event was deleted and came back.
fn stay_with(batch: &mut Batch<'_>, event: &FileEvent, file: FileId, wanted: WantedBytes) -> StoreResult<()> {
    let space = &event.space;
    let Some(record) = batch.db().file(space, file)? else { return Ok(()) };
    let versions = batch.db().file_versions(space, file)?;
    let Some((version, row)) = versions.into_iter().find(|(_, row)| row.event == Some(event.id)) else { return Ok(()) };
    let is_latest = record.version == version;
    if record.is_purged && !is_latest {
        // The file went with its latest version, whatever comes of older ones.
        return Ok(());
    }
    let has_returned = row.deleted_at.is_some();
    if has_returned {
        let content = Some(FileContent { hash: wanted.hash, len: wanted.len });
        batch.put_version(space, (file, version), &FileVersion { content, deleted_at: None, ..row.clone() })?;
    }
    if record.is_purged {
        let name = event.manifest(batch)?.map_or_else(|| UNNAMED.to_owned(), |manifest| name_of(&manifest));
        batch.put_file(space, file, &FileRecord { name, is_purged: false, deleted_at: None, ..record.clone() })?;
    }
    if !event.are_bytes_here {
        return Ok(());
    }
    let has_waited = row.status == StoredStatus::Created;
    if has_waited {
        batch.move_version(space, (file, version), StoredStatus::Uploaded, by(ARRIVED)).map_err(fault)?;
    }
    if is_latest && record.status == FileStatus::Created {
        batch.move_file(space, file, FileStatus::Uploaded, by(ARRIVED)).map_err(fault)?;
    }
    let is_to_do = has_waited || has_returned || row.status == StoredStatus::Failed;
    if is_latest && is_to_do && row.is_renderable { queue(batch, space, file) } else { Ok(()) }
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

/// A record for a file that was uploaded elsewhere. Says whether that is done, or is to be tried again.
fn adopt(batch: &mut Batch<'_>, event: &FileEvent, wanted: WantedBytes) -> StoreResult<bool> {
    let Some(manifest) = event.manifest(batch)?.filter(|_| event.meta.counts) else { return Ok(true) };
    let space = &event.space;
    let said = manifest.id.as_deref().and_then(FileId::from_name);
    if let Some((file, record)) =
        said.map(|file| batch.db().file(space, file).map(|found| (file, found))).transpose()?
    {
        match record {
            None => return begin(batch, event, file, wanted, &manifest).map(|()| true),
            Some(record) if record.owner == event.author => {
                return renew(batch, event, (file, record), wanted, &manifest);
            }
            // Whoever takes the id of somebody else's file gets another.
            Some(_) => {}
        }
    }
    let file = FileId(event.id.0);
    if batch.db().file(space, file)?.is_none() {
        begin(batch, event, file, wanted, &manifest)?;
    }
    Ok(true)
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
) -> StoreResult<bool> {
    let space = &event.space;
    let is_known = batch.db().file_versions(space, file)?.iter().any(|(_, row)| row.event == Some(event.id));
    let latest = record.event.map(|event| batch.db().seq(&event)).transpose()?.flatten();
    let latest = latest.map(|seq| batch.db().event(seq)).transpose()?.flatten();
    let stamp = |id: EventId, meta: &Meta| (meta.at, id);
    let is_older = latest
        .is_some_and(|row| row.meta.as_ref().is_some_and(|meta| stamp(row.id, meta) >= stamp(event.id, &event.meta)));
    if is_known || is_older || record.is_purged || record.version >= VERSIONS_MAX {
        return Ok(true);
    }
    // Somebody uploads or works on it here: what comes from elsewhere is not mixed into that.
    let is_busy = matches!(record.status, FileStatus::Uploading | FileStatus::Processing);
    if is_busy || batch.db().open_upload(space, file)?.is_some() {
        return Ok(false);
    }
    let why = by("an event speaks of a new version");
    end_older_work(batch, (space, file), why).map_err(fault)?;
    let version = record.version + 1;
    let row = event.version(batch, wanted, manifest);
    let (media_type, size) = (media_type_of(manifest), Some(manifest.size));
    batch.begin_version(space, (file, version), &row, why)?;
    let (event_id, updated_at) = (Some(event.id), batch.now());
    let before = record.status;
    batch.put_file(space, file, &FileRecord { version, media_type, size, event: event_id, updated_at, ..record })?;
    if event.are_bytes_here && matches!(before, FileStatus::Created | FileStatus::Failed) {
        if before == FileStatus::Failed {
            batch.move_file(space, file, FileStatus::Uploading, why).map_err(fault)?;
        }
        batch.move_file(space, file, FileStatus::Uploaded, why).map_err(fault)?;
    }
    if !row.is_renderable {
        forget_derived(batch, (space, file), why).map_err(fault)?;
    } else if event.are_bytes_here {
        queue(batch, space, file)?;
    }
    Ok(true)
}

fn name_of(manifest: &Manifest) -> String {
    if check_name(&manifest.name).is_ok() { manifest.name.clone() } else { UNNAMED.to_owned() }
}

fn media_type_of(manifest: &Manifest) -> String {
    if check_media_type(&manifest.media_type).is_ok() { manifest.media_type.clone() } else { String::new() }
}
