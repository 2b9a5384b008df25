//! `anteroom admin`: the admin API from the command line, whether the node runs or not.
//!
//! One way of doing things: the node that runs is asked; without one, a node serves for as long as the command takes,
//! on a port of its own on this machine.

use super::Done;
use crate::app::app;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::home_space;
use crate::json_table::Document;
use crate::operator_client::Remote;
use clap::{Args, Subcommand, ValueEnum};
use http::Method;
use node::Node;
use node::fetch::hunter::NoSources;
use serde_json::{Value, json};
use server::ServerState;
use std::process::ExitCode;
use std::sync::Arc;

const DAY: f64 = 24.0 * 3600.0;

/// Administer spaces, users, retention and jobs
///
/// Works on the node that runs in the data folder, or on the folder itself when none does.
#[derive(Debug, Args)]
pub(crate) struct Admin {
    /// The space
    #[arg(long, global = true, default_value = "home")]
    space: String,
    /// What to do.
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Figures of the space and of the node
    Stats,
    /// List threads, the latest first
    Threads,
    /// List users
    Users,
    /// Give a user a role, or admit a new one
    Role {
        /// The user
        user: String,
        /// The role
        role: Role,
    },
    /// Remove a user from the space; what they wrote stays
    RemoveUser {
        /// The user
        user: String,
    },
    /// Remove a user and purge everything they wrote
    EraseUser {
        /// The user
        user: String,
        /// Really do it
        #[arg(long, required = true)]
        yes: bool,
    },
    /// Show everything that a user wrote, page by page
    ExportUser {
        /// The user
        user: String,
        /// Where the page before ended
        #[arg(long, default_value = "")]
        cursor: String,
    },
    /// Show how long messages are kept
    Retention,
    /// Say how long messages are kept, in the space or in one thread
    Retain {
        /// Purge messages older than so many days
        #[arg(long, value_name = "DAYS", required_unless_present_any = ["count", "deleted", "forever"])]
        age: Option<f64>,
        /// Purge all but the latest so many messages of a thread
        #[arg(long, value_name = "MESSAGES")]
        count: Option<u64>,
        /// Purge messages so many days after they were deleted
        #[arg(long, value_name = "DAYS")]
        deleted: Option<f64>,
        /// Purge nothing, whatever the space's rule says
        #[arg(long, requires = "thread", conflicts_with_all = ["age", "count", "deleted"])]
        forever: bool,
        /// Only in the thread with this id
        #[arg(long, value_name = "ID")]
        thread: Option<String>,
    },
    /// Keep messages for ever again
    LiftRetention {
        /// Only in the thread with this id
        #[arg(long, value_name = "ID")]
        thread: Option<String>,
    },
    /// Purge now what retention says
    PurgeOld {
        /// Only say what would be purged
        #[arg(long)]
        dry_run: bool,
    },
    /// Purge the content of events for ever
    Purge {
        /// The events
        #[arg(value_name = "ID", required = true)]
        events: Vec<String>,
    },
    /// List jobs, the latest first
    Jobs,
    /// List what users reported
    Reports,
    /// Settle a report
    Settle {
        /// Its number
        number: u64,
        /// What was done
        #[arg(long, default_value = "")]
        note: String,
    },
    /// List the keys that sign for users
    SigningKeys,
    /// Make a new key that signs for users; the others are still accepted
    NewSigningKey,
    /// End a key that signs for users
    EndSigningKey {
        /// Its number
        number: u64,
        /// Accept its signatures for so many seconds more
        #[arg(long, default_value_t = 0, value_name = "SECONDS")]
        after: u64,
    },
    /// Make another API key like this one, which is accepted for a while longer
    RotateKey {
        /// The id of the key
        id: String,
        /// Accept the old one for so many seconds more
        #[arg(long, default_value_t = 86_400, value_name = "SECONDS")]
        after: u64,
    },
    /// Show who administered what
    Audit,
    /// List the spaces of this node
    Spaces,
    /// Found a space
    Found {
        /// What to call it
        name: String,
        /// Its events travel readable to everyone
        #[arg(long)]
        open: bool,
    },
    /// Delete the space: nobody gets in, its keys are destroyed, its content is dropped
    DeleteSpace {
        /// Really do it
        #[arg(long, required = true)]
        yes: bool,
    },
    /// Destroy the keys of the space: its content cannot be read here any more
    DestroyKeys {
        /// Really do it
        #[arg(long, required = true)]
        yes: bool,
    },
    /// Say what of an open space's content is encrypted at rest
    Protect {
        /// How much
        how: Protection,
        /// A path into the content, such as body.text or body.*.secret; may be repeated
        #[arg(long, value_name = "PATH")]
        field: Vec<String>,
    },
    /// Move the space to a new storage key
    Rotate,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    /// Reads
    Reader,
    /// Reads and writes
    Member,
    /// Also changes what others wrote
    Admin,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Protection {
    /// All of it
    Whole,
    /// The named fields
    Fields,
    /// Nothing
    None,
}

/// The word that clap shows for a value.
fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What to ask for.
struct Asked {
    method: Method,
    path: String,
    body: Value,
}

fn asked(method: Method, path: impl Into<String>, body: Value) -> Asked {
    Asked { method, path: path.into(), body }
}

fn get(path: impl Into<String>) -> Asked {
    asked(Method::GET, path, json!({}))
}

/// A text as part of a path or query: whatever could mean something there is written in hex.
fn segment(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~@:".contains(&byte);
    let part = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(part).collect()
}

/// A number of days in whole seconds.
fn seconds(days: Option<f64>) -> Option<u64> {
    days.map(|days| (days.max(0.0) * DAY) as u64)
}

impl Admin {
    pub(super) fn run(&self, context: &Context) -> Done {
        let answer = match Remote::find(context) {
            Some(remote) => self.ask(&remote)?,
            None => self.serve_and_ask(context)?,
        };
        context.show(&Document(answer))?;
        Ok(ExitCode::SUCCESS)
    }

    fn ask(&self, remote: &Remote) -> Result<Value, Failure> {
        let Asked { method, path, body } = self.asked();
        let answer = remote.ask(method, &path, self.scope(), &body)?;
        match answer["job"].as_u64() {
            Some(job) => self.follow(remote, job),
            None if answer.is_null() => Ok(json!({ "done": true })),
            None => Ok(answer),
        }
    }

    /// Waits for a job to end. It goes on even if nobody waits.
    fn follow(&self, remote: &Remote, job: u64) -> Result<Value, Failure> {
        // The space may be gone by then, but its jobs are told to the operator of the node.
        loop {
            let told = remote.ask(Method::GET, &format!("/admin/jobs/{job}"), "", &json!({}))?;
            if told["ended_ts"].is_u64() {
                return Ok(told);
            }
            remote.pause();
        }
    }

    /// Serves on this machine only, for as long as the command takes.
    fn serve_and_ask(&self, context: &Context) -> Result<Value, Failure> {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let options = context.loaded.config.node_options();
        let node = Node::start(store, Arc::new(context.clock), Arc::new(NoSources), options);
        let answer = self.serve_node_and_ask(context, &node);
        node.stop();
        answer
    }

    fn serve_node_and_ask(&self, context: &Context, node: &Node) -> Result<Value, Failure> {
        home_space::found_home(node)?;
        home_space::go_on_rewrapping(node)?;
        let failed = |why: String| Failure::new(format!("cannot start the server: {why}"), "try again");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|why| failed(why.to_string()))?;
        let token = hex::encode(home_space::random_bytes::<32>()?);
        let options = server::ServerOptions { backups: None, ..context.loaded.server_options() };
        let state = ServerState::new(node.clone(), options, &token);
        let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let server = runtime.block_on(server::serve(app(&state), local)).map_err(|why| failed(why.to_string()))?;
        let answer = self.ask(&Remote::at(server.address, &token));
        runtime.block_on(server.stop());
        answer
    }

    /// The space that a request is about; those about the node name none, because it may be gone.
    fn scope(&self) -> &str {
        match self.what {
            What::Spaces | What::Found { .. } | What::DeleteSpace { .. } => "",
            _ => &self.space,
        }
    }

    fn asked(&self) -> Asked {
        let space = &self.space;
        match &self.what {
            What::Stats => get("/admin/stats"),
            What::Threads => get("/v1/threads?limit=200"),
            What::Users => get("/admin/users?limit=500"),
            What::Role { user, role } => {
                asked(Method::PUT, format!("/admin/users/{}", segment(user)), json!({ "role": word(role) }))
            }
            What::RemoveUser { user } => asked(Method::DELETE, format!("/admin/users/{}", segment(user)), json!({})),
            What::EraseUser { user, .. } => {
                asked(Method::POST, format!("/admin/users/{}/erase", segment(user)), json!({}))
            }
            What::ExportUser { user, cursor } => {
                get(format!("/admin/users/{}/export?limit=200&cursor={}", segment(user), segment(cursor)))
            }
            What::Retention => get("/admin/retention"),
            What::Retain { age, count, deleted, thread, .. } => {
                let rule = json!({
                    "thread": thread, "age_seconds": seconds(*age), "count": count, "deleted_seconds": seconds(*deleted),
                });
                asked(Method::PUT, "/admin/retention", rule)
            }
            What::LiftRetention { thread } => {
                let query = thread.as_ref().map_or_else(String::new, |thread| format!("?thread={}", segment(thread)));
                asked(Method::DELETE, format!("/admin/retention{query}"), json!({}))
            }
            What::PurgeOld { dry_run: true } => get("/admin/retention/preview"),
            What::PurgeOld { dry_run: false } => asked(Method::POST, "/admin/jobs", json!({ "work": "retain" })),
            What::Purge { events } => asked(Method::POST, "/admin/purge", json!({ "events": events })),
            What::Jobs => get("/admin/jobs"),
            What::Reports => get("/admin/reports"),
            What::Settle { number, note } => {
                asked(Method::PUT, format!("/admin/reports/{number}"), json!({ "note": note }))
            }
            What::SigningKeys => get("/admin/signing-keys"),
            What::NewSigningKey => asked(Method::POST, "/admin/signing-keys", json!({})),
            What::EndSigningKey { number, after } => {
                asked(Method::DELETE, format!("/admin/signing-keys/{number}?after_seconds={after}"), json!({}))
            }
            What::RotateKey { id, after } => {
                asked(Method::POST, format!("/admin/api-keys/{}/rotate?after_seconds={after}", segment(id)), json!({}))
            }
            What::Audit => get("/admin/audit"),
            What::Spaces => get("/admin/spaces"),
            What::Found { name, open } => {
                asked(Method::POST, "/admin/spaces", json!({ "name": name, "sealed": !open }))
            }
            What::DeleteSpace { .. } => asked(Method::DELETE, format!("/admin/spaces/{}", segment(space)), json!({})),
            What::DestroyKeys { .. } => {
                asked(Method::DELETE, format!("/admin/spaces/{}/keys", segment(space)), json!({}))
            }
            What::Protect { how, field } => {
                let body = json!({ "encrypt": word(how), "fields": field });
                asked(Method::PUT, format!("/admin/spaces/{}/protection", segment(space)), body)
            }
            What::Rotate => asked(Method::POST, "/admin/jobs", json!({ "work": "rotate" })),
        }
    }
}
