//! The spaces that this node keeps.

use crate::schemas::ChosenId;
use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use node::commands::{AdminCommand, AdminResult};
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::RequestBody;
use server::input::json;
use server::problem::Problem;
use server::secrets::random_bytes;
use server::state::SharedState;
use utoipa::ToSchema;

/// A space.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SpaceEntry {
    id: String,
    name: String,
    sealed: bool,
}

/// The spaces of a node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Spaces {
    spaces: Vec<SpaceEntry>,
}

/// A space to found.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "club", "sealed": true }))]
pub(crate) struct SpaceBody {
    /// What to call it on this node.
    #[schema(value_type = ChosenId)]
    name: String,
    /// Whether its events travel and rest encrypted; yes if absent.
    sealed: Option<bool>,
}

pub(crate) async fn list(State(state): State<SharedState>) -> Result<Json<Spaces>, Problem> {
    let spaces = state.node.snapshot()?.hosted_spaces()?.into_iter();
    let spaces = spaces.map(|(id, kept)| SpaceEntry { id: id.to_string(), name: kept.name, sealed: kept.sealed });
    Ok(Json(Spaces { spaces: spaces.collect() }))
}

pub(crate) async fn found(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<SpaceEntry>), Problem> {
    let SpaceBody { name, sealed } = json(&headers, &body)?;
    let sealed = sealed.unwrap_or(true);
    let what = AdminCommand::FoundSpace { name: name.clone(), sealed, random: Box::new(random_bytes()?) };
    match state.administer(&context, what).await? {
        AdminResult::Founded(space) => {
            Ok((StatusCode::CREATED, Json(SpaceEntry { id: space.to_string(), name, sealed })))
        }
        _ => Err(Problem::broken("the space was not founded")),
    }
}
