//! Whether the node lives, and whether it can take writes.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use server::problem::Problem;
use server::state::SharedState;
use utoipa::ToSchema;

/// Health of the process.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
}

pub(crate) async fn live() -> Json<Health> {
    Json(Health { status: "ok" })
}

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
