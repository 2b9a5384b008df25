//! Kinds that this release does not know: kept and passed on, without effect.

use super::{Belongs, KindRules, Shape, Target};
use model::Envelope;

pub(crate) struct Unknown;

impl KindRules for Unknown {
    fn shape(&self) -> Shape {
        Shape { target: Target::Any, ..Shape::PLAIN }
    }

    fn aux_fits(&self, _: &Envelope) -> bool {
        true
    }

    fn belongs(&self) -> Belongs {
        Belongs::Anywhere
    }
}
