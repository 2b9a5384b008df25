//! `anteroom explain`: where an event stands, and why.

use super::Done;
use crate::context::Context;
use crate::data_folder;
use crate::formatting::{count, hunt, moment_from, size, span};
use clap::Args;
use model::{EventId, Need};
use node::explain::{Applied, Explanation, HuntState, NeedState, NotCounting, StageExplanation, Unmet, explain};
use serde::Serialize;
use std::fmt;
use std::process::ExitCode;

/// Say where an event stands and why: what it waits for, whether it counts, what became of its content
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// The event
    #[arg(value_name = "ID")]
    id: EventId,
}

#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    explanation: Explanation,
    #[serde(skip)]
    now: u64,
}

impl Explain {
    pub(super) fn run(&self, context: &Context) -> Done {
        let (db, _store, _lock) = data_folder::read(context)?;
        let answer = Answer { explanation: explain(&db, &self.id)?, now: context.now() };
        context.show(&answer)?;
        Ok(ExitCode::SUCCESS)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Explanation { id, standing, arrival, waiters } = &self.explanation;
        match standing {
            StageExplanation::Unknown => {
                writeln!(f, "event {id} is unknown: it never came here, or nothing of it was kept")?
            }
            StageExplanation::Refused { why } => writeln!(f, "event {id} is refused for ever: {why}")?,
            StageExplanation::Expired { at } => {
                writeln!(
                    f,
                    "event {id} expired {}: what it needed did not come in time, or a limit made it go",
                    moment_from(self.now, *at)
                )?;
                writeln!(f, "it may come again")?;
            }
            StageExplanation::Ready => {
                writeln!(f, "event {id} is ready: it will be looked at as soon as the node runs")?
            }
            StageExplanation::Carried { space } => {
                let space = space.as_deref().unwrap_or("unknown");
                writeln!(f, "event {id} is carried for others: nobody here can open it (space {space})")?;
            }
            StageExplanation::Held { .. } => writeln!(f, "event {id} is held: it waits for what it needs")?,
            StageExplanation::Applied(_) => writeln!(f, "event {id} is applied")?,
        }
        if let Some(arrival) = arrival {
            let kind = arrival.kind.as_deref().unwrap_or("not opened yet");
            let at = moment_from(self.now, arrival.at);
            writeln!(f, "it came {at}, {}, as number {} ({kind})", arrival.through, arrival.number)?;
        }
        match standing {
            StageExplanation::Held { since, until, needs, cycles } => {
                writeln!(f, "it waits since {}", moment_from(self.now, *since))?;
                write_held(f, self.now, *until, needs, cycles)?;
            }
            StageExplanation::Applied(applied) => write_applied(f, self.now, applied)?,
            StageExplanation::Unknown | StageExplanation::Refused { .. } | StageExplanation::Expired { .. } => {}
            StageExplanation::Ready | StageExplanation::Carried { .. } => {}
        }
        if waiters.count > 0 {
            let more = if waiters.and_more { " or more" } else { "" };
            let verb = if waiters.count == 1 { "waits" } else { "wait" };
            writeln!(f, "{}{more} {verb} for it:", count(waiters.count, "event"))?;
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
    writeln!(f, "if nothing comes, its wait ends {}", moment_from(now, until))?;
    writeln!(f, "it waits for:")?;
    needs.iter().try_for_each(|unmet| write_unmet(f, now, unmet, 1))?;
    for cycle in cycles {
        writeln!(f, "these wait for each other in a circle, so none will ever be applied:")?;
        cycle.iter().try_for_each(|id| writeln!(f, "  {id}"))?;
    }
    Ok(())
}

fn write_unmet(f: &mut fmt::Formatter<'_>, now: u64, unmet: &Unmet, depth: usize) -> fmt::Result {
    let indent = "  ".repeat(depth);
    let state = match unmet.state {
        NeedState::Absent => "not here",
        NeedState::Held => "here, but held itself: it waits for what follows",
        NeedState::Ready => "here, about to be applied",
        NeedState::Carried => "here, but nobody here can open it",
        NeedState::Met => "here by now; it will be released as soon as the node runs",
        NeedState::Refused => "refused; whatever needs it will be refused too",
        NeedState::Future => "a moment that has not come",
        NeedState::Cycle => "waits, through others, for what waits for it",
        NeedState::Beyond => "here, but held itself; explain it to follow the chain",
    };
    writeln!(f, "{indent}{}", crate::formatting::tame(&unmet.need.to_string()))?;
    match &unmet.need {
        Need::Time(at) => writeln!(f, "{indent}  {}", moment_from(now, at.0))?,
        _ => writeln!(f, "{indent}  {state}; {} for it since {}", waiting(unmet), moment_from(now, unmet.since))?,
    }
    write_hunted(f, now, unmet.hunted.as_ref(), &format!("{indent}  "))?;
    unmet.needs.iter().try_for_each(|inner| write_unmet(f, now, inner, depth + 1))
}

fn waiting(unmet: &Unmet) -> String {
    if unmet.waiting == 1 { "1 event waits".into() } else { format!("{} events wait", unmet.waiting) }
}

fn write_hunted(f: &mut fmt::Formatter<'_>, now: u64, hunted: Option<&HuntState>, indent: &str) -> fmt::Result {
    let Some(hunted) = hunted else { return Ok(()) };
    writeln!(f, "{indent}hunted with {}: {}", hunted.group, hunt(now, hunted))
}

fn write_applied(f: &mut fmt::Formatter<'_>, now: u64, applied: &Applied) -> fmt::Result {
    match applied.at {
        Some(at) => writeln!(f, "applied {} at journal position {}", moment_from(now, at), applied.position)?,
        None => writeln!(f, "applied at journal position {}, whose entry was trimmed", applied.position)?,
    }
    match &applied.not_counting {
        None => writeln!(f, "it counts")?,
        Some(why) => {
            writeln!(f, "it does not count:")?;
            write_not_counting(f, why)?;
        }
    }
    let content = &applied.content;
    writeln!(f, "content: {}, {}, {}", content.state, size(content.bytes), place(content.place))?;
    if let Some(by) = &content.deleted_by {
        writeln!(f, "  deleted by event {by}")?;
    }
    if let Some(since) = content.missing_since {
        writeln!(f, "  missing for {}", span(now.saturating_sub(since)))?;
    }
    write_hunted(f, now, content.hunted.as_ref(), "  ")
}

fn place(word: &str) -> &'static str {
    match word {
        "empty" => "nothing to keep",
        "inline" => "kept with its event",
        "database" => "kept in the database",
        "file" => "kept in a file of its own",
        _ => "not here",
    }
}

fn write_not_counting(f: &mut fmt::Formatter<'_>, why: &NotCounting) -> fmt::Result {
    match why {
        NotCounting::Ended { authority, by, from } => {
            let from = crate::formatting::moment(*from);
            writeln!(f, "  the membership {authority} it stands on was ended by event {by} from {from} on")
        }
        NotCounting::Lessened { authority, by, to } => {
            writeln!(f, "  the membership {authority} it stands on was lessened to {to} by event {by}")
        }
        NotCounting::Authority { authority, because } => {
            writeln!(f, "  the membership {authority} it stands on does not count itself:")?;
            because.as_ref().map_or(Ok(()), |because| write_not_counting(f, because))
        }
        NotCounting::Pending => writeln!(f, "  what it stands on is being looked at again"),
    }
}
