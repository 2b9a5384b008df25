//! The writer's queue: commands of any type, each with what is to be done with its answer.

use crate::writer_command::{Answered, AskError, BatchedCommand, CommandEnd, RequestError, Slot, WriterCommand};
use crossbeam_channel::{Receiver, Select, SendTimeoutError, Sender, TrySendError, bounded};
use engine::reads::StoreResult;
use std::time::Duration;
use store::Batch;

/// A command that waits for the writer, or for its commit.
pub(crate) trait QueuedCommand: BatchedCommand + Send {
    /// Hands over the answer, after the commit.
    fn answer(self: Box<Self>);

    /// Hands over why the command was not run.
    fn fail(self: Box<Self>, why: RequestError);
}

/// Which of two rows a command stands in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lane {
    /// Somebody waits for the answer.
    Prompt,
    /// Bulk work, such as an import. It gets what the others leave of each batch, so that it neither keeps anybody
    /// waiting nor has them turned away.
    Bulk,
}

/// So many commands of bulk work are worth a commit,
const WORTH_A_COMMIT: usize = 2048;
/// or as many as come in so many looks, each so long.
const GATHER_LOOKS: u32 = 50;
const GATHER_STEP: Duration = Duration::from_millis(1);

type Channel = (Sender<Box<dyn QueuedCommand>>, Receiver<Box<dyn QueuedCommand>>);

/// What waits for the writer. It belongs to the node, so neither end ever hangs up.
pub(crate) struct CommandQueue {
    prompt: Channel,
    bulk: Channel,
}

impl CommandQueue {
    /// With room for so many in each row.
    pub(crate) fn new(each_max: usize) -> CommandQueue {
        CommandQueue { prompt: bounded(each_max), bulk: bounded(each_max) }
    }

    /// Puts a command into its row, or gives it up if that is full.
    pub(crate) fn try_send(&self, job: Box<dyn QueuedCommand>) -> Result<(), RequestError> {
        self.prompt.0.try_send(job).map_err(|why| match why {
            TrySendError::Full(_) => RequestError::Busy,
            TrySendError::Disconnected(_) => RequestError::Stopped,
        })
    }

    /// Puts a command into its row, or gives it back if there is no room for so long.
    pub(crate) fn send(
        &self,
        lane: Lane,
        job: Box<dyn QueuedCommand>,
        patience: Duration,
    ) -> Result<Option<Box<dyn QueuedCommand>>, RequestError> {
        let (sender, _) = match lane {
            Lane::Prompt => &self.prompt,
            Lane::Bulk => &self.bulk,
        };
        match sender.send_timeout(job, patience) {
            Ok(()) => Ok(None),
            Err(SendTimeoutError::Timeout(back)) => Ok(Some(back)),
            Err(SendTimeoutError::Disconnected(_)) => Err(RequestError::Stopped),
        }
    }

    /// Waits until there is something to do, for so long. Bulk work is worth a commit when there is enough of it: it is
    /// given a moment to gather, but not once somebody waits for an answer.
    pub(crate) fn wait(&self, patience: Duration) {
        self.wait_for(&[&self.prompt.1, &self.bulk.1], patience);
        for _ in 0..GATHER_LOOKS {
            if !self.prompt.1.is_empty()
                || self.bulk.1.is_empty()
                || self.bulk.1.len() >= WORTH_A_COMMIT.min(self.bulk.1.capacity().unwrap_or(0))
            {
                return;
            }
            self.wait_for(&[&self.prompt.1], GATHER_STEP);
        }
    }

    fn wait_for(&self, rows: &[&Receiver<Box<dyn QueuedCommand>>], patience: Duration) {
        let mut waiting = Select::new();
        for row in rows {
            waiting.recv(row);
        }
        let _ = waiting.ready_timeout(patience);
    }

    /// What is there now, bulk work last.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = Box<dyn QueuedCommand>> + '_ {
        self.prompt.1.try_iter().chain(self.bulk.1.try_iter())
    }

    pub(crate) fn len(&self) -> usize {
        self.prompt.1.len() + self.bulk.1.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.prompt.1.is_empty() && self.bulk.1.is_empty()
    }
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

#[cfg(test)]
mod tests {
    use super::{CommandQueue, Lane, Queued, QueuedCommand, WORTH_A_COMMIT};
    use crate::writer::node_commands::Tick;
    use crate::writer_command::RequestError;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    /// The names of commands in the order in which they are taken.
    #[derive(Clone, Default)]
    struct Taken(Arc<Mutex<Vec<&'static str>>>);

    impl Taken {
        fn command(&self, name: &'static str) -> Box<dyn QueuedCommand> {
            let taken = self.clone();
            Queued::boxed(Tick, move |_| taken.0.lock().expect("whole").push(name))
        }

        fn take(&self, queue: &CommandQueue, most: usize) -> Vec<&'static str> {
            queue.waiting().take(most).for_each(|job| job.fail(RequestError::Stopped));
            std::mem::take(&mut *self.0.lock().expect("whole"))
        }
    }

    #[test]
    fn bulk_work_stands_behind_whoever_waits_and_turns_nobody_away() {
        let (queue, taken) = (CommandQueue::new(2), Taken::default());
        for name in ["bulk 1", "bulk 2"] {
            assert!(queue.send(Lane::Bulk, taken.command(name), Duration::ZERO).expect("it runs").is_none());
        }
        // Its own row is full, the other is not.
        assert!(queue.send(Lane::Bulk, taken.command("bulk 3"), Duration::ZERO).expect("it runs").is_some());
        assert_eq!(queue.try_send(taken.command("prompt 1")), Ok(()));
        assert!(queue.send(Lane::Prompt, taken.command("prompt 2"), Duration::ZERO).expect("it runs").is_none());
        assert_eq!(queue.try_send(taken.command("prompt 3")), Err(RequestError::Busy));
        assert_eq!((queue.len(), queue.is_empty()), (4, false));
        assert_eq!(taken.take(&queue, 3), ["prompt 1", "prompt 2", "bulk 1"]);
        assert_eq!(taken.take(&queue, 3), ["bulk 2"]);
        assert!(queue.is_empty());
    }

    #[test]
    fn nobody_waits_for_bulk_work_to_gather() {
        let (queue, taken) = (CommandQueue::new(WORTH_A_COMMIT * 2), Taken::default());
        queue.send(Lane::Bulk, taken.command("bulk"), Duration::ZERO).expect("it runs");
        queue.try_send(taken.command("prompt")).expect("room");
        // Each of these returns although no more comes: with somebody waiting, with enough, and after a while.
        queue.wait(Duration::from_secs(3600));
        assert_eq!(taken.take(&queue, 9), ["prompt", "bulk"]);
        for _ in 0..WORTH_A_COMMIT {
            queue.send(Lane::Bulk, taken.command("bulk"), Duration::ZERO).expect("it runs");
        }
        queue.wait(Duration::from_secs(3600));
        assert_eq!(taken.take(&queue, usize::MAX).len(), WORTH_A_COMMIT);
        queue.send(Lane::Bulk, taken.command("last"), Duration::ZERO).expect("it runs");
        queue.wait(Duration::from_secs(3600));
        assert_eq!(taken.take(&queue, 9), ["last"]);
    }
}
