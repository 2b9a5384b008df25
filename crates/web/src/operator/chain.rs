//! An author's chain, drawn: what they wrote in a space around one event, and what came after what.

use engine::reads::Reads as _;
use maud::{Markup, html};
use model::envelope::Envelope;
use model::{EventId, Seq, Stamp};
use server::problem::Problem;
use std::collections::HashMap;
use store::Db;
use store::tables::TableReads;

/// Events that are drawn.
const DRAWN_MAX: usize = 24;
const STEP: usize = 40;
const LANE: usize = 28;

/// One of them.
struct Dot {
    id: EventId,
    kind: String,
    lane: usize,
}

/// The latest events of the author up to the one that is shown, and a few after it.
pub(super) fn draw<V: TableReads>(db: &Db<V>, seq: Seq, envelope: &Envelope) -> Result<Markup, Problem> {
    let (Some(space), Some(author)) = (db.space_no(&envelope.space)?, db.author_no(&envelope.author)?) else {
        return Ok(html! {});
    };
    let here = db.event(seq)?.and_then(|row| row.stamp()).unwrap_or(Stamp::FIRST);
    let mut events = db.written_before(space, author, here, DRAWN_MAX / 2)?;
    events.extend(db.written_after(space, (author, here), author, DRAWN_MAX / 2)?.into_iter().map(|(_, _, seq)| seq));
    let (mut dots, mut edges): (Vec<Dot>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    let mut places: HashMap<EventId, usize> = HashMap::new();
    for seq in events {
        let Some(opened) = db.opened(seq)? else { continue };
        let parents: Vec<usize> = opened.parents.iter().filter_map(|parent| places.get(parent).copied()).collect();
        // A second child of the same parent begins a lane of its own.
        let has_child = |parent: &usize| edges.iter().any(|(from, _)| from == parent);
        let lane = parents.first().map_or(0, |parent| dots[*parent].lane + usize::from(has_child(parent)));
        let place = dots.len();
        edges.extend(parents.iter().map(|parent| (*parent, place)));
        let id = db.id_of(seq)?;
        places.insert(id, place);
        dots.push(Dot { id, kind: opened.kind.to_string(), lane });
    }
    Ok(picture(&dots, &edges, &db.id_of(seq)?))
}

fn picture(dots: &[Dot], edges: &[(usize, usize)], here: &EventId) -> Markup {
    let (width, height) =
        (STEP * dots.len().max(1) + 20, LANE * (dots.iter().map(|dot| dot.lane).max().unwrap_or(0) + 1) + 20);
    let x = |place: usize| STEP * place + 20;
    let y = |place: usize| LANE * dots[place].lane + 20;
    html! {
        section.card { h2 { "The author's chain" }
            p.note { "Events of this author in this space, each to the right of its parents." }
            div.wide tabindex="0" role="region" aria-label="Chain" {
                svg.chain viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="group"
                    aria-label={ "A chain of " (dots.len()) " events" } {
                    @for (from, to) in edges {
                        line x1=(x(*from)) y1=(y(*from)) x2=(x(*to)) y2=(y(*to)) {}
                    }
                    @for (place, dot) in dots.iter().enumerate() {
                        a href={ "/inside/event/" (dot.id) } {
                            circle class=[(dot.id == *here).then_some("here")] cx=(x(place)) cy=(y(place)) r="7" {
                                title { (dot.kind) " " (dot.id) }
                            }
                        }
                    }
                }
            }
        }
    }
}
