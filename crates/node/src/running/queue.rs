//! The writer's queue: commands of any type, each with what is to be done with its answer.

use crate::writer_command::{Answered, AskError, BatchedCommand, CommandEnd, RequestError, Slot, WriterCommand};
use engine::reads::StoreResult;
use store::Batch;

/// A command that waits for the writer, or for its commit.
pub(crate) trait QueuedCommand: BatchedCommand + Send {
    /// Hands over the answer, after the commit.
    fn answer(self: Box<Self>);

    /// Hands over why the command was not run.
    fn fail(self: Box<Self>, why: RequestError);
}

/// A command together with whoever waits for its answer: one allocation for both.
pub(crate) struct Queued<C: WriterCommand, F> {
    slot: Slot<C>,
    on_answer: F,
}

impl<C: WriterCommand, F: FnOnce(Answered<C>) + Send + 'static> Queued<C, F> {
    pub(crate) fn boxed(command: C, on_answer: F) -> Box<dyn QueuedCommand> {
        Box::new(Queued { slot: Slot::new(command), on_answer })
    }
}

impl<C: WriterCommand, F> BatchedCommand for Queued<C, F> {
    fn run(&mut self, batch: &mut Batch<'_>) -> StoreResult<CommandEnd> {
        self.slot.run(batch)
    }

    fn park(&mut self, what: String) {
        self.slot.park(what);
    }
}

impl<C: WriterCommand, F: FnOnce(Answered<C>) + Send> QueuedCommand for Queued<C, F> {
    fn answer(mut self: Box<Self>) {
        let answer = self.slot.take_answer();
        (self.on_answer)(answer);
    }

    fn fail(self: Box<Self>, why: RequestError) {
        (self.on_answer)(Err(AskError::NotRun(why)));
    }
}
