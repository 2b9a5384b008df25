//! CREATE: times that win, failures with a name, keys for others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::protocol::space::cast::{Author, found};
use anteroom_simulator::protocol::space::world::BEGINNING;
use engine::chains;
use engine::create::{CreateError, NewEvent, Seal};
use engine::reads::Reads as _;
use engine::rows::Origin;
use model::crypto::prekey_public;
use model::envelope::Role;
use model::payload::{MemberRole, Payload};
use model::{AuxKey, EventId, Kind, Nanos, Reference, SpaceId, Stamp};
use node::commands::CommandError;
use node::node_commands::{Arrive, Create};
use node::{AskError, WriterCore};
use std::sync::Arc;
use store::{MasterKey, Store, StoreOptions};

const NOW: u64 = BEGINNING + 1_000_000_000_000;

struct NodeFixture {
    core: WriterCore,
    space: SpaceId,
    founding: EventId,
}

fn fixture() -> NodeFixture {
    let options = StoreOptions {
        cache_bytes: 4 << 20,
        reserve_bytes: 0,
        random: store::KeySource::Seed(1),
        ..StoreOptions::default()
    };
    let core = WriterCore::new(Store::open(Arc::new(SimDisk::new()), MasterKey::new(&[1; 32]), options).unwrap());
    let (place, founding) = found(&Author::new(0), BEGINNING, 0, None, 1024);
    let keys = core.store().keys().clone();
    let inline = founding.inline(1024);
    let policy = *core.store().policy();
    let arrival = chains::receive_blob(&*keys, &policy, founding.blob.clone(), inline, Origin::Import).unwrap();
    core.ask(Arrive(Box::new(arrival)), Nanos(NOW)).unwrap();
    NodeFixture { core, space: place.space, founding: founding.id }
}

impl NodeFixture {
    fn draft(&self, kind: Kind, references: &[(Role, EventId)], content: &str) -> NewEvent {
        let authority = (Role::Authority, self.founding);
        let all = references.iter().copied().chain([authority]);
        NewEvent {
            kind,
            space: self.space,
            aux: AuxKey::ZERO,
            payload: Payload::None,
            references: all.map(|(role, id)| Reference { role, id }).collect(),
            content: content.as_bytes().to_vec(),
            seal: Seal::Plain,
        }
    }

    fn create(&self, draft: NewEvent, now: u64) -> Result<EventId, CreateError> {
        let command = Create { author: Box::new(Author::new(0).key), draft: Box::new(draft) };
        match self.core.ask(command, Nanos(now)) {
            Ok(id) => Ok(id),
            Err(AskError::Refused(CommandError::Create(why))) => Err(why),
            Err(other) => panic!("{other:?}"),
        }
    }

    fn verify(&self) {
        self.core.settle(Nanos(NOW)).unwrap();
        assert_eq!(self.core.store().verify(Nanos(NOW)).unwrap().problems, Vec::<String>::new());
    }
}

#[test]
fn an_edit_from_a_slow_clock_still_wins() {
    let fixture = fixture();
    let thread = fixture.create(fixture.draft(Kind::Thread, &[], "{\"title\":\"t\"}"), NOW).unwrap();
    let message =
        fixture.create(fixture.draft(Kind::Message, &[(Role::Thread, thread)], "{\"text\":\"1\"}"), NOW).unwrap();
    let target = [(Role::Target, message)];
    fixture.create(fixture.draft(Kind::Edit, &target, "{\"text\":\"2\"}"), NOW + 5_000_000_000).unwrap();
    let last = fixture.create(fixture.draft(Kind::Edit, &target, "{\"text\":\"3\"}"), NOW - 5_000_000_000).unwrap();
    let db = fixture.core.store().snapshot().unwrap();
    let page = db.timeline(db.seq(&thread).unwrap().unwrap(), Stamp::LAST, 10).unwrap();
    assert_eq!(page[0].version.id, last);
    let envelope = db.opened(db.seq(&last).unwrap().unwrap()).unwrap().unwrap();
    assert!(envelope.parents.iter().all(|parent| !parent.is_zero()), "it names the author's last two");
    fixture.verify();
}

#[test]
fn it_never_holds_and_fails_with_a_name() {
    let fixture = fixture();
    let nowhere = EventId([7; 16]);
    let draft = fixture.draft(Kind::Message, &[(Role::Thread, nowhere)], "{\"text\":\"1\"}");
    assert_eq!(fixture.create(draft, NOW), Err(CreateError::Reference(nowhere)));
    assert_eq!(fixture.create(fixture.draft(Kind::Thread, &[], "no"), NOW), Err(CreateError::Content(Kind::Thread)));
    let misplaced = fixture.create(fixture.draft(Kind::Post, &[], "{\"text\":\"1\"}"), NOW);
    assert!(matches!(misplaced, Err(CreateError::NotApplied(_))), "{misplaced:?}");
    let (mut grant, member) = (fixture.draft(Kind::Member, &[], ""), Author::new(1).identity);
    grant.payload = Payload::Member { member, role: MemberRole::Member };
    let grant = fixture.create(grant, NOW).unwrap();
    let removal = fixture.create(fixture.draft(Kind::Removal, &[(Role::Target, grant)], ""), NOW);
    removal.unwrap();
    let mut late = fixture.draft(Kind::Thread, &[], "{\"title\":\"t\"}");
    late.references = vec![Reference { role: Role::Authority, id: grant }];
    let command = Create { author: Box::new(Author::new(1).key), draft: Box::new(late) };
    let answer = fixture.core.ask(command, Nanos(NOW + 10));
    assert_eq!(answer, Err(AskError::Refused(CreateError::NoRight.into())));
    fixture.verify();
}

#[test]
fn a_key_for_somebody_else_is_carried_for_them() {
    let fixture = fixture();
    let mut draft = fixture.draft(Kind::Key, &[], "");
    draft.references.clear();
    draft.payload = Payload::Key([3; 32]);
    draft.seal = Seal::Prekey(prekey_public(&[9; 32]));
    let id = fixture.create(draft, NOW).unwrap();
    let db = fixture.core.store().snapshot().unwrap();
    assert_eq!(db.event(db.seq(&id).unwrap().unwrap()).unwrap().unwrap().stage.word(), "carried");
    fixture.verify();
}
