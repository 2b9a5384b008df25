//! Addresses: kind, author and identifier, under which the latest event stands.

use super::event::NostrEvent;
use crate::crypto::event_id;
use crate::ids::{NostrKey, byte_ids};
use crate::limits::IDENTIFIER_BYTES_MAX;
use std::fmt;
use std::str::FromStr;

byte_ids! {
    /// The hash of an identifier, as keys of rows have it.
    AddressName(16, "name", "the hash of an identifier");
}

impl AddressName {
    /// The hash of an identifier.
    pub fn of(identifier: &str) -> AddressName {
        AddressName(event_id(identifier.as_bytes()).0)
    }
}

/// Whether of all events of such a kind by one author only the latest counts.
pub fn is_replaceable(kind: u16) -> bool {
    matches!(kind, 0 | 3 | 10_000..=19_999)
}

/// Whether of all events of such a kind by one author with one identifier only the latest counts.
pub fn is_addressable(kind: u16) -> bool {
    matches!(kind, 30_000..=39_999)
}

/// Where an event stands that later ones replace.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address {
    pub kind: u16,
    pub author: NostrKey,
    /// Empty for replaceable events.
    pub identifier: String,
}

/// Why a text is not an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an address is written KIND:AUTHOR:IDENTIFIER")]
pub struct BadAddress;

impl Address {
    /// Where an event stands, if later ones replace it.
    pub fn of(event: &NostrEvent) -> Option<Address> {
        let identifier = match event.kind {
            kind if is_replaceable(kind) => "",
            kind if is_addressable(kind) => event.value("d").unwrap_or_default(),
            _ => return None,
        };
        Some(Address { kind: event.kind, author: event.author, identifier: identifier.to_owned() })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.kind, self.author, self.identifier)
    }
}

impl FromStr for Address {
    type Err = BadAddress;

    fn from_str(text: &str) -> Result<Address, BadAddress> {
        let mut parts = text.splitn(3, ':');
        let (Some(kind), Some(author), Some(identifier)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(BadAddress);
        };
        if identifier.len() > IDENTIFIER_BYTES_MAX {
            return Err(BadAddress);
        }
        Ok(Address {
            kind: kind.parse().map_err(|_| BadAddress)?,
            author: author.parse().map_err(|_| BadAddress)?,
            identifier: identifier.to_owned(),
        })
    }
}
