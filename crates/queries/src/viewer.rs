//! Who reads, resolved against a snapshot.

use crate::error::QueryError;
use engine::access::{Action, Decision, Facts, Principal, decide};
use engine::reads::Reads as _;
use model::{Identity, Nanos, SpaceId, SpaceNo};
use node::commands::{self, Caller, CallerKind};
use store::Db;
use store::shared::moderation::BlockKind;
use store::shared::users::User;
use store::tables::TableReads;

/// Whoever reads a space, as one snapshot knows them.
#[derive(Debug)]
pub struct Viewer {
    pub space: SpaceId,
    pub no: SpaceNo,
    pub principal: Principal,
    /// The user whom the caller names; none if they have never written anything.
    pub user: Option<User>,
    /// Whom the user blocks: what they write is not shown.
    pub blocked: Vec<Identity>,
    pub caller: Caller,
}

impl Viewer {
    /// Looks a caller up in a space, and asks the access function whether they may do this there.
    pub fn resolve<V: TableReads>(
        db: &Db<V>,
        space: SpaceId,
        caller: &Caller,
        action: Action,
        now: Nanos,
    ) -> Result<Viewer, QueryError> {
        let Some(no) = db.space_no(&space)? else { return Err(QueryError::not_found("this space is empty here")) };
        let (principal, user) = commands::principal(db, &space, caller, now)?;
        let blocked = match &user {
            Some(user) => db.blocks_by(&space, &user.identity)?,
            None => Vec::new(),
        };
        let blocked = blocked.into_iter().filter(|(_, kind)| *kind == BlockKind::Block);
        let blocked = blocked.map(|(other, _)| other).collect();
        match decide(&principal, action, &Facts::default()) {
            Decision::Allow => Ok(Viewer { space, no, principal, user, blocked, caller: caller.clone() }),
            denied => Err(QueryError::Denied(denied)),
        }
    }

    /// Nobody in particular, who sees everything of a space: events for all subscribers are rendered once, as this
    /// viewer sees them, and each subscriber is then asked for on their own.
    pub(crate) fn unrestricted(space: SpaceId, no: SpaceNo) -> Viewer {
        let caller = Caller { kind: CallerKind::Operator, user: None, audit_name: String::new() };
        Viewer { space, no, principal: Principal::Operator, user: None, blocked: Vec::new(), caller }
    }

    /// The identity of the user, if they have one.
    pub fn identity(&self) -> Option<&Identity> {
        self.user.as_ref().map(|user| &user.identity)
    }
}
