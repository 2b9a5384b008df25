//! Validation with everything at hand: a pure function of the event and the events it refers to.

use crate::chains::{EventInPost, StepResult};
use crate::reads::{Reads, StoreResult};
use crate::release;
use crate::rows::Outcome;
use crate::space::rules::{self, EventToValidate};

/// Goes on with what is valid.
pub(crate) fn validate<R: Reads>(db: &R, mut in_post: EventInPost) -> StoreResult<StepResult> {
    let (space, author) = in_post.numbers;
    let envelope = in_post.envelope()?;
    let examined = EventToValidate { envelope, space, author, found: &in_post.found };
    match rules::validate(db, &examined)? {
        Ok(standing) => {
            in_post.draft.row.meta = Some(rules::meta_of(&examined, &standing));
            Ok(StepResult::On(in_post))
        }
        Err(why) => {
            let changes = release::refuse(db, &in_post.context.policy, in_post.draft, true, why)?;
            Ok(StepResult::End(Outcome::Refused(why), changes))
        }
    }
}
