//! Reactions and taking them back: one register per author and message.

use super::{KindRules, Shape, Target};
use crate::protocol::space::ViewRow;
use crate::rows::Meta;
use model::{Envelope, Kind};

/// The longest reaction.
const REACTION_BYTES_MAX: usize = 64;

pub(crate) struct Reaction;

impl KindRules for Reaction {
    fn shape(&self) -> Shape {
        Shape { target: Target::One(&[Kind::Message]), ..Shape::PLAIN }
    }

    fn body_fits(&self, body: &serde_json::Value) -> bool {
        let reaction = body.get("reaction").and_then(serde_json::Value::as_str);
        reaction.is_some_and(|reaction| (1..=REACTION_BYTES_MAX).contains(&reaction.len()))
    }

    fn rows(&self, meta: &Meta, _: &Envelope) -> Vec<ViewRow> {
        row(meta)
    }
}

pub(crate) struct ReactionRemoval;

impl KindRules for ReactionRemoval {
    fn shape(&self) -> Shape {
        Shape { target: Target::One(&[Kind::Message]), ..Shape::PLAIN }
    }

    fn rows(&self, meta: &Meta, _: &Envelope) -> Vec<ViewRow> {
        row(meta)
    }
}

fn row(meta: &Meta) -> Vec<ViewRow> {
    meta.subject.map(|target| ViewRow::Reaction { target, author: meta.author }).into_iter().collect()
}
