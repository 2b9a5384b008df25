//! Links by which the operator signs in to the pages.

use axum::Json;
use axum::extract::State;
use http::StatusCode;
use node::commands::AdminCommand;
use serde::Serialize;
use server::context::RequestContext;
use server::problem::Problem;
use server::state::SharedState;
use utoipa::ToSchema;

/// A link that was made: the only time it is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeLink {
    /// The path on this node; good once, for a day.
    path: String,
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
) -> Result<(StatusCode, Json<MadeLink>), Problem> {
    state.administer(&context, AdminCommand::Note("make a link to sign in", String::new())).await?;
    Ok((StatusCode::CREATED, Json(MadeLink { path: state.operator_link()? })))
}
