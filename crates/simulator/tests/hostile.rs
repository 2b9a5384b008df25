//! What attackers send: refused with a reason, counted where it is kept, nothing stored, nothing lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::protocol::space::cast::{Author, EventText, MadeEvent, Wrapping, found, send_key, write};
use anteroom_simulator::protocol::space::world::BEGINNING;
use anteroom_simulator::requests::SimRequest;
use engine::chains;
use engine::policy::Policy;
use engine::reads::Reads as _;
use engine::receive::DropReason;
use engine::rows::{Origin, Outcome, TurnedAway};
use model::blob::{BadBlob, Blob};
use model::crypto::TransitSecret;
use model::envelope::{BadEnvelope, Role};
use model::packet::{self, PacketContent};
use model::payload::Payload;
use model::stage::RefusalReason;
use model::{EventId, Kind, Nanos};
use node::WriterCore;
use node::node_commands::{AddPrekey, AddTransit, Arrive};
use std::sync::Arc;
use store::{MasterKey, Store, StoreOptions};

const NOW: Nanos = Nanos(BEGINNING + 1_000_000_000_000_000);
const PREKEY: [u8; 32] = [5; 32];

struct Fixture {
    core: WriterCore,
    policy: Policy,
}

fn fixture(policy: Policy) -> Fixture {
    let options = StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, random: store::KeySource::Seed(1) };
    let store = Store::open(Arc::new(SimDisk::new()), MasterKey::new(&[1; 32]), options).unwrap();
    let core = WriterCore::new(store);
    core.ask(AddPrekey(PREKEY, None), NOW).unwrap();
    Fixture { core, policy }
}

impl Fixture {
    fn send(&self, blob: &[u8], inline: Option<Vec<u8>>) -> Result<Outcome, DropReason> {
        let keys = self.core.store().keys().clone();
        let arrival = chains::receive_blob(&*keys, &self.policy, blob.to_vec(), inline, Origin::Peer(3))?;
        let (_, outcome) = self.core.ask(Arrive(Box::new(arrival)), NOW).unwrap();
        Ok(outcome)
    }

    fn send_made(&self, made: &MadeEvent) -> Outcome {
        self.send(&made.blob, made.inline(1024)).unwrap()
    }

    fn stored(&self) -> u64 {
        self.core.store().snapshot().unwrap().all_events().unwrap().len() as u64
    }

    fn content_of(&self, id: &EventId) -> &'static str {
        let db = self.core.store().snapshot().unwrap();
        db.event(db.seq(id).unwrap().unwrap()).unwrap().unwrap().content.word()
    }

    fn verify(&self) {
        self.core.settle(NOW).unwrap();
        assert_eq!(self.core.store().verify(NOW).unwrap().problems, Vec::<String>::new());
    }
}

fn post(at: u64, text: &str) -> MadeEvent {
    let author = Author::new(1);
    let place = Wrapping { space: author.home(), key: None };
    write(&author, &place, 1024, EventText::new(Kind::Post, BEGINNING + at, &[], text.as_bytes()))
}

#[test]
fn a_wrong_signature_is_dropped_at_the_door_and_not_stored() {
    let node = fixture(Policy::default());
    let made = post(1, "{\"text\":\"hi\"}");
    let mut blob = made.blob.clone();
    *blob.last_mut().unwrap() ^= 1;
    assert_eq!(node.send(&blob, None), Err(DropReason::Blob(BadBlob::Envelope(BadEnvelope::Signature))));
    assert_eq!(node.stored(), 0);
    assert!(matches!(node.send_made(&made), Outcome::Applied(_)), "the honest one is not hurt by it");
    node.verify();
}

#[test]
fn nonsense_of_any_length_is_dropped() {
    let node = fixture(Policy::default());
    for length in [0, 1, 2, 100, 500, 6000, 70_000] {
        for first in [0, 1, 2, 3, 4, 5, 255] {
            let mut blob = vec![0x5a; length];
            if let Some(byte) = blob.first_mut() {
                *byte = first;
            }
            if let Ok(outcome) = node.send(&blob, Some(vec![1; 100])) {
                assert!(matches!(outcome, Outcome::Carried(_)), "{length} {first}: {outcome:?}");
            }
        }
    }
    node.verify();
}

#[test]
fn two_blobs_with_one_id_the_first_stays() {
    let node = fixture(Policy::default());
    model::planted::weaken_ids(true);
    let first = post(1, "{\"text\":\"first\"}");
    let second = (2..10_000).map(|at| post(at, "{\"text\":\"second\"}")).find(|made| made.id == first.id).unwrap();
    assert!(matches!(node.send_made(&first), Outcome::Applied(_)));
    assert_eq!(node.send_made(&second), Outcome::TurnedAway(TurnedAway::Clash));
    assert!(matches!(node.send_made(&first), Outcome::Known(_)));
    assert_eq!(node.stored(), 1);
    node.verify();
    model::planted::weaken_ids(false);
}

#[test]
fn an_envelope_sealed_again_is_not_another_event() {
    let author = Author::new(1);
    let (place, founding) = found(&author, BEGINNING, 0, Some([9; 32]), 1024);
    let key = place.key.clone().unwrap();
    let again = Blob::seal_with_nonce(&founding.envelope, &key, [1; 24]).unwrap();
    let node = fixture(Policy::default());
    // Before the key is here nobody can tell; when it comes, the second is refused.
    assert!(matches!(node.send(again.bytes(), None), Ok(Outcome::Carried(_))));
    assert!(matches!(node.send_made(&founding), Outcome::Carried(_)));
    assert!(matches!(node.send_made(&send_key(&author, &place, BEGINNING, &PREKEY)), Outcome::Applied(_)));
    node.verify();
    let db = node.core.store().snapshot().unwrap();
    assert_eq!(db.refused(&again.id()).unwrap(), Some(RefusalReason::Blob));
    assert!(db.is_known(&founding.id).unwrap());
    // With the key here it is dropped at the door.
    let other = Blob::seal_with_nonce(&founding.envelope, &key, [2; 24]).unwrap();
    assert_eq!(node.send(other.bytes(), None), Err(DropReason::Blob(BadBlob::Resealed)));
}

#[test]
fn wrong_inline_content_does_not_hurt_its_event() {
    let node = fixture(Policy::default());
    let made = post(1, "{\"text\":\"hi\"}");
    let lie = vec![b'x'; made.wire.len()];
    assert!(matches!(node.send(&made.blob, Some(lie)), Ok(Outcome::Applied(_))));
    assert_eq!(node.content_of(&made.id), "missing");
    assert!(matches!(node.send_made(&made), Outcome::Known(_)), "the right bytes come with a repetition");
    assert_eq!(node.content_of(&made.id), "processed");
    node.verify();
}

#[test]
fn packets_are_dropped_without_a_secret_or_through_the_wrong_gate() {
    let node = fixture(Policy::default());
    let made = post(1, "{\"text\":\"hi\"}");
    let secret = [7; 32];
    let carried = PacketContent { blob: made.blob.clone(), inline: made.wire.clone() };
    let packet = packet::wrap(&TransitSecret::new(secret), [1; 24], &carried).unwrap();
    let receive = |packet: &[u8]| chains::receive_packet(&**node.core.store().keys(), &node.policy, packet);
    assert_eq!(receive(&packet).unwrap_err(), DropReason::Secret);
    node.core.ask(AddTransit { secret, space: Author::new(2).home(), peer: 1 }, NOW).unwrap();
    assert_eq!(receive(&packet).unwrap_err(), DropReason::Gate, "the secret is for another space");
    let other = [8; 32];
    node.core.ask(AddTransit { secret: other, space: made.envelope.space, peer: 1 }, NOW).unwrap();
    let packet = packet::wrap(&TransitSecret::new(other), [1; 24], &carried).unwrap();
    assert!(receive(&packet).is_ok());
    for at in 0..packet.len() {
        let mut changed = packet.clone();
        changed[at] ^= 0x10;
        assert!(receive(&changed).is_err(), "byte {at}");
    }
}

#[test]
fn what_breaks_a_rule_is_refused_by_name_and_remembered() {
    let node = fixture(Policy::default());
    let (owner, stranger) = (Author::new(1), Author::new(2));
    let (place, founding) = found(&owner, BEGINNING, 0, None, 1024);
    node.send_made(&founding);
    let authority = (Role::Authority, founding.id);
    let body: &[u8] = b"{\"title\":\"t\"}";
    let cases = [
        (&stranger, EventText::new(Kind::Thread, BEGINNING + 5, &[authority], body), RefusalReason::NotTheirs),
        (&stranger, EventText::new(Kind::Thread, BEGINNING + 5, &[], body), RefusalReason::Authority),
        (&owner, EventText::new(Kind::Thread, BEGINNING, &[authority], body), RefusalReason::Order),
        (&owner, EventText::new(Kind::Message, BEGINNING + 5, &[authority], body), RefusalReason::Reference),
        (&owner, EventText::new(Kind::Post, BEGINNING + 5, &[authority], body), RefusalReason::Place),
        (&owner, EventText::new(Kind::Device, BEGINNING + 5, &[authority], body), RefusalReason::AuxKey),
        (&owner, EventText::new(Kind::ThreadUpdate, BEGINNING + 5, &[authority], body), RefusalReason::Reference),
    ];
    for (author, text, why) in cases {
        let made = write(author, &place, 1024, text);
        assert_eq!(node.send_made(&made), Outcome::Refused(why));
        assert_eq!(node.send_made(&made), Outcome::Refused(why), "remembered");
    }
    let foreign = EventText::new(Kind::Space, BEGINNING + 9, &[], body).aux(model::AuxKey([7; 16]));
    let made = write(&stranger, &place, 1024, foreign.payload(Payload::Space { sealed: false }));
    assert_eq!(node.send_made(&made), Outcome::Refused(RefusalReason::SpaceId));
    assert_eq!(node.stored(), 1);
    node.verify();
}

#[test]
fn needs_that_never_come_are_bounded() {
    let policy = Policy { held_per_author_max: 10, held_max: 15, refused_max: 5, ..Policy::default() };
    let node = fixture(policy);
    for number in 0..40u64 {
        let author = Author::new(number % 4);
        let place = Wrapping { space: author.home(), key: None };
        let nowhere = EventId([number as u8 + 1; 16]);
        let text = EventText::new(Kind::Edit, BEGINNING + number, &[(Role::Target, nowhere)], b"{\"text\":\"x\"}");
        node.send_made(&write(&author, &place, 1024, text));
        assert!(node.core.store().snapshot().unwrap().held_total().unwrap() <= 15);
    }
    node.verify();
}

#[test]
fn a_cycle_never_applies_is_named_and_expires() {
    model::planted::weaken_ids(true);
    let node = fixture(Policy::default());
    let author = Author::new(1);
    let place = Wrapping { space: author.home(), key: None };
    let edit = |at: u64, target: EventId| {
        let text = EventText::new(Kind::Edit, BEGINNING + at, &[(Role::Target, target)], b"{\"text\":\"x\"}");
        write(&author, &place, 1024, text)
    };
    let mut future = [0; 16];
    future[0] = 0x77;
    let first = edit(1, EventId(future));
    let second = (2..100_000).map(|at| edit(at, first.id)).find(|made| made.id == EventId(future)).unwrap();
    for made in [&first, &second] {
        assert!(matches!(node.send_made(made), Outcome::Held(..)));
    }
    node.verify();
    let db = node.core.store().snapshot().unwrap();
    match node::explain::explain(&db, &first.id).unwrap().standing {
        node::explain::StageExplanation::Held { cycles, .. } => assert_eq!(cycles.len(), 1, "{cycles:?}"),
        other => panic!("{other:?}"),
    }
    drop(db);
    let later = NOW.plus(node.policy.hold_nanos + 1_000_000_000);
    node.core.settle(later).unwrap();
    assert_eq!(node.stored(), 0);
    model::planted::weaken_ids(false);
}

#[test]
fn an_event_that_lies_about_the_length_of_short_content_is_invalid_and_hunted_no_more() {
    let node = fixture(Policy::default());
    let author = Author::new(1);
    let honest = post(1, "{\"text\":\"hi\"}");
    let mut envelope = honest.envelope.envelope().clone();
    envelope.created_at = Nanos(BEGINNING + 2);
    envelope.content_len = 5000;
    let liar = Blob::plain(&envelope.sign(&author.key).unwrap()).unwrap();
    assert!(matches!(node.send(liar.bytes(), None), Ok(Outcome::Applied(_))));
    node.core.settle(NOW).unwrap();
    let scheduled = || node.core.store().snapshot().unwrap().schedule().unwrap().len();
    assert_eq!((node.content_of(&liar.id()), scheduled()), ("missing", 1));
    let short = SimRequest::deliver(author.home(), honest.hash(), honest.wire.clone());
    node.core.ask(short, NOW).unwrap();
    node.core.settle(NOW).unwrap();
    assert_eq!((node.content_of(&liar.id()), scheduled()), ("invalid", 0));
    assert!(matches!(node.send_made(&honest), Outcome::Applied(_)));
    assert_eq!(node.content_of(&honest.id), "processed", "whoever says the truth has the same content");
    node.verify();
}

#[test]
fn a_parent_that_is_refused_is_asked_for_no_more() {
    let node = fixture(Policy::default());
    let author = Author::new(1);
    // A follow of nobody is refused.
    let place = Wrapping { space: author.home(), key: None };
    let refused = write(&author, &place, 1024, EventText::new(Kind::Follow, BEGINNING + 1, &[], b""));
    let mut envelope = post(2, "{\"text\":\"hi\"}").envelope.envelope().clone();
    envelope.parents[0] = refused.id;
    let child = Blob::plain(&envelope.sign(&author.key).unwrap()).unwrap();
    assert!(matches!(node.send(child.bytes(), Some(b"{\"text\":\"hi\"}".to_vec())), Ok(Outcome::Applied(_))));
    node.core.settle(NOW).unwrap();
    let scheduled = || node.core.store().snapshot().unwrap().schedule().unwrap().len();
    assert_eq!(scheduled(), 1, "the parent is hunted for");
    assert!(matches!(node.send_made(&refused), Outcome::Refused(_)));
    node.core.settle(NOW).unwrap();
    assert_eq!(scheduled(), 0);
    node.verify();
}
