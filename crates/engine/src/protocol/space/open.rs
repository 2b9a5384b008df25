//! Opening: blobs, plain or sealed, and the content beside them.

use crate::keyring::Keyring;
use crate::opened::{Opened, Opening};
use model::blob::BlobForm;
use model::content::{ChunkBinding, open_content};
use model::{Blob, Envelope, Verified};

/// Opens a blob with the keys at hand and checks the signature.
pub(crate) fn open(keyring: &impl Keyring, blob: &Blob) -> Opening {
    let checked = match blob.form() {
        BlobForm::Plain => blob.check_plain(),
        BlobForm::Sealed { space, key } => match keyring.space_key(&space, &key) {
            Some(secret) => blob.check_sealed(&secret),
            None => return Opening::NoKey(space, key),
        },
        BlobForm::Addressed { space, prekey } => match keyring.prekey(&prekey) {
            Some(secret) => blob.check_addressed(&secret),
            None => return Opening::NotOurs(space),
        },
        BlobForm::Nostr => Err(model::blob::BadBlob::Header),
        #[cfg(feature = "simulation")]
        BlobForm::Probe => Err(model::blob::BadBlob::Header),
    };
    checked.map_or_else(Opening::Bad, |envelope| Opening::Opened(Opened::Space(envelope)))
}

/// Opens a blob that was checked before it was kept.
pub(crate) fn reopen(keyring: &impl Keyring, blob: &Blob) -> Option<Verified> {
    match blob.form() {
        BlobForm::Plain => blob.kept_plain().ok(),
        BlobForm::Sealed { space, key } => blob.kept_sealed(&*keyring.space_key(&space, &key)?).ok(),
        BlobForm::Addressed { prekey, .. } => blob.kept_addressed(&keyring.prekey(&prekey)?).ok(),
        BlobForm::Nostr => None,
        #[cfg(feature = "simulation")]
        BlobForm::Probe => None,
    }
}

/// The plain bytes of content as it travels, if it opens.
pub(super) fn plain_content(
    keyring: &impl Keyring,
    inline_bytes_max: u64,
    envelope: &Envelope,
    wire: &[u8],
) -> Option<Vec<u8>> {
    if envelope.key.is_zero() {
        return Some(wire.to_vec());
    }
    let key = keyring.space_key(&envelope.space, &envelope.key)?;
    open_content(&key, wire, ChunkBinding::of(envelope, inline_bytes_max)).ok()
}
