//! Who had which right, and when.
//!
//! A membership is in force from its stamp until the least counting removal that refers to it; a replacement ends only
//! the rights that the new role lacks. An event counts if its authority was in force at its stamp and that authority
//! itself counts. Because needed references are strictly earlier, this is an induction over stamps: nothing an event
//! depends on can depend on the event.
//!
//! Counting is a view rule. An event that stops counting stays applied; its contributions leave the views, and come
//! back if it counts again.

use crate::reads::{Reads, StoreError, StoreResult};
use crate::rows::{Membership, MembershipLimit, Meta};
use model::payload::MemberRole;
use model::planted::{PlantedBug, is_planted};
use model::{Identity, Kind, Seq, SpaceNo, Stamp};

/// What an event does, as far as rights are concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// What anyone of that role may do.
    Plain(MemberRole),
    /// Gives this role, or takes it from somebody else.
    Manage(MemberRole),
    /// Gives one role in place of another.
    Replace(MemberRole, MemberRole),
    /// Ends one's own membership.
    Leave,
}

impl Permission {
    /// Whether somebody of this role may do it.
    pub fn is_permitted(self, role: MemberRole) -> bool {
        match self {
            Permission::Plain(least) => role >= least,
            Permission::Manage(other) => role.may_manage(other),
            Permission::Replace(old, new) => role.may_manage(old) && role.may_manage(new),
            Permission::Leave => true,
        }
    }
}

/// The role that a membership gives at a stamp: what was granted, less what ended before; none if it was removed.
pub fn role_at(membership: &Membership, limits: &[MembershipLimit], at: Stamp) -> Option<MemberRole> {
    let mut role = membership.role;
    for limit in limits.iter().filter(|limit| limit.from < at) {
        match limit.cap {
            Some(_) if is_planted(PlantedBug::ReplacementEndsAll) => return None,
            Some(cap) => role = role.min(cap),
            None => return None,
        }
    }
    Some(role)
}

/// The role in which an event acted: that of its authority at its stamp, if the authority itself counts.
pub fn acting_role(db: &impl Reads, authority: Seq, at: Stamp) -> StoreResult<Option<MemberRole>> {
    let Some(row) = db.event(authority)? else {
        return Ok(None);
    };
    if !row.is_applied() || !row.meta.as_ref().is_some_and(|meta| meta.counts) {
        return Ok(None);
    }
    let membership = membership(db, authority)?;
    Ok(role_at(&membership, &db.limits(authority, at)?, at))
}

/// The memberships that somebody has in a space at a stamp, with the role that each gives then.
pub fn roles_of(db: &impl Reads, space: SpaceNo, member: &Identity, at: Stamp) -> StoreResult<Vec<(Seq, MemberRole)>> {
    let mut found = Vec::new();
    for (_, seq) in db.memberships_of(space, member)? {
        found.extend(acting_role(db, seq, at)?.map(|role| (seq, role)));
    }
    Ok(found)
}

/// The membership behind a number that is known to be one.
pub fn membership(db: &impl Reads, seq: Seq) -> StoreResult<Membership> {
    db.membership(seq)?.ok_or_else(|| StoreError::Broken(format!("{seq} is an authority without a membership")))
}

/// Whether an applied event counts.
pub fn counts(db: &impl Reads, meta: &Meta, at: Stamp) -> StoreResult<bool> {
    // The founding of a space, a key, and everything in a public space stand on nobody's grant.
    let Some(authority) = meta.authority else { return Ok(true) };
    if is_planted(PlantedBug::RemovedAdminGrantHonoured) && meta.kind == Kind::Member {
        return Ok(true);
    }
    let Some(role) = acting_role(db, authority, at)? else {
        return Ok(false);
    };
    Ok(permission(db, meta)?.is_permitted(role))
}

/// What an event does, from what it refers to.
pub fn permission<R: Reads>(db: &R, meta: &Meta) -> StoreResult<Permission> {
    match meta.kind.space() {
        Some(kind) => super::kinds::permission(db, kind, meta),
        None => Err(StoreError::Broken(format!("a {} does not stand on a membership", meta.kind))),
    }
}

/// What authors do with their own: others must be admins.
pub(crate) fn own_or_admin<R: Reads>(db: &R, meta: &Meta, least: MemberRole) -> StoreResult<Permission> {
    let subject = subject_of(meta)?;
    let Some(target) = db.event(subject)? else {
        return Err(StoreError::Broken(format!("{subject} is a subject without a row")));
    };
    let is_own = target.meta.is_some_and(|other| other.author == meta.author);
    Ok(Permission::Plain(if is_own { least } else { MemberRole::Admin }))
}

/// What an event belongs to, where its kind always belongs to something.
pub(crate) fn subject_of(meta: &Meta) -> StoreResult<Seq> {
    meta.subject.ok_or_else(|| StoreError::Broken(format!("a {} without a subject", meta.kind)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{EventId, Nanos};

    fn stamp(at: u64) -> Stamp {
        Stamp { at: Nanos(at), id: EventId([0; 16]) }
    }

    fn role(limits: &[(u64, Option<MemberRole>)], at: u64) -> Option<MemberRole> {
        let membership = Membership { member: Identity::ZERO, role: MemberRole::Admin, sealed: false };
        let limits: Vec<MembershipLimit> =
            limits.iter().map(|(at, cap)| MembershipLimit { from: stamp(*at), cap: *cap }).collect();
        role_at(&membership, &limits, stamp(at))
    }

    #[test]
    fn a_removal_ends_and_a_replacement_lessens() {
        assert_eq!(role(&[], 5), Some(MemberRole::Admin));
        assert_eq!(role(&[(9, None)], 5), Some(MemberRole::Admin));
        assert_eq!(role(&[(4, None)], 5), None);
        assert_eq!(role(&[(4, Some(MemberRole::Member))], 5), Some(MemberRole::Member));
        assert_eq!(role(&[(4, Some(MemberRole::Owner))], 5), Some(MemberRole::Admin), "a replacement gives nothing");
        assert_eq!(role(&[(3, Some(MemberRole::Reader)), (4, Some(MemberRole::Member))], 5), Some(MemberRole::Reader));
    }
}
