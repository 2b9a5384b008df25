//! What the simulator knows of each protocol: how its events are written, which of them make up a world, and a naive model
//! of what its views must show. A folder for each.

pub mod nostr;
pub mod probe;
pub mod space;
