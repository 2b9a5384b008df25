//! Golden vectors of every format, and the proof that no byte of them can be changed unnoticed.
//!
//! The vectors stand in `tests/vectors`, one hex text each; a change of a format shows as a difference there.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use anteroom_model as model;
use ed25519_dalek::SigningKey;
use expect_test::expect_file;
use model::blob::{BadBlob, BlobForm};
use model::crypto::{SpaceKey, TransitSecret, prekey_id, prekey_public, public_space, space_id};
use model::envelope::{BadEnvelope, Envelope, Reference, Role, Verified};
use model::packet::{self, BadPacket, PacketContent, PacketHeader};
use model::payload::{MemberRole, Payload};
use model::{AuxKey, Blob, EventId, Identity, KeyId, Kind, Nanos, SpaceId, body, content};
use proptest::prelude::*;

const SPACE: SpaceId = SpaceId([0x51; 16]);
const PREKEY_SECRET: [u8; 32] = [0x77; 32];

fn author() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn key() -> SpaceKey {
    SpaceKey::new(&SPACE, [0x22; 32])
}

fn message(key: KeyId) -> Verified {
    let mut envelope = Envelope::new(Kind::Message, Nanos(1_700_000_000_000_000_000), SPACE, Identity::ZERO);
    let text = body::encode(&serde_json::json!({"text": "hello"})).unwrap();
    envelope.content_len = text.len() as u64;
    envelope.content_hash = model::crypto::content_hash(&text);
    envelope.key = key;
    envelope.aux = model::crypto::chosen_key("first");
    envelope.parents[0] = EventId([4; 16]);
    envelope.references = vec![
        Reference { role: Role::Thread, id: EventId([2; 16]) },
        Reference { role: Role::Authority, id: EventId([1; 16]) },
        Reference { role: Role::ReplyTo, id: EventId([3; 16]) },
    ];
    envelope.sign(&author()).unwrap()
}

fn key_event() -> Verified {
    let mut envelope = Envelope::new(Kind::Key, Nanos(1_700_000_000_000_000_001), SPACE, Identity::ZERO);
    envelope.key = KeyId(prekey_id(&prekey_public(&PREKEY_SECRET)).0);
    envelope.payload = Payload::Key(*key().secret());
    envelope.sign(&author()).unwrap()
}

fn member_event() -> Verified {
    let mut envelope = Envelope::new(Kind::Member, Nanos(1_700_000_000_000_000_002), SPACE, Identity::ZERO);
    envelope.payload = Payload::Member { member: Identity([9; 32]), role: MemberRole::Admin };
    envelope.references = vec![Reference { role: Role::Authority, id: EventId([1; 16]) }];
    envelope.sign(&author()).unwrap()
}

fn carried() -> PacketContent {
    PacketContent {
        blob: Blob::plain(&message(KeyId::ZERO)).unwrap().bytes().to_vec(),
        inline: b"{\"text\":\"hello\"}".to_vec(),
    }
}

fn golden(name: &str, text: String) {
    expect_file![format!("{}/tests/vectors/{name}.txt", env!("CARGO_MANIFEST_DIR"))].assert_eq(&format!("{text}\n"));
}

fn golden_blob(name: &str, blob: &Blob) {
    golden(name, format!("id {}\n{}", blob.id(), hex::encode(blob.bytes())));
}

#[test]
fn golden_vectors() {
    golden_blob("blob-plain", &Blob::plain(&message(KeyId::ZERO)).unwrap());
    golden_blob("blob-member", &Blob::plain(&member_event()).unwrap());
    golden_blob("blob-sealed", &Blob::seal(&message(key().id()), &key()).unwrap());
    golden_blob("blob-addressed", &Blob::address(&key_event(), &prekey_public(&PREKEY_SECRET)).unwrap());
    let transit = TransitSecret::new([0x33; 32]);
    golden("packet-transit", hex::encode(packet::wrap(&transit, [5; 24], &carried()).unwrap()));
    let first = packet::wrap_first([6; 32], &prekey_public(&PREKEY_SECRET), &carried()).unwrap();
    golden("packet-first", hex::encode(first));
    let who = Identity([3; 32]);
    golden("content-inline", hex::encode(content::seal_content(&key(), b"{\"text\":\"hello\"}", 1024, who, Nanos(5))));
    let shared = content::seal_content(&key(), &[1; 2000], 1024, who, Nanos(5));
    golden("content-shared", model::crypto::content_hash(&shared).to_string());
    golden(
        "ids",
        format!(
            "key {}\ntransit {}\nprekey {}\nspace sealed {}\nspace public {}\nchosen {}",
            key().id(),
            transit.id(),
            prekey_id(&prekey_public(&PREKEY_SECRET)),
            space_id(&who, &AuxKey([8; 16]), true),
            public_space(&who),
            model::crypto::chosen_key("first"),
        ),
    );
}

#[test]
fn what_was_made_opens() {
    let sealed = Blob::seal(&message(key().id()), &key()).unwrap();
    assert_eq!(sealed.form(), BlobForm::Sealed { space: SPACE, key: key().id() });
    assert_eq!(sealed.check_sealed(&key()).unwrap(), message(key().id()));
    let addressed = Blob::address(&key_event(), &prekey_public(&PREKEY_SECRET)).unwrap();
    assert_eq!(addressed.check_addressed(&PREKEY_SECRET).unwrap(), key_event());
    let transit = TransitSecret::new([0x33; 32]);
    let packet = packet::wrap(&transit, [5; 24], &carried()).unwrap();
    assert_eq!(packet::parse(&packet), Ok(PacketHeader::Transit(transit.id())));
    assert_eq!(packet::unwrap(&transit, &packet), Ok(carried()));
}

#[test]
fn one_envelope_has_one_blob() {
    let envelope = message(key().id());
    let again = Blob::seal_with_nonce(&envelope, &key(), [1; 24]).unwrap();
    assert_eq!(again.check_sealed(&key()), Err(BadBlob::Resealed));
    assert_eq!(Blob::plain(&envelope), Err(BadBlob::Header), "an envelope that names a key has no plain form");
    let plain = [&[0], envelope.bytes()].concat();
    assert_eq!(Blob::parse(plain).unwrap().check_plain(), Err(BadBlob::Header));
}

#[test]
fn unknown_versions_are_refused_by_name() {
    for version in (0..=255u8).filter(|version| ![0, 1, 4, 5].contains(version)) {
        let bytes = [vec![version], vec![0; 600]].concat();
        assert_eq!(Blob::parse(bytes), Err(BadBlob::Version(version)));
    }
    let mut bytes = message(KeyId::ZERO).bytes().to_vec();
    bytes[0] = 9;
    assert_eq!(Verified::check(&bytes), Err(BadEnvelope::Version(9)));
    bytes[0] = 1;
    bytes[1] = 0x80;
    assert_eq!(Verified::check(&bytes), Err(BadEnvelope::Flags(0x80)));
    assert_eq!(packet::parse(&[vec![8], vec![0; 100]].concat()), Err(BadPacket::Version(8)));
}

#[test]
fn every_flipped_byte_is_refused() {
    let plain = Blob::plain(&message(KeyId::ZERO)).unwrap();
    every_flip(plain.bytes(), |bytes| Blob::parse(bytes).is_ok_and(|blob| blob.check_plain().is_ok()));
    let sealed = Blob::seal(&message(key().id()), &key()).unwrap();
    every_flip(sealed.bytes(), |bytes| Blob::parse(bytes).is_ok_and(|blob| blob.check_sealed(&key()).is_ok()));
    let addressed = Blob::address(&key_event(), &prekey_public(&PREKEY_SECRET)).unwrap();
    every_flip(addressed.bytes(), |bytes| {
        Blob::parse(bytes).is_ok_and(|blob| blob.check_addressed(&PREKEY_SECRET).is_ok())
    });
    let transit = TransitSecret::new([0x33; 32]);
    let packet = packet::wrap(&transit, [5; 24], &carried()).unwrap();
    every_flip(&packet, |bytes| {
        packet::parse(&bytes) == Ok(PacketHeader::Transit(transit.id())) && packet::unwrap(&transit, &bytes).is_ok()
    });
}

fn every_flip(bytes: &[u8], accepts: impl Fn(Vec<u8>) -> bool) {
    assert!(accepts(bytes.to_vec()), "unchanged");
    for at in 0..bytes.len() {
        let mut changed = bytes.to_vec();
        changed[at] ^= 1 << (at % 8);
        assert!(!accepts(changed), "byte {at} may be changed");
        assert!(!accepts(bytes[..at].to_vec()), "may be cut at {at}");
    }
    assert!(!accepts([bytes, &[0]].concat()), "may be lengthened");
}

#[test]
fn envelopes_are_bounded() {
    let base = || Envelope::new(Kind::Message, Nanos(5), SPACE, Identity::ZERO);
    let sign = |envelope: Envelope| envelope.sign(&author()).map(|_| ());
    assert_eq!(sign(base()), Err(BadEnvelope::Content), "a message has content");
    let with = |change: fn(&mut Envelope)| {
        let mut envelope = message(KeyId::ZERO).envelope().clone();
        change(&mut envelope);
        sign(envelope)
    };
    assert_eq!(with(|e| e.created_at = Nanos(0)), Err(BadEnvelope::Time));
    assert_eq!(with(|e| e.created_at = Nanos(1 << 63)), Err(BadEnvelope::Time));
    assert_eq!(with(|e| e.content_len = u64::MAX), Err(BadEnvelope::ContentLength));
    let many = |e: &mut Envelope| {
        e.references = (0..65).map(|n| Reference { role: Role::Mention, id: EventId([n; 16]) }).collect();
    };
    assert_eq!(with(many), Err(BadEnvelope::References));
}

#[test]
fn weak_keys_and_foreign_signatures_are_refused() {
    let mut bytes = message(KeyId::ZERO).bytes().to_vec();
    let author_at = 1 + 1 + 2 + 8 + 16;
    bytes[author_at..author_at + 32].fill(0);
    assert_eq!(Verified::check(&bytes), Err(BadEnvelope::Signature));
    bytes[author_at] = 1;
    assert_eq!(Verified::check(&bytes), Err(BadEnvelope::Signature), "a key of small order");
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..1200)) {
        let _ = Verified::check(&bytes);
        if let Ok(blob) = Blob::parse(bytes.clone()) {
            let _ = (blob.check_plain().is_ok(), blob.check_sealed(&key()).is_ok(), blob.check_addressed(&[1; 32]).is_ok());
        }
        let _ = packet::parse(&bytes);
        let _ = packet::unwrap(&TransitSecret::new([1; 32]), &bytes);
        let _ = packet::unwrap_first(&[1; 32], &bytes);
        let _ = body::decode(&bytes);
        let _ = content::open_content(&key(), &bytes, content::ChunkBinding::Shared);
    }

    #[test]
    fn what_decodes_encodes_to_the_same_bytes(at in 1..1u64 << 60, aux: [u8; 16], count in 0..20u8) {
        let mut envelope = Envelope::new(Kind::Delete, Nanos(at), SPACE, Identity::ZERO);
        envelope.aux = AuxKey(aux);
        envelope.references = (0..count).map(|n| Reference { role: Role::Mention, id: EventId([n; 16]) }).collect();
        let signed = envelope.sign(&author()).unwrap();
        let again = Verified::check(signed.bytes()).unwrap();
        prop_assert_eq!(again.envelope().clone().sign(&author()).unwrap(), signed);
    }
}
