//! Validation with everything at hand: a pure function of the event and the events it refers to.

use crate::chains::{Next, Passage};
use crate::reads::{Answer, Reads};
use crate::release;
use crate::rows::Outcome;
use crate::space::rules::{self, Examined};

/// Goes on with what is valid.
pub(crate) fn validate<R: Reads>(db: &R, mut passage: Passage) -> Answer<Next> {
    let (space, author) = passage.numbers;
    let envelope = passage.envelope()?;
    let examined = Examined { envelope, space, author, found: &passage.found };
    match rules::validate(db, &examined)? {
        Ok(standing) => {
            passage.work.row.meta = Some(rules::meta_of(&examined, &standing));
            Ok(Next::On(passage))
        }
        Err(why) => {
            let changes = release::refuse(db, &passage.setting.policy, passage.work, true, why)?;
            Ok(Next::End(Outcome::Refused(why), changes))
        }
    }
}
