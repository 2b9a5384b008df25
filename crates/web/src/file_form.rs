//! The form of a thread with which a file is sent.

use crate::shell::redirect_to;
use crate::thread::send_with_file;
use axum::extract::{Request, State};
use axum::response::Response;
use model::FileId;
use queries::files::find_file;
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::{FormFields, Path};
use server::files::upload::FormUpload;
use server::problem::Problem;
use server::state::SharedState;

/// Sends a file, and a message that carries it.
pub(crate) async fn attach(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, thread)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let FormUpload { text, file, record } = state.receive_form(&context, request, None, None).await?;
    let text = if text.trim().is_empty() { record.name } else { text };
    let said = send_with_file(&state, context, &thread, text, file).await?;
    Ok(redirect_to(&format!("/s/{space}/t/{thread}#m-{}", said.shown)))
}

/// A file that the script has uploaded.
#[derive(Debug, Deserialize)]
pub(crate) struct UploadedForm {
    file: String,
}

/// Sends a message that carries a file which is here already.
pub(crate) async fn attach_uploaded(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, thread)): Path<(String, String)>,
    FormFields(form): FormFields<UploadedForm>,
) -> Result<Response, Problem> {
    let (file, name): (FileId, String) = {
        let db = state.node.snapshot()?;
        let viewer = context.read_as(&*db, state.node.now())?;
        let (id, record) = find_file(&*db, &viewer, &form.file)?;
        (id, record.name)
    };
    let said = send_with_file(&state, context, &thread, name, file).await?;
    Ok(redirect_to(&format!("/s/{space}/t/{thread}#m-{}", said.shown)))
}
