//! Messages, their later versions, and how far somebody has read.

use super::{Belongs, KindRules, Shape, Target};
use crate::protocol::space::counting::{Permission, own_or_admin};
use crate::protocol::space::validate::{EventToValidate, target_row};
use crate::protocol::space::{Register, ViewRow};
use crate::reads::{Reads, StoreResult};
use crate::rows::Meta;
use model::envelope::Role;
use model::payload::MemberRole;
use model::{Envelope, Kind, SpaceId};

pub(crate) struct Message;

impl KindRules for Message {
    fn shape(&self) -> Shape {
        Shape { thread: true, attachments: true, ..Shape::PLAIN }
    }

    fn aux_fits(&self, _: &Envelope) -> bool {
        true
    }

    fn rows(&self, meta: &Meta, envelope: &Envelope) -> Vec<ViewRow> {
        let space = meta.space;
        let timeline = meta.subject.map(|thread| ViewRow::Timeline { space, thread, refers: refers(envelope) });
        let mut rows: Vec<ViewRow> = timeline.into_iter().collect();
        rows.extend(ViewRow::chosen(meta, envelope));
        rows.extend(ViewRow::replies(meta, envelope));
        let mentions = envelope.references.iter().filter(|reference| reference.role == Role::Mention);
        rows.extend(mentions.map(|mention| ViewRow::Mention { space, who: SpaceId(mention.id.0) }));
        rows
    }
}

fn refers(envelope: &Envelope) -> bool {
    envelope.references.iter().any(|reference| matches!(reference.role, Role::ReplyTo | Role::Attachment))
}

pub(crate) struct Edit;

impl KindRules for Edit {
    fn shape(&self) -> Shape {
        Shape { target: Target::One(&[Kind::Message, Kind::Post]), attachments: true, ..Shape::PLAIN }
    }

    fn belongs(&self) -> Belongs {
        Belongs::Anywhere
    }

    fn permission<R: Reads>(&self, db: &R, meta: &Meta, least: MemberRole) -> StoreResult<Permission> {
        own_or_admin(db, meta, least)
    }

    fn rows(&self, meta: &Meta, _: &Envelope) -> Vec<ViewRow> {
        meta.subject.map(|target| ViewRow::Version { target }).into_iter().collect()
    }
}

pub(crate) struct ReadMarker;

impl KindRules for ReadMarker {
    fn shape(&self) -> Shape {
        Shape { thread: true, target: Target::One(&[Kind::Message]), attachments: false }
    }

    /// It points into its thread.
    fn target_fits<R: Reads>(&self, _: &R, event: &EventToValidate<'_>, _: &Meta) -> StoreResult<bool> {
        let thread = event.found.iter().find(|found| found.role == Role::Thread).map(|found| found.seq);
        Ok(target_row(event)?.meta.as_ref().and_then(|message| message.subject) == thread)
    }

    fn rows(&self, meta: &Meta, _: &Envelope) -> Vec<ViewRow> {
        let row = |thread| ViewRow::in_register(meta, Register::ReadMarker(meta.author, thread));
        meta.subject.map(row).into_iter().collect()
    }
}
