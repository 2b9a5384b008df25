//! How the files of all spaces stand, and those that have failed with "try again".

use super::tabs;
use crate::article::time;
use crate::shell::{NavItem, PageFrame, redirect_to};
use crate::waiting::home_space_name;
use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use model::{FileId, SpaceId};
use node::commands::AdminCommand;
use node::commands::files::{FileCommand, FileRequest};
use node::commands::{Caller, CallerKind};
use queries::files_status::{FilesStatus, files_status};
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::FormFields;
use server::problem::Problem;
use server::secrets::random_bytes;
use server::state::SharedState;

/// Rows of a list.
const ROWS: usize = 100;

/// The page.
pub(crate) async fn show_files(State(state): State<SharedState>, context: RequestContext) -> Result<Response, Problem> {
    let own = home_space_name(&state, &context)?;
    let now = state.node.now();
    let look = tokio::task::spawn_blocking(move || -> Result<FilesStatus, Problem> {
        Ok(files_status(&*state.node.snapshot()?, None, now)?)
    });
    let status = look.await.map_err(|_| Problem::broken("the files could not be looked at"))??;
    let body = html! {
        (tabs("/inside/files"))
        h1 { "Files" }
        @if status.counts.is_empty() { p.note { "No files yet." } } @else { (counts_html(&status)) }
        (stuck_html(&status))
        (failed_html(&status))
        @if !status.inconsistent.is_empty() {
            h2 { "What does not fit" }
            p { code { "anteroom files backfill --fix-status" } " brings in order what can be." }
            ul { @for odd in status.inconsistent.iter().take(ROWS) { li { code { (odd.file) } ": " (odd.what) } } }
        }
    };
    Ok(PageFrame::new("Files", NavItem::Inside, &context).of(&own).respond(&body))
}

fn counts_html(status: &FilesStatus) -> Markup {
    html! {
        p { "Waiting for work or being worked on: " (status.backlog) ". Open uploads: " (status.open_uploads) "." }
        div.wide tabindex="0" role="region" aria-label="Files by status" {
            table { caption { "Files by status" } thead { tr { th { "Tier" } th { "Family" } th { "Status" } th { "Count" } } }
                tbody { @for row in &status.counts { tr {
                    td { (row.tier) }
                    td { @if row.derivation_type.is_empty() { "original" } @else { (row.derivation_type) } }
                    td { (row.status) } td.number { (row.count) }
                } } } }
        }
    }
}

fn stuck_html(status: &FilesStatus) -> Markup {
    html! { @if !status.stuck.is_empty() {
        h2 { "In processing for ten minutes or more" }
        div.wide tabindex="0" role="region" aria-label="What is stuck" {
            table { thead { tr { th { "File" } th { "Tier" } th { "Rendition" } th { "Since" } } }
                tbody { @for row in status.stuck.iter().take(ROWS) { tr {
                    td { code { (row.parent) } } td { (row.tier) } td { (row.variant.as_deref().unwrap_or_default()) }
                    td { (time(row.updated_at.0.0)) }
                } } } }
        }
    } }
}

fn failed_html(status: &FilesStatus) -> Markup {
    html! { @if !status.failed.is_empty() {
        h2 { "Failed" }
        div.wide tabindex="0" role="region" aria-label="Files that have failed" {
            table { thead { tr { th { "File" } th { "Why" } th { "When" } th { "" } } }
                tbody { @for row in status.failed.iter().take(ROWS) { tr {
                    td { (row.name) br; code { (row.file) } }
                    td { (row.error.as_deref().unwrap_or("nobody said why")) } td { (time(row.updated_at.0.0)) }
                    td { form method="post" action="/inside/files" {
                        input type="hidden" name="space" value=(row.space);
                        button name="file" value=(row.file) { "Try again" }
                    } }
                } } } }
        }
    } }
}

/// Which file is processed again.
#[derive(Debug, Deserialize)]
pub(crate) struct RetryFileForm {
    space: String,
    file: String,
}

pub(crate) async fn retry_file(
    State(state): State<SharedState>,
    context: RequestContext,
    FormFields(form): FormFields<RetryFileForm>,
) -> Result<Response, Problem> {
    let unknown = || Problem::not_found("there is no such file");
    let file = FileId::from_name(&form.file).ok_or_else(unknown)?;
    let space: SpaceId = form.space.parse().map_err(|_| unknown())?;
    state.administer(&context, AdminCommand::Note("retry file", form.file)).await?;
    let caller = Caller { kind: CallerKind::Operator, user: None, audit_name: context.caller.audit_name.clone() };
    let random = random_bytes()?;
    state.ask(FileRequest { space, caller, file, command: FileCommand::Retry, idempotency: None, random }).await?;
    Ok(redirect_to("/inside/files"))
}
