//! What the fuzzer begins with: the golden vectors, what is made here, and some of both cut or changed.

use super::{INLINE, PREKEY_SECRET, SPACE, master_key, space_key};
use crate::disk::SimDisk;
use crate::protocol::space::cast::{Author, EventText, Wrapping, write};
use crate::requests::SimRequest;
use engine::chains::receive_blob;
use engine::rows::Origin;
use model::content::{ChunkBinding, seal_content};
use model::crypto::{content_hash, prekey_id, prekey_public};
use model::payload::{MemberRole, Payload};
use model::{ContentHash, Envelope, EventId, Group, Identity, KeyId, Kind, Nanos, Need, NostrKey, Verified};
use node::WriterCore;
use node::bundle::BundleWriter;
use std::io;
use std::path::Path;
use std::sync::Arc;
use store::{Store, StoreOptions};

/// Seeds, each with a name.
pub type Seeds = Vec<(String, Vec<u8>)>;

/// The seeds of a decoder.
pub fn of(decoder: &str) -> Seeds {
    match decoder {
        "arrival" => scripts(),
        "backup" => backups(),
        "blob" => blobs(),
        "body" => bodies(),
        "bundle" => bundles().expect("memory takes everything"),
        "content" => contents(),
        "envelope" => envelopes(),
        "need" => needs(),
        "packet" => packets(),
        "payload" => payloads(),
        other => panic!("no decoder {other}"),
    }
}

fn named<const N: usize>(seeds: [(&str, &[u8]); N]) -> Seeds {
    seeds.map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).to_vec()
}

/// The last line of a golden vector, which is hexadecimal.
fn vector(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../model/tests/vectors/{name}.txt"));
    let text = std::fs::read_to_string(path).expect("a golden vector");
    let digits = text.lines().last().unwrap_or_default().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(&String::from_utf8_lossy(pair), 16).expect("hexadecimal digits");
    digits.chunks(2).map(byte).collect()
}

fn flipped(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bytes
}

fn sign(kind: Kind, key: KeyId, payload: Payload) -> Verified {
    let mut envelope = Envelope::new(kind, Nanos(5), SPACE, Identity::ZERO);
    envelope.key = key;
    envelope.payload = payload;
    envelope.sign(&Author::new(1).key).expect("a well-formed envelope")
}

fn key_event() -> Verified {
    let prekey = KeyId(prekey_id(&prekey_public(&PREKEY_SECRET)).0);
    sign(Kind::Key, prekey, Payload::Key(*space_key().secret()))
}

fn unknown_event() -> Verified {
    sign(Kind::Unknown(999), KeyId::ZERO, Payload::Opaque(vec![1, 2, 3]))
}

fn envelopes() -> Seeds {
    let (message, member) = (&vector("blob-plain")[1..], &vector("blob-member")[1..]);
    let (key, unknown) = (key_event(), unknown_event());
    let made = named([("message", message), ("member", member), ("cut", &message[..200])]);
    [made, named([("key", key.bytes()), ("unknown", unknown.bytes())])].concat()
}

fn blobs() -> Seeds {
    let vectors = ["plain", "member", "sealed", "addressed"];
    let mut seeds: Seeds = vectors.map(|name| (name.to_owned(), vector(&format!("blob-{name}")))).to_vec();
    let (key, unknown) = (key_event(), unknown_event());
    seeds.extend(named([("key-inside", key.bytes()), ("unknown-inside", unknown.bytes())]));
    seeds.extend(named([("flipped", &flipped(&vector("blob-sealed")))]));
    seeds
}

fn packets() -> Seeds {
    let (transit, first, blob) = (vector("packet-transit"), vector("packet-first"), vector("blob-plain"));
    let inside = [&(blob.len() as u32).to_be_bytes(), blob.as_slice(), b"{}"].concat();
    let made = named([("transit", &transit), ("first", &first), ("inside", &inside)]);
    [made, named([("flipped", &flipped(&transit)), ("short-inside", &[0, 0, 0, 9, 1])])].concat()
}

fn contents() -> Seeds {
    let ChunkBinding::Inline { author, at } = INLINE else {
        return Seeds::new();
    };
    let shared = seal_content(&space_key(), &[1; 100], 0, author, at);
    let inline = vector("content-inline");
    let made = named([("inline", &inline), ("shared", &shared)]);
    [made, named([("flipped", &flipped(&inline)), ("cut", &shared[..50])])].concat()
}

fn bodies() -> Seeds {
    let numbers = br#"{"a":[0,-1,1.5,1e+21,1e-7,9007199254740993,18446744073709551616,true,null]}"#;
    let strings = "{\"a\":\"\\u0001\\n\\\"\\\\é\u{1f600}\",\"é\":{\"b\":[[{}]]}}".as_bytes();
    let good = named([("empty", b"{}"), ("text", br#"{"text":"hello"}"#), ("strings", strings)]);
    let half = br#"{"a":"\ud800"}"#;
    [good, named([("numbers", numbers), ("spaces", br#"{ "a": [ 1 , 2.0 ] }"#), ("half", half)])].concat()
}

fn payloads() -> Seeds {
    let (member, role) = (Identity([9; 32]), MemberRole::Admin);
    let member = Payload::Member { member, role }.encode();
    named([("none", &[]), ("space", &[1]), ("key", &[7; 32]), ("member", &member)])
}

fn needs() -> Seeds {
    let (author, owner) = (NostrKey([3; 32]), NostrKey([8; 32]));
    let (identifier, oid) = ("a:b".to_owned(), [4; 20]);
    let needs = [
        Need::Event(EventId([1; 16])),
        Need::Key(KeyId([2; 16])),
        Need::Address { kind: 30617, author, identifier },
        Need::GitObject { owner, identifier: "r".into(), oid },
        Need::GitData { owner, identifier: "repo".into() },
        Need::Time(Nanos(77)),
        Need::Content(SPACE, ContentHash([6; 32])),
    ];
    let keys = needs.iter().map(|need| (need.word().to_owned(), need.to_key()));
    let texts = needs.iter().map(|need| (format!("{}-text", need.word()), need.to_string().into_bytes()));
    let group = ("group".to_owned(), Group::Author(SPACE, Identity([3; 32])).to_key());
    keys.chain(texts).chain([group]).collect()
}

/// A step is the number of an event, what to do, and with what; the first byte chooses the limits of the node.
fn scripts() -> Seeds {
    let everything = [0, 1, 0, 63, 0, 1, 63, 63];
    let contents_and_collect = [9, 6, 10, 6, 11, 6, 0, 10, 7];
    let late_then_early = [0, 1, 30, 63, 0, 9, 52, 0, 0, 0, 0, 1, 0, 40];
    let bent = [5, 4, 2, 3, 2, 2, 7, 1, 9, 0, 9, 4, 1, 12, 8, 3, 14, 4, 1, 3, 5, 40, 9, 0, 20, 4, 1, 2, 0, 13, 9];
    let changed = [3, 2, 1, 0, 40, 1, 0, 4, 3, 1, 0, 3, 9, 1, 3, 8, 0, 0, 0, 3, 8, 0, 1, 0, 2, 7, 1, 0, 0, 1, 5];
    let upkeep = [9, 6, 9, 10, 0, 9, 10, 1, 9, 10, 2, 9, 10, 6, 3, 9, 9, 40, 9, 10, 7, 9, 10, 4];
    let mut seeds = Seeds::new();
    for (limits, number) in [("usual", 0), ("tight", 1)] {
        let mut put = |name: &str, parts: &[&[u8]]| {
            seeds.push((format!("{limits}-{name}"), [&[number], parts.concat().as_slice()].concat()));
        };
        put("honest", &[&everything, &contents_and_collect]);
        put("late", &[&late_then_early]);
        put("bent", &[&everything, &bent]);
        put("changed", &[&changed]);
        put("upkeep", &[&everything, &upkeep]);
    }
    let made_up = [vec![0, 0, 5, 100], vec![1; 400], vec![10], vec![2; 40], vec![0]].concat();
    [seeds, named([("made-up", &made_up)])].concat()
}

fn bundles() -> io::Result<Seeds> {
    let mut writer = BundleWriter::new(Vec::new())?;
    writer.event(&vector("blob-plain"), br#"{"text":"hello"}"#)?;
    writer.event(&vector("blob-sealed"), b"")?;
    writer.content(&SPACE, &content_hash(b"content"), b"content")?;
    let whole = writer.finish()?;
    let (empty, cut) = (BundleWriter::new(Vec::new())?.finish()?, &whole[..whole.len() - 50]);
    let long = [&whole[..16], &[2, 4, 0, 0, 0, 9, 9]].concat();
    let good = named([("whole", &whole), ("empty", &empty), ("cut", cut)]);
    let after = [whole.as_slice(), &[0]].concat();
    Ok([good, named([("flipped", &flipped(&whole)), ("long", &long), ("after-end", &after)])].concat())
}

fn backups() -> Seeds {
    let options = StoreOptions {
        cache_bytes: 4 << 20,
        reserve_bytes: 0,
        random: store::KeySource::Seed(1),
        ..StoreOptions::default()
    };
    let store = Store::open(Arc::new(SimDisk::new()), master_key(), options).expect("an empty disk");
    let empty = backed_up(&store);
    let (author, keys) = (Author::new(1), store.keys().clone());
    let place = Wrapping { space: author.home(), key: None };
    let made = write(&author, &place, 1024, EventText::new(Kind::Post, 5, &[], br#"{"text":"hi"}"#));
    let arrival = receive_blob(&*keys, &options.policy, made.blob.clone(), made.inline(1024), Origin::Import);
    let arrive = SimRequest::arrive(arrival.expect("an honest event"));
    let core = WriterCore::new(store);
    core.run(vec![arrive, SimRequest::add_prekey([5; 32])], Nanos(9)).expect("a healthy disk");
    let whole = backed_up(core.store());
    let good = named([("whole", &whole), ("empty", &empty), ("header", &whole[..72])]);
    [good, named([("cut", &whole[..whole.len() - 20]), ("flipped", &flipped(&whole))])].concat()
}

fn backed_up(store: &Store) -> Vec<u8> {
    let path = std::env::temp_dir().join(format!("anteroom-seed-{}", std::process::id()));
    store.backup(&path, Nanos(9), &mut |_| ()).expect("a writable folder for temporary files");
    let bytes = std::fs::read(&path).expect("a backup");
    std::fs::remove_file(&path).expect("a backup");
    bytes
}
