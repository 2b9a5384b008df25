//! `anteroom explain`: the stage of an event and the reasons for it.

use crate::context::Context;
use crate::data_folder;
use crate::event_id_argument::parse_event_id;
use crate::failure::Failure;
use crate::formatting::{
    escape_controls, format_count, format_duration, format_hunt, format_size, format_source, format_time_relative,
};
use clap::Args;
use model::{EventId, Group, Need};
use node::explain::{Applied, Explanation, HuntState, NeedState, NotCounting, StageExplanation, Unmet, explain};
use node::fetch::reports::SourceReport;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Explain the stage of an event: what it waits for, whether it counts, and the state of its content
#[derive(Debug, Args, Serialize, Deserialize)]
pub(crate) struct Explain {
    /// The event id; of a Nostr event also the id by which clients know it
    #[arg(value_name = "ID", value_parser = parse_event_id)]
    id: EventId,
}

#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    explanation: Explanation,
    /// Where what is missing can be fetched from, as far as a running node knows, by group.
    sources: BTreeMap<String, Vec<SourceReport>>,
    #[serde(skip)]
    now: u64,
}

impl Explain {
    pub(super) fn run(&self, context: &Context) -> Result<u8, Failure> {
        let (db, _store) = data_folder::open_snapshot(context)?;
        let explanation = explain(&db, &self.id)?;
        let mut groups = BTreeSet::new();
        match &explanation.standing {
            StageExplanation::Held { needs, .. } => needs.iter().for_each(|unmet| add_groups(unmet, &mut groups)),
            StageExplanation::Applied(applied) => groups.extend(applied.content.hunted.clone().map(|hunt| hunt.group)),
            _ => {}
        }
        let inside = context.inside.as_ref();
        let reports = |group: &Group| inside.map(|inside| inside.node.source_reports(group)).unwrap_or_default();
        let mut sources: BTreeMap<_, _> = groups.iter().map(|group| (group.to_string(), reports(group))).collect();
        sources.retain(|_, reports| !reports.is_empty());
        context.print(&Answer { explanation, sources, now: context.now() })?;
        Ok(0)
    }
}

/// The groups in which what is missing is hunted for.
fn add_groups(unmet: &Unmet, groups: &mut BTreeSet<Group>) {
    groups.extend(unmet.hunted.as_ref().map(|hunt| hunt.group.clone()));
    unmet.needs.iter().for_each(|inner| add_groups(inner, groups));
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { id, standing, arrival, waiters } = &self.explanation;
        let now = self.now;
        match standing {
            StageExplanation::Unknown => writeln!(f, "event {id} is unknown: it has not arrived, or it was not kept")?,
            StageExplanation::Refused { why } => writeln!(f, "event {id} is permanently refused: {why}")?,
            StageExplanation::Expired { at } => {
                writeln!(
                    f,
                    "event {id} expired {}: what it needed did not arrive in time, or a limit was reached",
                    format_time_relative(self.now, *at)
                )?;
                writeln!(f, "it is accepted if it arrives again")?;
            }
            StageExplanation::Ready => writeln!(f, "event {id} is ready: it will be applied as soon as the node runs")?,
            StageExplanation::Parked { why } => {
                writeln!(f, "event {id} is parked: a step of the node failed on it: {why}")?;
                writeln!(f, "`anteroom retry {id}` looks at it again; `anteroom verify` says what is wrong")?;
            }
            StageExplanation::Carried { space } => {
                let space = space.as_deref().unwrap_or("unknown");
                writeln!(f, "event {id} is carried for other nodes: this node cannot decrypt it (space {space})")?;
            }
            StageExplanation::Held { .. } => {
                writeln!(f, "event {id} is held: it waits for something that has not arrived yet")?
            }
            StageExplanation::Applied(_) => writeln!(f, "event {id} is applied")?,
        }
        if let Some(arrival) = arrival {
            let kind = arrival.kind.as_deref().unwrap_or("not decrypted yet");
            let at = format_time_relative(self.now, arrival.at);
            writeln!(f, "arrived {at}, {}, as number {} ({kind})", arrival.through, arrival.number)?;
        }
        match standing {
            StageExplanation::Held { since, until, needs, cycles } => {
                writeln!(f, "held since {}", format_time_relative(self.now, *since))?;
                write_held(f, self.now, *until, needs, cycles)?;
            }
            StageExplanation::Applied(applied) => write_applied(f, self.now, applied)?,
            StageExplanation::Unknown | StageExplanation::Refused { .. } | StageExplanation::Expired { .. } => {}
            StageExplanation::Ready | StageExplanation::Carried { .. } | StageExplanation::Parked { .. } => {}
        }
        for (group, reports) in &self.sources {
            writeln!(f, "sources of {}:", escape_controls(group))?;
            reports.iter().try_for_each(|report| writeln!(f, "  {}", format_source(now, report)))?;
        }
        if waiters.count > 0 {
            let more = if waiters.and_more { " or more" } else { "" };
            writeln!(f, "{}{more} waiting for it:", format_count(waiters.count, "event"))?;
            waiters.first.iter().try_for_each(|id| writeln!(f, "  {id}"))?;
        }
        Ok(())
    }
}

fn write_held(
    f: &mut fmt::Formatter<'_>,
    now: u64,
    until: u64,
    needs: &[Unmet],
    cycles: &[Vec<String>],
) -> fmt::Result {
    writeln!(f, "it expires {}", format_time_relative(now, until))?;
    writeln!(f, "it waits for:")?;
    needs.iter().try_for_each(|unmet| write_unmet(f, now, unmet, 1))?;
    for cycle in cycles {
        writeln!(f, "these events wait for each other in a cycle, so none of them will ever be applied:")?;
        cycle.iter().try_for_each(|id| writeln!(f, "  {id}"))?;
    }
    Ok(())
}

fn write_unmet(f: &mut fmt::Formatter<'_>, now: u64, unmet: &Unmet, depth: usize) -> fmt::Result {
    let indent = "  ".repeat(depth);
    let state = match unmet.state {
        NeedState::Absent => "has not arrived",
        NeedState::Held => "arrived, but is held itself (its needs follow)",
        NeedState::Ready => "arrived, about to be applied",
        NeedState::Parked => "arrived, but a step of the node failed on it; run `anteroom verify`",
        NeedState::Carried => "arrived, but this node cannot decrypt it",
        NeedState::Met => "available; the event will be released as soon as the node runs",
        NeedState::Refused => "refused; events that need it will be refused too",
        NeedState::Future => "a time in the future",
        NeedState::Cycle => "waits for this event in turn (a cycle)",
        NeedState::Beyond => "arrived, but is held itself; run `anteroom explain` on it for details",
    };
    writeln!(f, "{indent}{}", escape_controls(&unmet.need.to_string()))?;
    match &unmet.need {
        Need::Time(at) => writeln!(f, "{indent}  {}", format_time_relative(now, at.0))?,
        _ => writeln!(
            f,
            "{indent}  {}; waited for since {}, by {}",
            state,
            format_time_relative(now, unmet.since),
            format_count(unmet.waiting, "event")
        )?,
    }
    write_hunted(f, now, unmet.hunted.as_ref(), &format!("{indent}  "))?;
    unmet.needs.iter().try_for_each(|inner| write_unmet(f, now, inner, depth + 1))
}

fn write_hunted(f: &mut fmt::Formatter<'_>, now: u64, hunted: Option<&HuntState>, indent: &str) -> fmt::Result {
    let Some(hunted) = hunted else { return Ok(()) };
    writeln!(f, "{indent}hunt in group {}: {}", hunted.group, format_hunt(now, hunted))
}

fn write_applied(f: &mut fmt::Formatter<'_>, now: u64, applied: &Applied) -> fmt::Result {
    match applied.at {
        Some(at) => writeln!(f, "applied {} at journal position {}", format_time_relative(now, at), applied.position)?,
        None => writeln!(f, "applied at journal position {}, whose entry is no longer kept", applied.position)?,
    }
    match &applied.not_counting {
        None => writeln!(f, "it counts in the views")?,
        Some(why) => {
            writeln!(f, "it does not count in the views:")?;
            write_not_counting(f, why)?;
        }
    }
    let content = &applied.content;
    writeln!(f, "content: {}, {}, {}", content.state, format_size(content.bytes), describe_place(content.place))?;
    if let Some(by) = &content.deleted_by {
        writeln!(f, "  deleted by event {by}")?;
    }
    if let Some(since) = content.missing_since {
        writeln!(f, "  missing for {}", format_duration(now.saturating_sub(since)))?;
    }
    write_hunted(f, now, content.hunted.as_ref(), "  ")
}

fn describe_place(place: &str) -> &'static str {
    match place {
        "empty" => "empty",
        "inline" => "stored with the event",
        "database" => "stored in the database",
        "object" => "stored in an object",
        _ => "not stored",
    }
}

fn write_not_counting(f: &mut fmt::Formatter<'_>, why: &NotCounting) -> fmt::Result {
    match why {
        NotCounting::Ended { authority, by, from } => {
            let from = crate::formatting::format_time(*from);
            writeln!(f, "  its membership {authority} was ended by event {by} from {from} on")
        }
        NotCounting::Lessened { authority, by, to } => {
            writeln!(f, "  its membership {authority} was reduced to {to} by event {by}")
        }
        NotCounting::Authority { authority, because } => {
            writeln!(f, "  its membership {authority} does not count:")?;
            because.as_ref().map_or(Ok(()), |because| write_not_counting(f, because))
        }
        NotCounting::Pending => writeln!(f, "  its membership is being checked again"),
    }
}
