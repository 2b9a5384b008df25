//! Orders: acts of administration that are safe to repeat, and stand in the audit log.

use super::administration::{Outcome, carry_out, told};
use super::{Administered, Administration, CannotAct, CannotAdminister, Hooking, Once, go};
use model::{EventId, SpaceId};
use store::Batch;
use store::doors::Asked;

/// An act of administration, once.
#[derive(Clone, Debug)]
pub struct Order {
    /// How the audit log calls whoever gives it.
    pub who: String,
    /// What makes it safe to repeat.
    pub once: Option<Once>,
    /// What the secrets that it makes are derived from, so that a repetition can show them again.
    pub salt: [u8; 16],
    /// What to do.
    pub what: Administration,
}

impl Order {
    /// An order that is not repeated.
    pub fn by(who: &str, what: Administration) -> Order {
        Order { who: who.to_owned(), once: None, salt: [0; 16], what }
    }
}

/// Does it, and writes it into the audit log. A repetition is answered as the first.
pub(crate) fn administer(batch: &mut Batch<'_>, order: Order) -> Outcome {
    let Order { who, once, salt, what } = order;
    if let Some(once) = once
        && let Some(earlier) = batch.db().asked(&once.who_and_key, batch.now())?
    {
        return match earlier.fingerprint == once.fingerprint {
            true => again(batch, &what, earlier.event.0),
            false => Ok(Err(CannotAct::OtherRequest.into())),
        };
    }
    let (space, word, target) = told(&what);
    let space = match &what {
        Administration::EndKey { id, .. } | Administration::RotateKey { old: id, .. } => {
            batch.db().api_key(id)?.map(|key| key.space)
        }
        _ => space,
    };
    let done = go!(carry_out(batch, &who, salt, what));
    batch.audit(space, &who, word, &target)?;
    if let Some(Once { who_and_key, fingerprint }) = once {
        let event = EventId(noted(&done));
        batch.keep_asked(who_and_key, &Asked { fingerprint, at: batch.now(), event })?;
    }
    Ok(Ok(done))
}

/// What is noted of an outcome, enough to give it again.
fn noted(done: &Administered) -> [u8; 16] {
    match done {
        Administered::Founded(space) => space.0,
        Administered::Admitted(membership) => membership.0,
        Administered::Made(salt) => *salt,
        Administered::Begun(job) => u128::from(*job).to_be_bytes(),
        Administered::User(_) | Administered::Done => [0; 16],
    }
}

/// The outcome of what was done before, from what was noted.
fn again(batch: &Batch<'_>, what: &Administration, noted: [u8; 16]) -> Outcome {
    let job = || Administered::Begun(u64::try_from(u128::from_be_bytes(noted)).unwrap_or_default());
    Ok(Ok(match what {
        Administration::FoundSpace { .. } => Administered::Founded(SpaceId(noted)),
        Administration::AdmitIdentity(..) => Administered::Admitted(EventId(noted)),
        Administration::AddKey { .. } | Administration::RotateKey { .. } | Administration::AddSigningKey(..) => {
            Administered::Made(noted)
        }
        Administration::Webhook(_, _, Hooking::Add { .. } | Hooking::Rotate(_)) => Administered::Made(noted),
        Administration::EraseUser(..) | Administration::EndSpace(_) => job(),
        Administration::Protect(..) | Administration::Begin(_) => job(),
        Administration::SetRole { space, user, .. } => match batch.db().user(space, user)? {
            Some(user) => Administered::User(user),
            None => return Ok(Err(CannotAdminister::NoSuchUser)),
        },
        Administration::EndKey { .. } | Administration::EndSigningKey(..) | Administration::Webhook(..) => {
            Administered::Done
        }
        Administration::DestroyKeys(_) | Administration::Retain(..) | Administration::SettleReport(..) => {
            Administered::Done
        }
        Administration::Note(..) => Administered::Done,
    }))
}
