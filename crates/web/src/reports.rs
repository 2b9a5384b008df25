//! What users reported, for those who look after a space.

use crate::article::{short, time};
use crate::shell::{NavItem, PageFrame, redirect_to};
use crate::summaries::message_summary;
use axum::extract::State;
use axum::response::Response;
use maud::html;
use node::commands::AdminCommand;
use serde::Deserialize;
use server::context::RequestContext;
use server::extract::{FormFields, Path};
use server::input::fits;
use server::problem::Problem;
use server::reader::with_message_reader;
use server::state::SharedState;
use store::shared::moderation::UserReport;

/// Reports on one page.
const PAGE: usize = 200;

/// How the message begins that a report is about, if whoever looks may see it.
fn said(state: &SharedState, context: &RequestContext, report: &UserReport) -> Option<String> {
    let message = with_message_reader(state, context, |reader| Ok(reader.message(None, &report.message.to_string())?));
    message.ok().as_ref().map(message_summary)
}

/// The page.
pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
) -> Result<Response, Problem> {
    let (db, id) = (state.node.snapshot()?, context.space()?);
    let reports = db.reports(&id, u64::MAX, PAGE)?;
    let mut names = Vec::new();
    for (_, report) in &reports {
        let name = db.user_name(&id, &report.reporter)?;
        names.push((
            name.map_or_else(|| report.reporter.to_string(), |name| name.to_string()),
            said(&state, &context, report),
        ));
    }
    let body = html! {
        h1 { "Reports" }
        @if reports.is_empty() { p.note { "There are no reports." } }
        ul.plain { @for ((number, report), (name, said)) in reports.iter().zip(&names) {
            li.card {
                p { b { (short(name)) } " reported " a href={ "/s/" (space) "/m/" (report.message) } { "a message" } ", "
                    (time(report.at.0)) ": " (report.reason) }
                @if let Some(said) = said { blockquote { (said) } }
                @if let Some((who, at, note)) = &report.settled {
                    p.note { "Settled by " (who) ", " (time(at.0)) @if !note.is_empty() { ": " (note) } }
                } @else {
                    form.row method="post" {
                        input type="hidden" name="number" value=(number);
                        label.grow { "What was done" input name="note" maxlength="500"; }
                        button { "Settle" }
                    }
                }
            }
        } }
    };
    Ok(PageFrame::new("Reports", NavItem::People, &context).of(&space).respond(&body))
}

/// How a report was settled.
#[derive(Debug, Deserialize)]
pub(crate) struct SettleForm {
    number: u64,
    #[serde(default)]
    note: String,
}

/// Settles one.
pub(crate) async fn settle(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
    FormFields(form): FormFields<SettleForm>,
) -> Result<Response, Problem> {
    if !fits(&form.note, 500) {
        return Err(Problem::over_limit("a note has at most 500 characters"));
    }
    state.administer(&context, AdminCommand::SettleReport(context.space()?, form.number, form.note)).await?;
    Ok(redirect_to(&format!("/s/{space}/reports")))
}
