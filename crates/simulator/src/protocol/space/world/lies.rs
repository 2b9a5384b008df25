//! Lies: blobs that are broken or sealed again, and content that is not what it should be.

use super::Story;
use crate::protocol::space::cast::MadeEvent;
use model::blob::Blob;

impl Story<'_> {
    pub(super) fn lie(&mut self, made: &MadeEvent) -> (Vec<u8>, Option<Vec<u8>>) {
        let inline = made.inline(self.inline_max);
        let room = self.rooms.iter().find(|room| room.place.space == made.envelope.space);
        let key = room.and_then(|room| room.place.key.clone());
        match (self.random.below(4), key) {
            (0, Some(key)) => {
                let nonce = [self.random.below(256) as u8; 24];
                let blob = Blob::seal_with_nonce(&made.envelope, &key, nonce).expect("a blob");
                (blob.bytes().to_vec(), inline)
            }
            (1, _) => {
                let mut blob = made.blob.clone();
                let at = self.random.below(blob.len());
                blob[at] ^= 1 << self.random.below(8);
                (blob, inline)
            }
            // The right blob with the wrong content beside it.
            (2, _) if self.inline_max > 0 && !made.wire.is_empty() => {
                let mut wrong = made.wire.clone();
                let at = self.random.below(wrong.len());
                wrong[at] ^= 1 << self.random.below(8);
                wrong.truncate(self.inline_max as usize);
                (made.blob.clone(), Some(wrong))
            }
            _ => (made.blob.clone(), Some(vec![7; made.wire.len().clamp(1, 1024)]).filter(|_| self.inline_max > 0)),
        }
    }
}
