//! Identities whose keys are elsewhere.

use super::users::RoleBody;
use crate::ask::json;
use crate::caller::Guest;
use crate::extract::{Path, Sent};
use crate::problem::Problem;
use crate::state::Shared;
use axum::Json;
use axum::extract::State;
use http::HeaderMap;
use model::Identity;
use node::acts::{Administered, Administration};
use serde::Serialize;
use utoipa::ToSchema;

/// A membership.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembershipEntry {
    /// What the identity names as its authority.
    membership: String,
}

/// Give an identity whose key is elsewhere a role
#[utoipa::path(put, path = "/admin/identities/{identity}", tag = "admin", params(("identity" = String, Path)),
    request_body = RoleBody, responses(
    (status = 200, body = MembershipEntry), (status = "4XX", body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn put(
    State(house): State<Shared>,
    guest: Guest,
    Path(identity): Path<String>,
    headers: HeaderMap,
    Sent(body): Sent,
) -> Result<Json<MembershipEntry>, Problem> {
    let identity: Identity = identity.parse().map_err(|_| Problem::not_found("an identity is a public key in hex"))?;
    if !model::crypto::is_usable(&identity) {
        return Err(Problem::not_found("this public key belongs to nobody: anyone could sign for it"));
    }
    let role = json::<RoleBody>(&headers, &body)?.role();
    match house.administer(&guest, Administration::AdmitIdentity(guest.space()?, identity, role)).await? {
        Administered::Admitted(membership) => Ok(Json(MembershipEntry { membership: membership.to_string() })),
        _ => Err(Problem::broken("the identity was not admitted")),
    }
}
