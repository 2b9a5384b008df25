//! Asking the node's writer.

use crate::problem::Problem;
use node::{Node, RequestError, WriterReply, WriterRequest};
use tokio::sync::oneshot;

/// Hands a request to the writer and waits for its commit.
pub async fn ask_writer(node: &Node, request: WriterRequest) -> Result<WriterReply, Problem> {
    let (sender, receiver) = oneshot::channel();
    node.submit(request, move |reply| {
        let _ = sender.send(reply);
    })?;
    Ok(receiver.await.unwrap_or(Err(RequestError::Stopped))?)
}

/// The writer answered another question.
pub fn unexpected_reply(reply: &WriterReply) -> Problem {
    tracing::error!(?reply, "the writer gave another answer than was asked for");
    Problem::broken("the writer gave another answer than was asked for")
}
