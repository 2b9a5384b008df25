//! `anteroom key`: API keys, whether the node runs or not.

use super::Done;
use crate::configured_keys;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::home_space;
use crate::operator_client::Remote;
use clap::{Args, Subcommand, ValueEnum};
use engine::access::KeyRole;
use http::Method;
use model::{Nanos, SpaceId};
use node::commands::AdminCommand;
use node::fetch::hunter::NoSources;
use node::{Clock as _, Node};
use serde::Serialize;
use serde_json::json;
use server::NewKey;
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use store::shared::api_keys::ApiKey;

/// Create, list and revoke API keys, whether the node runs or not
#[derive(Debug, Args)]
pub(crate) struct Key {
    /// The space that the key is for
    #[arg(long, global = true, default_value = "home")]
    space: String,
    /// What to do.
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a key and print it; it is not shown again
    Create {
        /// What the key is for
        role: Role,
        /// What to call it
        #[arg(long, default_value = "")]
        label: String,
    },
    /// Print a new key, and the lines that declare it in the configuration file; nothing is stored
    Hash {
        /// What the key is for
        role: Role,
        /// What to call it
        #[arg(long, default_value = "")]
        label: String,
    },
    /// List keys, without their secrets
    List,
    /// End a key
    Revoke {
        /// The key's id, as `list` shows it
        id: String,
        /// Accept it for so many seconds more, so that clients can change to another
        #[arg(long, default_value_t = 0, value_name = "SECONDS")]
        after: u64,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    /// For browsers and apps: acts only for users that a backend vouches for
    Frontend,
    /// For your application's server: names the users it acts for
    Backend,
    /// As backend, and administers the space
    Admin,
}

impl Role {
    fn role(self) -> KeyRole {
        match self {
            Role::Frontend => KeyRole::Frontend,
            Role::Backend => KeyRole::Backend,
            Role::Admin => KeyRole::Admin,
        }
    }
}

#[derive(Debug, Serialize)]
struct Made {
    id: String,
    role: String,
    key: String,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.key)?;
        write!(f, "\nThis is the {} key {}. It is not shown again; send it as X-API-Key.", self.role, self.id)
    }
}

/// A key that is to be declared.
#[derive(Debug, Serialize)]
struct Hashed {
    id: String,
    role: String,
    key: String,
    /// What declares it.
    config: String,
}

impl fmt::Display for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.key)?;
        writeln!(f, "\nThis is the {} key {}. It is not shown again; send it as X-API-Key.", self.role, self.id)?;
        writeln!(
            f,
            "It works when these lines stand at the end of the configuration file and the node was restarted:"
        )?;
        write!(f, "\n{}", self.config)
    }
}

impl Hashed {
    fn new(role: KeyRole, space: &str, label: &str) -> Result<Hashed, Failure> {
        let key = NewKey::new(home_space::random_bytes()?, &home_space::random_bytes()?);
        let (id, hash, role) = (hex::encode(key.id), hex::encode(key.hash), role.word().to_owned());
        let text = |text: &str| toml::Value::from(text).to_string();
        let (space, label) = (text(space), text(label));
        let config = format!(
            "[[keys]]\nid = \"{id}\"\nhash = \"{hash}\"\nrole = \"{role}\"\nspace = {space}\nlabel = {label}\n"
        );
        Ok(Hashed { id, role, key: key.text, config })
    }
}

#[derive(Debug, Serialize)]
struct Listed {
    keys: Vec<Entry>,
}

#[derive(Debug, Serialize)]
struct Entry {
    id: String,
    role: String,
    label: String,
    ends_ts: Option<u64>,
    declared: bool,
}

impl Entry {
    fn new(id: &[u8; 8], key: &ApiKey, declared: bool) -> Entry {
        Entry {
            id: hex::encode(id),
            role: key.role().map_or("unknown", KeyRole::word).to_owned(),
            label: key.label.clone(),
            ends_ts: (key.ends_at != Nanos(0)).then_some(key.ends_at.0),
            declared,
        }
    }

    fn state(&self) -> &'static str {
        match (self.declared, self.ends_ts) {
            (true, _) => "declared",
            (false, Some(_)) => "ends",
            (false, None) => "good",
        }
    }
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.keys.is_empty() {
            return write!(f, "There are no keys. `anteroom key create backend` makes one.");
        }
        write!(f, "{:<16}  {:<8}  {:<8}  label", "id", "role", "state")?;
        self.keys
            .iter()
            .try_for_each(|key| write!(f, "\n{:<16}  {:<8}  {:<8}  {}", key.id, key.role, key.state(), key.label))
    }
}

#[derive(Debug, Serialize)]
struct Ended {
    id: String,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "The key {} is revoked.", self.id)
    }
}

impl Key {
    pub(super) fn run(&self, context: &Context) -> Done {
        if let What::Hash { role, label } = &self.what {
            context.show(&Hashed::new(role.role(), &self.space, label)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        match Remote::find(context) {
            Some(remote) => self.ask(context, &remote),
            None => self.work(context),
        }?;
        Ok(ExitCode::SUCCESS)
    }

    /// Asks the node that runs.
    fn ask(&self, context: &Context, remote: &Remote) -> Result<(), Failure> {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        match &self.what {
            What::Create { role, label } => {
                let body = json!({ "role": role.role().word(), "label": label });
                let made = remote.ask(Method::POST, "/admin/api-keys", &self.space, &body)?;
                context.show(&Made { id: text(&made["id"]), role: text(&made["role"]), key: text(&made["key"]) })
            }
            What::List => {
                let found = remote.ask(Method::GET, "/admin/api-keys", &self.space, &json!({}))?;
                let keys = found["keys"].as_array().into_iter().flatten().map(|key| Entry {
                    id: text(&key["id"]),
                    role: text(&key["role"]),
                    label: text(&key["label"]),
                    ends_ts: key["ends_ts"].as_u64(),
                    declared: key["declared"].as_bool().unwrap_or_default(),
                });
                context.show(&Listed { keys: keys.collect() })
            }
            // It asks nobody.
            What::Hash { .. } => Ok(()),
            What::Revoke { id, after } => {
                parse_id(id)?;
                let path = format!("/admin/api-keys/{id}?after_seconds={after}");
                remote.ask(Method::DELETE, &path, &self.space, &json!({}))?;
                context.show(&Ended { id: id.clone() })
            }
        }
    }

    /// Does it without a running node.
    fn work(&self, context: &Context) -> Result<(), Failure> {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let node =
            Node::start(store, Arc::new(context.clock), Arc::new(NoSources), context.loaded.config.node_options());
        let worked = self.work_on(context, &node);
        node.stop();
        worked
    }

    fn work_on(&self, context: &Context, node: &Node) -> Result<(), Failure> {
        home_space::found_home(node)?;
        let space = self.space_id(node)?;
        match &self.what {
            What::Create { role, label } => {
                let key = NewKey::new(home_space::random_bytes()?, &home_space::random_bytes()?);
                let (role, label) = (role.role(), label.clone());
                home_space::administer(node, AdminCommand::AddKey { id: key.id, role, space, hash: key.hash, label })?;
                context.show(&Made { id: hex::encode(key.id), role: role.word().to_owned(), key: key.text })
            }
            What::List => {
                let (stored, declared) =
                    (node.snapshot()?.api_keys()?, configured_keys::keys(&context.loaded.keys, node)?);
                let stored = stored.iter().map(|(id, key)| (id, key, false));
                let all = stored.chain(declared.iter().map(|(id, key)| (id, key, true)));
                let keys = all.filter(|(_, key, _)| key.space == space);
                let keys = keys.map(|(id, key, declared)| Entry::new(id, key, declared));
                context.show(&Listed { keys: keys.collect() })
            }
            What::Revoke { id, after } => {
                let at = context.clock.now().plus(after.saturating_mul(Nanos::SECOND));
                let bytes = parse_id(id)?;
                configured_keys::refuse_revoking(&context.loaded.keys, &bytes)?;
                home_space::administer(node, AdminCommand::EndKey { id: bytes, at })?;
                context.show(&Ended { id: id.clone() })
            }
            // It needs no node.
            What::Hash { .. } => Ok(()),
        }
    }

    fn space_id(&self, node: &Node) -> Result<SpaceId, Failure> {
        let spaces = node.snapshot()?.kept_spaces()?;
        let found = spaces.iter().find(|(_, kept)| kept.name == self.space).map(|(space, _)| *space);
        let names: Vec<&str> = spaces.iter().map(|(_, kept)| kept.name.as_str()).collect();
        let what_to_do = format!("the spaces here are: {}", names.join(", "));
        found.ok_or_else(|| Failure::new(format!("this node keeps no space {:?}", self.space), what_to_do))
    }
}

fn parse_id(text: &str) -> Result<[u8; 8], Failure> {
    let mut id = [0; 8];
    let bad = |_| Failure::new(format!("{text:?} is not the id of a key"), "`anteroom key list` shows the ids");
    hex::decode_to_slice(text, &mut id).map_err(bad)?;
    Ok(id)
}
