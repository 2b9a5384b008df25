//! `anteroom files backfill`: all originals are looked at again, a part in each commit.

use super::{Files, FilesAction, failure_of_file};
use crate::commands::in_node::{self, NodeCommand};
use crate::commands::retry::Hunting;
use crate::context::Context;
use crate::failure::Failure;
use crate::formatting::escape_controls;
use crate::operator_client::OperatorClient;
use crate::progress::ProgressDisplay;
use clap::Args;
use media::Variant;
use node::files::backfill::{Backfill, BackfillFinding, BackfillOptions, BackfillPage, BackfillPlace, look_at};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Files that are looked at in one commit.
const PER_COMMIT: usize = 200;
/// Findings that are printed as text.
const SHOWN_MAX: usize = 50;

#[derive(Debug, Clone, Args, Serialize, Deserialize)]
pub(in crate::commands) struct BackfillArguments {
    /// Look at this rendition only, such as thumbnail_256; may be repeated. Without it, at those of the setting `renditions`
    #[arg(long, value_name = "VARIANT", value_parser = check_variant)]
    variant: Vec<String>,
    /// Bring statuses in line with what is there
    #[arg(long)]
    fix_status: bool,
    /// Only say what would be done
    #[arg(long)]
    dry_run: bool,
    /// Set by whoever asks for one part after another: where this one begins, and that it is one.
    #[arg(skip)]
    #[serde(default)]
    part: Option<BackfillPlace>,
}

fn check_variant(text: &str) -> Result<String, String> {
    text.parse::<Variant>().map(|variant| variant.to_string()).map_err(|why| why.to_string())
}

/// What a backfill came to, or a part of one.
#[derive(Debug, Default, Serialize, Deserialize)]
struct BackfillTotals {
    processed: u64,
    valid: u64,
    invalid: u64,
    queued: u64,
    fixed: u64,
    findings: Vec<BackfillFinding>,
    dry_run: bool,
    #[serde(default)]
    next: BackfillPlace,
}

impl BackfillTotals {
    fn add(&mut self, page: BackfillPage) {
        self.processed += page.processed;
        self.valid += page.valid;
        self.invalid += page.invalid;
        self.queued += page.queued;
        self.fixed += page.fixed;
        self.findings.extend(page.findings);
        self.next = page.next;
    }
}

impl fmt::Display for BackfillTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for BackfillFinding { file, variant, what } in self.findings.iter().take(SHOWN_MAX) {
            let variant = variant.as_deref().map(|variant| format!(" {}", escape_controls(variant)));
            writeln!(f, "{file}{}: {}", variant.unwrap_or_default(), escape_controls(what))?;
        }
        if self.findings.len() > SHOWN_MAX {
            writeln!(f, "and {} more; --json lists all of them", self.findings.len() - SHOWN_MAX)?;
        }
        let BackfillTotals { processed, valid, invalid, queued, fixed, .. } = self;
        writeln!(f, "processed {processed}, valid {valid}, invalid {invalid}")?;
        let would = if self.dry_run { "would be " } else { "" };
        writeln!(f, "{queued} {would}queued for work, {fixed} statuses {would}brought in line")
    }
}

/// A part of a backfill, or all of it where no node runs.
pub(super) fn run(context: &Context, arguments: &BackfillArguments) -> Result<u8, Failure> {
    let variants = match arguments.variant.as_slice() {
        [] => context.settings.renditions.iter().map(Variant::to_string).collect(),
        named => named.to_vec(),
    };
    let options = BackfillOptions { variants, fix_status: arguments.fix_status };
    let node = Hunting::open(context)?;
    let mut totals =
        BackfillTotals { dry_run: arguments.dry_run, next: arguments.part.flatten(), ..BackfillTotals::default() };
    loop {
        let after = totals.next;
        let page = if arguments.dry_run {
            look_at(&*node.snapshot()?, &options, after, PER_COMMIT)?
        } else {
            node.ask(Backfill { options: options.clone(), after, most: PER_COMMIT }).map_err(failure_of_file)?
        };
        totals.add(page);
        if totals.next.is_none() || arguments.part.is_some() {
            break;
        }
    }
    let code = u8::from(totals.invalid > 0);
    context.print(&totals)?;
    Ok(if arguments.part.is_some() { 0 } else { code })
}

/// Asks the node for one part after another, and shows how far it is.
pub(in crate::commands) fn run_by_parts(
    context: &Context,
    client: &OperatorClient,
    arguments: &BackfillArguments,
) -> Result<u8, Failure> {
    let bar = ProgressDisplay::for_count(context.json, "looking at files");
    let mut totals = BackfillTotals { dry_run: arguments.dry_run, ..BackfillTotals::default() };
    loop {
        let part = BackfillArguments { part: Some(totals.next), ..arguments.clone() };
        let command = NodeCommand::Files(Files { action: FilesAction::Backfill(part) });
        let page: BackfillTotals = serde_json::from_value(in_node::ask_for_json(client, &command)?)
            .map_err(|why| Failure::new(format!("the node answers something else: {why}"), "is it of this version?"))?;
        let BackfillTotals { processed, valid, invalid, queued, fixed, findings, next, .. } = page;
        totals.add(BackfillPage { processed, valid, invalid, queued, fixed, findings, next });
        bar.set(totals.processed);
        if totals.next.is_none() {
            break;
        }
    }
    drop(bar);
    let code = u8::from(totals.invalid > 0);
    context.print(&totals)?;
    Ok(code)
}
