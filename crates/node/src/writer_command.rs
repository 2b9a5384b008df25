//! What the writer can be asked to do, and what it answers: a command knows the type of its answer.
//!
//! A command runs inside the writer's transaction and ends with its answer or with an error. [`Slot`] keeps the two
//! together until the commit, so that commands of different types run in one transaction and nobody has to ask of what
//! type an answer is.

use engine::reads::{StoreError, StoreResult};
use engine::receive::DropReason;
use objects::ObjectError;
use store::Batch;

/// Something that the writer does in one transaction.
pub trait WriterCommand: Send + 'static {
    /// What it answers when it was done.
    type Answer: std::fmt::Debug + Send + 'static;
    /// Why it may not be done. A failing store is one of the reasons.
    type Error: CommandFailure;

    /// Decides and carries it out. It may be run again in another transaction, if this one is thrown away.
    fn run(&self, batch: &mut Batch<'_>) -> Result<Self::Answer, Self::Error>;
}

/// An error with which a command may end. The writer asks it one question: did the store fail? That ends or parks the
/// command; everything else is the command's own answer.
pub trait CommandFailure: std::error::Error + From<StoreError> + Send + 'static {
    /// The failure of the store behind this error, or the error itself.
    fn into_store_error(self) -> Result<StoreError, Self>;
}

impl CommandFailure for StoreError {
    fn into_store_error(self) -> Result<StoreError, StoreError> {
        Ok(self)
    }
}

/// What whoever asked gets, after the commit.
pub type Answered<C> = Result<<C as WriterCommand>::Answer, AskError<<C as WriterCommand>::Error>>;

/// Why a command was not carried out. Nothing of it happened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AskError<E> {
    /// The writer did not run it, or could not finish.
    #[error(transparent)]
    NotRun(#[from] RequestError),
    /// It was run, and refused.
    #[error("{0}")]
    Refused(E),
}

/// Why the writer did not carry out a command. Nothing of it happened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RequestError {
    /// Too much waits already.
    #[error("the node has too much to do right now; try again in a moment")]
    Busy,
    /// An object could not be written; later it may work.
    #[error("the content could not be stored: {0}")]
    Objects(ObjectError),
    /// The disk is full; the node goes on reading.
    #[error("the disk is full, so the node only reads; free some space and try again")]
    Full,
    /// The node has stopped, or is stopping.
    #[error("the node has stopped")]
    Stopped,
    /// It was dropped before it reached the writer.
    #[error(transparent)]
    Dropped(#[from] DropReason),
    /// A row breaks an invariant that this command relies on. The command was undone; others go on.
    #[error("the store breaks a rule, so this was not done; the log has details: {0}")]
    Parked(String),
    /// The store failed, and the writer has stopped in order.
    #[error("the store failed, and the node has stopped writing: {0}")]
    Failed(String),
}

impl From<ObjectError> for RequestError {
    fn from(fault: ObjectError) -> RequestError {
        match fault {
            ObjectError::Full => RequestError::Full,
            other => RequestError::Objects(other),
        }
    }
}

impl From<StoreError> for RequestError {
    fn from(fault: StoreError) -> RequestError {
        match fault {
            StoreError::Full => RequestError::Full,
            StoreError::Store(what) | StoreError::Broken(what) => RequestError::Failed(what),
        }
    }
}

/// Whether a command was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandEnd {
    Done,
    Refused,
}

/// A command in a batch, whatever its type.
pub(crate) trait BatchedCommand {
    /// Runs the command and keeps its answer. Fails if the store does.
    fn run(&mut self, batch: &mut Batch<'_>) -> StoreResult<CommandEnd>;

    /// Answers that the command was left alone because of a broken invariant.
    fn park(&mut self, what: String);
}

/// A command and, once it was run, its answer.
#[derive(Debug)]
pub(crate) struct Slot<C: WriterCommand> {
    command: C,
    answer: Option<Answered<C>>,
}

impl<C: WriterCommand> Slot<C> {
    pub(crate) fn new(command: C) -> Slot<C> {
        Slot { command, answer: None }
    }

    /// The answer. A command that was never run is one that the node stopped before.
    pub(crate) fn take_answer(&mut self) -> Answered<C> {
        self.answer.take().unwrap_or(Err(AskError::NotRun(RequestError::Stopped)))
    }
}

impl<C: WriterCommand> BatchedCommand for Slot<C> {
    fn run(&mut self, batch: &mut Batch<'_>) -> StoreResult<CommandEnd> {
        let (answer, end) = match self.command.run(batch) {
            Ok(answer) => (Ok(answer), CommandEnd::Done),
            Err(why) => match why.into_store_error() {
                Ok(fault) => return Err(fault),
                Err(refused) => (Err(AskError::Refused(refused)), CommandEnd::Refused),
            },
        };
        self.answer = Some(answer);
        Ok(end)
    }

    fn park(&mut self, what: String) {
        self.answer = Some(Err(RequestError::Parked(what).into()));
    }
}
