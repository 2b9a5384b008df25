//! Commands: what users and administrators do through the API and the pages, decided and carried out inside one
//! transaction.
//!
//! A command finds who gives it, resolves what it names, asks [`engine::access`], and makes events through CREATE. It
//! runs in the writer, so that two commands never see each other half done: an id that a client chose is taken once, a
//! user is admitted once, a repeated request is answered as the first. A command that is refused changes nothing.

pub mod accounts;
mod admin;
mod admin_requests;
mod conversation;
mod create;
mod deletion;
mod external;
mod failure;
pub mod files;
mod identities;
mod lookup;
mod messages;
mod moderation;
pub mod names;
mod participants_update;
mod threads;
mod users;
pub(crate) mod webhooks;

pub use admin::{AdminCommand, AdminError, AdminResult};
pub(crate) use admin::{by_keeper, by_keeper_saying};
pub use admin_requests::AdminRequest;
pub(crate) use deletion::is_purgeable;
pub use deletion::{DELETED, is_deleted, is_deleted_version};
pub use external::{Submission, SubmitSigned};
pub use lookup::{
    ThreadVisibility, find, is_private, participants, principal, privacy, standing, thread_visibility, version_of,
};
pub use messages::{message_content, message_content_as, reaction_content};
pub use names::{BadName, NameOrId};
pub use users::seal_for;
pub(crate) use users::{hosted, seal, seal_of_content};
pub use webhooks::WebhookCommand;

use crate::writer_command::WriterCommand;
pub(crate) use create::create_event;
use engine::access::{Decision, KeyRole};
use engine::create::CreateError;
use engine::reads::{Reads as _, StoreError, StoreResult};
use engine::rows::ThreadField;
use model::body::BadBody;
use model::{EventId, Seq, SpaceId};
use serde_json::{Map, Value};
use store::Batch;
use store::shared::api_keys::{IdempotencyRecord, RequestOutcome};
use store::shared::moderation::BlockKind;

/// How a caller proved who they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallerKind {
    /// An API key.
    Key(KeyRole),
    /// A session of the pages.
    Session,
    /// The operator's token.
    Operator,
}

/// Whoever gives a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    pub kind: CallerKind,
    /// The user they act for, if it is one.
    pub user: Option<String>,
    /// How the audit log calls them.
    pub audit_name: String,
}

/// A user command, done once however often it is sent.
#[derive(Clone, Debug)]
pub struct CommandRequest {
    pub space: SpaceId,
    pub caller: Caller,
    /// What makes it safe to repeat.
    pub idempotency: Option<IdempotencyKey>,
    /// What must not have changed since the caller looked.
    pub expected: Option<ExpectedVersion>,
    pub command: UserCommand,
    /// Randomness for an identity that may have to be made.
    pub random: [u8; 32],
}

/// What makes a request safe to repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdempotencyKey {
    /// The hash of who asks and their key.
    pub who_and_key: [u8; 32],
    /// The hash of what they ask.
    pub fingerprint: [u8; 32],
}

/// A thread or message as somebody saw it: a command that is about it is done only if nobody changed it since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpectedVersion {
    pub seq: Seq,
    /// From [`version_of`].
    pub version: Vec<EventId>,
}

/// A message within a thread that was named, or wherever it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageRef {
    /// The thread, if it was named.
    pub thread: Option<NameOrId>,
    pub message: NameOrId,
}

/// A thread to be opened.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NewThread {
    /// The id that the client chose.
    pub chosen: Option<String>,
    /// Title, slug and metadata.
    pub fields: Map<String, Value>,
    /// Users who take part beside the author.
    pub participants: Vec<String>,
    /// Whether only participants see it.
    pub is_private: bool,
    /// Whether it is a direct conversation: only these participants ever see it.
    pub is_direct: bool,
}

/// What is to change in a thread.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ThreadChange {
    /// Title, metadata and pins.
    pub fields: Vec<(ThreadField, Value)>,
    /// The users who take part.
    pub participants: Option<Vec<String>>,
    /// Whether only participants see it.
    pub is_private: Option<bool>,
}

/// A message to be posted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewMessage {
    /// Its thread; none opens one for it.
    pub thread: Option<NameOrId>,
    /// The id that the client chose.
    pub chosen: Option<String>,
    /// Its content, from [`message_content`].
    pub content: Vec<u8>,
    /// What it answers.
    pub reply_to: Option<NameOrId>,
    /// The users it mentions.
    pub mentions: Vec<String>,
    /// The files it carries.
    pub attachments: Vec<NameOrId>,
}

/// What users do.
#[derive(Clone, PartialEq, Debug)]
pub enum UserCommand {
    /// Open a thread.
    OpenThread(NewThread),
    /// Change fields of a thread.
    UpdateThread(NameOrId, ThreadChange),
    /// Delete a thread softly.
    DeleteThread(NameOrId),
    /// Post a message.
    Post(NewMessage),
    /// Write a new version of a message, with content from [`message_content`].
    Edit(MessageRef, Vec<u8>),
    /// Delete a message softly.
    DeleteMessage(MessageRef),
    /// React to a message, with content from [`reaction_content`].
    React(MessageRef, Vec<u8>),
    /// Take a reaction back.
    Unreact(MessageRef),
    /// Mark a thread as read up to a message.
    MarkRead(NameOrId, NameOrId),
    /// Purge the content of a thread, message or file for ever.
    Purge(EventId),
    /// Block or mute another user, or no longer.
    SetBlock(String, Option<BlockKind>),
    /// Report a message to the moderators.
    Report(NameOrId, String),
    /// Leave the space.
    Leave,
}

/// What a user command did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommandResult {
    /// The event to show: the thread or message that was opened, posted or changed.
    pub shown: EventId,
    pub seq: Seq,
    /// Whether it is new, rather than the repetition of an earlier request.
    pub is_new: bool,
}

/// Why a user command was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The caller may not.
    #[error("{}", match .0 {
        Decision::Allow => "it is allowed",
        Decision::Unproven => "nobody was proven",
        Decision::Forbidden(why) => why,
        Decision::Hidden => "there is no such thing",
    })]
    Denied(Decision),
    /// What it names is not there.
    #[error("there is no such {0}")]
    Unknown(&'static str),
    #[error("a direct conversation stays between its participants; open a thread to talk with others")]
    Direct,
    /// There is no such user to name.
    #[error("there is nobody called {0:?} here")]
    Nobody(String),
    /// It was deleted, and what was deleted stays so.
    #[error("the message was deleted")]
    Deleted,
    /// The user or the space keeps as much as it may.
    #[error("the {0} has used all the storage it may use")]
    OverQuota(&'static str),
    /// The id that the client chose belongs to something else.
    #[error("the id {0:?} is taken by something else in this space")]
    Taken(String),
    /// It was to be changed only as it was seen, and is not so any more.
    #[error("it was changed since it was read")]
    Changed,
    /// The idempotency key was used for another request.
    #[error("this Idempotency-Key was used for another request")]
    OtherRequest,
    /// A name breaks the rules for names.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The content is not what can be kept.
    #[error(transparent)]
    Body(#[from] BadBody),
    /// The space is sealed and no key is here to write under.
    #[error("the space is sealed, and no key to write under is here")]
    NoKey,
    /// More references than an event can have.
    #[error("a message names at most {0} mentions and attachments together")]
    TooMany(usize),
    #[error("a direct conversation has at most {0} participants")]
    TooManyInDirect(usize),
    #[error("a thread has at most {0} pinned messages")]
    TooManyPins(usize),
    /// A user blocks and mutes as many as they may.
    #[error("a user blocks and mutes at most {0} others")]
    TooManyBlocked(usize),
    /// The space is not kept by this node.
    #[error("this node does not keep that space")]
    NotHosted,
    /// An event that was signed elsewhere belongs to another space than the caller.
    #[error("that event is of another space")]
    OtherSpace,
    /// The author of an event that was signed elsewhere is not a member any more.
    #[error("the membership it stands on is not in force")]
    NotInForce,
    /// The event could not be made.
    #[error(transparent)]
    Create(#[from] CreateError),
    /// The store failed. The writer answers for it: whoever asked never sees this.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl WriterCommand for CommandRequest {
    type Answer = CommandResult;
    type Error = CommandError;

    fn run(&self, batch: &mut Batch<'_>) -> Result<CommandResult, CommandError> {
        let Some(idempotency) = self.idempotency else { return conversation::run(batch, self) };
        if let Some(earlier) = batch.db().asked(&idempotency.who_and_key, batch.now())? {
            return repeat(batch, &self.own_idempotency(batch, idempotency)?, &earlier);
        }
        let result = conversation::run(batch, self)?;
        let IdempotencyKey { who_and_key, fingerprint } = self.own_idempotency(batch, idempotency)?;
        let outcome = RequestOutcome::Event(result.shown);
        batch.keep_asked(who_and_key, &IdempotencyRecord { fingerprint, at: batch.now(), outcome })?;
        Ok(result)
    }
}

impl CommandRequest {
    /// The same request of another identity is another request: whoever gets the name of a user who was erased is not
    /// answered in their place.
    fn own_idempotency(&self, batch: &Batch<'_>, idempotency: IdempotencyKey) -> StoreResult<IdempotencyKey> {
        let known = match &self.caller.user {
            Some(user) => batch.db().user(&self.space, user)?,
            None => None,
        };
        let fingerprint = match known {
            Some(known) => *blake3::keyed_hash(&idempotency.fingerprint, &known.identity.0).as_bytes(),
            None => idempotency.fingerprint,
        };
        Ok(IdempotencyKey { fingerprint, ..idempotency })
    }
}

/// Answers a request that repeats an earlier one as that was answered.
fn repeat(
    batch: &Batch<'_>,
    idempotency: &IdempotencyKey,
    earlier: &IdempotencyRecord,
) -> Result<CommandResult, CommandError> {
    if earlier.fingerprint != idempotency.fingerprint {
        return Err(CommandError::OtherRequest);
    }
    let RequestOutcome::Event(shown) = earlier.outcome else { return Err(CommandError::OtherRequest) };
    match batch.db().seq(&shown)? {
        Some(seq) => Ok(CommandResult { shown, seq, is_new: false }),
        None => Err(CommandError::Unknown("event any more")),
    }
}
