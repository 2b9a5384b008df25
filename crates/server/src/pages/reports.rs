//! What users reported, for those who look after a space.

use super::message::{short, time};
use super::shell::{Frame, Here, to};
use super::threads;
use crate::caller::Guest;
use crate::extract::{Filled, Path};
use crate::messages::look;
use crate::problem::Problem;
use crate::shapes::fits;
use crate::state::Shared;
use axum::extract::State;
use axum::response::Response;
use maud::html;
use node::acts::Administration;
use serde::Deserialize;
use store::moderation::Report;

/// Reports on one page.
const PAGE: usize = 200;

/// How the message begins that a report is about, if whoever looks may see it.
fn said(house: &Shared, guest: &Guest, report: &Report) -> Option<String> {
    let message =
        look(house, guest, |look| look.renderer().message_at(look.message(None, &report.message.to_string())?));
    message.ok().as_ref().map(threads::said)
}

/// The page.
pub(crate) async fn page(
    State(house): State<Shared>,
    guest: Guest,
    Path(space): Path<String>,
) -> Result<Response, Problem> {
    let (db, id) = (house.node.snapshot()?, guest.space()?);
    let reports = db.reports(&id, u64::MAX, PAGE)?;
    let mut names = Vec::new();
    for (_, report) in &reports {
        let name = db.user_name(&id, &report.reporter)?;
        names.push((
            name.map_or_else(|| report.reporter.to_string(), |name| name.to_string()),
            said(&house, &guest, report),
        ));
    }
    let body = html! {
        h1 { "Reports" }
        @if reports.is_empty() { p.note { "Nobody reported anything." } }
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
    Ok(Frame::new("Reports", Here::People, &guest).of(&space).respond(&body))
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
    State(house): State<Shared>,
    guest: Guest,
    Path(space): Path<String>,
    Filled(form): Filled<SettleForm>,
) -> Result<Response, Problem> {
    if !fits(&form.note, 500) {
        return Err(Problem::unprocessable("a note has at most 500 characters"));
    }
    house.administer(&guest, Administration::SettleReport(guest.space()?, form.number, form.note)).await?;
    Ok(to(&format!("/s/{space}/reports")))
}
