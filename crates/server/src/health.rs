//! Whether the node lives, and whether it can take writes.

use crate::problem::Problem;
use crate::state::SharedState;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// A sign of life.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
}

/// Whether the process answers
#[utoipa::path(get, path = "/healthz", tag = "health", security(()), responses((status = 200, body = Health)))]
pub(crate) async fn live() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the node reads and writes
#[utoipa::path(get, path = "/readyz", tag = "health", security(()), responses(
    (status = 200, body = Health), (status = 503, body = Problem, content_type = "application/problem+json"),
))]
pub(crate) async fn ready(State(state): State<SharedState>) -> Result<Json<Health>, Problem> {
    state.node.snapshot()?;
    if state.node.is_full() {
        return Err(Problem::overloaded("the disk is full, so the node only reads").after(60));
    }
    if state.node.has_stopped() {
        return Err(Problem::overloaded("the writer has stopped").after(60));
    }
    Ok(Json(Health { status: "ok" }))
}
