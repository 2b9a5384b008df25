//! Who asks, as handlers see it: put there by authentication, and by nothing else.

use crate::problem::Problem;
use axum::extract::FromRequestParts;
use engine::access::Action;
use http::request::Parts;
use model::SpaceId;
use node::commands::accounts::OPERATOR;
use node::commands::{self, Caller, CallerKind, ExpectedVersion, IdempotencyKey};
use queries::{QueryError, Viewer};
use store::Db;
use store::shared::accounts::SessionId;
use store::tables::TableReads;

/// The answer to a request that needs a space and names none.
const NO_SPACE: &str = "name a space: this key belongs to none";

/// A session of the pages.
#[derive(Clone, Debug)]
pub struct PageSession {
    /// What it is found by.
    pub id: SessionId,
    /// The space in which it was made.
    pub home: SpaceId,
    /// Who signed in.
    pub user: String,
    /// Whether it is the operator's as well.
    pub is_operator: bool,
    /// Whether this node has pages of git repositories.
    pub hosts_git: bool,
}

/// How a request came, as far as that can be believed.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOrigin {
    /// What is counted as one address.
    pub network: u64,
    /// Whether the browser speaks HTTPS, with this node or with a proxy that says so.
    pub is_secure: bool,
    /// The port that the browser asked, if it named one.
    pub port: Option<u16>,
}

/// A request that was authenticated.
#[derive(Clone, Debug)]
pub struct RequestContext {
    /// The space it is about; the node itself has none.
    pub space: Option<SpaceId>,
    /// Who asks.
    pub caller: Caller,
    /// What their idempotency keys are told apart by.
    pub account: [u8; 8],
    /// What the route does.
    pub action: Action,
    /// What makes the request safe to repeat.
    pub idempotency: Option<IdempotencyKey>,
    /// What must not have changed since the caller looked.
    pub expected: Option<ExpectedVersion>,
    /// The session of the pages that it came with.
    pub session: Option<PageSession>,
    /// How it came.
    pub via: RequestOrigin,
}

impl<S: Send + Sync> FromRequestParts<S> for RequestContext {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<RequestContext, Problem> {
        parts
            .extensions
            .get::<RequestContext>()
            .cloned()
            .ok_or_else(|| Problem::unproven("the request was not authenticated"))
    }
}

impl RequestContext {
    /// The space, where the route is about one.
    pub fn space(&self) -> Result<SpaceId, Problem> {
        self.space.ok_or_else(|| Problem::bad_request(NO_SPACE))
    }

    /// Whoever runs the node cannot be removed from it by those it serves.
    pub fn refuse_changing_operator(&self, user: &str) -> Result<(), Problem> {
        match user == OPERATOR && self.caller.kind != CallerKind::Operator {
            true => Err(Problem::forbidden("only the operator changes what the operator may do")),
            false => Ok(()),
        }
    }

    /// Keys see the whole space and outlive whoever makes them: they are made by keys and by the operator.
    pub fn refuse_session(&self) -> Result<(), Problem> {
        match self.caller.kind {
            CallerKind::Session => Err(Problem::forbidden("keys are made with an admin key, or by the operator")),
            CallerKind::Key(_) | CallerKind::Operator => Ok(()),
        }
    }

    /// A part of this request, which is repeated with it and not alone.
    pub fn part(&self, number: u64) -> RequestContext {
        let idempotency = self.idempotency.map(|key| IdempotencyKey {
            who_and_key: *blake3::keyed_hash(&key.who_and_key, &number.to_be_bytes()).as_bytes(),
            ..key
        });
        RequestContext { idempotency, ..self.clone() }
    }

    /// The same caller, acting for the user that the body names, where the key may do so.
    pub fn acting_for(mut self, author: Option<String>) -> Result<RequestContext, Problem> {
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

    /// Resolves the caller against a snapshot, and asks whether they may read at all.
    pub fn read_as<V: TableReads>(&self, db: &Db<V>, now: model::Nanos) -> Result<Viewer, QueryError> {
        let space = self.space.ok_or_else(|| QueryError::malformed(NO_SPACE))?;
        Viewer::resolve(db, space, &self.caller, self.action, now)
    }
}
