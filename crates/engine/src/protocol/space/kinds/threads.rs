//! Threads and their fields.

use super::{KindRules, Shape};
use crate::protocol::space::counting::{Permission, own_or_admin};
use crate::protocol::space::{Register, ThreadField, ViewRow};
use crate::reads::{Reads, StoreResult};
use crate::rows::Meta;
use model::crypto::public_space;
use model::envelope::Role;
use model::payload::MemberRole;
use model::{Envelope, SpaceId};

pub(crate) struct Thread;

impl KindRules for Thread {
    fn aux_fits(&self, _: &Envelope) -> bool {
        true
    }

    fn rows(&self, meta: &Meta, envelope: &Envelope) -> Vec<ViewRow> {
        let mut rows = vec![ViewRow::Thread { space: meta.space }];
        rows.extend(ViewRow::chosen(meta, envelope));
        rows.extend(talking(envelope).map(|who| ViewRow::Direct { who }));
        rows
    }
}

/// Who alone sees a direct conversation, as their public spaces: a thread that mentions somebody is one between its author
/// and those. The envelope says so, which nothing changes, deletes or prunes, so it stays private for ever.
fn talking(envelope: &Envelope) -> impl Iterator<Item = SpaceId> {
    let mentions = envelope.references.iter().filter(|reference| reference.role == Role::Mention);
    let others: Vec<SpaceId> = mentions.map(|mention| SpaceId(mention.id.0)).collect();
    let own = (!others.is_empty()).then(|| public_space(&envelope.author));
    own.into_iter().chain(others)
}

pub(crate) struct ThreadUpdate;

impl KindRules for ThreadUpdate {
    fn shape(&self) -> Shape {
        Shape { thread: true, ..Shape::PLAIN }
    }

    fn aux_fits(&self, envelope: &Envelope) -> bool {
        ThreadField::UPDATABLE.iter().any(|field| field.aux() == envelope.aux)
    }

    fn permission<R: Reads>(&self, db: &R, meta: &Meta, least: MemberRole) -> StoreResult<Permission> {
        own_or_admin(db, meta, least)
    }

    fn rows(&self, meta: &Meta, envelope: &Envelope) -> Vec<ViewRow> {
        field_row(meta, envelope.aux.0[15])
    }
}

pub(crate) struct ThreadDelete;

impl KindRules for ThreadDelete {
    fn shape(&self) -> Shape {
        Shape { thread: true, ..Shape::PLAIN }
    }

    fn permission<R: Reads>(&self, db: &R, meta: &Meta, least: MemberRole) -> StoreResult<Permission> {
        own_or_admin(db, meta, least)
    }

    fn rows(&self, meta: &Meta, _: &Envelope) -> Vec<ViewRow> {
        field_row(meta, ThreadField::Deleted.code())
    }
}

fn field_row(meta: &Meta, field: u8) -> Vec<ViewRow> {
    meta.subject.map(|thread| ViewRow::in_register(meta, Register::ThreadField(thread, field))).into_iter().collect()
}
