//! What a new node says to whoever opens it first: a short thread that shows what can be done.

use crate::failure::Failure;
use crate::home_space::{administer, random_bytes};
use model::payload::MemberRole;
use model::{EventId, SpaceId};
use node::commands::accounts::OPERATOR;
use node::commands::{
    AdminCommand, Caller, CallerKind, CommandRequest, NameOrId, NewMessage, NewThread, UserCommand, message_content,
};
use node::{AskError, Node};
use serde_json::{Map, Value};

const SAID: [&str; 4] = [
    "**Welcome.** What is said here is signed, kept in one folder on this node, and encrypted at rest.\n\n\
     Write below. *Markdown* works, `@name` mentions somebody, and a message can be edited: every version is kept.",
    "**For the operator: invite somebody.** Open *People* and make a link. Whoever has it chooses a name, with a password or \
     a passkey, and is here.",
    "**Why is a message not here yet?** What arrives before what it needs waits in the anteroom, under *Waiting*, until the \
     last of it comes. `anteroom demo` plays a short story of that before your eyes.",
    "**For the operator: look inside.** *Inside* has plots, the explorer of what rests in the store, jobs and the audit log. \
     For your application, `anteroom key create backend` makes an API key; the reference is at [/docs](/docs).",
];

fn act(node: &Node, space: SpaceId, command: UserCommand) -> Result<EventId, Failure> {
    let caller =
        Caller { kind: CallerKind::Operator, user: Some(OPERATOR.to_owned()), audit_name: "operator".to_owned() };
    let act = CommandRequest { space, caller, idempotency: None, command, random: random_bytes()? };
    match node.ask(act) {
        Ok(result) => Ok(result.shown),
        Err(AskError::Refused(why)) => {
            Err(Failure::new(format!("the welcome could not be posted: {why}"), "run `anteroom verify`"))
        }
        Err(AskError::NotRun(why)) => Err(Failure::new(why.to_string(), "look into the log")),
    }
}

/// Opens the thread in the first space of the node.
pub(crate) fn say(node: &Node) -> Result<(), Failure> {
    let Some((space, _)) = node.snapshot()?.kept_spaces()?.into_iter().next() else { return Ok(()) };
    let (user, role) = (OPERATOR.to_owned(), Some(MemberRole::Admin));
    administer(node, AdminCommand::SetRole { space, user, role, random: Box::new(random_bytes()?) })?;
    let fields = Map::from_iter([("title".to_owned(), "Welcome".into())]);
    let thread = act(node, space, UserCommand::OpenThread(NewThread { fields, ..NewThread::default() }))?;
    for text in SAID {
        let content = message_content(Value::String(text.to_owned()), None);
        let new = NewMessage {
            thread: Some(NameOrId::Event(thread)),
            chosen: None,
            content: content.map_err(|why| Failure::new(why.to_string(), "report this"))?,
            reply_to: None,
            mentions: Vec::new(),
            attachments: Vec::new(),
        };
        act(node, space, UserCommand::Post(new))?;
    }
    Ok(())
}
