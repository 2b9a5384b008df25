//! `anteroom files status`: how files stand.

use crate::context::Context;
use crate::data_folder;
use crate::failure::Failure;
use crate::formatting::{escape_controls, format_count, format_duration};
use model::Nanos;
use queries::files_status::{FilesStatus, files_status};
use serde::Serialize;
use std::fmt;

/// How many rows of a list are printed as text.
const SHOWN_MAX: usize = 20;

/// How files stand, as the API says it.
#[derive(Serialize)]
#[serde(transparent)]
struct Answer(FilesStatus);

pub(super) fn run(context: &Context) -> Result<u8, Failure> {
    let (db, _store) = data_folder::open_snapshot(context)?;
    let status = files_status(&*db, None, Nanos(context.now()));
    let status = status.map_err(|why| Failure::new(why.to_string(), "run `anteroom verify`"))?;
    context.print(&Answer(status))?;
    Ok(0)
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.0;
        if report.counts.is_empty() {
            return writeln!(f, "there are no files");
        }
        for row in &report.counts {
            let family = if row.derivation_type.is_empty() { "original" } else { &row.derivation_type };
            let family = escape_controls(family);
            writeln!(f, "{:<8} {:<10} {:<11} {}", row.tier, family, row.status, row.count)?;
        }
        let (waiting, open) = (format_count(report.backlog, "file"), format_count(report.open_uploads, "upload"));
        writeln!(f, "{waiting} waiting for work or being worked on; {open} open")?;
        let heading = |f: &mut fmt::Formatter<'_>, what: &str, count: usize| match count {
            0 => writeln!(f, "{what}: none"),
            _ => writeln!(f, "{what}: {count}"),
        };
        heading(f, "stuck for ten minutes or more", report.stuck.len())?;
        for row in report.stuck.iter().take(SHOWN_MAX) {
            let variant = row.variant.as_deref().map(|variant| format!(" {}", escape_controls(variant)));
            let since = format_duration(row.seconds.saturating_mul(Nanos::SECOND));
            let variant = variant.unwrap_or_default();
            writeln!(f, "  {} {}{variant} is {} for {since}", row.tier, row.parent, row.status)?;
        }
        heading(f, "failed", report.failed.len())?;
        for row in report.failed.iter().take(SHOWN_MAX) {
            let why = row.error.as_deref().unwrap_or("nobody said why");
            writeln!(f, "  {} ({}): {}", row.file, escape_controls(&row.name), escape_controls(why))?;
        }
        heading(f, "what does not fit", report.inconsistent.len())?;
        for row in report.inconsistent.iter().take(SHOWN_MAX) {
            writeln!(f, "  {}: {}", row.file, escape_controls(&row.what))?;
        }
        if !report.failed.is_empty() {
            writeln!(f, "`anteroom files retry ID` processes a file again")?;
        }
        if !report.inconsistent.is_empty() || !report.stuck.is_empty() {
            writeln!(f, "`anteroom files backfill --fix-status` brings in order what can be")?;
        }
        Ok(())
    }
}
