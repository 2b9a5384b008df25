//! What stands in an author's public space: posts, and whom they follow.

use super::{Belongs, KindRules, Shape};
use crate::protocol::space::{Register, ViewRow};
use crate::rows::Meta;
use model::{Envelope, SpaceId};

pub(crate) struct Post;

impl KindRules for Post {
    fn shape(&self) -> Shape {
        Shape { attachments: true, ..Shape::PLAIN }
    }

    fn belongs(&self) -> Belongs {
        Belongs::InPublic
    }

    fn rows(&self, meta: &Meta, envelope: &Envelope) -> Vec<ViewRow> {
        let mut rows = vec![ViewRow::Post { space: meta.space }];
        rows.extend(ViewRow::replies(meta, envelope));
        rows
    }
}

/// A follow and its end are candidates of one register.
pub(crate) struct Follow;

impl KindRules for Follow {
    fn aux_fits(&self, envelope: &Envelope) -> bool {
        !envelope.aux.is_zero()
    }

    fn belongs(&self) -> Belongs {
        Belongs::InPublic
    }

    fn rows(&self, meta: &Meta, envelope: &Envelope) -> Vec<ViewRow> {
        vec![
            ViewRow::in_register(meta, Register::Follow(meta.author, envelope.aux)),
            ViewRow::Follower { followee: SpaceId(envelope.aux.0), follower: meta.author },
        ]
    }
}
