//! The users of a space and their roles.

use axum::Json;
use axum::extract::State;
use engine::access::UserStanding;
use http::{HeaderMap, StatusCode};
use model::Nanos;
use model::calendar::Rfc3339;
use model::payload::MemberRole;
use node::commands::names::check_name;
use node::commands::{self, AdminCommand, AdminResult};
use queries::paging::page_limit;
use serde::{Deserialize, Serialize};
use server::context::RequestContext;
use server::extract::{Path, Query, RequestBody};
use server::input::json;
use server::problem::Problem;
use server::secrets::random_bytes;
use server::state::SharedState;
use store::Db;
use store::shared::users::User;
use store::tables::TableReads;
use utoipa::{IntoParams, ToSchema};

/// A user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserEntry {
    id: String,
    /// Their role; absent if they were removed.
    role: Option<String>,
    /// Since when they are here.
    #[schema(value_type = String, format = DateTime)]
    since: Rfc3339,
    /// Whether they were removed.
    removed: bool,
    /// The public key of their identity.
    identity: String,
}

/// A page of users.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Users {
    users: Vec<UserEntry>,
    next: Option<String>,
}

/// Which users to list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct UserQuery {
    /// Where the page before ended.
    #[param(pattern = "^([0-9a-f]{32})?$")]
    cursor: Option<String>,
    /// At most so many.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<usize>,
}

/// A role in a space.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MemberWord {
    /// Reads.
    Reader,
    /// Reads and writes.
    Member,
    /// Also changes what others wrote.
    Admin,
}

/// A role to give.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "role": "member" }))]
pub(crate) struct RoleBody {
    role: MemberWord,
}

impl RoleBody {
    pub(super) fn role(&self) -> MemberRole {
        match self.role {
            MemberWord::Reader => MemberRole::Reader,
            MemberWord::Member => MemberRole::Member,
            MemberWord::Admin => MemberRole::Admin,
        }
    }
}

fn entry<V: TableReads>(db: &Db<V>, user: User, now: Nanos) -> Result<UserEntry, Problem> {
    let role = match commands::standing(db, &user, now)? {
        UserStanding::Member(role) => Some(role.to_string()),
        UserStanding::New | UserStanding::Gone => None,
    };
    let (since, identity) = (Rfc3339(user.since), user.identity.to_string());
    Ok(UserEntry { id: user.id, role, since, removed: user.is_gone, identity })
}

pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Query(query): Query<UserQuery>,
) -> Result<Json<Users>, Problem> {
    let space = context.space()?;
    let most = page_limit(query.limit, 500)?;
    let after = match query.cursor.filter(|text| !text.is_empty()) {
        Some(text) => {
            let mut key = [0; 32];
            key[..16].copy_from_slice(&space.0);
            hex::decode_to_slice(&text, &mut key[16..])
                .map_err(|_| Problem::bad_request("the cursor is not one that a list of users gave out"))?;
            Some(key)
        }
        None => None,
    };
    let (db, now) = (state.node.snapshot()?, state.node.now());
    let mut found = db.users(&space, after, most + 1)?;
    let has_more = found.len() > most;
    found.truncate(most);
    let next = found.last().filter(|_| has_more).map(|(key, _)| hex::encode(&key[16..]));
    let users = found.into_iter().map(|(_, user)| entry(&db, user, now));
    Ok(Json(Users { users: users.collect::<Result<_, _>>()?, next }))
}

pub(crate) async fn put(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(user): Path<String>,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<UserEntry>, Problem> {
    check_name(&user)?;
    context.refuse_changing_operator(&user)?;
    let role = json::<RoleBody>(&headers, &body)?.role();
    let space = context.space()?;
    let what = AdminCommand::SetRole { space, user, role: Some(role), random: Box::new(random_bytes()?) };
    match state.administer(&context, what).await? {
        AdminResult::User(user) => Ok(Json(entry(&*state.node.snapshot()?, user, state.node.now())?)),
        _ => Err(Problem::broken("the user was not changed")),
    }
}

pub(crate) async fn remove(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(user): Path<String>,
) -> Result<StatusCode, Problem> {
    context.refuse_changing_operator(&user)?;
    let space = context.space()?;
    let what = AdminCommand::SetRole { space, user, role: None, random: Box::new([0; 32]) };
    state.administer(&context, what).await?;
    Ok(StatusCode::NO_CONTENT)
}
