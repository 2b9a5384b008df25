//! Identities whose keys are elsewhere.

use super::users::RoleBody;
use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use model::Identity;
use node::commands::{AdminCommand, AdminResult};
use serde::Serialize;
use server::context::RequestContext;
use server::extract::{Path, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::state::SharedState;
use utoipa::ToSchema;

/// A membership.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembershipEntry {
    /// What the identity names as its authority.
    membership: String,
}

pub(crate) async fn put(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(identity): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<MembershipEntry>, Problem> {
    let identity = parse_identity(&identity)?;
    if !model::crypto::is_usable(&identity) {
        return Err(Problem::not_found("this public key belongs to nobody: anyone could sign for it"));
    }
    let role = json::<RoleBody>(&headers, &body)?.role();
    match state.administer(&context, AdminCommand::SetIdentityRole(context.space()?, identity, Some(role))).await? {
        AdminResult::Admitted(membership) => Ok(Json(MembershipEntry { membership: membership.to_string() })),
        _ => Err(Problem::broken("the identity was not admitted")),
    }
}

pub(crate) async fn remove(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(identity): Path<String>,
) -> Result<StatusCode, Problem> {
    let identity = parse_identity(&identity)?;
    state.administer(&context, AdminCommand::SetIdentityRole(context.space()?, identity, None)).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn parse_identity(text: &str) -> Result<Identity, Problem> {
    text.parse().map_err(|_| Problem::not_found("an identity is a public key in hex"))
}
