//! Identities whose keys are elsewhere: their roles in a space that this node keeps.

use crate::commands::admin::{AdminError, AdminOutcome, AdminResult, by_keeper};
use crate::commands::users;
use engine::protocol::space::counting::roles_of;
use engine::reads::SpaceReads as _;
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::{EventId, Identity, Kind, SpaceId, SpaceNo, Stamp};
use store::tables::TableReads;
use store::{Batch, Db};

/// Gives an identity a role in place of all that it has in the space, or none. One membership is replaced, the others are
/// ended, so that nothing of an earlier role stays in force.
pub(super) fn set_identity_role(
    batch: &mut Batch<'_>,
    space: &SpaceId,
    identity: &Identity,
    role: Option<MemberRole>,
) -> AdminOutcome {
    if let Some(user) = batch.db().user_name(space, identity)? {
        return Err(AdminError::IsUser(user.to_string()));
    }
    if users::hosted(batch.db(), space)?.keeper == *identity {
        return Err(AdminError::IsKeeper);
    }
    let no = users::space_no(batch, space)?;
    let now = Stamp { at: batch.now(), id: EventId([0xff; 16]) };
    let mut before = roles_of(batch.db(), no, identity, now.max(last_stamp(batch.db(), no, identity)?))?;
    if role.is_none() && before.is_empty() {
        return Err(AdminError::NoSuchIdentity);
    }
    // What was replaced stays in force with the rights that are left; the latest says which role it is.
    if let Some((seq, held)) = before.last()
        && role == Some(*held)
        && before.iter().all(|(_, other)| other <= held)
    {
        return Ok(AdminResult::Admitted(batch.db().id_of(*seq)?));
    }
    let replaced = if role.is_some() { before.pop() } else { None };
    let target = |batch: &Batch<'_>, seq| -> Result<Reference, AdminError> {
        Ok(Reference { role: Role::Target, id: batch.db().id_of(seq)? })
    };
    for (seq, _) in before {
        let ended = target(batch, seq)?;
        by_keeper(batch, space, Kind::Removal, Payload::None, Some(ended))?;
    }
    let Some(role) = role else { return Ok(AdminResult::Done) };
    let replaces = replaced.map(|(seq, _)| target(batch, seq)).transpose()?;
    let payload = Payload::Member { member: *identity, role };
    Ok(AdminResult::Admitted(by_keeper(batch, space, Kind::Member, payload, replaces)?))
}

/// The greatest stamp among the memberships of an identity: a grant from a fast clock is in force from its own time on.
fn last_stamp<V: TableReads>(db: &Db<V>, space: SpaceNo, identity: &Identity) -> Result<Stamp, AdminError> {
    let last = db.memberships_of(space, identity)?.last().map(|(stamp, _)| *stamp);
    Ok(last.map_or(Stamp::FIRST, |stamp| Stamp { id: EventId([0xff; 16]), ..stamp }))
}
