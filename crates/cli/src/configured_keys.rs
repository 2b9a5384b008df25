//! API keys that the configuration declares. Their spaces are looked up when the node runs.

use crate::config::DeclaredKey;
use crate::failure::Failure;
use model::{Nanos, SpaceId};
use node::Node;
use std::collections::BTreeMap;
use store::shared::api_keys::ApiKey;

/// Converts the declared keys to the form that the server uses.
pub(crate) fn resolve_keys(declared: &[DeclaredKey], node: &Node) -> Result<BTreeMap<[u8; 8], ApiKey>, Failure> {
    let db = node.snapshot()?;
    let mut keys = BTreeMap::new();
    for key in declared {
        let space = find_space(key, node)?;
        if db.api_key(&key.id)?.is_some() {
            let what = format!("{}: a key in the data folder has the same api_keys.id", key.location);
            return Err(Failure::new(what, "declare another key; `anteroom key hash` prints one"));
        }
        keys.insert(key.id, ApiKey::new(key.role, space, key.hash, key.label.clone(), Nanos(0)));
    }
    Ok(keys)
}

fn find_space(key: &DeclaredKey, node: &Node) -> Result<SpaceId, Failure> {
    let spaces = node.snapshot()?.hosted_spaces()?;
    let found = spaces.iter().find(|(space, kept)| kept.name == key.space || space.to_string() == key.space);
    let names: Vec<&str> = spaces.iter().map(|(_, kept)| kept.name.as_str()).collect();
    found.map(|(space, _)| *space).ok_or_else(|| {
        let what = format!("{}: api_keys.space: this node has no space {:?}", key.location, key.space);
        Failure::new(
            what,
            format!("the spaces of this node are: {}; create the space before you declare its keys", names.join(", ")),
        )
    })
}

/// Fails if the key is declared: only an edit of the configuration revokes it.
pub(crate) fn refuse_to_revoke_declared(declared: &[DeclaredKey], id: &[u8; 8]) -> Result<(), Failure> {
    match declared.iter().find(|key| key.id == *id) {
        None => Ok(()),
        Some(key) => Err(Failure::new(
            format!("the key {} is declared in the configuration ({})", hex::encode(id), key.location),
            "remove it there, then restart the node",
        )),
    }
}
