//! Every decoder as a function of bytes that anyone may have sent: what the fuzzer drives and the replay test repeats.
//!
//! None of them may panic, and each says more of the answer than that there is one: mostly that what decodes encodes
//! back to the same bytes. Where no luck gets past a signature, a cipher or a checksum, the function also puts the
//! bytes behind it, under a secret that it knows.
//!
//! Here are the formats of single events; [`files`] reads bundles and backups, [`arrival`](mod@arrival) drives a node,
//! [`seeds`] makes what the fuzzer begins with.

pub mod arrival;
pub mod files;
pub mod seeds;

pub use arrival::arrival;
pub use files::{backup, backup_under, bundle};

use ed25519_dalek::SigningKey;
use model::blob::BadBlob;
use model::content::{ChunkBinding, open_chunk, open_content, seal_content};
use model::crypto::{NONCE_BYTES, SpaceKey, TransitSecret, event_id, prekey_id, prekey_public, seal_box};
use model::limits::{BLOB_BYTES_MAX, CHUNK_BYTES, INLINE_WIRE_BYTES_MAX, PACKET_BYTES_MAX, SIGNATURE_BYTES};
use model::packet::{BadPacket, PacketContent, PacketHeader};
use model::payload::Payload;
use model::reader::ByteReader;
use model::{Blob, Envelope, Group, Identity, KeyId, Kind, Nanos, Need, SpaceId, Verified};
use store::MasterKey;

/// A function that takes any bytes.
pub type Decoder = fn(&[u8]);

/// Every decoder by the name of its fuzz target.
pub const ALL: &[(&str, Decoder)] = &[
    ("arrival", arrival),
    ("backup", backup),
    ("blob", blob),
    ("body", body),
    ("bundle", bundle),
    ("content", content),
    ("envelope", envelope),
    ("need", need),
    ("packet", packet),
    ("payload", payload),
];

/// The space of everything that is sealed here. All secrets are those of the golden vectors.
pub const SPACE: SpaceId = SpaceId([0x51; 16]);
/// The secret of the prekey that key events and first packets are sealed to.
pub const PREKEY_SECRET: [u8; 32] = [0x77; 32];
/// The secret of the packets.
pub const TRANSIT_SECRET: [u8; 32] = [0x33; 32];
/// Who wrote the inline content, and when.
pub const INLINE: ChunkBinding = ChunkBinding::Inline { author: Identity([3; 32]), at: Nanos(5) };
/// Where the author stands in an envelope.
const AUTHOR_AT: usize = 1 + 1 + 2 + 8 + 16;

/// The key of the space.
pub fn space_key() -> SpaceKey {
    SpaceKey::new(&SPACE, [0x22; 32])
}

/// The key of the backups.
pub fn master_key() -> MasterKey {
    MasterKey::new(&[1; 32])
}

fn signer() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

/// An envelope has one form, and signing it changes nothing but author and signature.
pub fn envelope(bytes: &[u8]) {
    let checked = Verified::check(bytes);
    let (envelope, _) = match Envelope::decode(bytes) {
        Ok(decoded) => decoded,
        Err(why) => return assert_eq!(checked, Err(why)),
    };
    let kept = Verified::kept(bytes).expect("what decodes can be kept");
    assert_eq!((kept.bytes(), kept.envelope()), (bytes, &envelope));
    if let Ok(checked) = checked {
        assert_eq!(checked, kept);
    }
    let signed = envelope.sign(&signer()).expect("what decodes can be signed");
    assert_eq!(Verified::check(signed.bytes()).as_ref(), Ok(&signed));
    let mut again = signed.bytes().to_vec();
    let (author, signature_at) = (AUTHOR_AT..AUTHOR_AT + Identity::LEN, again.len() - SIGNATURE_BYTES);
    again[author.clone()].copy_from_slice(&bytes[author]);
    assert_eq!(again[..signature_at], bytes[..signature_at], "what decodes encodes to the same bytes");
}

/// One envelope has one blob, and a blob opens only as what it is.
pub fn blob(bytes: &[u8]) {
    if let Ok(blob) = Blob::parse(bytes.to_vec()) {
        assert_eq!((blob.bytes(), blob.id()), (bytes, event_id(bytes)));
        assert_eq!(Blob::form_of(bytes), Ok(blob.form()));
        open_each_way(&blob);
    }
    let inside = if let [0, rest @ ..] = bytes { rest } else { bytes };
    seal_as_it_is(inside);
    box_as_it_is(inside);
    if let Ok((envelope, _)) = Envelope::decode(inside) {
        wrap_each_way(&envelope);
    }
}

fn open_each_way(blob: &Blob) {
    let (key, prekey) = (space_key(), prekey_public(&PREKEY_SECRET));
    if let Ok(envelope) = blob.check_plain() {
        assert_eq!(Blob::plain(&envelope).as_ref(), Ok(blob));
        assert_eq!(blob.kept_plain(), Ok(envelope));
    }
    if let Ok(envelope) = blob.check_sealed(&key) {
        assert_eq!(Blob::seal(&envelope, &key).as_ref(), Ok(blob));
        assert_eq!(blob.kept_sealed(&key), Ok(envelope));
    }
    if let Ok(envelope) = blob.check_addressed(&PREKEY_SECRET) {
        assert_eq!(Blob::address(&envelope, &prekey).as_ref(), Ok(blob));
        assert_eq!(blob.kept_addressed(&PREKEY_SECRET), Ok(envelope));
    }
}

/// A holder of the space key can put anything behind the cipher: what is wrong with it is found all the same.
fn seal_as_it_is(inside: &[u8]) {
    let key = space_key();
    let header = [&[0x01], SPACE.0.as_slice(), &key.id().0].concat();
    let nonce = key.blob_nonce(inside);
    let sealed = [header.as_slice(), &nonce, &key.seal_blob(&nonce, &header, inside)].concat();
    let Ok(blob) = Blob::parse(sealed) else { return };
    let want = match Verified::check(inside) {
        Ok(envelope) if envelope.space != SPACE || envelope.key != key.id() => Err(BadBlob::Header),
        Ok(envelope) if envelope.kind == Kind::Key => Err(BadBlob::Header),
        Ok(envelope) => Ok(envelope),
        Err(why) => Err(BadBlob::Envelope(why)),
    };
    assert_eq!(blob.check_sealed(&key), want);
    assert_eq!(blob.check_plain(), Err(BadBlob::Header));
}

/// Whoever knows a prekey can put anything into a box, but only a key event derives the secret that it is sealed with.
fn box_as_it_is(inside: &[u8]) {
    let prekey = prekey_public(&PREKEY_SECRET);
    let header = [&[0x04], SPACE.0.as_slice(), &prekey_id(&prekey).0].concat();
    let sealed = seal_box(&[9; 32], &prekey, &header, inside).expect("a good prekey");
    let Ok(blob) = Blob::parse([header, sealed].concat()) else {
        return;
    };
    let want = match Envelope::decode(inside).map(|(envelope, _)| envelope.payload) {
        Ok(Payload::Key(_)) => BadBlob::Resealed,
        Ok(_) => BadBlob::Header,
        Err(why) => BadBlob::Envelope(why),
    };
    assert_eq!(blob.check_addressed(&PREKEY_SECRET), Err(want));
}

/// Key events travel addressed, and nothing else does.
fn wrap_each_way(envelope: &Envelope) {
    let (key, prekey) = (space_key(), prekey_public(&PREKEY_SECRET));
    let sign = |space, key| Envelope { space, key, ..envelope.clone() }.sign(&signer()).expect("signed");
    let is_key = envelope.kind == Kind::Key;
    let only = |is_so: bool, envelope: Verified| if is_so { Ok(envelope) } else { Err(BadBlob::Header) };
    let plain = sign(envelope.space, KeyId::ZERO);
    assert_eq!(Blob::plain(&plain).and_then(|blob| blob.check_plain()), only(!is_key, plain));
    let addressed = sign(SPACE, KeyId(prekey_id(&prekey).0));
    let opened = Blob::address(&addressed, &prekey).and_then(|blob| blob.check_addressed(&PREKEY_SECRET));
    assert_eq!(opened, only(is_key, addressed));
    let sealed = sign(SPACE, key.id());
    assert_eq!(Blob::seal(&sealed, &key).and_then(|blob| blob.check_sealed(&key)), only(!is_key, sealed.clone()));
    let again = Blob::seal_with_nonce(&sealed, &key, [1; NONCE_BYTES]).expect("a sealed blob");
    assert_eq!(again.check_sealed(&key), Err(BadBlob::Resealed));
    assert!(again.check_sealed(&SpaceKey::new(&SPACE, [0x23; 32])).is_err(), "opened with another key");
}

/// A packet as it is, and with these bytes inside.
pub fn packet(bytes: &[u8]) {
    let (transit, prekey) = (TransitSecret::new(TRANSIT_SECRET), prekey_public(&PREKEY_SECRET));
    for opened in [model::packet::unwrap(&transit, bytes), model::packet::unwrap_first(&PREKEY_SECRET, bytes)] {
        if opened.is_ok() && bytes.len() <= PACKET_BYTES_MAX {
            assert!(model::packet::parse(bytes).is_ok());
        }
    }
    let (nonce, header) = ([5; NONCE_BYTES], [&[0x02], transit.id().0.as_slice()].concat());
    let whole = [header.as_slice(), &nonce, &transit.seal(&nonce, &header, bytes)].concat();
    let opened = model::packet::unwrap(&transit, &whole);
    if let Some(carried) = carried_inside(bytes, opened) {
        assert_eq!(model::packet::parse(&whole), Ok(PacketHeader::Transit(transit.id())));
        assert_eq!(model::packet::wrap(&transit, nonce, &carried), Ok(whole));
    }
    let header = [&[0x03], prekey_id(&prekey).0.as_slice()].concat();
    let sealed = seal_box(&[6; 32], &prekey, &header, bytes).expect("a good prekey");
    let whole = [header, sealed].concat();
    let opened = model::packet::unwrap_first(&PREKEY_SECRET, &whole);
    if let Some(carried) = carried_inside(bytes, opened) {
        assert_eq!(model::packet::parse(&whole), Ok(PacketHeader::FirstMeeting(prekey_id(&prekey))));
        assert_eq!(model::packet::wrap_first([6; 32], &prekey, &carried), Ok(whole));
    }
}

/// What a packet with these bytes inside carries is in them, whole. None for what no packet of ours would carry.
fn carried_inside(bytes: &[u8], opened: Result<PacketContent, BadPacket>) -> Option<PacketContent> {
    match opened {
        Ok(PacketContent { blob, inline }) => {
            assert_eq!([&(blob.len() as u32).to_be_bytes(), blob.as_slice(), &inline].concat(), bytes);
            assert!(inline.len() <= INLINE_WIRE_BYTES_MAX);
            (blob.len() <= BLOB_BYTES_MAX).then_some(PacketContent { blob, inline })
        }
        Err(why) => {
            assert_eq!(why, BadPacket::Length);
            None
        }
    }
}

/// Content of a sealed space opens only as it was sealed: under its binding, in one way.
pub fn content(bytes: &[u8]) {
    let key = space_key();
    for binding in [ChunkBinding::Shared, INLINE] {
        if let Ok(plain) = open_content(&key, bytes, binding) {
            assert_eq!(seal(&plain, binding), bytes);
        }
        for (index, is_last) in [(0, true), (0, false), (1, true), (u64::MAX, false)] {
            let chunk = open_chunk(&key, binding, index, is_last, bytes);
            assert!(chunk.is_err() || (index, is_last) != (0, true) || chunk == open_content(&key, bytes, binding));
        }
        let sealed = seal(bytes, binding);
        assert_eq!(open_content(&key, &sealed, binding).as_deref(), Ok(bytes));
        let other = if binding == INLINE { ChunkBinding::Shared } else { INLINE };
        assert!(bytes.is_empty() || open_content(&key, &sealed, other).is_err(), "opened under another binding");
    }
    seal_under_another_nonce(bytes);
}

fn seal(plain: &[u8], binding: ChunkBinding) -> Vec<u8> {
    match binding {
        ChunkBinding::Shared => seal_content(&space_key(), plain, 0, Identity::ZERO, Nanos(0)),
        ChunkBinding::Inline { author, at } => seal_content(&space_key(), plain, u64::MAX, author, at),
    }
}

/// The first bytes are a nonce, the rest is what a holder of the key seals with it.
fn seal_under_another_nonce(bytes: &[u8]) {
    let Some((nonce, plain)) = bytes.split_first_chunk::<NONCE_BYTES>() else {
        return;
    };
    let key = space_key();
    // The first and last chunk, shared.
    let bound = [0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    let sealed = [nonce.as_slice(), &key.seal_chunk(nonce, &bound, plain)].concat();
    let is_ours = !plain.is_empty() && plain.len() <= CHUNK_BYTES && key.content_nonce(&bound, plain) == *nonce;
    assert_eq!(open_content(&key, &sealed, ChunkBinding::Shared).is_ok(), is_ours);
}

/// A body has one form; and whatever else JSON can say has at most one canonical form, which reads back.
pub fn body(bytes: &[u8]) {
    if let Ok(value) = model::body::decode(bytes) {
        assert_eq!(model::body::encode(&value).as_deref(), Ok(bytes));
    }
    let Ok(value) = serde_json::from_slice(bytes) else {
        return;
    };
    if let Ok(canonical) = model::body::encode(&value) {
        let again = model::body::decode(&canonical).expect("what was encoded decodes");
        assert_eq!(model::body::encode(&again), Ok(canonical));
    }
}

/// The payload of every kind.
pub fn payload(bytes: &[u8]) {
    for kind in Kind::ALL.iter().copied().chain([Kind::Unknown(0), Kind::Unknown(u16::MAX)]) {
        if let Ok(payload) = Payload::decode(kind, bytes) {
            assert_eq!(payload.encode(), bytes, "{kind}");
        }
    }
}

/// Needs and groups, as keys and as text.
pub fn need(bytes: &[u8]) {
    let mut reader = ByteReader::new(bytes);
    if let Ok(need) = Need::read_key(&mut reader) {
        let (key, rest) = bytes.split_at(bytes.len() - reader.rest().len());
        assert_eq!((need.to_key().as_slice(), reader.rest()), (key, rest));
        need_reads_back(&need);
    }
    if let Some(need) = std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<Need>().ok()) {
        need_reads_back(&need);
        assert_eq!(need.to_string().parse().as_ref(), Ok(&need));
    }
    if let Ok(group) = Group::from_key(bytes) {
        assert_eq!(group.to_key(), bytes);
        assert!(!group.to_string().is_empty());
    }
}

fn need_reads_back(need: &Need) {
    // A row key goes on after the need.
    let key = [need.to_key(), vec![9; 8]].concat();
    let mut reader = ByteReader::new(&key);
    assert_eq!(Need::read_key(&mut reader).as_ref(), Ok(need));
    assert_eq!(reader.rest(), [9; 8]);
    // A row may name a repository without a name, which no text does.
    if let Ok(read) = need.to_string().parse::<Need>() {
        assert_eq!(read, *need);
    }
    if let Some(group) = Group::of(need, SPACE) {
        assert_eq!(Group::from_key(&group.to_key()), Ok(group));
    }
}
