//! The welcome thread of a new node: a few messages that introduce the web page.

use crate::failure::Failure;
use crate::home_space::administer;
use crate::random::random_bytes;
use model::payload::MemberRole;
use model::{EventId, SpaceId};
use node::commands::accounts::OPERATOR;
use node::commands::{
    AdminCommand, Caller, CallerKind, CommandRequest, NameOrId, NewMessage, NewThread, UserCommand, message_content,
};
use node::{AskError, Node};
use serde_json::{Map, Value};

const MESSAGES: [&str; 4] = [
    "**Welcome.** Messages here are signed, stored on this node, and encrypted at rest.\n\n\
     Write below. You can use *Markdown*, mention somebody with `@name`, and edit your messages; every version is kept.",
    "**For the operator: invite people.** Open *People* and create an invitation link. Whoever opens it chooses a name, with \
     a password or a passkey, and can write here.",
    "**Why is a message not shown yet?** Messages can arrive before something they depend on, such as their thread. They are \
     listed under *Waiting* and appear here as soon as everything they need has arrived. `anteroom demo` shows an example.",
    "**For the operator: monitoring and administration.** *Inside* has charts, the explorer of the database, jobs and the \
     audit log. For your application, `anteroom key create backend` creates an API key; the API reference is at \
     [/docs](/docs).",
];

fn run_as_operator(node: &Node, space: SpaceId, command: UserCommand) -> Result<EventId, Failure> {
    let caller =
        Caller { kind: CallerKind::Operator, user: Some(OPERATOR.to_owned()), audit_name: "operator".to_owned() };
    let request = CommandRequest { space, caller, idempotency: None, expected: None, command, random: random_bytes()? };
    match node.ask(request) {
        Ok(result) => Ok(result.shown),
        Err(AskError::Refused(why)) => {
            Err(Failure::new(format!("could not post the welcome thread: {why}"), "run `anteroom verify`"))
        }
        Err(AskError::NotRun(why)) => Err(Failure::new(why.to_string(), "see the log for details")),
    }
}

/// Creates the thread in the first space of the node.
pub(crate) fn create_welcome_thread(node: &Node) -> Result<(), Failure> {
    let Some((space, _)) = node.snapshot()?.hosted_spaces()?.into_iter().next() else { return Ok(()) };
    let (user, role) = (OPERATOR.to_owned(), Some(MemberRole::Admin));
    administer(node, AdminCommand::SetRole { space, user, role, random: Box::new(random_bytes()?) })?;
    let fields = Map::from_iter([("title".to_owned(), "Welcome".into())]);
    let thread = run_as_operator(node, space, UserCommand::OpenThread(NewThread { fields, ..NewThread::default() }))?;
    for text in MESSAGES {
        let content = message_content(Value::String(text.to_owned()), None);
        let message = NewMessage {
            thread: Some(NameOrId::Event(thread)),
            chosen: None,
            content: content.map_err(|why| Failure::new(why.to_string(), "report this"))?,
            reply_to: None,
            mentions: Vec::new(),
            attachments: Vec::new(),
        };
        run_as_operator(node, space, UserCommand::Post(message))?;
    }
    Ok(())
}
