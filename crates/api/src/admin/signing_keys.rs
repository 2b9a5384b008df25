//! The keys that sign for the users of a space. Several are good at once, so that they can be changed without a break.

use super::keys::EndQuery;
use axum::Json;
use axum::extract::State;
use http::StatusCode;
use model::calendar::Rfc3339;
use node::commands::AdminCommand;
use serde::Serialize;
use server::context::RequestContext;
use server::extract::{Path, Query};
use server::problem::Problem;
use server::state::SharedState;
use utoipa::ToSchema;

/// A key that signs for users, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SigningKeyEntry {
    /// What it is found by.
    number: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    /// From when its signatures are not accepted any more.
    #[schema(value_type = Option<String>, format = DateTime)]
    ends_at: Option<Rfc3339>,
    /// Whether `POST /v1/_sign` signs with it.
    signs: bool,
}

/// The keys that sign for the users of a space, the latest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SigningKeys {
    keys: Vec<SigningKeyEntry>,
}

/// A key that was made: the only time its secret is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeSigningKey {
    number: String,
    /// The 32 bytes that applications sign with, in hex, if they do not leave that to `POST /v1/_sign`.
    secret: String,
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
) -> Result<Json<SigningKeys>, Problem> {
    let found = state.node.snapshot()?.signing_keys(&context.space()?)?;
    let current = found.iter().find(|(_, key)| key.ends_at.is_none()).map(|(number, _)| *number);
    let keys = found.iter().map(|(number, key)| SigningKeyEntry {
        number: number.to_string(),
        created_at: Rfc3339(key.created_at),
        ends_at: key.ends_at.map(Rfc3339),
        signs: Some(*number) == current,
    });
    Ok(Json(SigningKeys { keys: keys.collect() }))
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
) -> Result<(StatusCode, Json<MadeSigningKey>), Problem> {
    context.refuse_session()?;
    let space = context.space()?;
    let made = state.make(&context, |made| AdminCommand::AddSigningKey(space, Box::new(made.secret))).await?;
    let keys = state.node.snapshot()?.signing_keys(&space)?;
    let found = keys.iter().find(|(_, key)| key.secret == made.secret);
    let (number, _) = found.ok_or_else(|| Problem::not_found("the key that was made is not here any more"))?;
    Ok((StatusCode::CREATED, Json(MadeSigningKey { number: number.to_string(), secret: hex::encode(made.secret) })))
}

pub(crate) async fn end(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(number): Path<String>,
    Query(query): Query<EndQuery>,
) -> Result<StatusCode, Problem> {
    let number = number.parse().map_err(|_| Problem::not_found("there is no such key"))?;
    let at = query.end(&state)?;
    state.administer(&context, AdminCommand::EndSigningKey(context.space()?, number, at)).await?;
    Ok(StatusCode::NO_CONTENT)
}
