//! The blob: the form in which an envelope is kept and travels.
//!
//! Plain, sealed under a space key, or, for key events, sealed to one member's prekey. One envelope has one blob:
//! nonces and ephemeral secrets are derived from the envelope and recomputed on opening, so that nobody can wrap the
//! same statement twice and have it counted twice.

use crate::crypto::{
    BOX_OVERHEAD_BYTES, DecryptError, NONCE_BYTES, SpaceKey, TAG_BYTES, box_secret, event_id, open_box, prekey_id,
    prekey_public, seal_box,
};
use crate::envelope::{BadEnvelope, Envelope, Verified};
use crate::ids::{EventId, KeyId, PrekeyId, SpaceId};
use crate::kind::Kind;
use crate::limits::{BLOB_BYTES_MAX, ENVELOPE_BYTES_MIN};
use crate::nostr::{self, NOSTR_FORM};
use crate::payload::Payload;
use crate::planted::{PlantedBug, is_planted};

const PLAIN: u8 = 0x00;
const SEALED: u8 = 0x01;
const ADDRESSED: u8 = 0x04;
const SEALED_HEADER_BYTES: usize = 1 + 16 + 16;
/// Where a plain blob names its space: after the form, and the version, flags, kind and time of its envelope.
const PLAIN_SPACE_AT: usize = 1 + 1 + 1 + 2 + 8;

/// Why bytes are not a blob, or a blob does not hold what it says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadBlob {
    #[error("unknown blob version {0:#04x}; this release knows 0x00, 0x01, 0x04 and 0x05")]
    Version(u8),
    #[error("the blob ends too early")]
    Short,
    #[error("the blob is larger than {BLOB_BYTES_MAX} bytes")]
    Long,
    /// Decryption failed.
    #[error(transparent)]
    Cipher(#[from] DecryptError),
    /// The space or key in the header is not that of the envelope.
    #[error("the header of the blob does not fit its envelope")]
    Header,
    /// Sealed again under another nonce or ephemeral secret.
    #[error("the envelope was sealed in a way that is not its own")]
    Resealed,
    /// The envelope inside is not valid.
    #[error(transparent)]
    Envelope(#[from] BadEnvelope),
}

impl BadBlob {
    /// Whether a later release may know what this one does not.
    pub fn is_unknown_version(&self) -> bool {
        match self {
            BadBlob::Version(_) => true,
            BadBlob::Envelope(BadEnvelope::Version(_) | BadEnvelope::Flags(_) | BadEnvelope::Role(_)) => true,
            BadBlob::Envelope(_) | BadBlob::Short | BadBlob::Long | BadBlob::Cipher(_) => false,
            BadBlob::Header | BadBlob::Resealed => false,
        }
    }
}

/// The form of a blob, which is readable without any key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlobForm {
    /// Anyone can read it.
    Plain,
    /// Holders of the space key can read it.
    Sealed { space: SpaceId, key: KeyId },
    /// The holder of the prekey can read it.
    Addressed { space: SpaceId, prekey: PrekeyId },
    /// An event of the `nostr` protocol, which anyone can read.
    Nostr,
    #[cfg(feature = "simulation")]
    Probe,
}

impl BlobForm {
    /// The space that the outside of the blob names; none where only the envelope does.
    pub fn named_space(self) -> Option<SpaceId> {
        match self {
            BlobForm::Plain => None,
            BlobForm::Sealed { space, .. } | BlobForm::Addressed { space, .. } => Some(space),
            BlobForm::Nostr => Some(SpaceId::COMMONS),
            #[cfg(feature = "simulation")]
            BlobForm::Probe => Some(SpaceId::COMMONS),
        }
    }

    /// The space key that the envelope and its content are sealed under, if they are.
    pub fn sealing_key(self) -> Option<(SpaceId, KeyId)> {
        match self {
            BlobForm::Sealed { space, key } => Some((space, key)),
            BlobForm::Plain | BlobForm::Addressed { .. } | BlobForm::Nostr => None,
            #[cfg(feature = "simulation")]
            BlobForm::Probe => None,
        }
    }
}

/// A blob of a known form and a possible length, with its id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blob {
    bytes: Vec<u8>,
    form: BlobForm,
    id: EventId,
}

/// Where the time stands in a blob that anyone can read: after its form, and the version, flags and kind of its envelope.
pub const PLAIN_TIME_AT: usize = 1 + 2 + 2;
/// Where the content's hash stands in a blob that anyone can read: after the other fields that have a fixed length.
pub const PLAIN_HASH_AT: usize = PLAIN_TIME_AT + 8 + SpaceId::LEN + 32 + KeyId::LEN + 2 * EventId::LEN + 16 + 8;

impl Blob {
    /// Reads the form of these bytes and computes the event id. Nothing is decrypted or verified. This is what comes in
    /// from outside.
    pub fn parse(bytes: Vec<u8>) -> Result<Blob, BadBlob> {
        #[cfg(feature = "simulation")]
        if let Ok(BlobForm::Probe) = parse_form(&bytes) {
            return Err(BadBlob::Version(crate::probe::PROBE_FORM));
        }
        Blob::parse_kept(bytes)
    }

    /// As [`Blob::parse`], for a blob of any protocol: one that is kept, or that came through its protocol's own door.
    pub fn parse_kept(bytes: Vec<u8>) -> Result<Blob, BadBlob> {
        let form = parse_form(&bytes)?;
        let most = if form == BlobForm::Nostr { 1 + nostr::NOSTR_EVENT_BYTES_MAX } else { BLOB_BYTES_MAX };
        if bytes.len() > most {
            return Err(BadBlob::Long);
        }
        let id = Blob::id_of(&bytes)?;
        Ok(Blob { bytes, form, id })
    }

    /// The id of the event in these bytes.
    pub fn id_of(bytes: &[u8]) -> Result<EventId, BadBlob> {
        Ok(match parse_form(bytes)? {
            BlobForm::Plain | BlobForm::Sealed { .. } | BlobForm::Addressed { .. } => event_id(bytes),
            BlobForm::Nostr => nostr::id_in(bytes).ok_or(BadBlob::Short)?.short(),
            #[cfg(feature = "simulation")]
            BlobForm::Probe => crate::probe::ProbeStatement::read(bytes).map_err(|_| BadBlob::Short)?.id().short(),
        })
    }

    /// What the outside of these bytes tells, without computing the id.
    pub fn form_of(bytes: &[u8]) -> Result<BlobForm, BadBlob> {
        parse_form(bytes)
    }

    /// The space of a blob that anyone can read, read from its outside; none for other forms.
    pub fn open_space_of(bytes: &[u8]) -> Option<SpaceId> {
        match parse_form(bytes) {
            Ok(BlobForm::Plain) => bytes.get(PLAIN_SPACE_AT..)?.first_chunk::<16>().map(|space| SpaceId(*space)),
            Ok(BlobForm::Sealed { .. } | BlobForm::Addressed { .. }) | Err(_) => None,
            Ok(BlobForm::Nostr) => Some(SpaceId::COMMONS),
            #[cfg(feature = "simulation")]
            Ok(BlobForm::Probe) => Some(SpaceId::COMMONS),
        }
    }

    pub fn plain(envelope: &Verified) -> Result<Blob, BadBlob> {
        if !envelope.key.is_zero() {
            return Err(BadBlob::Header);
        }
        Blob::parse([&[PLAIN], envelope.bytes()].concat())
    }

    /// The blob of an envelope sealed under the space key that it names.
    pub fn seal(envelope: &Verified, key: &SpaceKey) -> Result<Blob, BadBlob> {
        if envelope.key != key.id() || envelope.kind == Kind::Key {
            return Err(BadBlob::Header);
        }
        let nonce = key.blob_nonce(envelope.bytes());
        Blob::seal_with_nonce(envelope, key, nonce)
    }

    /// As [`Blob::seal`], with a nonce that need not be the right one: what a lying peer can make.
    pub fn seal_with_nonce(envelope: &Verified, key: &SpaceKey, nonce: [u8; NONCE_BYTES]) -> Result<Blob, BadBlob> {
        let mut bytes = header(SEALED, &envelope.space, &key.id().0);
        let sealed = key.seal_blob(&nonce, &bytes, envelope.bytes());
        bytes.extend(nonce);
        bytes.extend(sealed);
        Blob::parse(bytes)
    }

    /// The blob of a key event, sealed to the prekey that its envelope names.
    pub fn address(envelope: &Verified, prekey: &[u8; 32]) -> Result<Blob, BadBlob> {
        let id = prekey_id(prekey);
        let Payload::Key(carried) = &envelope.payload else {
            return Err(BadBlob::Header);
        };
        if envelope.key.0 != id.0 {
            return Err(BadBlob::Header);
        }
        let mut bytes = header(ADDRESSED, &envelope.space, &id.0);
        let sealed = seal_box(&box_secret(carried, envelope.bytes()), prekey, &bytes, envelope.bytes())?;
        bytes.extend(sealed);
        Blob::parse(bytes)
    }

    /// Checks a plain blob's envelope and signature.
    pub fn check_plain(&self) -> Result<Verified, BadBlob> {
        fits(Verified::check(self.plain_envelope()?)?, None)
    }

    /// Opens with the space key and checks everything.
    pub fn check_sealed(&self, key: &SpaceKey) -> Result<Verified, BadBlob> {
        let (space, bytes) = self.open_sealed(key)?;
        fits(Verified::check(&bytes)?, Some(Wrapped { space, key: key.id().0, addressed: false }))
    }

    /// Opens with the prekey's secret and checks everything.
    pub fn check_addressed(&self, secret: &[u8; 32]) -> Result<Verified, BadBlob> {
        let (space, bytes) = self.open_addressed(secret)?;
        let prekey = prekey_id(&prekey_public(secret));
        fits(Verified::check(&bytes)?, Some(Wrapped { space, key: prekey.0, addressed: true }))
    }

    /// The envelope of a plain blob that was checked before it was kept.
    pub fn kept_plain(&self) -> Result<Verified, BadBlob> {
        Ok(Verified::kept(self.plain_envelope()?)?)
    }

    /// The envelope of a sealed blob that was checked before it was kept.
    pub fn kept_sealed(&self, key: &SpaceKey) -> Result<Verified, BadBlob> {
        Ok(Verified::kept(&self.open_sealed(key)?.1)?)
    }

    /// The envelope of a key event that was checked before it was kept.
    pub fn kept_addressed(&self, secret: &[u8; 32]) -> Result<Verified, BadBlob> {
        Ok(Verified::kept(&self.open_addressed(secret)?.1)?)
    }

    fn plain_envelope(&self) -> Result<&[u8], BadBlob> {
        match self.form {
            BlobForm::Plain => self.bytes.get(1..).ok_or(BadBlob::Short),
            BlobForm::Sealed { .. } | BlobForm::Addressed { .. } | BlobForm::Nostr => Err(BadBlob::Header),
            #[cfg(feature = "simulation")]
            BlobForm::Probe => Err(BadBlob::Header),
        }
    }

    fn open_sealed(&self, key: &SpaceKey) -> Result<(SpaceId, Vec<u8>), BadBlob> {
        let BlobForm::Sealed { space, .. } = self.form else {
            return Err(BadBlob::Header);
        };
        let (header, rest) = self.bytes.split_at_checked(SEALED_HEADER_BYTES).ok_or(BadBlob::Short)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(BadBlob::Short)?;
        let bytes = key.open_blob(nonce, header, sealed)?;
        if key.blob_nonce(&bytes) != *nonce && !is_planted(PlantedBug::ResealedAppliedTwice) {
            return Err(BadBlob::Resealed);
        }
        Ok((space, bytes))
    }

    fn open_addressed(&self, secret: &[u8; 32]) -> Result<(SpaceId, Vec<u8>), BadBlob> {
        let BlobForm::Addressed { space, .. } = self.form else {
            return Err(BadBlob::Header);
        };
        let (header, sealed) = self.bytes.split_at_checked(SEALED_HEADER_BYTES).ok_or(BadBlob::Short)?;
        let (ephemeral, bytes) = open_box(secret, header, sealed)?;
        match Envelope::decode(&bytes)?.0.payload {
            Payload::Key(carried) if prekey_public(&box_secret(&carried, &bytes)) == ephemeral => Ok((space, bytes)),
            Payload::Key(_) => Err(BadBlob::Resealed),
            _ => Err(BadBlob::Header),
        }
    }

    pub fn id(&self) -> EventId {
        self.id
    }

    pub fn form(&self) -> BlobForm {
        self.form
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn header(form: u8, space: &SpaceId, key: &[u8; 16]) -> Vec<u8> {
    [&[form], space.0.as_slice(), key.as_slice()].concat()
}

fn parse_form(bytes: &[u8]) -> Result<BlobForm, BadBlob> {
    let (form, rest) = bytes.split_first().ok_or(BadBlob::Short)?;
    let needed = match *form {
        #[cfg(feature = "simulation")]
        crate::probe::PROBE_FORM => return Ok(BlobForm::Probe),
        NOSTR_FORM => return Ok(BlobForm::Nostr),
        PLAIN => ENVELOPE_BYTES_MIN,
        SEALED => 32 + NONCE_BYTES + TAG_BYTES + ENVELOPE_BYTES_MIN,
        ADDRESSED => 32 + BOX_OVERHEAD_BYTES + ENVELOPE_BYTES_MIN,
        other => return Err(BadBlob::Version(other)),
    };
    if rest.len() < needed {
        return Err(BadBlob::Short);
    }
    let (Some((space, rest)), form) = (rest.split_first_chunk::<16>(), *form) else {
        return Err(BadBlob::Short);
    };
    let Some((key, _)) = rest.split_first_chunk::<16>() else {
        return Err(BadBlob::Short);
    };
    Ok(match form {
        SEALED => BlobForm::Sealed { space: SpaceId(*space), key: KeyId(*key) },
        ADDRESSED => BlobForm::Addressed { space: SpaceId(*space), prekey: PrekeyId(*key) },
        _ => BlobForm::Plain,
    })
}

/// The header fields that the envelope must repeat.
struct Wrapped {
    space: SpaceId,
    key: [u8; 16],
    addressed: bool,
}

/// One envelope has one blob: the header must name the space and key that the envelope names, and key events travel
/// addressed, everything else does not.
fn fits(envelope: Verified, header: Option<Wrapped>) -> Result<Verified, BadBlob> {
    let fits = match header {
        None => envelope.key.is_zero() && envelope.kind != Kind::Key,
        Some(Wrapped { space, key, addressed }) => {
            envelope.space == space && envelope.key.0 == key && addressed == (envelope.kind == Kind::Key)
        }
    };
    if fits { Ok(envelope) } else { Err(BadBlob::Header) }
}
