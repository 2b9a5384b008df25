//! Signing for users: a backend asks once per user, and its frontend sends what it got.

use crate::schemas::ChosenId;
use axum::Json;
use axum::extract::State;
use http::HeaderMap;
use node::commands::names::check_name;
use serde::{Deserialize, Serialize};
use server::auth::signature::{sign as signed, sign_dated as signed_now};
use server::context::RequestContext;
use server::extract::RequestBody;
use server::input::json;
use server::problem::Problem;
use server::secrets::random_bytes;
use server::state::SharedState;
use utoipa::ToSchema;

/// The user to sign for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "userId": "alice" }))]
pub(crate) struct SignBody {
    #[schema(value_type = ChosenId)]
    user_id: String,
    /// Whether the signature is to carry the time, and be good once within five minutes.
    #[serde(default)]
    dated: bool,
}

/// The user and the signature that proves them.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SignedUser {
    user_id: String,
    /// What a frontend sends as `X-User-Signature`.
    signature: String,
}

pub(crate) async fn sign(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<SignedUser>, Problem> {
    let SignBody { user_id, dated } = json(&headers, &body)?;
    check_name(&user_id)?;
    let keys = state.node.snapshot()?.signing_keys(&context.space()?)?;
    let current = keys.into_iter().find(|(_, key)| key.ends_at.is_none());
    let (_, key) = current.ok_or_else(|| Problem::no_signing_key("this space has no key that signs for users"))?;
    let signature = match dated {
        true => signed_now(&key.secret, &user_id, state.node.now(), &hex::encode(random_bytes::<16>()?)),
        false => signed(&key.secret, &user_id),
    };
    Ok(Json(SignedUser { signature, user_id }))
}
