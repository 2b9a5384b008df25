//! Who takes part: users that a request names, as the identities that events name.

use crate::commands::conversation::CommandContext;
use crate::commands::lookup::list_of_participants;
use crate::commands::{CommandError, names, users};
use engine::access::{Action, Decision, Facts, decide};
use engine::reads::{Reads as _, StoreError};
use model::{Identity, Seq};
use serde_json::{Map, Value};
use store::Batch;
use store::views::messages::ShownContent;

/// Who takes part in a thread and who sees it. Both are said together, so that they outlive what the thread was opened
/// with; what is not to change is said again.
pub(super) fn participants_update(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    thread: Seq,
    participants: Option<&[String]>,
    is_private: Option<bool>,
) -> Result<Map<String, Value>, CommandError> {
    let identities = match participants {
        Some(users) => find_identities(batch, context, users)?,
        // What cannot be read is not said again as if nobody took part.
        None if list_of_participants(batch.db(), thread, context.no)? == ShownContent::Damaged => {
            return Err(
                StoreError::Broken("the list of this thread's participants is damaged; say it anew".into()).into()
            );
        }
        None => crate::commands::participants(batch.db(), thread, context.no)?,
    };
    let is_private = match is_private {
        Some(is_private) => is_private,
        None => crate::commands::is_private(batch.db(), thread, context.no)?,
    };
    let said = [("participants".to_owned(), list_identities(identities)), ("private".to_owned(), is_private.into())];
    Ok(Map::from_iter(said))
}

/// The identities of users. Whoever vouches for users may name new ones, who are admitted.
pub(super) fn find_identities(
    batch: &mut Batch<'_>,
    context: &CommandContext<'_>,
    users: &[String],
) -> Result<Vec<Identity>, CommandError> {
    let may_admit = decide(&context.principal, Action::Vouch, &Facts::default()) == Decision::Allow;
    for user in users {
        let is_known = match user.parse::<Identity>() {
            Ok(identity) => batch.db().author_no(&identity)?.is_some(),
            Err(_) => batch.db().user(&context.space, user)?.is_some(),
        };
        let is_identity = user.parse::<Identity>().is_ok();
        if !is_known && !may_admit {
            return Err(CommandError::Nobody(user.clone()));
        }
        if !is_known && !is_identity {
            names::check_name(user)?;
        }
    }
    let mut identities = Vec::new();
    for user in users {
        identities.push(users::identity_of(batch, &context.space, user, &context.random)?);
    }
    Ok(identities)
}

/// Identities as a list of texts, each once.
pub(super) fn list_identities(mut identities: Vec<Identity>) -> Value {
    identities.sort();
    identities.dedup();
    identities.iter().map(Identity::to_string).collect()
}
