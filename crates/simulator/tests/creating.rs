//! CREATE: times that win, failures with a name, keys for others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::cast::{Author, found};
use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::world::BEGINNING;
use engine::chains;
use engine::create::{CannotCreate, Draft, Seal};
use engine::reads::Reads as _;
use engine::rows::Origin;
use model::crypto::prekey_public;
use model::envelope::Role;
use model::payload::{MemberRole, Payload};
use model::{AuxKey, EventId, Kind, Nanos, Reference, SpaceId, Stamp};
use node::{Core, Reply, Request};
use std::sync::Arc;
use store::{MasterKey, Options, Store};

const NOW: u64 = BEGINNING + 1_000_000_000_000;

struct Scene {
    core: Core,
    space: SpaceId,
    founding: EventId,
}

fn scene() -> Scene {
    let options =
        Options { cache_bytes: 4 << 20, reserve_bytes: 0, chance: store::Chance::Seed(1), ..Options::default() };
    let core = Core::new(Store::open(Arc::new(SimDisk::new()), MasterKey::new(&[1; 32]), options).unwrap());
    let (place, founding) = found(&Author::new(0), BEGINNING, 0, None, 1024);
    let keys = core.store().keys().clone();
    let inline = founding.inline(1024);
    let policy = *core.store().policy();
    let arrival = chains::receive_blob(&*keys, &policy, founding.blob.clone(), inline, Origin::Import).unwrap();
    core.run(vec![Request::Arrive(Box::new(arrival))], Nanos(NOW)).unwrap();
    Scene { core, space: place.space, founding: founding.id }
}

impl Scene {
    fn draft(&self, kind: Kind, references: &[(Role, EventId)], content: &str) -> Draft {
        let authority = (Role::Authority, self.founding);
        let all = references.iter().copied().chain([authority]);
        Draft {
            kind,
            space: self.space,
            aux: AuxKey::ZERO,
            payload: Payload::None,
            references: all.map(|(role, id)| Reference { role, id }).collect(),
            content: content.as_bytes().to_vec(),
            seal: Seal::Plain,
        }
    }

    fn create(&self, draft: Draft, now: u64) -> Result<EventId, CannotCreate> {
        let request = Request::Create(Box::new(Author::new(0).key), Box::new(draft));
        match self.core.run(vec![request], Nanos(now)).unwrap().replies.remove(0) {
            Reply::Created(created) => created,
            other => panic!("{other:?}"),
        }
    }

    fn verify(&self) {
        self.core.settle(Nanos(NOW)).unwrap();
        assert_eq!(self.core.store().verify(Nanos(NOW)).unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn an_edit_from_a_slow_clock_still_wins() {
    let scene = scene();
    let thread = scene.create(scene.draft(Kind::Thread, &[], "{\"title\":\"t\"}"), NOW).unwrap();
    let message = scene.create(scene.draft(Kind::Message, &[(Role::Thread, thread)], "{\"text\":\"1\"}"), NOW).unwrap();
    let target = [(Role::Target, message)];
    scene.create(scene.draft(Kind::Edit, &target, "{\"text\":\"2\"}"), NOW + 5_000_000_000).unwrap();
    let last = scene.create(scene.draft(Kind::Edit, &target, "{\"text\":\"3\"}"), NOW - 5_000_000_000).unwrap();
    let db = scene.core.store().snapshot().unwrap();
    let page = db.timeline(db.seq(&thread).unwrap().unwrap(), Stamp::LAST, 10).unwrap();
    assert_eq!(page[0].version.id, last);
    let envelope = db.opened(db.seq(&last).unwrap().unwrap()).unwrap().unwrap();
    assert!(envelope.parents.iter().all(|parent| !parent.is_zero()), "it names the author's last two");
    scene.verify();
}

#[test]
fn it_never_holds_and_fails_with_a_name() {
    let scene = scene();
    let nowhere = EventId([7; 16]);
    let draft = scene.draft(Kind::Message, &[(Role::Thread, nowhere)], "{\"text\":\"1\"}");
    assert_eq!(scene.create(draft, NOW), Err(CannotCreate::Reference(nowhere)));
    assert_eq!(scene.create(scene.draft(Kind::Thread, &[], "no"), NOW), Err(CannotCreate::Content(Kind::Thread)));
    let misplaced = scene.create(scene.draft(Kind::Post, &[], "{\"text\":\"1\"}"), NOW);
    assert!(matches!(misplaced, Err(CannotCreate::NotApplied(_))), "{misplaced:?}");
    let (mut grant, member) = (scene.draft(Kind::Member, &[], ""), Author::new(1).identity);
    grant.payload = Payload::Member { member, role: MemberRole::Member };
    let grant = scene.create(grant, NOW).unwrap();
    let removal = scene.create(scene.draft(Kind::Removal, &[(Role::Target, grant)], ""), NOW);
    removal.unwrap();
    let mut late = scene.draft(Kind::Thread, &[], "{\"title\":\"t\"}");
    late.references = vec![Reference { role: Role::Authority, id: grant }];
    let request = Request::Create(Box::new(Author::new(1).key), Box::new(late));
    let replies = scene.core.run(vec![request], Nanos(NOW + 10)).unwrap().replies;
    assert_eq!(replies, vec![Reply::Created(Err(CannotCreate::NoRight))]);
    scene.verify();
}

#[test]
fn a_key_for_somebody_else_is_carried_for_them() {
    let scene = scene();
    let mut draft = scene.draft(Kind::Key, &[], "");
    draft.references.clear();
    draft.payload = Payload::Key([3; 32]);
    draft.seal = Seal::Prekey(prekey_public(&[9; 32]));
    let id = scene.create(draft, NOW).unwrap();
    let db = scene.core.store().snapshot().unwrap();
    assert_eq!(db.event(db.seq(&id).unwrap().unwrap()).unwrap().unwrap().stage.word(), "carried");
    scene.verify();
}
