//! API keys of a space: list, create, revoke or rotate.

use axum::Json;
use axum::extract::State;
use engine::access::KeyRole;
use http::{HeaderMap, StatusCode};
use model::Nanos;
use model::calendar::Rfc3339;
use node::commands::AdminCommand;
use serde::{Deserialize, Serialize};
use server::NewKey;
use server::commands::NewSecret;
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::{LABEL_CHARS_MAX, fits, json};
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use store::shared::api_keys::ApiKey;
use utoipa::{IntoParams, ToSchema};

/// The longest time after which a key ends.
const END_SECONDS_MAX: u64 = 31_536_000;
/// How long a key that was rotated is accepted, if nobody says otherwise.
const ROTATED_SECONDS: u64 = 86_400;

/// An API key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyEntry {
    id: String,
    role: String,
    label: String,
    /// When it was made; nobody knows of a key that is declared.
    #[schema(value_type = Option<String>, format = DateTime)]
    created_at: Option<Rfc3339>,
    /// From when it is not accepted any more.
    #[schema(value_type = Option<String>, format = DateTime)]
    ends_at: Option<Rfc3339>,
    /// Whether it stands in the node's configuration, where alone it can be ended.
    declared: bool,
}

fn entry(id: &[u8; 8], key: &ApiKey, declared: bool) -> KeyEntry {
    KeyEntry {
        id: hex::encode(id),
        role: key.role().map_or("unknown", KeyRole::word).to_owned(),
        label: key.label.clone(),
        created_at: (!declared).then_some(Rfc3339(key.created_at)),
        ends_at: key.ends_at.map(Rfc3339),
        declared,
    }
}

/// The keys of a space.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApiKeys {
    keys: Vec<KeyEntry>,
}

/// What a key is for.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RoleWord {
    /// For browsers and apps.
    Frontend,
    /// For the application's server.
    Backend,
    /// For administration.
    Admin,
}

impl RoleWord {
    fn role(self) -> KeyRole {
        match self {
            RoleWord::Frontend => KeyRole::Frontend,
            RoleWord::Backend => KeyRole::Backend,
            RoleWord::Admin => KeyRole::Admin,
        }
    }
}

/// A key to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "role": "backend", "label": "our application" }))]
pub(crate) struct KeyBody {
    /// What it is for.
    role: RoleWord,
    /// What to call it.
    #[schema(max_length = 200)]
    label: Option<String>,
}

/// A key that was made: the only time its text is shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeKey {
    id: String,
    role: String,
    /// What clients send as `X-API-Key`.
    key: String,
    /// From when the key that it replaces is not accepted any more.
    #[schema(value_type = Option<String>, format = DateTime)]
    old_ends_at: Option<Rfc3339>,
}

/// When a key ends.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct EndQuery {
    /// After so many seconds, so that clients can change to another. Without it at once, or for a rotation after a day.
    #[param(maximum = 31_536_000)]
    after_seconds: Option<u64>,
}

impl EndQuery {
    /// When it ends.
    pub(super) fn end(&self, state: &ServerState) -> Result<Nanos, Problem> {
        let wait = self.after_seconds.unwrap_or(0);
        if wait > END_SECONDS_MAX {
            return Err(Problem::bad_request(format!("after_seconds is at most {END_SECONDS_MAX}, which is a year")));
        }
        Ok(state.node.now().plus(wait.saturating_mul(Nanos::SECOND)))
    }
}

pub(crate) async fn list(State(state): State<SharedState>, context: RequestContext) -> Result<Json<ApiKeys>, Problem> {
    let space = context.space()?;
    let stored = state.node.snapshot()?.api_keys()?;
    let stored = stored.iter().map(|(id, key)| (id, key, false));
    let declared = state.options.keys.iter().map(|(id, key)| (id, key, true));
    let keys = stored.chain(declared).filter(|(_, key, _)| key.space == space);
    Ok(Json(ApiKeys { keys: keys.map(|(id, key, declared)| entry(id, key, declared)).collect() }))
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<MadeKey>), Problem> {
    context.refuse_session()?;
    let KeyBody { role, label } = json(&headers, &body)?;
    let role = role.role();
    let label = label.unwrap_or_default();
    if !fits(&label, LABEL_CHARS_MAX) {
        return Err(Problem::over_limit("a label has at most 200 characters"));
    }
    let space = context.space()?;
    let made = state.make(&context, |made| {
        let NewKey { id, hash, .. } = NewKey::new(made.id, &made.secret);
        AdminCommand::AddKey { id, role, space, hash, label }
    });
    Ok((StatusCode::CREATED, Json(made_key(&made.await?, role, None))))
}

/// The key that was made, to be shown once.
fn made_key(made: &NewSecret, role: KeyRole, old_ends: Option<Nanos>) -> MadeKey {
    let key = NewKey::new(made.id, &made.secret);
    MadeKey { id: hex::encode(key.id), role: role.word().to_owned(), key: key.text, old_ends_at: old_ends.map(Rfc3339) }
}

/// The key of that id, if it is one of the caller's space and can be ended here.
fn find_key(state: &ServerState, context: &RequestContext, id: &str) -> Result<([u8; 8], ApiKey), Problem> {
    let unknown = || Problem::not_found("there is no such key");
    let mut bytes = [0; 8];
    hex::decode_to_slice(id, &mut bytes).map_err(|_| unknown())?;
    if state.options.keys.get(&bytes).is_some_and(|key| Some(key.space) == context.space) {
        return Err(Problem::declared(format!("the key {id} is declared in the configuration of the node")));
    }
    let key = state.node.snapshot()?.api_key(&bytes)?.filter(|key| Some(key.space) == context.space);
    Ok((bytes, key.ok_or_else(unknown)?))
}

pub(crate) async fn rotate(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
    Query(query): Query<EndQuery>,
) -> Result<(StatusCode, Json<MadeKey>), Problem> {
    context.refuse_session()?;
    let (old, before) = find_key(&state, &context, &id)?;
    let role = before.role().ok_or_else(|| Problem::conflict("the key has a role that this release does not know"))?;
    // Whoever rotates the key that they ask with must be able to ask again.
    let at = EndQuery { after_seconds: query.after_seconds.or(Some(ROTATED_SECONDS)) }.end(&state)?;
    let made = state.make(&context, |made| {
        let NewKey { id, hash, .. } = NewKey::new(made.id, &made.secret);
        AdminCommand::RotateKey { old, id, hash, at }
    });
    let made = made.await?;
    // Streams that were opened with a key end with it.
    state.recheck_streams_of_space(&context.space()?)?;
    let old_ends = state.node.snapshot()?.api_key(&old)?.and_then(|old| old.ends_at);
    Ok((StatusCode::CREATED, Json(made_key(&made, role, old_ends))))
}

pub(crate) async fn end(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(id): Path<String>,
    Query(query): Query<EndQuery>,
) -> Result<StatusCode, Problem> {
    let (id, _) = find_key(&state, &context, &id)?;
    let at = query.end(&state)?;
    state.administer(&context, AdminCommand::EndKey { id, at }).await?;
    // Streams that were opened with a key end with it.
    state.recheck_streams_of_space(&context.space()?)?;
    Ok(StatusCode::NO_CONTENT)
}
