//! Founding a space, giving a role, ending a membership.

use super::{Belongs, KindRules, Shape, Target};
use crate::protocol::space::counting::{Permission, membership};
use crate::protocol::space::validate::{EventToValidate, target_row};
use crate::reads::{Reads, StoreResult};
use crate::rows::Meta;
use model::payload::{MemberRole, Payload};
use model::{Envelope, Kind};

pub(crate) struct Founding;

impl KindRules for Founding {
    fn aux_fits(&self, envelope: &Envelope) -> bool {
        !envelope.aux.is_zero()
    }
}

pub(crate) struct Grant;

impl KindRules for Grant {
    fn shape(&self) -> Shape {
        Shape { target: Target::Optional(&[Kind::Member]), ..Shape::PLAIN }
    }

    /// A replacement replaces a membership of the same identity.
    fn target_fits<R: Reads>(&self, db: &R, event: &EventToValidate<'_>, meta: &Meta) -> StoreResult<bool> {
        let Some(old) = meta.subject else { return Ok(true) };
        let old = membership(db, old)?;
        Ok(matches!(event.envelope.payload, Payload::Member { member, .. } if member == old.member))
    }

    fn permission<R: Reads>(&self, db: &R, meta: &Meta, _: MemberRole) -> StoreResult<Permission> {
        let granted = meta.grants.unwrap_or(MemberRole::Owner);
        Ok(match meta.subject {
            None => Permission::Manage(granted),
            Some(old) => Permission::Replace(membership(db, old)?.role, granted),
        })
    }
}

pub(crate) struct Removal;

impl KindRules for Removal {
    fn shape(&self) -> Shape {
        Shape { target: Target::One(&[Kind::Member, Kind::Space]), ..Shape::PLAIN }
    }

    fn belongs(&self) -> Belongs {
        Belongs::AmongMembers
    }

    /// A founding is ended only by its founder.
    fn target_fits<R: Reads>(&self, _: &R, event: &EventToValidate<'_>, meta: &Meta) -> StoreResult<bool> {
        let target = target_row(event)?;
        let target = target.meta.as_ref();
        Ok(target.is_some_and(|other| other.kind == Kind::Member || other.author == meta.author))
    }

    fn permission<R: Reads>(&self, db: &R, meta: &Meta, _: MemberRole) -> StoreResult<Permission> {
        let target = membership(db, super::super::counting::subject_of(meta)?)?;
        let is_own = db.author_no(&target.member)? == Some(meta.author);
        Ok(if is_own { Permission::Leave } else { Permission::Manage(target.role) })
    }
}
