//! `anteroom demo`: two nodes and a short story in which everything arrives before what it needs.
//!
//! The second node is the one on which somebody else writes. What they write reaches the first node in the wrong order,
//! piece by piece, so that the anteroom fills and empties before one's eyes.

use super::Done;
use crate::context::Context;
use crate::failure::Failure;
use crate::house::{administer, fresh};
use crate::signals::Signals;
use crate::{output, welcome};
use clap::Args;
use ed25519_dalek::SigningKey;
use engine::create::{Draft, Seal};
use engine::reads::Reads as _;
use engine::rows::Origin;
use model::envelope::{Reference, Role};
use model::payload::{MemberRole, Payload};
use model::{AuxKey, EventId, Identity, Kind, Seq, SpaceId, body};
use node::acts::{Administered, Administration};
use node::hunter::NoSource;
use node::{Node, NodeOptions, Reply, Request};
use serde_json::{Value, json};
use server::House;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use store::{FolderDisk, MasterKey, Store};

/// How often the story looks whether somebody watches.
const LOOK: Duration = Duration::from_millis(200);

/// Start two nodes in a temporary folder and play a short story before your eyes
///
/// What somebody writes on the second node reaches the first one in the wrong order: it waits, is explained, and is let in
/// the moment what it needs has come. The story begins when you have signed in by the link. Nothing is kept.
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Seconds between two steps of the story
    #[arg(long, default_value_t = 4.0, value_name = "SECONDS")]
    pause: f64,
}

/// A step of the story: what is handed over, and what to say about it.
struct Step {
    says: &'static str,
    event: EventId,
}

impl Demo {
    pub(super) fn run(&self, context: &Context) -> Done {
        let signals = Signals::listen()?;
        let folder = tempfile::tempdir().map_err(|why| Failure::new(why.to_string(), "check the temporary folder"))?;
        let (here, elsewhere) =
            (open(context, &folder.path().join("here"))?, open(context, &folder.path().join("else"))?);
        let played = self.play(context, &signals, &here, &elsewhere);
        here.stop();
        elsewhere.stop();
        played.map(|()| ExitCode::SUCCESS)
    }

    fn play(&self, context: &Context, signals: &Signals, here: &Node, elsewhere: &Node) -> Result<(), Failure> {
        let what = Administration::FoundSpace { name: "home".to_owned(), sealed: false, fresh: Box::new(fresh()?) };
        let Administered::Founded(space) = administer(here, what)? else {
            return Err(odd("the space was not founded"));
        };
        welcome::say(here)?;
        let vera = SigningKey::from_bytes(&fresh()?);
        let steps = write_story(here, elsewhere, space, &vera)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.map_err(|why| Failure::new(why.to_string(), "try again"))?;
        let house = House::new(here.clone(), context.loaded.server_options(), &hex::encode(fresh::<32>()?));
        let server = runtime.block_on(server::serve(house.clone(), context.loaded.listen));
        let server =
            server.map_err(|why| Failure::new(why.to_string(), "pass another address: --listen 127.0.0.1:0"))?;
        let link = house.operator_link().map_err(|why| Failure::new(why.detail, "try again"))?;
        say(&format!("sign in      http://{}{link}", server.address))?;
        say("Then open Waiting beside the thread list, and watch. Ctrl-C ends it all.")?;
        let told = self.tell(signals, here, elsewhere, space, &steps);
        runtime.block_on(server.stop());
        told
    }

    /// Hands one piece after the other to the first node, and waits for the end.
    fn tell(
        &self,
        signals: &Signals,
        here: &Node,
        elsewhere: &Node,
        space: SpaceId,
        steps: &[Step],
    ) -> Result<(), Failure> {
        while here.snapshot()?.sessions(&space, 1)?.is_empty() {
            if signals.wait(LOOK) {
                return Ok(());
            }
        }
        for step in steps {
            if signals.wait(Duration::from_secs_f64(self.pause.clamp(0.0, 3600.0))) {
                return Ok(());
            }
            hand_over(elsewhere, here, &step.event)?;
            let waiting = here.snapshot()?.held_total()?;
            say(&format!("{} ({waiting} waiting)", step.says))?;
        }
        say("That was the story: everything is in its place, in the order in which it was written.")?;
        while !signals.wait(Duration::from_secs(3600)) {}
        Ok(())
    }
}

fn odd(what: &str) -> Failure {
    Failure::new(what, "report this")
}

fn say(line: &str) -> Result<(), Failure> {
    output::write(&format!("{line}\n"))
}

fn open(context: &Context, folder: &Path) -> Result<Node, Failure> {
    let disk = FolderDisk::new(folder).map_err(|why| Failure::file("use", folder, &why))?;
    let store = Store::open(Arc::new(disk), MasterKey::new(&fresh()?), store::Options::default());
    let store = store.map_err(|why| Failure::new(why.to_string(), "check the temporary folder"))?;
    Ok(Node::start(store, Arc::new(context.clock), Arc::new(NoSource), NodeOptions::default()))
}

/// Hands an event of one node to another.
fn hand_over(from: &Node, to: &Node, id: &EventId) -> Result<(), Failure> {
    let db = from.snapshot()?;
    let seq = db.seq(id)?.ok_or_else(|| odd("an event of the story is gone"))?;
    let kept = db.kept(seq)?.ok_or_else(|| odd("an event of the story is gone"))?;
    let request = to.receive(kept.blob.bytes().to_vec(), kept.inline, Origin::Import);
    let request = request.map_err(|why| odd(&why.to_string()))?;
    to.ask(request).map(drop).map_err(|why| Failure::new(why.to_string(), "look into the log"))
}

/// Somebody writes on the second node, which knows what the first one knows so far.
fn write_story(here: &Node, elsewhere: &Node, space: SpaceId, vera: &SigningKey) -> Result<Vec<Step>, Failure> {
    let identity = Identity(vera.verifying_key().to_bytes());
    let admitted = administer(here, Administration::AdmitIdentity(space, identity, MemberRole::Member))?;
    let Administered::Admitted(authority) = admitted else { return Err(odd("the second author was not admitted")) };
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
    Ok(vec![
        Step { says: "A reaction came, to a message that is not here.", event: reaction },
        Step { says: "An edit came, of a message that is not here.", event: edit },
        Step { says: "The second card came; its thread is not here.", event: second },
        Step { says: "The first card came; its thread is still not here.", event: first },
        Step { says: "The thread came, and everything that waited is let in.", event: thread },
    ])
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
        let draft = Draft {
            kind,
            space: self.space,
            aux: AuxKey::ZERO,
            payload: Payload::None,
            references,
            content,
            seal: Seal::Plain,
        };
        match self.node.ask(Request::Create(Box::new(self.key.clone()), Box::new(draft))) {
            Ok(Reply::Created(Ok(id))) => Ok(id),
            Ok(other) => Err(odd(&format!("the story could not be written: {other:?}"))),
            Err(why) => Err(Failure::new(why.to_string(), "look into the log")),
        }
    }
}
