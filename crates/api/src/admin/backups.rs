//! Backups of the node, for its operator: what is known of them, and one more, now.

use axum::Json;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use model::Nanos;
use model::calendar::Rfc3339;
use serde::{Deserialize, Serialize};
use server::backups::FinishedBackup;
use server::context::RequestContext;
use server::extract::RequestBody;
use server::input::json;
use server::problem::Problem;
use server::state::SharedState;
use std::path::{Path, PathBuf};
use utoipa::ToSchema;

/// The longest path that systems take.
const PATH_BYTES_MAX: usize = 4096;
const HOUR: u64 = 3600 * Nanos::SECOND;

/// A backup to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "file": "/var/backups/anteroom/now.backup" }))]
pub(crate) struct BackupBody {
    /// A new file, as an absolute path on the machine of the node.
    #[schema(max_length = 4096, pattern = "^/", example = "/var/backups/anteroom/now.backup")]
    file: String,
}

/// A backup that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackupMade {
    /// The file.
    name: String,
    #[schema(value_type = String, format = DateTime)]
    created_at: Rfc3339,
    bytes: u64,
    /// Rows of all tables.
    rows: u64,
    objects: u64,
    /// Object stores of git repositories.
    git_stores: u64,
    /// How much could not be read, and is missing in it.
    damaged: u64,
    /// The first of that.
    first_damaged: Vec<String>,
}

/// A backup that is being written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackupRunning {
    name: String,
    /// How much was written so far.
    bytes: u64,
}

/// A backup that failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackupFailure {
    #[schema(value_type = String, format = DateTime)]
    failed_at: Rfc3339,
    detail: String,
}

/// The schedule of backups.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackupSchedule {
    folder: String,
    every_hours: u64,
    keep: usize,
}

/// What is known of backups since the node was started.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackupStatus {
    /// The schedule, if there is one.
    schedule: Option<BackupSchedule>,
    running: Option<BackupRunning>,
    last: Option<BackupMade>,
    /// How many failed.
    failures: u64,
    last_failure: Option<BackupFailure>,
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn made_backup(made: &FinishedBackup) -> BackupMade {
    let FinishedBackup { file, at, done } = made;
    BackupMade {
        name: text(file),
        created_at: Rfc3339(*at),
        bytes: done.bytes,
        rows: done.rows,
        objects: done.objects,
        git_stores: done.extra_files,
        damaged: done.damaged,
        first_damaged: done.first_damaged.clone(),
    }
}

pub(crate) async fn status(State(state): State<SharedState>) -> Json<BackupStatus> {
    let backups = state.backups.state();
    let schedule = state.options.backups.as_ref().map(|plan| BackupSchedule {
        folder: text(&plan.folder),
        every_hours: plan.every_nanos / HOUR,
        keep: plan.keep,
    });
    Json(BackupStatus {
        schedule,
        running: backups.running.map(|(file, bytes)| BackupRunning { name: text(&file), bytes }),
        last: backups.last.as_ref().map(made_backup),
        failures: backups.failures,
        last_failure: backups.last_failure.map(|(at, detail)| BackupFailure { failed_at: Rfc3339(at), detail }),
    })
}

pub(crate) async fn create(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<(StatusCode, Json<BackupMade>), Problem> {
    let BackupBody { file } = json(&headers, &body)?;
    let path = PathBuf::from(&file);
    let is_path = path.is_absolute() && path.file_name().is_some() && file.len() <= PATH_BYTES_MAX;
    if !is_path || file.contains('\0') || file.ends_with('/') {
        return Err(Problem::unprocessable("file is not the absolute path of a file on the machine of the node"));
    }
    let last = state.backups.state().last.filter(|last| last.file == path);
    if let (Some(_), Some(last)) = (state.repeated(&context)?, last) {
        return Ok((StatusCode::CREATED, Json(made_backup(&last))));
    }
    state.note(&context, "back up", &file).await?;
    // It goes on when the client does not wait for it.
    let backups = state.backups.clone();
    let made = tokio::task::spawn_blocking(move || backups.make(&path)).await;
    let made = made.map_err(|_| Problem::broken("the backup broke off")).and_then(|made| Ok(made?));
    if made.is_err() {
        // What was begun is in the log already; what came of it belongs there as well.
        let failed = RequestContext { idempotency: None, ..context };
        state.note(&failed, "back up, which failed", &file).await?;
    }
    let made = made?;
    Ok((StatusCode::CREATED, Json(made_backup(&made))))
}
