//! Who asks, as handlers see it: put there by the door, and by nothing else.

use crate::problem::Problem;
use axum::extract::FromRequestParts;
use engine::access::{Action, Decision, Facts, Principal, decide};
use http::request::Parts;
use model::{Identity, SpaceId};
use node::commands::{self, Caller, CallerKind, IdempotencyKey};
use store::Db;
use store::shared::accounts::SessionId;
use store::shared::moderation::BlockKind;
use store::shared::users::User;
use store::tables::TableReads;

/// A session of the pages.
#[derive(Clone, Debug)]
pub(crate) struct PageSession {
    /// What it is found by.
    pub(crate) id: SessionId,
    /// The space in which it was made.
    pub(crate) home: SpaceId,
    /// Who signed in.
    pub(crate) user: String,
    /// Whether it is the operator's as well.
    pub(crate) is_operator: bool,
}

/// How a request came, as far as that can be believed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestOrigin {
    /// What is counted as one address.
    pub(crate) network: u64,
    /// Whether the browser speaks HTTPS, with this node or with a proxy that says so.
    pub(crate) is_secure: bool,
    /// The port that the browser asked, if it named one.
    pub(crate) port: Option<u16>,
}

/// A request that passed the door.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    /// The space it is about; the node itself has none.
    pub(crate) space: Option<SpaceId>,
    /// Who asks.
    pub(crate) caller: Caller,
    /// What their idempotency keys are told apart by.
    pub(crate) account: [u8; 8],
    /// What the route does.
    pub(crate) action: Action,
    /// What makes the request safe to repeat.
    pub(crate) idempotency: Option<IdempotencyKey>,
    /// The session of the pages that it came with.
    pub(crate) signed: Option<PageSession>,
    /// How it came.
    pub(crate) via: RequestOrigin,
}

impl<S: Send + Sync> FromRequestParts<S> for RequestContext {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<RequestContext, Problem> {
        parts
            .extensions
            .get::<RequestContext>()
            .cloned()
            .ok_or_else(|| Problem::unproven("the request did not pass the door"))
    }
}

/// A guest as a snapshot sees them.
#[derive(Debug)]
pub(crate) struct Viewer {
    pub(crate) space: SpaceId,
    pub(crate) no: model::SpaceNo,
    pub(crate) principal: Principal,
    pub(crate) user: Option<User>,
    /// Whom the user blocks: what they write is not shown.
    pub(crate) blocked: Vec<Identity>,
    pub(crate) caller: Caller,
}

impl RequestContext {
    /// The space, where the route is about one.
    pub(crate) fn space(&self) -> Result<SpaceId, Problem> {
        self.space.ok_or_else(|| Problem::bad_request("name a space: this key belongs to none"))
    }

    /// Keys see the whole space and outlive whoever makes them: they are made by keys and by the operator.
    pub(crate) fn refuse_session(&self) -> Result<(), Problem> {
        match self.caller.kind {
            CallerKind::Session => Err(Problem::forbidden("keys are made with an admin key, or by the operator")),
            CallerKind::Key(_) | CallerKind::Operator => Ok(()),
        }
    }

    /// The same guest, acting for the user that the body names, where the key may do so.
    pub(crate) fn acting_for(mut self, author: Option<String>) -> Result<RequestContext, Problem> {
        let Some(author) = author else { return Ok(self) };
        match &self.caller.user {
            Some(user) if *user == author => Ok(self),
            Some(_) => Err(Problem::forbidden("the author in the body is not the user of the request")),
            None => {
                commands::names::check_name(&author)?;
                self.caller.user = Some(author);
                Ok(self)
            }
        }
    }

    /// Looks the guest up, and asks whether they may read at all.
    pub(crate) fn read_as<V: TableReads>(&self, db: &Db<V>, now: model::Nanos) -> Result<Viewer, Problem> {
        use engine::reads::Reads as _;
        let space = self.space()?;
        let Some(no) = db.space_no(&space)? else { return Err(Problem::not_found("this space is empty here")) };
        let (principal, user) = commands::principal(db, &space, &self.caller, now)?;
        let blocked = match &user {
            Some(user) => db.distances(&space, &user.identity)?,
            None => Vec::new(),
        };
        let blocked = blocked.into_iter().filter(|(_, distance)| *distance == BlockKind::Block);
        let blocked = blocked.map(|(other, _)| other).collect();
        match decide(&principal, self.action, &Facts::default()) {
            Decision::Allow => Ok(Viewer { space, no, principal, user, blocked, caller: self.caller.clone() }),
            denied => Err(denied.into()),
        }
    }
}

impl Viewer {
    /// Whether they may say anything at all.
    pub(crate) fn may_write(&self) -> bool {
        decide(&self.principal, Action::Write, &Facts::default()) == Decision::Allow
    }

    /// Whether the access function lets them see a thread.
    pub(crate) fn may_see(&self, sight: &commands::ThreadVisibility) -> bool {
        let facts = Facts { is_closed_to_caller: sight.is_closed, is_own: false, is_known: true };
        decide(&self.principal, Action::Read, &facts) == Decision::Allow
    }

    /// Whether the user does not want to see what somebody writes.
    pub(crate) fn blocks(&self, other: &Identity) -> bool {
        self.blocked.contains(other)
    }

    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.user.as_ref().map(|user| &user.identity)
    }
}
