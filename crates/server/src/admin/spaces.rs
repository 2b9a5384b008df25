//! The spaces that this node keeps.

use crate::ask::{fresh, json};
use crate::caller::Guest;
use crate::extract::Sent;
use crate::problem::Problem;
use crate::shapes::ChosenId;
use crate::state::Shared;
use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use node::acts::{Administered, Administration};
use serde::{Deserialize, Serialize};
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
pub(crate) struct SpaceBody {
    /// What to call it on this node.
    #[schema(value_type = ChosenId)]
    name: String,
    /// Whether its events travel and rest encrypted; yes if absent.
    sealed: Option<bool>,
}

/// List the spaces that the node keeps
#[utoipa::path(get, path = "/admin/spaces", tag = "operator", responses(
    (status = 200, body = Spaces), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn list(State(house): State<Shared>) -> Result<Json<Spaces>, Problem> {
    let spaces = house.node.snapshot()?.kept_spaces()?.into_iter();
    let spaces = spaces.map(|(id, kept)| SpaceEntry { id: id.to_string(), name: kept.name, sealed: kept.sealed });
    Ok(Json(Spaces { spaces: spaces.collect() }))
}

/// Found a space
#[utoipa::path(post, path = "/admin/spaces", tag = "operator", request_body = SpaceBody, responses(
    (status = 201, body = SpaceEntry), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn found(
    State(house): State<Shared>,
    guest: Guest,
    headers: HeaderMap,
    Sent(body): Sent,
) -> Result<(StatusCode, Json<SpaceEntry>), Problem> {
    let SpaceBody { name, sealed } = json(&headers, &body)?;
    let sealed = sealed.unwrap_or(true);
    let what = Administration::FoundSpace { name: name.clone(), sealed, fresh: Box::new(fresh()?) };
    match house.administer(&guest, what).await? {
        Administered::Founded(space) => {
            Ok((StatusCode::CREATED, Json(SpaceEntry { id: space.to_string(), name, sealed })))
        }
        _ => Err(Problem::broken("the space was not founded")),
    }
}
