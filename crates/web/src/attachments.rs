//! The files of messages.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use model::files::DerivedStatus;
use queries::files::{File, FileRendition, find_file, show_file};
use queries::messages::MessageReader;
use queries::{QueryError, Viewer};
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::{Path, Query};
use server::problem::Problem;
use server::state::SharedState;
use store::shared::files::FileRecord;
use store::tables::TableReads;

/// The rendition that stands in a conversation.
const SHOWN_VARIANT: &str = "preview_1024";

/// Which bytes of a file are wanted.
#[derive(Debug, Deserialize)]
pub(crate) struct FileForm {
    variant: Option<String>,
    /// An older version.
    version: Option<u32>,
    /// Whether the browser is told to save it.
    download: Option<u8>,
}

/// The files that a message carries: pictures as such, everything else by name and size.
pub(crate) fn attachments_html<V: TableReads>(
    reader: &MessageReader<'_, V>,
    space: &str,
    attachments: &[String],
) -> Result<Markup, QueryError> {
    let mut shown = Vec::new();
    for named in attachments {
        shown.push(attachment_html(reader, space, named)?);
    }
    Ok(html! { @if !shown.is_empty() { div.files { @for file in shown { (file) } } } })
}

fn attachment_html<V: TableReads>(
    reader: &MessageReader<'_, V>,
    space: &str,
    named: &str,
) -> Result<Markup, QueryError> {
    let place = format!("/s/{space}/f/{named}");
    let (id, record) = match find_file(reader.db, reader.viewer, named) {
        Ok(found) => found,
        Err(QueryError::NotFound(_)) => {
            return Ok(html! { p.note { "A file that is not here, or was deleted." } });
        }
        Err(why) => return Err(why),
    };
    let is_picture = matches!(record.media_type.as_str(), "image/jpeg" | "image/png" | "image/webp" | "image/gif");
    let (media_type, bytes) = (record.media_type.clone(), record.size);
    let file = show_file(reader.db, reader.viewer, id, record)?;
    let shown = file.renditions.iter().find(|made| made.variant == SHOWN_VARIANT && made.status == "processed");
    let own = format!("/s/{space}/files/{}", file.id);
    Ok(html! {
        @match shown {
            Some(made) => { a.file href=(place) data-full={ (place) "?variant=full_2048" } { (picture_html(space, &file, made)) } }
            None if is_picture && file.error.is_none() => {
                a.file href=(place) { img src={ (place) "?variant=" (SHOWN_VARIANT) } alt=(file.name) loading="lazy"; }
            }
            None => { a.file href=(own) title=(media_type) { (file.name) span.note { " " (size(bytes)) } } }
        }
    })
}

/// A picture of a file, whose room is kept before it comes.
pub(crate) fn picture_html(space: &str, file: &File, made: &FileRendition) -> Markup {
    html! {
        img src={ "/s/" (space) "/f/" (file.id) "?variant=" (made.variant) } alt=(file.name) loading="lazy"
            width=[made.width] height=[made.height];
    }
}

/// How large something is, as people read it.
pub(crate) fn size(bytes: Option<u64>) -> String {
    match bytes {
        None => "size not known".to_owned(),
        Some(bytes) if bytes < 1024 => format!("{bytes} bytes"),
        Some(bytes) if bytes < 10 << 20 => format!("{} KiB", bytes.div_ceil(1024)),
        Some(bytes) => format!("{} MiB", bytes.div_ceil(1 << 20)),
    }
}

/// The bytes of a file, or of a rendition. Until that is made, the original is shown in its place.
pub(crate) async fn show(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((_, named)): Path<(String, String)>,
    Query(form): Query<FileForm>,
    headers: http::HeaderMap,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let viewer: Viewer = context.read_as(&*db, state.node.now())?;
    let (id, record) = find_file(&*db, &viewer, &named)?;
    let as_download = form.download.is_some();
    let record = match form.version {
        Some(version) if version < record.version => FileRecord { version, media_type: String::new(), ..record },
        Some(_) | None => record,
    };
    let derived = form.variant.map(|variant| db.derived_file(&viewer.space, id, &variant)).transpose()?.flatten();
    let made = derived.filter(|derived| derived.status == DerivedStatus::Processed).and_then(|derived| derived.child);
    let child = made.map(|child| db.file(&viewer.space, child)).transpose()?.flatten();
    match (made, child) {
        (Some(child), Some(made)) => state.send_file(viewer.space, child, &made, &headers, as_download).await,
        _ => state.send_file(viewer.space, id, &record, &headers, as_download).await,
    }
}
