//! `anteroom admin`: the admin API on the command line, with or without a running node.
//!
//! Every command is an HTTP request to the running node. If none is running, this process serves the data folder on a
//! local port until the command is done.

mod list;

use self::list::{AdminList, ListLength};
use super::CommandResult;
use crate::app::app;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::home_space;
use crate::json_table::JsonTable;
use crate::operator_client::OperatorClient;
use crate::random::random_bytes;
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
/// Works with or without a running node.
#[derive(Debug, Args)]
pub(crate) struct Admin {
    /// The name of the space
    #[arg(long, global = true, default_value = "home")]
    space: String,
    #[command(subcommand)]
    action: AdminAction,
}

#[derive(Debug, Subcommand)]
enum AdminAction {
    /// Show figures of the space and of the node
    Stats,
    /// List threads, newest first
    Threads(ListLength),
    /// List users
    Users(ListLength),
    /// Set the role of a user; a new user is added
    Role {
        /// The user
        user: String,
        /// The role
        role: Role,
    },
    /// Remove a user from the space; their messages stay
    RemoveUser {
        /// The user
        user: String,
    },
    /// Remove a user and permanently delete everything they wrote
    EraseUser {
        /// The user
        user: String,
        /// Confirm
        #[arg(long, required = true)]
        yes: bool,
    },
    /// Export everything a user wrote, page by page
    ExportUser {
        /// The user
        user: String,
        /// The cursor from the end of the previous page
        #[arg(long, default_value = "")]
        cursor: String,
    },
    /// Show the retention rules
    Retention,
    /// Set the retention rule of the space or of one thread
    Retain {
        /// Purge messages older than this many days
        #[arg(long, value_name = "DAYS", required_unless_present_any = ["count", "deleted", "forever"])]
        age: Option<f64>,
        /// Keep only this many of the newest messages of each thread
        #[arg(long, value_name = "MESSAGES")]
        count: Option<u64>,
        /// Purge deleted messages after this many days
        #[arg(long, value_name = "DAYS")]
        deleted: Option<f64>,
        /// Keep all messages of the thread, whatever the rule of the space is
        #[arg(long, requires = "thread", conflicts_with_all = ["age", "count", "deleted"])]
        forever: bool,
        /// The id of the thread
        #[arg(long, value_name = "ID")]
        thread: Option<String>,
    },
    /// Remove the retention rule: messages are kept for ever again
    LiftRetention {
        /// The id of the thread
        #[arg(long, value_name = "ID")]
        thread: Option<String>,
    },
    /// Apply the retention rules now
    PurgeOld {
        /// Only show what would be purged
        #[arg(long)]
        dry_run: bool,
    },
    /// Permanently delete the content of events
    Purge {
        /// The event ids
        #[arg(value_name = "ID", required = true)]
        events: Vec<String>,
    },
    /// List background jobs, newest first
    Jobs(ListLength),
    /// List reports of users
    Reports(ListLength),
    /// Close a report
    Settle {
        /// The number of the report
        number: u64,
        /// What was done about it
        #[arg(long, default_value = "")]
        note: String,
    },
    /// List the keys that sign user ids
    SigningKeys,
    /// Create a new key that signs user ids; the older ones are still accepted
    NewSigningKey,
    /// Revoke a key that signs user ids
    EndSigningKey {
        /// The number of the key
        number: u64,
        /// Accept its signatures for this many seconds more
        #[arg(long, default_value_t = 0, value_name = "SECONDS")]
        after: u64,
    },
    /// Replace an API key; the old one is accepted for a while longer
    RotateKey {
        /// The id of the key
        id: String,
        /// Accept the old key for this many seconds more
        #[arg(long, default_value_t = 86_400, value_name = "SECONDS")]
        after: u64,
    },
    /// Show the audit log, newest first
    Audit(ListLength),
    /// List the spaces of this node
    Spaces,
    /// Create a space
    Found {
        /// The name of the new space
        name: String,
        /// Create an open space: its events are not encrypted between nodes
        #[arg(long)]
        open: bool,
    },
    /// Delete the space: nobody can sign in, its keys are destroyed and its content is deleted
    DeleteSpace {
        /// Confirm
        #[arg(long, required = true)]
        yes: bool,
    },
    /// Destroy the keys of the space: its content can no longer be read on this node
    DestroyKeys {
        /// Confirm
        #[arg(long, required = true)]
        yes: bool,
    },
    /// Set which content of an open space is encrypted at rest
    Protect {
        /// What to encrypt
        what: Protection,
        /// A field to encrypt, such as body.text or body.*.secret; may be repeated
        #[arg(long, value_name = "PATH")]
        field: Vec<String>,
    },
    /// Replace the storage key of the space
    Rotate,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    /// Can read
    Reader,
    /// Can read and write
    Member,
    /// Can also edit and delete messages of others, and manage members
    Admin,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Protection {
    /// All content
    Whole,
    /// The fields given with --field
    Fields,
    /// Nothing
    None,
}

/// The name that clap uses for a value.
fn value_name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

struct AdminCall {
    method: Method,
    path: String,
    body: Value,
}

fn call(method: Method, path: impl Into<String>, body: Value) -> AdminCall {
    AdminCall { method, path: path.into(), body }
}

fn get(path: impl Into<String>) -> AdminCall {
    call(Method::GET, path, json!({}))
}

/// Percent-encodes a text for a path or query.
fn percent_encode(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~@:".contains(&byte);
    let part = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(part).collect()
}

fn days_to_seconds(days: Option<f64>) -> Option<u64> {
    days.map(|days| (days.max(0.0) * DAY) as u64)
}

impl Admin {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let answer = match OperatorClient::find(context) {
            Some(client) => self.call_node(&client)?,
            None => self.serve_and_call(context)?,
        };
        match self.list() {
            Some(_) => list::print(context, answer, self.columns())?,
            None => context.print(&JsonTable { document: answer, columns: self.columns() })?,
        }
        Ok(ExitCode::SUCCESS)
    }

    /// The list that a command shows.
    fn list(&self) -> Option<AdminList> {
        let (path, rows, length) = match &self.action {
            AdminAction::Threads(length) => ("/admin/threads", "threads", length),
            AdminAction::Users(length) => ("/admin/users", "users", length),
            AdminAction::Jobs(length) => ("/admin/jobs", "jobs", length),
            AdminAction::Reports(length) => ("/admin/reports", "reports", length),
            AdminAction::Audit(length) => ("/admin/audit", "entries", length),
            _ => return None,
        };
        Some(AdminList { path, rows, limit: length.limit })
    }

    fn call_node(&self, client: &OperatorClient) -> Result<Value, Failure> {
        if let Some(list) = self.list() {
            return list.read(client, self.scope());
        }
        let AdminCall { method, path, body } = self.admin_call();
        let answer = client.send_json(method, &path, self.scope(), &body)?;
        match answer["job"].as_str() {
            Some(job) => self.wait_for_job(client, job),
            None if answer.is_null() => Ok(json!({ "done": true })),
            None => Ok(answer),
        }
    }

    /// The job continues in the background even if this process ends.
    fn wait_for_job(&self, client: &OperatorClient, job: &str) -> Result<Value, Failure> {
        // No space is named, because the job may delete it.
        loop {
            let state = client.send_json(Method::GET, &format!("/admin/jobs/{job}"), "", &json!({}))?;
            if state["ended_at"].is_string() {
                return Ok(state);
            }
            client.wait_for_next_poll();
        }
    }

    /// Serves on a local port until the command is done.
    fn serve_and_call(&self, context: &Context) -> Result<Value, Failure> {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let options = context.settings.config.node_options();
        let node = Node::start(store, Arc::new(context.clock), Arc::new(NoSources), options);
        let answer = self.serve_node_and_call(context, &node);
        node.stop();
        answer
    }

    fn serve_node_and_call(&self, context: &Context, node: &Node) -> Result<Value, Failure> {
        home_space::create_home_space(node)?;
        home_space::resume_rewrap(node)?;
        let failed = |why: String| Failure::new(format!("cannot start the server: {why}"), "try again");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|why| failed(why.to_string()))?;
        let token = hex::encode(random_bytes::<32>()?);
        let options = server::ServerOptions { backups: None, ..context.settings.server_options() };
        let state = ServerState::new(node.clone(), options, &token);
        let local = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
        let server = runtime.block_on(server::serve(app(&state), local)).map_err(|why| failed(why.to_string()))?;
        let answer = self.call_node(&OperatorClient::for_address(server.address, &token));
        runtime.block_on(server.stop());
        answer
    }

    /// The space for the request. Requests about the node name none, because the space may not exist.
    fn scope(&self) -> &str {
        match self.action {
            AdminAction::Spaces | AdminAction::Found { .. } | AdminAction::DeleteSpace { .. } => "",
            _ => &self.space,
        }
    }

    /// What is shown of each row; `--json` shows everything.
    fn columns(&self) -> &'static [&'static str] {
        match self.action {
            AdminAction::Threads(_) => &["title", "author", "private", "updated_at", "id"],
            AdminAction::Users(_) => &["id", "role", "since"],
            _ => &[],
        }
    }

    fn admin_call(&self) -> AdminCall {
        let space = &self.space;
        match &self.action {
            AdminAction::Stats => get("/admin/stats"),
            AdminAction::Threads(_) => get("/admin/threads"),
            AdminAction::Users(_) => get("/admin/users"),
            AdminAction::Jobs(_) => get("/admin/jobs"),
            AdminAction::Reports(_) => get("/admin/reports"),
            AdminAction::Audit(_) => get("/admin/audit"),
            AdminAction::Role { user, role } => {
                call(Method::PUT, format!("/admin/users/{}", percent_encode(user)), json!({ "role": value_name(role) }))
            }
            AdminAction::RemoveUser { user } => {
                call(Method::DELETE, format!("/admin/users/{}", percent_encode(user)), json!({}))
            }
            AdminAction::EraseUser { user, .. } => {
                call(Method::POST, format!("/admin/users/{}/erase", percent_encode(user)), json!({}))
            }
            AdminAction::ExportUser { user, cursor } => {
                get(format!("/admin/users/{}/export?limit=200&cursor={}", percent_encode(user), percent_encode(cursor)))
            }
            AdminAction::Retention => get("/admin/retention"),
            AdminAction::Retain { age, count, deleted, thread, .. } => {
                let rule = json!({
                    "thread": thread, "age_seconds": days_to_seconds(*age), "count": count, "deleted_seconds": days_to_seconds(*deleted),
                });
                call(Method::PUT, "/admin/retention", rule)
            }
            AdminAction::LiftRetention { thread } => {
                let query =
                    thread.as_ref().map_or_else(String::new, |thread| format!("?thread={}", percent_encode(thread)));
                call(Method::DELETE, format!("/admin/retention{query}"), json!({}))
            }
            AdminAction::PurgeOld { dry_run: true } => get("/admin/retention/preview"),
            AdminAction::PurgeOld { dry_run: false } => call(Method::POST, "/admin/jobs", json!({ "work": "retain" })),
            AdminAction::Purge { events } => call(Method::POST, "/admin/purge", json!({ "events": events })),
            AdminAction::Settle { number, note } => {
                call(Method::PUT, format!("/admin/reports/{number}"), json!({ "note": note }))
            }
            AdminAction::SigningKeys => get("/admin/signing-keys"),
            AdminAction::NewSigningKey => call(Method::POST, "/admin/signing-keys", json!({})),
            AdminAction::EndSigningKey { number, after } => {
                call(Method::DELETE, format!("/admin/signing-keys/{number}?after_seconds={after}"), json!({}))
            }
            AdminAction::RotateKey { id, after } => call(
                Method::POST,
                format!("/admin/api-keys/{}/rotate?after_seconds={after}", percent_encode(id)),
                json!({}),
            ),
            AdminAction::Spaces => get("/admin/spaces"),
            AdminAction::Found { name, open } => {
                call(Method::POST, "/admin/spaces", json!({ "name": name, "sealed": !open }))
            }
            AdminAction::DeleteSpace { .. } => {
                call(Method::DELETE, format!("/admin/spaces/{}", percent_encode(space)), json!({}))
            }
            AdminAction::DestroyKeys { .. } => {
                call(Method::DELETE, format!("/admin/spaces/{}/keys", percent_encode(space)), json!({}))
            }
            AdminAction::Protect { what, field } => {
                let body = json!({ "encrypt": value_name(what), "fields": field });
                call(Method::PUT, format!("/admin/spaces/{}/protection", percent_encode(space)), body)
            }
            AdminAction::Rotate => call(Method::POST, "/admin/jobs", json!({ "work": "rotate" })),
        }
    }
}
