//! Asking the node's writer.

use crate::problem::Problem;
use node::{AskError, Node, RequestError, WriterCommand};
use tokio::sync::oneshot;

/// Hands a command to the writer and waits for its commit.
pub async fn ask_writer<C: WriterCommand<Error: Into<Problem>>>(node: &Node, command: C) -> Result<C::Answer, Problem> {
    ask_writer_then(node, command, || ()).await
}

/// The same, and does something when the writer has answered, whether or not anybody waits for that.
pub(crate) async fn ask_writer_then<C: WriterCommand<Error: Into<Problem>>>(
    node: &Node,
    command: C,
    on_answer: impl FnOnce() + Send + 'static,
) -> Result<C::Answer, Problem> {
    let (sender, receiver) = oneshot::channel();
    node.submit(command, move |answer| {
        on_answer();
        let _ = sender.send(answer);
    })?;
    Ok(receiver.await.unwrap_or(Err(AskError::NotRun(RequestError::Stopped)))?)
}
