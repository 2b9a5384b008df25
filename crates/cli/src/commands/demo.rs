//! `anteroom demo`: two nodes and a short story in which everything arrives before what it needs.
//!
//! The second node is the one on which somebody else writes. What they write reaches the first node in the wrong order,
//! piece by piece, so that the anteroom fills and empties before one's eyes.

use super::Done;
use crate::app::app;
use crate::context::Context;
use crate::failure::Failure;
use crate::home_space::{administer, random_bytes};
use crate::signals::Signals;
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
use store::{FolderDisk, MasterKey, Store};

/// How often the story looks whether somebody watches.
const LOOK: Duration = Duration::from_millis(200);

/// Start two nodes in a temporary folder and play a short story before your eyes
///
/// What somebody writes on the second node reaches the first one in the wrong order, over a line that then goes down: it
/// waits, is asked for and explained, and is let in the moment what it needs has come. The story begins when you have
/// signed in by the link. Nothing is kept.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Seconds between two steps of the story
    #[arg(long, default_value_t = 4.0, value_name = "SECONDS")]
    pause: f64,
}

/// A story: what is handed over, each with what to say about it, and what is asked for in the end.
struct Story {
    steps: Vec<(&'static str, EventId)>,
    missing: EventId,
}

/// The line to the second node, over which the first one may ask once it is up.
#[derive(Debug)]
struct Line {
    far: Node,
    is_up: AtomicBool,
}

impl SourceDirectory for Line {
    fn places(&self, _group: &Group) -> Vec<fetch::Source> {
        vec![fetch::Source { url: "the second node".to_owned(), domain: "elsewhere".to_owned() }]
    }
}

impl SourceClient for Line {
    fn fetch(&self, _url: &str, needs: &[Need], deliver: &mut dyn FnMut(Fetched)) -> Result<(), FetchError> {
        if !self.is_up.load(Ordering::Acquire) {
            return Err(FetchError("the line is down".to_owned()));
        }
        for need in needs {
            if let Need::Event(id) = need {
                let (blob, inline) = written(&self.far, id).map_err(|_| FetchError("it is gone".to_owned()))?;
                deliver(Fetched::Event { blob, inline });
            }
        }
        Ok(())
    }
}

impl Demo {
    pub(super) fn run(&self, context: &Context) -> Done {
        let signals = Signals::listen()?;
        let folder = tempfile::tempdir().map_err(|why| Failure::new(why.to_string(), "check the temporary folder"))?;
        let elsewhere = open(context, &folder.path().join("else"), Arc::new(NoSources))?;
        let line = Arc::new(Line { far: elsewhere, is_up: AtomicBool::new(false) });
        let here = open(context, &folder.path().join("here"), line.clone())?;
        let played = self.play(context, &signals, &here, &line);
        here.stop();
        line.far.stop();
        played.map(|()| ExitCode::SUCCESS)
    }

    fn play(&self, context: &Context, signals: &Signals, here: &Node, line: &Line) -> Result<(), Failure> {
        let what =
            AdminCommand::FoundSpace { name: "home".to_owned(), sealed: false, random: Box::new(random_bytes()?) };
        let AdminResult::Founded(space) = administer(here, what)? else {
            return Err(odd("the space was not founded"));
        };
        welcome_thread::say(here)?;
        let vera = SigningKey::from_bytes(&random_bytes()?);
        let story = write_story(here, &line.far, space, &vera)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|why| Failure::new(why.to_string(), "try again"))?;
        let state =
            ServerState::new(here.clone(), context.loaded.server_options(), &hex::encode(random_bytes::<32>()?));
        let server = runtime.block_on(server::serve(app(&state), context.loaded.listen));
        let server =
            server.map_err(|why| Failure::new(why.to_string(), "pass another address: --listen 127.0.0.1:0"))?;
        let link = state.operator_link().map_err(|why| Failure::new(why.detail, "try again"))?;
        say(&format!("sign in      http://{}{link}", server.address))?;
        say("Then open Waiting, in the bar at the top, and watch. Ctrl-C ends it all.")?;
        let told = self.tell(signals, here, line, space, &story);
        runtime.block_on(server.stop());
        told
    }

    /// Hands one piece after the other to the first node, lets it ask for the last one, and waits for the end.
    fn tell(&self, signals: &Signals, here: &Node, line: &Line, space: SpaceId, story: &Story) -> Result<(), Failure> {
        let has_nobody_come = || Ok::<_, Failure>(here.snapshot()?.sessions(&space, 1)?.is_empty());
        let pause = Duration::from_secs_f64(self.pause.clamp(0.0, 3600.0));
        if has_ended(signals, has_nobody_come)? {
            return Ok(());
        }
        for (says, event) in &story.steps {
            if signals.wait(pause) {
                return Ok(());
            }
            hand_over(&line.far, here, event)?;
            let waiting = here.snapshot()?.held_total()?;
            say(&format!("{says} ({waiting} waiting)"))?;
        }
        if signals.wait(pause) {
            return Ok(());
        }
        say("The line to the second node is up: the thread is asked for, and what waited for it is let in.")?;
        line.is_up.store(true, Ordering::Release);
        let asked = here.ask(HuntNow::ForNeed(Need::Event(story.missing)));
        asked.map_err(|why| Failure::new(why.to_string(), "look into the log"))?;
        if has_ended(signals, || Ok(here.snapshot()?.held_total()? > 0))? {
            return Ok(());
        }
        say("That was the story: everything is in its place, in the order in which it was written.")?;
        while !signals.wait(Duration::from_secs(3600)) {}
        Ok(())
    }
}

/// Waits while something holds. Says whether it is time to end instead.
fn has_ended(signals: &Signals, holds: impl Fn() -> Result<bool, Failure>) -> Result<bool, Failure> {
    while holds()? {
        if signals.wait(LOOK) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn odd(what: &str) -> Failure {
    Failure::new(what, "report this")
}

fn say(line: &str) -> Result<(), Failure> {
    output::write(&format!("{line}\n"))
}

fn open(context: &Context, folder: &Path, source: Arc<dyn SourceClient>) -> Result<Node, Failure> {
    let disk = FolderDisk::new(folder).map_err(|why| Failure::file("use", folder, &why))?;
    let store = Store::open(Arc::new(disk), MasterKey::new(&random_bytes()?), store::StoreOptions::default());
    let store = store.map_err(|why| Failure::new(why.to_string(), "check the temporary folder"))?;
    Ok(Node::start(store, Arc::new(context.clock), source, NodeOptions::default()))
}

/// An event as a node keeps it, with its content.
fn written(node: &Node, id: &EventId) -> Result<(Vec<u8>, Option<Vec<u8>>), Failure> {
    let gone = || odd("an event of the story is gone");
    let db = node.snapshot()?;
    let kept = db.kept(db.seq(id)?.ok_or_else(gone)?)?.ok_or_else(gone)?;
    Ok((kept.blob.bytes().to_vec(), kept.inline))
}

/// Hands an event of one node to another.
fn hand_over(from: &Node, to: &Node, id: &EventId) -> Result<(), Failure> {
    let (blob, inline) = written(from, id)?;
    let request = to.receive(blob, inline, Origin::Import);
    let request = request.map_err(|why| odd(&why.to_string()))?;
    to.ask(request).map(drop).map_err(|why| Failure::new(why.to_string(), "look into the log"))
}

/// Somebody writes on the second node, which knows what the first one knows so far.
fn write_story(here: &Node, elsewhere: &Node, space: SpaceId, vera: &SigningKey) -> Result<Story, Failure> {
    let identity = Identity(vera.verifying_key().to_bytes());
    let admitted = administer(here, AdminCommand::AdmitIdentity(space, identity, MemberRole::Member))?;
    let AdminResult::Admitted(authority) = admitted else { return Err(odd("the second author was not admitted")) };
    let db = here.snapshot()?;
    for seq in db.events_after(Seq(0), 1000)? {
        hand_over(here, elsewhere, &db.id_of(seq)?)?;
    }
    let author = Author { node: elsewhere, key: vera, space, authority };
    let thread = author.write(Kind::Thread, None, json!({ "title": "Postcards from elsewhere" }))?;
    let in_thread = Some((Role::Thread, thread));
    let first =
        author.write(Kind::Message, in_thread, said("The first card, which was *posted first* and comes last."))?;
    let edit = author.write(
        Kind::Edit,
        Some((Role::Target, first)),
        said("The first card. It was **edited** before you ever saw it; look at its versions."),
    )?;
    let second =
        author.write(Kind::Message, in_thread, said("The second card. Its thread was not here when it came."))?;
    let reaction = author.write(Kind::Reaction, Some((Role::Target, second)), json!({ "reaction": "🎉" }))?;
    let steps = vec![
        ("A reaction came, to a message that is not here.", reaction),
        ("An edit came, of a message that is not here.", edit),
        ("The second card came; its thread is not here.", second),
        ("The first card came; its thread is still not here, and the line to the second node is down.", first),
    ];
    Ok(Story { steps, missing: thread })
}

fn said(text: &str) -> Value {
    json!({ "body": text })
}

/// Whoever writes on a node with a key of their own.
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
        let content = body::encode(&content).map_err(|why| odd(&why.to_string()))?;
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
            AskError::Refused(why) => odd(&format!("the story could not be written: {why}")),
            AskError::NotRun(why) => Failure::new(why.to_string(), "look into the log"),
        })
    }
}
