//! Prepares a node before it serves: creates the home space and resumes an unfinished change of the master key.

use crate::failure::Failure;
use crate::random::random_bytes;
use node::commands::{AdminCommand, AdminRequest, AdminResult};
use node::{AskError, Node};

const HOME: &str = "home";

/// Creates the home space if the node has no space yet. Returns whether it did.
pub(crate) fn create_home_space(node: &Node) -> Result<bool, Failure> {
    if !node.snapshot()?.hosted_spaces()?.is_empty() {
        return Ok(false);
    }
    let command = AdminCommand::FoundSpace { name: HOME.to_owned(), sealed: true, random: Box::new(random_bytes()?) };
    match administer(node, command)? {
        AdminResult::Founded(_) => Ok(true),
        other => Err(Failure::new(format!("the home space was not created: {other:?}"), "run `anteroom verify`")),
    }
}

/// Continues in the background if `anteroom rewrap --begin` was used.
pub(crate) fn resume_rewrap(node: &Node) -> Result<(), Failure> {
    if node.snapshot()?.is_rewrapping()? {
        administer(node, AdminCommand::Begin(store::shared::jobs::JobKind::Rewrap))?;
    }
    Ok(())
}

/// Runs a command of the operator.
pub(crate) fn administer(node: &Node, command: AdminCommand) -> Result<AdminResult, Failure> {
    node.ask(AdminRequest::by("operator", command)).map_err(|why| match why {
        AskError::Refused(why) => Failure::new(why.to_string(), "correct what the message names"),
        AskError::NotRun(why) => Failure::new(why.to_string(), "see the log for details"),
    })
}
