//! What comes in is parsed, opened and checked here, in parallel, before the writer sees it.

use crate::large_content::{self, Deliver};
use crate::running::Node;
use crate::writer::node_commands::Arrive;
use crate::writer_command::AskError;
use engine::chains;
use engine::reads::{Reads as _, StoreError};
use engine::receive::{Arrival, DropReason};
use engine::rows::Origin;
use model::crypto::content_hash;
use model::{ContentHash, SpaceId};

impl Node {
    /// RECEIVE on this thread: parses, opens and checks a blob, ready to be handed to the writer.
    pub fn receive(&self, blob: Vec<u8>, inline: Option<Vec<u8>>, origin: Origin) -> Result<Arrive, DropReason> {
        let store = self.store();
        let received = chains::receive_blob(&**store.keys(), store.policy(), blob, inline, origin);
        self.inner.count_dropped(received).map(|arrival| self.look_ahead(arrival))
    }

    /// RECEIVE on this thread, for a packet from a peer.
    pub fn receive_packet(&self, packet: &[u8]) -> Result<Arrive, DropReason> {
        let store = self.store();
        let received = chains::receive_packet(&**store.keys(), store.policy(), packet);
        self.inner.count_dropped(received).map(|arrival| self.look_ahead(arrival))
    }

    /// Looks the id up before the writer does: the page of the index where it belongs is at a random place, and reading
    /// it here leaves it in the cache for the one thread that everybody waits for. The answer is the writer's to give.
    fn look_ahead(&self, arrival: Arrival) -> Arrive {
        let _ = self.snapshot().and_then(|db| db.seq(&arrival.blob.id()));
        Arrive(Box::new(arrival))
    }

    /// Content that came, ready to be handed to the writer; none if its bytes are not those that were promised.
    pub fn receive_content(
        &self,
        space: SpaceId,
        hash: ContentHash,
        bytes: Vec<u8>,
    ) -> Result<Option<Deliver>, AskError<StoreError>> {
        if content_hash(&bytes) != hash {
            return Ok(None);
        }
        large_content::stage(self.store(), space, hash, bytes, |begin| self.ask(begin)).map(Some)
    }
}
