//! Commands of the command line, run inside the node for its operator.

use axum::Json;
use axum::extract::State;
use http::HeaderMap;
use model::SpaceId;
use node::commands::AdminCommand;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use server::command_runner::CommandCall;
use server::context::RequestContext;
use server::extract::RequestBody;
use server::input::json;
use server::problem::Problem;
use server::state::SharedState;
use utoipa::ToSchema;

/// A command to run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "command": { "status": { "digest": true } } }))]
pub(crate) struct CommandBody {
    /// Its name and its options, such as `{"status": {"digest": true}}`.
    #[schema(value_type = Object)]
    command: Value,
    /// Whether the result is one JSON document.
    #[serde(default)]
    json: bool,
}

/// What a command came to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CommandResult {
    /// What it wrote to standard output.
    output: String,
    /// What it wrote to standard error.
    errors: String,
    exit_code: u8,
    /// Why it failed.
    failure: Option<Value>,
}

pub(crate) async fn run(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Json<CommandResult>, Problem> {
    let CommandBody { command, json: is_json } = json(&headers, &body)?;
    let (runner, permit) = state.command_runner()?;
    if command.get("import").is_some() {
        state.administer(&context, AdminCommand::Note("import a bundle", String::new())).await?;
    }
    if command.pointer("/export/with_keys") == Some(&Value::Bool(true)) {
        let space = command.pointer("/export/space").and_then(|space| SpaceId::deserialize(space).ok());
        let space = space.map_or("all spaces".to_owned(), |space| space.to_string());
        state.note(&context, "export keys", &space).await?;
    }
    // It goes on when the client does not wait for it.
    let run = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        runner(CommandCall { command, is_json })
    });
    let outcome = run.await.map_err(|_| Problem::broken("the command broke off; the log has details"))?;
    let outcome = outcome.ok_or_else(|| Problem::unprocessable("this node knows no such command"))?;
    Ok(Json(CommandResult {
        output: outcome.output,
        errors: outcome.errors,
        exit_code: outcome.exit_code,
        failure: outcome.failure,
    }))
}
