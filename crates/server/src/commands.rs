//! What a caller has the writer do: commands of users, of administration, and about accounts.

use crate::context::RequestContext;
use crate::problem::Problem;
use crate::secrets::random_bytes;
use crate::state::ServerState;
use crate::writer::ask_writer_then;
use engine::reads::Reads as _;
use model::SpaceId;
use node::WriterCommand;
use node::commands::accounts::{AccountCommand, AccountRequest};
use node::commands::{AdminCommand, AdminRequest, AdminResult, CommandRequest, CommandResult, UserCommand};
use queries::live::ChangedRights;
use store::shared::api_keys::IdempotencyRecord;
use store::shared::moderation::BlockKind;

impl ServerState {
    /// Hands a command to the writer and waits for its commit.
    pub async fn ask<C: WriterCommand<Error: Into<Problem>>>(&self, command: C) -> Result<C::Answer, Problem> {
        let under_way = self.load.begin_write();
        ask_writer_then(&self.node, command, move || under_way.answered()).await
    }

    /// Runs a command of a user.
    pub async fn act(&self, context: RequestContext, command: UserCommand) -> Result<CommandResult, Problem> {
        let act = CommandRequest {
            space: context.space()?,
            caller: context.caller,
            idempotency: context.idempotency,
            expected: context.expected,
            command,
            random: random_bytes()?,
        };
        self.ask(act).await
    }

    /// The same request, acting for the user that its body names, who is limited like one whom a header names.
    pub fn acting_for(&self, context: RequestContext, author: Option<String>) -> Result<RequestContext, Problem> {
        let is_named_here = context.caller.user.is_none() && author.is_some();
        let context = context.acting_for(author)?;
        if is_named_here {
            self.rate_limiters.count_named_user(&context)?;
        }
        Ok(context)
    }

    /// Runs a command of administration.
    pub async fn administer(&self, context: &RequestContext, what: AdminCommand) -> Result<AdminResult, Problem> {
        self.order(context, what, [0; 16]).await
    }

    /// Puts something that changes nothing here into the audit log; on a full disk only into the log.
    pub async fn note(&self, context: &RequestContext, action: &'static str, target: &str) -> Result<(), Problem> {
        match self.administer(context, AdminCommand::Note(action, target.to_owned())).await {
            Err(problem) if problem.status == 503 && self.node.is_full() => {
                tracing::warn!(action, target, "the audit log lacks this: the disk is full");
                Ok(())
            }
            noted => noted.map(drop),
        }
    }

    async fn order(
        &self,
        context: &RequestContext,
        what: AdminCommand,
        salt: [u8; 16],
    ) -> Result<AdminResult, Problem> {
        let order =
            AdminRequest { who: context.caller.audit_name.clone(), idempotency: context.idempotency, salt, what };
        self.ask(order).await
    }

    /// Runs a command about an account, a session or an invitation of a space.
    pub async fn change_account(&self, space: SpaceId, what: AccountCommand) -> Result<(), Problem> {
        self.ask(AccountRequest { space, what }).await
    }

    /// Blocks or mutes somebody, or no longer; the caller's own streams are checked again.
    pub async fn set_block(
        &self,
        context: RequestContext,
        other: String,
        kind: Option<BlockKind>,
    ) -> Result<(), Problem> {
        self.act(context.clone(), UserCommand::SetBlock(other, kind)).await?;
        let viewer = context.read_as(&*self.node.snapshot()?, self.node.now())?;
        if let Some(identity) = viewer.identity() {
            self.hub.change_rights(viewer.no, ChangedRights::Of(vec![*identity]));
        }
        Ok(())
    }

    /// Has every stream of a space checked again: a key or a role ended.
    pub fn recheck_streams_of_space(&self, space: &SpaceId) -> Result<(), Problem> {
        if let Some(no) = self.node.snapshot()?.space_no(space)? {
            self.hub.change_rights(no, ChangedRights::Everyone);
        }
        Ok(())
    }

    /// Has the streams of whoever is signed in checked again: a session of theirs ended.
    pub fn recheck_streams_of_session(&self, context: &RequestContext) -> Result<(), Problem> {
        let db = self.node.snapshot()?;
        let space = context.space()?;
        let identity = match &context.session {
            Some(session) => db.user(&space, &session.user)?.map(|user| user.identity),
            None => None,
        };
        if let (Some(no), Some(identity)) = (db.space_no(&space)?, identity) {
            self.hub.change_rights(no, ChangedRights::Of(vec![identity]));
        }
        Ok(())
    }

    /// Whether a request with this idempotency key was done before; the writer says whether it was the same.
    pub fn is_repeated(&self, context: &RequestContext) -> Result<bool, Problem> {
        let Some(idempotency) = &context.idempotency else { return Ok(false) };
        Ok(self.node.snapshot()?.asked(&idempotency.who_and_key, self.node.now())?.is_some())
    }

    /// What came of the request that this one repeats, where it was noted and what it named may be gone since.
    pub fn repeated(&self, context: &RequestContext) -> Result<Option<IdempotencyRecord>, Problem> {
        let Some(idempotency) = &context.idempotency else { return Ok(None) };
        let earlier = self.node.snapshot()?.asked(&idempotency.who_and_key, self.node.now())?;
        Ok(earlier.filter(|earlier| earlier.fingerprint == idempotency.fingerprint))
    }

    /// Makes something with a secret. The answer is what was made, by this request or by the one that it repeats.
    pub async fn make(
        &self,
        context: &RequestContext,
        what: impl FnOnce(&NewSecret) -> AdminCommand,
    ) -> Result<NewSecret, Problem> {
        let salt = random_bytes()?;
        match self.order(context, what(&self.made(&salt)), salt).await? {
            AdminResult::Made(salt) => Ok(self.made(&salt)),
            _ => Err(Problem::broken("no secret was made")),
        }
    }

    fn made(&self, salt: &[u8; 16]) -> NewSecret {
        let mut id = [0; 8];
        id.copy_from_slice(&salt[..8]);
        NewSecret { id, secret: self.node.store().secret_from(salt) }
    }
}

/// An id and a secret, both from the salt of an order.
pub struct NewSecret {
    pub id: [u8; 8],
    pub secret: [u8; 32],
}
