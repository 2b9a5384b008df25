//! What users do about each other: keeping a distance, reporting, leaving; and what storage they may use.

use super::administration::by_keeper;
use super::conversation::Scene;
use super::finding::message_for;
use super::{Acted, CannotAct, Deed, Deemed, Named, Place, go};
use engine::access::Action;
use engine::reads::Reads as _;
use model::envelope::{Reference, Role};
use model::payload::Payload;
use model::{Kind, Seq};
use store::Batch;
use store::moderation::{Distance, Report};

/// Others whom one user keeps at a distance: they are looked at with every request.
const DISTANCES_MAX: usize = 1000;
/// The longest reason of a report.
const REASON_BYTES_MAX: usize = 2000;

/// What an act that makes no event shows: the membership that it was done on.
fn done(batch: &Batch<'_>, scene: &Scene<'_>) -> Deemed<Acted> {
    let shown = scene.hand.authority;
    let seq = batch.db().seq(&shown)?.unwrap_or(Seq(0));
    Ok(Ok(Acted { shown, seq, is_new: true }))
}

pub(super) fn keep_distance(
    batch: &mut Batch<'_>,
    scene: &Scene<'_>,
    other: &str,
    distance: Option<Distance>,
) -> Deemed<Acted> {
    let identity = match other.parse() {
        Ok(identity) => Some(identity),
        Err(_) => batch.db().user(&scene.space, other)?.map(|user| user.identity),
    };
    let Some(identity) = identity else { return Ok(Err(CannotAct::Unknown("user"))) };
    let is_known =
        batch.db().author_no(&identity)?.is_some() || batch.db().user_name(&scene.space, &identity)?.is_some();
    if identity == scene.hand.identity || !is_known {
        return Ok(Err(CannotAct::Unknown("other user")));
    }
    if distance.is_some() && batch.db().distances(&scene.space, &scene.hand.identity)?.len() >= DISTANCES_MAX {
        return Ok(Err(CannotAct::TooManyBlocked(DISTANCES_MAX)));
    }
    batch.set_distance(&scene.space, &scene.hand.identity, &identity, distance)?;
    done(batch, scene)
}

pub(super) fn report(batch: &mut Batch<'_>, scene: &Scene<'_>, message: Named, mut reason: String) -> Deemed<Acted> {
    let place = Place { thread: None, message };
    let (stamp, seq, _) = go!(message_for(batch.db(), scene.no, &place, &scene.principal, Action::Read, scene.who()));
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    let reporter = scene.hand.identity;
    let report = Report { reporter, message: stamp.id, reason, at: batch.now(), settled: None };
    batch.add_report(&scene.space, &report)?;
    Ok(Ok(Acted { shown: stamp.id, seq, is_new: true }))
}

/// Ends the caller's own membership. What they wrote stays.
pub(super) fn leave(batch: &mut Batch<'_>, scene: &Scene<'_>) -> Deemed<Acted> {
    let found = match &scene.caller.user {
        Some(user) => batch.db().user(&scene.space, user)?,
        None => None,
    };
    let Some(mut user) = found.filter(|user| !user.is_gone) else { return Ok(Err(CannotAct::Unknown("user"))) };
    let target = Some(Reference { role: Role::Target, id: user.membership });
    go!(by_keeper(batch, &scene.space, Kind::Removal, Payload::None, target));
    user.is_gone = true;
    batch.keep_user(&scene.space, &user)?;
    batch.forget_account(&scene.space, &user.id)?;
    batch.audit(Some(scene.space), &scene.caller.called, "leave", &user.id)?;
    done(batch, scene)
}

/// Turns away what would keep more than a user or a space may.
pub(super) fn check_quota(batch: &mut Batch<'_>, scene: &Scene<'_>, deed: &Deed) -> Deemed<()> {
    let policy = *batch.db().policy();
    let bytes = match deed {
        Deed::Post(new) => new.content.len(),
        Deed::Edit(_, content) | Deed::React(_, content) => content.len(),
        Deed::OpenThread(_) | Deed::UpdateThread(..) => 1,
        Deed::DeleteThread(_) | Deed::DeleteMessage(_) | Deed::Unreact(_) | Deed::MarkRead(..) => return Ok(Ok(())),
        Deed::Purge(_) | Deed::Distance(..) | Deed::Report(..) | Deed::Leave => return Ok(Ok(())),
    } as u64;
    if let Some(most) = policy.user_bytes_max
        && let Some(author) = batch.db().author_no(&scene.hand.identity)?
        && batch.db().kept_bytes(scene.no, author)?.saturating_add(bytes) > most
    {
        return Ok(Err(CannotAct::OverQuota("user")));
    }
    if let Some(most) = policy.space_bytes_max
        && !batch.claim_bytes(scene.no, bytes, most)?
    {
        return Ok(Err(CannotAct::OverQuota("space")));
    }
    Ok(Ok(()))
}
