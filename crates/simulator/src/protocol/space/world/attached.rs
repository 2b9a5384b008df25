//! Files that events speak of: a few, so that several events speak of the same; some exist nowhere, some are lied about.

use super::Story;
use crate::protocol::space::cast::{EventText, chosen};
use model::envelope::Role;
use model::{ContentHash, EventId, Kind, SpaceId};

/// A file that an event speaks of.
#[derive(Clone, Debug)]
pub struct AttachedFile {
    pub event: EventId,
    pub space: SpaceId,
    pub hash: ContentHash,
    /// How long the event says it is.
    pub len: u64,
    /// Its bytes as they travel; none if they exist nowhere.
    pub wire: Option<Vec<u8>>,
}

impl Story<'_> {
    pub(super) fn attach(&mut self, room: usize, by: (usize, EventId, u64)) {
        let at = self.time_after(by.2);
        let place = self.place(room);
        // A few files, so that several events speak of the same.
        let wire = vec![b'a' + self.random.below(3) as u8; *self.random.pick(&[30, 900, 2500, 6000])];
        let hash = model::crypto::content_hash(&wire);
        let len = wire.len() as u64 + u64::from(self.random.percent(10));
        let mut manifest = serde_json::json!({
            "hash": hash.to_string(), "name": "cat.png", "size": len, "type": "image/png"
        });
        if self.random.percent(30) {
            manifest["size"] = 5.into();
            manifest["length"] = len.into();
        }
        let content = model::body::encode(&manifest).expect("a manifest");
        let references = [(Role::Authority, by.1)];
        let mut text = EventText::new(Kind::File, at, &references, &content);
        if self.random.percent(30) {
            text = text.aux(chosen(&format!("file {}", self.random.below(4))));
        }
        let id = self.put(by.0, &place, text);
        let exists = wire[0] != b'c' || wire.len() > 1000;
        self.attached.push(AttachedFile { event: id, space: place.space, hash, len, wire: exists.then_some(wire) });
        self.rooms[room].files.push((id, at));
        self.rooms[room].targets.push(id);
    }
}
