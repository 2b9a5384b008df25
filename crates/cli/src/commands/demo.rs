//! `anteroom demo`: shows how events that arrive in the wrong order are held and released.
//!
//! Somebody writes on a second node. The events reach the first node one by one in the wrong order, so that the list of
//! held events grows, and empties when the last event arrives.

use super::CommandResult;
use crate::app::app;
use crate::context::Context;
use crate::failure::Failure;
use crate::home_space::administer;
use crate::random::random_bytes;
use crate::signals::ShutdownSignals;
use crate::{output, welcome_thread};
use clap::Args;
use ed25519_dalek::SigningKey;
use engine::create::{NewEvent, Seal};
use engine::fetch;
use engine::reads::Reads as _;
use engine::rows::Origin;
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::{AuxKey, EventId, Group, Identity, Kind, Need, Seq, SpaceId, body};
use node::commands::{AdminCommand, AdminResult};
use node::fetch::hunter::{FetchError, Fetched, NoSources, SourceClient, SourceDirectory};
use node::node_commands::{Create, HuntNow};
use node::{AskError, Node, NodeOptions};
use serde_json::{Value, json};
use server::ServerState;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::tables::Snapshot;
use store::{Db, FolderDisk, MasterKey, Store};

/// How often to check for a sign-in, and for the end of the demo.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Demonstrate held events with two nodes in a temporary folder
///
/// Events from the second node reach the first one in the wrong order, and then the connection fails. The first node
/// holds them, shows what they wait for, and applies them when the missing event has arrived. The demo begins when you
/// have signed in with the printed link. All data is deleted at the end.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Seconds between two steps
    #[arg(long, default_value_t = 4.0, value_name = "SECONDS")]
    pause: f64,
}

/// The events to deliver with the text for each, and the event that is fetched at the end.
struct Script {
    steps: Vec<(&'static str, EventId)>,
    missing: EventId,
}

/// The connection through which the first node fetches from the second one.
#[derive(Debug)]
struct Connection {
    second_node: Node,
    is_up: AtomicBool,
}

impl SourceDirectory for Connection {
    fn places(&self, _db: &Db<Snapshot>, _group: &Group) -> Vec<fetch::Source> {
        vec![fetch::Source { url: "the second node".to_owned(), domain: "second".to_owned() }]
    }
}

impl SourceClient for Connection {
    fn fetch(
        &self,
        _group: &Group,
        _url: &str,
        needs: &[Need],
        deliver: &mut dyn FnMut(Fetched),
    ) -> Result<usize, FetchError> {
        if !self.is_up.load(Ordering::Acquire) {
            return Err(FetchError("the connection is down".to_owned()));
        }
        for need in needs {
            if let Need::Event(id) = need {
                let (blob, inline) =
                    read_event(&self.second_node, id).map_err(|_| FetchError("the event is missing".to_owned()))?;
                deliver(Fetched::Event { blob, inline });
            }
        }
        Ok(0)
    }
}

impl Demo {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let signals = ShutdownSignals::listen()?;
        let folder = tempfile::tempdir().map_err(|why| Failure::new(why.to_string(), "check the temporary folder"))?;
        let second_node = open_node(context, &folder.path().join("second"), Arc::new(NoSources))?;
        let connection = Arc::new(Connection { second_node, is_up: AtomicBool::new(false) });
        let first_node = open_node(context, &folder.path().join("first"), connection.clone())?;
        let played = self.serve_and_play(context, &signals, &first_node, &connection);
        first_node.stop();
        connection.second_node.stop();
        played.map(|()| ExitCode::SUCCESS)
    }

    fn serve_and_play(
        &self,
        context: &Context,
        signals: &ShutdownSignals,
        first_node: &Node,
        connection: &Connection,
    ) -> Result<(), Failure> {
        let command =
            AdminCommand::FoundSpace { name: "home".to_owned(), sealed: false, random: Box::new(random_bytes()?) };
        let AdminResult::Founded(space) = administer(first_node, command)? else {
            return Err(internal_error("the space was not created"));
        };
        welcome_thread::create_welcome_thread(first_node)?;
        let vera = SigningKey::from_bytes(&random_bytes()?);
        let script = write_events(first_node, &connection.second_node, space, &vera)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|why| Failure::new(why.to_string(), "try again"))?;
        let state = ServerState::new(
            first_node.clone(),
            context.settings.server_options(),
            &hex::encode(random_bytes::<32>()?),
        );
        let server = runtime.block_on(server::serve(app(&state), context.settings.listen));
        let server =
            server.map_err(|why| Failure::new(why.to_string(), "pass another address: --listen 127.0.0.1:0"))?;
        let link = state.operator_link().map_err(|why| Failure::new(why.detail, "try again"))?;
        print_line(&format!("sign in      http://{}{link}", server.address))?;
        print_line("Then open Waiting in the bar at the top. Press Ctrl-C to end the demo.")?;
        let played = self.play(signals, first_node, connection, space, &script);
        runtime.block_on(server.stop());
        played
    }

    /// Delivers one event after the other, lets the first node fetch the last one, and waits for shutdown.
    fn play(
        &self,
        signals: &ShutdownSignals,
        first_node: &Node,
        connection: &Connection,
        space: SpaceId,
        script: &Script,
    ) -> Result<(), Failure> {
        let is_nobody_signed_in = || Ok::<_, Failure>(first_node.snapshot()?.sessions(&space, 1)?.is_empty());
        let pause = Duration::from_secs_f64(self.pause.clamp(0.0, 3600.0));
        if wait_while(signals, is_nobody_signed_in)? {
            return Ok(());
        }
        for (text, event) in &script.steps {
            if signals.wait(pause) {
                return Ok(());
            }
            deliver(&connection.second_node, first_node, event)?;
            let held = first_node.snapshot()?.held_total()?;
            print_line(&format!("{text} ({held} held)"))?;
        }
        if signals.wait(pause) {
            return Ok(());
        }
        print_line("The connection is up again: the first node fetches the thread, and the held events are applied.")?;
        connection.is_up.store(true, Ordering::Release);
        let asked = first_node.ask(HuntNow::ForNeed(Need::Event(script.missing)));
        asked.map_err(|why| Failure::new(why.to_string(), "see the log for details"))?;
        if wait_while(signals, || Ok(first_node.snapshot()?.held_total()? > 0))? {
            return Ok(());
        }
        print_line("End of the demo: all events are applied, in the order in which they were written.")?;
        while !signals.wait(Duration::from_secs(3600)) {}
        Ok(())
    }
}

/// Waits while the condition is true. Returns whether shutdown was requested instead.
fn wait_while(signals: &ShutdownSignals, condition: impl Fn() -> Result<bool, Failure>) -> Result<bool, Failure> {
    while condition()? {
        if signals.wait(POLL_INTERVAL) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn internal_error(what: &str) -> Failure {
    Failure::new(what, "report this")
}

fn print_line(line: &str) -> Result<(), Failure> {
    output::write_stdout(&format!("{line}\n"))
}

fn open_node(context: &Context, folder: &Path, source: Arc<dyn SourceClient>) -> Result<Node, Failure> {
    let disk = FolderDisk::new(folder).map_err(|why| Failure::file("use", folder, &why))?;
    let store = Store::open(Arc::new(disk), MasterKey::new(&random_bytes()?), store::StoreOptions::default());
    let store = store.map_err(|why| Failure::new(why.to_string(), "check the temporary folder"))?;
    Ok(Node::start(store, Arc::new(context.clock), source, NodeOptions::default()))
}

/// The blob and the inline content of an event.
fn read_event(node: &Node, id: &EventId) -> Result<(Vec<u8>, Option<Vec<u8>>), Failure> {
    let missing = || internal_error("an event of the demo is missing");
    let db = node.snapshot()?;
    let kept = db.kept(db.seq(id)?.ok_or_else(missing)?)?.ok_or_else(missing)?;
    Ok((kept.blob.bytes().to_vec(), kept.inline))
}

/// Copies an event from one node to another.
fn deliver(from: &Node, to: &Node, id: &EventId) -> Result<(), Failure> {
    let (blob, inline) = read_event(from, id)?;
    let request = to.receive(blob, inline, Origin::Import);
    let request = request.map_err(|why| internal_error(&why.to_string()))?;
    to.ask(request).map(drop).map_err(|why| Failure::new(why.to_string(), "see the log for details"))
}

/// Copies all events to the second node, and writes new ones there.
fn write_events(first_node: &Node, second_node: &Node, space: SpaceId, vera: &SigningKey) -> Result<Script, Failure> {
    let identity = Identity(vera.verifying_key().to_bytes());
    let admitted = administer(first_node, AdminCommand::SetIdentityRole(space, identity, Some(MemberRole::Member)))?;
    let AdminResult::Admitted(authority) = admitted else {
        return Err(internal_error("the second author was not admitted"));
    };
    let db = first_node.snapshot()?;
    for seq in db.events_after(Seq(0), 1000)? {
        deliver(first_node, second_node, &db.id_of(seq)?)?;
    }
    let author = Author { node: second_node, key: vera, space, authority };
    let thread = author.write(Kind::Thread, None, json!({ "title": "Messages from the second node" }))?;
    let in_thread = Some((Role::Thread, thread));
    let first = author.write(
        Kind::Message,
        in_thread,
        message("The first message. It was *written first* and arrives last."),
    )?;
    let edit = author.write(
        Kind::Edit,
        Some((Role::Target, first)),
        message("The first message. It was **edited** before it arrived here; see its versions."),
    )?;
    let second = author.write(
        Kind::Message,
        in_thread,
        message("The second message. Its thread was missing when it arrived."),
    )?;
    let reaction = author.write(Kind::Reaction, Some((Role::Target, second)), json!({ "reaction": "🎉" }))?;
    let steps = vec![
        ("A reaction arrived, but its message has not.", reaction),
        ("An edit arrived, but its message has not.", edit),
        ("The second message arrived, but its thread has not.", second),
        (
            "The first message arrived. Its thread is still missing, and the connection to the second node is down.",
            first,
        ),
    ];
    Ok(Script { steps, missing: thread })
}

fn message(text: &str) -> Value {
    json!({ "body": text })
}

/// Somebody who writes on a node with a key of their own.
struct Author<'a> {
    node: &'a Node,
    key: &'a SigningKey,
    space: SpaceId,
    authority: EventId,
}

impl Author<'_> {
    fn write(&self, kind: Kind, target: Option<(Role, EventId)>, content: Value) -> Result<EventId, Failure> {
        let mut references = vec![Reference { role: Role::Authority, id: self.authority }];
        references.extend(target.map(|(role, id)| Reference { role, id }));
        references.sort();
        let content = body::encode(&content).map_err(|why| internal_error(&why.to_string()))?;
        let draft = NewEvent {
            kind,
            space: self.space,
            aux: AuxKey::ZERO,
            payload: Payload::None,
            references,
            content,
            seal: Seal::Plain,
        };
        let command = Create { author: Box::new(self.key.clone()), draft: Box::new(draft) };
        self.node.ask(command).map_err(|why| match why {
            AskError::Refused(why) => internal_error(&format!("could not write an event: {why}")),
            AskError::NotRun(why) => Failure::new(why.to_string(), "see the log for details"),
        })
    }
}
