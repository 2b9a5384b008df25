//! Every connection that this node makes, to addresses that were vetted: never to this machine or the network around it, unless
//! the operator lists them.
//!
//! A URL is parsed once. A host that is an address is vetted as it stands; a name is resolved and vetted at the moment of
//! connecting, so that a name cannot be vetted as one address and connected to as another. Redirects are vetted in the same
//! way, or not followed; proxies from the environment are not used; answers are bounded. Hosts that the operator named in the
//! configuration, such as that of an object store, are asked as they are.
//!
//! Deliberately absent: what is sent, to whom, and how often it is tried again.

mod addresses;
mod client;
mod websocket;

pub use addresses::{AllowedNetworks, BadUrl, is_public, vet};
pub use client::{GetError, OutboundAnswer, OutboundClient, SendError, client_for_configured_hosts};
pub use websocket::OutboundSocket;
