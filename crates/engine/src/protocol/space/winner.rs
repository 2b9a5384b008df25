//! What an event would take over: the current winner of the register it writes.

use super::kinds::register_of;
use crate::reads::{Reads, StoreResult};
use crate::rows::{EventKind, Meta};
use model::{AuthorNo, Envelope, Kind, Seq, SpaceNo, Stamp};

/// A number that is never given to an author.
const NOBODY: AuthorNo = AuthorNo(u32::MAX);

/// The current winner of whatever the draft would take over.
pub(crate) fn winner(db: &impl Reads, envelope: &Envelope, subject: Option<Seq>) -> StoreResult<Option<Stamp>> {
    let Some(space) = db.space_no(&envelope.space)? else { return Ok(None) };
    // Whoever writes here for the first time has no number yet, and may take over what others wrote all the same.
    let author = db.author_no(&envelope.author)?.unwrap_or(NOBODY);
    let found = match (envelope.kind, subject) {
        (Kind::Edit, Some(target)) => db.last_version(target)?,
        // Whoever is removed or gets another role keeps what they wrote so far, even if that is ahead of the clock.
        (Kind::Removal | Kind::Member, Some(target)) => last_of_member(db, space, target)?,
        (Kind::Reaction | Kind::ReactionRemoval, Some(target)) => db.reaction_winner(target, author)?,
        _ => {
            let meta = Meta {
                kind: EventKind::Space(envelope.kind),
                at: envelope.created_at,
                space,
                author,
                authority: None,
                subject,
                grants: None,
                counts: true,
                content_len: 0,
                content_hash: envelope.content_hash,
            };
            match register_of(&meta, envelope) {
                Some(key) => db.register_winner(&key)?,
                None => None,
            }
        }
    };
    Ok(found.map(|(stamp, _)| stamp))
}

/// The last event of whoever a membership was given to.
fn last_of_member(db: &impl Reads, space: SpaceNo, membership: Seq) -> StoreResult<Option<(Stamp, Seq)>> {
    let Some(membership) = db.membership(membership)? else { return Ok(None) };
    let Some(member) = db.author_no(&membership.member)? else { return Ok(None) };
    Ok(db.last_by_author(space, member, Stamp::LAST, 1)?.pop())
}
