//! API keys that the configuration declares: which spaces they are for is known when the node runs.

use crate::config::DeclaredKey;
use crate::failure::Failure;
use model::{Nanos, SpaceId};
use node::Node;
use std::collections::BTreeMap;
use store::shared::api_keys::ApiKey;

/// The declared keys as the server takes them.
pub(crate) fn keys(declared: &[DeclaredKey], node: &Node) -> Result<BTreeMap<[u8; 8], ApiKey>, Failure> {
    let db = node.snapshot()?;
    let mut keys = BTreeMap::new();
    for key in declared {
        let space = space(key, node)?;
        if db.api_key(&key.id)?.is_some() {
            let what = format!("{}: keys.id is that of a key in the data folder", key.place);
            return Err(Failure::new(what, "declare another key; `anteroom key hash` prints one"));
        }
        keys.insert(key.id, ApiKey::new(key.role, space, key.hash, key.label.clone(), Nanos(0)));
    }
    Ok(keys)
}

fn space(key: &DeclaredKey, node: &Node) -> Result<SpaceId, Failure> {
    let spaces = node.snapshot()?.kept_spaces()?;
    let found = spaces.iter().find(|(space, kept)| kept.name == key.space || space.to_string() == key.space);
    let names: Vec<&str> = spaces.iter().map(|(_, kept)| kept.name.as_str()).collect();
    found.map(|(space, _)| *space).ok_or_else(|| {
        let what = format!("{}: keys.space: this node keeps no space {:?}", key.place, key.space);
        Failure::new(what, format!("the spaces here are: {}; found it first, then declare its keys", names.join(", ")))
    })
}

/// Says that a key cannot be revoked by asking, if it is declared.
pub(crate) fn refuse_revoking(declared: &[DeclaredKey], id: &[u8; 8]) -> Result<(), Failure> {
    match declared.iter().find(|key| key.id == *id) {
        None => Ok(()),
        Some(key) => Err(Failure::new(
            format!("the key {} is declared in the configuration ({})", hex::encode(id), key.place),
            "remove it there, then restart the node",
        )),
    }
}
