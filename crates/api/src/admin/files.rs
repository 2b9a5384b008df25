//! How the files of a space stand.

use axum::Json;
use axum::extract::State;
use queries::files_status::{FilesStatus, files_status};
use server::context::RequestContext;
use server::problem::Problem;
use server::state::SharedState;

/// Every row of the files is read, so this runs where it holds up nobody.
pub(crate) async fn status(
    State(state): State<SharedState>,
    context: RequestContext,
) -> Result<Json<FilesStatus>, Problem> {
    let (space, now) = (context.space()?, state.node.now());
    let look = tokio::task::spawn_blocking(move || -> Result<FilesStatus, Problem> {
        Ok(files_status(&*state.node.snapshot()?, Some(space), now)?)
    });
    look.await.map_err(|_| Problem::broken("the files could not be looked at"))?.map(Json)
}
