//! Tasks that run beside the requests: started in one place, and watched.
//!
//! A task that panics or ends by itself is logged by its name. What then happens is said where the task is declared: the
//! server ends in order where it would otherwise break a promise without a word, and goes on without the others.

use std::collections::HashMap;
use std::pin::Pin;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

/// What the end of a task means for the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnEnd {
    /// The server cannot keep its promises without it.
    StopServer,
    /// What the task does is missed, and nothing else.
    GoOn,
}

/// A task to run for as long as the server does.
pub struct BackgroundTask {
    name: &'static str,
    on_end: OnEnd,
    run: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl std::fmt::Debug for BackgroundTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BackgroundTask({}, {:?})", self.name, self.on_end)
    }
}

impl BackgroundTask {
    pub fn new(name: &'static str, on_end: OnEnd, run: impl Future<Output = ()> + Send + 'static) -> BackgroundTask {
        BackgroundTask { name, on_end, run: Box::pin(run) }
    }
}

/// The tasks that run.
pub(crate) struct Supervisor {
    tasks: JoinSet<()>,
    known: HashMap<Id, (&'static str, OnEnd)>,
}

impl Supervisor {
    pub(crate) fn start(tasks: Vec<BackgroundTask>) -> Supervisor {
        let (mut running, mut known) = (JoinSet::new(), HashMap::new());
        for BackgroundTask { name, on_end, run } in tasks {
            let handle: AbortHandle = running.spawn(run);
            known.insert(handle.id(), (name, on_end));
        }
        Supervisor { tasks: running, known }
    }

    /// Comes back when a task has ended that the server cannot do without. Dropping the future loses nothing.
    pub(crate) async fn vital_task_ended(&mut self) {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            if self.note_end(&ended) == OnEnd::StopServer {
                return;
            }
        }
        // Nothing is left that could end.
        std::future::pending().await
    }

    fn note_end(&self, ended: &Result<(Id, ()), JoinError>) -> OnEnd {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        let (name, on_end) = self.known.get(&id).copied().unwrap_or(("unknown", OnEnd::GoOn));
        match ended {
            Ok(_) => tracing::error!(task = name, then = ?on_end, "a background task ended by itself"),
            Err(why) if why.is_panic() => {
                tracing::error!(task = name, then = ?on_end, %why, "a background task panicked")
            }
            Err(why) => tracing::error!(task = name, then = ?on_end, %why, "a background task was cancelled"),
        }
        on_end
    }

    /// Ends all of them.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn only_the_end_of_a_vital_task_ends_the_server() {
        let panics = async { panic!("a bug") };
        let tasks = vec![
            BackgroundTask::new("plots", OnEnd::GoOn, async {}),
            BackgroundTask::new("metrics", OnEnd::GoOn, panics),
            BackgroundTask::new("live feed", OnEnd::StopServer, std::future::pending()),
        ];
        let mut supervisor = Supervisor::start(tasks);
        let waited = tokio::time::timeout(Duration::from_millis(50), supervisor.vital_task_ended()).await;
        assert!(waited.is_err(), "the server goes on");
        supervisor.stop().await;
        for vital in [
            BackgroundTask::new("live feed", OnEnd::StopServer, async {}),
            BackgroundTask::new("live feed", OnEnd::StopServer, async { panic!("a bug") }),
        ] {
            let mut supervisor = Supervisor::start(vec![vital]);
            let waited = tokio::time::timeout(Duration::from_secs(10), supervisor.vital_task_ended()).await;
            assert!(waited.is_ok(), "the server ends");
        }
    }
}
