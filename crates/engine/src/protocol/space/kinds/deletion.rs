//! Deleting the content of an event for ever. What a delete reaches is in [`deletion`](super::super::deletion).

use super::{Belongs, KindRules, Shape, Target};

pub(crate) struct Delete;

impl KindRules for Delete {
    fn shape(&self) -> Shape {
        Shape { target: Target::Unseen, ..Shape::PLAIN }
    }

    fn belongs(&self) -> Belongs {
        Belongs::Anywhere
    }
}
