//! `anteroom key`: manages API keys, with or without a running node.

use super::CommandResult;
use crate::configured_keys;
use crate::context::Context;
use crate::data_folder::{self, Access};
use crate::failure::Failure;
use crate::formatting::format_count;
use crate::home_space;
use crate::operator_client::OperatorClient;
use crate::random::random_bytes;
use clap::{Args, Subcommand, ValueEnum};
use engine::access::KeyRole;
use http::Method;
use model::calendar::Rfc3339;
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

/// Create, list and revoke API keys
///
/// Works with or without a running node.
#[derive(Debug, Args)]
pub(crate) struct Key {
    /// The space of the key
    #[arg(long, global = true, default_value = "home")]
    space: String,
    #[command(subcommand)]
    action: KeyAction,
}

#[derive(Debug, Subcommand)]
enum KeyAction {
    /// Create a key and print it; it is shown only once
    Create {
        /// The role of the key
        role: Role,
        /// A name for the key
        #[arg(long, default_value = "")]
        label: String,
    },
    /// Print a new key and the lines that declare it in the configuration file; nothing is stored
    Hash {
        /// The role of the key
        role: Role,
        /// A name for the key
        #[arg(long, default_value = "")]
        label: String,
    },
    /// List keys, without their secrets
    List,
    /// Revoke a key
    Revoke {
        /// The id of the key, as shown by `list`
        id: String,
        /// Revoke it after this many seconds, so that clients have time to change to another key
        #[arg(long, default_value_t = 0, value_name = "SECONDS")]
        after: u64,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Role {
    /// For browsers and apps: acts for users whose id a backend has signed
    Frontend,
    /// For your application's server: acts for any user it names
    Backend,
    /// As backend, and can administer the space
    Admin,
}

impl Role {
    fn key_role(self) -> KeyRole {
        match self {
            Role::Frontend => KeyRole::Frontend,
            Role::Backend => KeyRole::Backend,
            Role::Admin => KeyRole::Admin,
        }
    }
}

#[derive(Debug, Serialize)]
struct CreatedKey {
    id: String,
    role: String,
    key: String,
}

impl fmt::Display for CreatedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.key)?;
        write!(f, "\nThis is {} key {}. It is not shown again. Send it in the header X-API-Key.", self.role, self.id)
    }
}

#[derive(Debug, Serialize)]
struct KeyForConfig {
    id: String,
    role: String,
    key: String,
    /// The lines for the configuration file.
    config: String,
}

impl fmt::Display for KeyForConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.key)?;
        writeln!(
            f,
            "\nThis is {} key {}. It is not shown again. Send it in the header X-API-Key.",
            self.role, self.id
        )?;
        writeln!(f, "To activate it, add these lines to the end of the configuration file and restart the node:")?;
        write!(f, "\n{}", self.config)
    }
}

impl KeyForConfig {
    fn new(role: KeyRole, space: &str, label: &str) -> Result<KeyForConfig, Failure> {
        let key = NewKey::new(random_bytes()?, &random_bytes()?);
        let (id, hash, role) = (hex::encode(key.id), hex::encode(key.hash), role.word().to_owned());
        let text = |text: &str| toml::Value::from(text).to_string();
        let (space, label) = (text(space), text(label));
        let config = format!(
            "[[api_keys]]\nid = \"{id}\"\nhash = \"{hash}\"\nrole = \"{role}\"\nspace = {space}\nlabel = {label}\n"
        );
        Ok(KeyForConfig { id, role, key: key.text, config })
    }
}

#[derive(Debug, Serialize)]
struct KeyList {
    keys: Vec<Entry>,
    #[serde(skip)]
    now: u64,
}

#[derive(Debug, Serialize)]
struct Entry {
    id: String,
    role: String,
    label: String,
    /// As RFC 3339 writes it, so that such texts sort as the times do.
    ends_at: Option<String>,
    declared: bool,
}

impl Entry {
    fn new(id: &[u8; 8], key: &ApiKey, declared: bool) -> Entry {
        Entry {
            id: hex::encode(id),
            role: key.role().map_or("unknown", KeyRole::word).to_owned(),
            label: key.label.clone(),
            ends_at: key.ends_at.map(|at| Rfc3339(at).to_string()),
            declared,
        }
    }

    fn state(&self, now: u64) -> &'static str {
        match (self.declared, &self.ends_at) {
            (true, _) => "declared",
            (false, Some(end)) if *end <= Rfc3339(Nanos(now)).to_string() => "revoked",
            (false, Some(_)) => "ending",
            (false, None) => "active",
        }
    }
}

impl fmt::Display for KeyList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.keys.is_empty() {
            return write!(f, "There are no keys. `anteroom key create backend` creates one.");
        }
        write!(f, "{:<16}  {:<8}  {:<8}  label", "id", "role", "state")?;
        self.keys.iter().try_for_each(|key| {
            write!(f, "\n{:<16}  {:<8}  {:<8}  {}", key.id, key.role, key.state(self.now), key.label)
        })
    }
}

#[derive(Debug, Serialize)]
struct RevokedKey {
    id: String,
    /// In seconds.
    #[serde(skip)]
    after: u64,
}

impl fmt::Display for RevokedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.after {
            0 => write!(f, "The key {} is revoked.", self.id),
            seconds => write!(f, "The key {} will be revoked in {}.", self.id, format_count(seconds, "second")),
        }
    }
}

impl Key {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        if let KeyAction::Hash { role, label } = &self.action {
            context.print(&KeyForConfig::new(role.key_role(), &self.space, label)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        match OperatorClient::find(context) {
            Some(client) => self.run_on_node(context, &client),
            None => self.run_on_folder(context),
        }?;
        Ok(ExitCode::SUCCESS)
    }

    fn run_on_node(&self, context: &Context, client: &OperatorClient) -> Result<(), Failure> {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        match &self.action {
            KeyAction::Create { role, label } => {
                let body = json!({ "role": role.key_role().word(), "label": label });
                let made = client.send_json(Method::POST, "/admin/api-keys", &self.space, &body)?;
                context.print(&CreatedKey { id: text(&made["id"]), role: text(&made["role"]), key: text(&made["key"]) })
            }
            KeyAction::List => {
                let found = client.send_json(Method::GET, "/admin/api-keys", &self.space, &json!({}))?;
                let keys = found["keys"].as_array().into_iter().flatten().map(|key| Entry {
                    id: text(&key["id"]),
                    role: text(&key["role"]),
                    label: text(&key["label"]),
                    ends_at: key["ends_at"].as_str().map(str::to_owned),
                    declared: key["declared"].as_bool().unwrap_or_default(),
                });
                context.print(&KeyList { keys: keys.collect(), now: context.now() })
            }
            // Handled before: it needs no node.
            KeyAction::Hash { .. } => Ok(()),
            KeyAction::Revoke { id, after } => {
                parse_id(id)?;
                let path = format!("/admin/api-keys/{id}?after_seconds={after}");
                client.send_json(Method::DELETE, &path, &self.space, &json!({}))?;
                context.print(&RevokedKey { id: id.clone(), after: *after })
            }
        }
    }

    fn run_on_folder(&self, context: &Context) -> Result<(), Failure> {
        let (store, _lock) = data_folder::open(context, Access::Write)?;
        let node =
            Node::start(store, Arc::new(context.clock), Arc::new(NoSources), context.settings.config.node_options());
        let result = self.run_with_own_node(context, &node);
        node.stop();
        result
    }

    fn run_with_own_node(&self, context: &Context, node: &Node) -> Result<(), Failure> {
        home_space::create_home_space(node)?;
        let space = self.find_space(node)?;
        match &self.action {
            KeyAction::Create { role, label } => {
                let key = NewKey::new(random_bytes()?, &random_bytes()?);
                let (role, label) = (role.key_role(), label.clone());
                home_space::administer(node, AdminCommand::AddKey { id: key.id, role, space, hash: key.hash, label })?;
                context.print(&CreatedKey { id: hex::encode(key.id), role: role.word().to_owned(), key: key.text })
            }
            KeyAction::List => {
                let (stored, declared) = (
                    node.snapshot()?.api_keys()?,
                    configured_keys::resolve_keys(&context.settings.declared_keys, node)?,
                );
                let stored = stored.iter().map(|(id, key)| (id, key, false));
                let all = stored.chain(declared.iter().map(|(id, key)| (id, key, true)));
                let keys = all.filter(|(_, key, _)| key.space == space);
                let keys = keys.map(|(id, key, declared)| Entry::new(id, key, declared));
                context.print(&KeyList { keys: keys.collect(), now: context.now() })
            }
            KeyAction::Revoke { id, after } => {
                let at = context.clock.now().plus(after.saturating_mul(Nanos::SECOND));
                let bytes = parse_id(id)?;
                configured_keys::refuse_to_revoke_declared(&context.settings.declared_keys, &bytes)?;
                home_space::administer(node, AdminCommand::EndKey { id: bytes, at })?;
                context.print(&RevokedKey { id: id.clone(), after: *after })
            }
            // Handled before: it needs no node.
            KeyAction::Hash { .. } => Ok(()),
        }
    }

    fn find_space(&self, node: &Node) -> Result<SpaceId, Failure> {
        let spaces = node.snapshot()?.hosted_spaces()?;
        let found = spaces.iter().find(|(_, kept)| kept.name == self.space).map(|(space, _)| *space);
        let names: Vec<&str> = spaces.iter().map(|(_, kept)| kept.name.as_str()).collect();
        let what_to_do = format!("the spaces of this node are: {}", names.join(", "));
        found.ok_or_else(|| Failure::new(format!("this node has no space {:?}", self.space), what_to_do))
    }
}

fn parse_id(text: &str) -> Result<[u8; 8], Failure> {
    let mut id = [0; 8];
    let bad = |_| Failure::new(format!("{text:?} is not a key id"), "`anteroom key list` shows the ids");
    hex::decode_to_slice(text, &mut id).map_err(bad)?;
    Ok(id)
}
