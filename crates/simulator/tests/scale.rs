//! A hundred thousand events in the worst order: a chain delivered backwards, and a crowd that waits for one need.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use anteroom_simulator::disk::SimDisk;
use anteroom_simulator::protocol::space::cast::{Author, EventText, MadeEvent, found, grant, write};
use anteroom_simulator::protocol::space::world::BEGINNING;
use engine::chains;
use engine::reads::Reads as _;
use engine::rows::Origin;
use model::envelope::Role;
use model::payload::MemberRole;
use model::{Group, Kind, Nanos, Need};
use node::WriterCore;
use node::node_commands::Arrive;
use std::sync::Arc;
use store::{MasterKey, Store, StoreOptions};

const MANY: u64 = 100_000;
const NOW: Nanos = Nanos(BEGINNING + 1_000_000_000_000_000);

fn core() -> WriterCore {
    let options = StoreOptions { reserve_bytes: 0, random: store::KeySource::Seed(1), ..StoreOptions::default() };
    WriterCore::new(Store::open(Arc::new(SimDisk::new()), MasterKey::new(&[1; 32]), options).unwrap())
}

fn deliver<'a>(core: &WriterCore, events: impl Iterator<Item = &'a MadeEvent>) {
    let mut batch = Vec::new();
    for made in events {
        let keys = core.store().keys().clone();
        let inline = made.inline(1024);
        let arrival = chains::receive_blob(&*keys, core.store().policy(), made.blob.clone(), inline, Origin::Import);
        batch.push(Arrive(Box::new(arrival.unwrap())));
        if batch.len() == 4000 {
            core.run(std::mem::take(&mut batch), NOW).unwrap();
        }
    }
    core.run(batch, NOW).unwrap();
    core.settle(NOW).unwrap();
}

fn held(core: &WriterCore) -> u64 {
    core.store().snapshot().unwrap().held_total().unwrap()
}

fn applied(core: &WriterCore) -> u64 {
    core.store().snapshot().unwrap().position().unwrap().number
}

/// Owners who make the next one owner: each grant stands on the one before.
fn chain(length: u64) -> Vec<MadeEvent> {
    let (place, founding) = found(&Author::new(0), BEGINNING, 0, None, 1024);
    let mut events = vec![founding];
    for number in 1..length {
        let (giver, taker) = (Author::new(number - 1), Author::new(number));
        let authority = events.last().map(|made| made.id).unwrap();
        let text = EventText::new(Kind::Member, BEGINNING + number, &[(Role::Authority, authority)], b"");
        events.push(write(&giver, &place, 1024, text.payload(grant(&taker, MemberRole::Owner))));
    }
    events
}

#[test]
fn a_chain_of_a_hundred_thousand_delivered_backwards_applies() {
    let events = chain(MANY);
    let core = core();
    deliver(&core, events[1..].iter().rev());
    assert_eq!((held(&core), applied(&core)), (MANY - 1, 0));
    deliver(&core, events[..1].iter());
    assert_eq!(held(&core), 0);
    assert_eq!(applied(&core), MANY, "one journal entry for each event");
}

#[test]
fn a_hundred_thousand_that_wait_for_one_need_apply() {
    let author = Author::new(0);
    let (place, founding) = found(&author, BEGINNING, 0, None, 1024);
    let authority = (Role::Authority, founding.id);
    let thread =
        write(&author, &place, 1024, EventText::new(Kind::Thread, BEGINNING + 1, &[authority], b"{\"title\":\"t\"}"));
    let references = [authority, (Role::Thread, thread.id)];
    let say = |number: u64| {
        write(
            &author,
            &place,
            1024,
            EventText::new(Kind::Message, BEGINNING + 2 + number, &references, b"{\"text\":\"hi\"}"),
        )
    };
    let messages: Vec<MadeEvent> = (0..MANY).map(say).collect();
    let core = core();
    deliver(&core, [&founding].into_iter().chain(&messages));
    assert_eq!(held(&core), MANY);
    deliver(&core, [&thread].into_iter());
    assert_eq!(held(&core), 0);
    assert_eq!(applied(&core), MANY + 2);
}

#[test]
fn what_came_together_is_released_together_whatever_it_waited_for() {
    // In turn, thread after thread, and one thread much more than the others.
    released_in_the_order_of_arrival(|number| number % 20);
    released_in_the_order_of_arrival(|number| number / 200);
    released_in_the_order_of_arrival(|number| if number % 40 < 21 { number % 40 } else { 0 } % 20);
}

/// Messages wait for the threads that a function says, in the order of their numbers. Then all threads come.
fn released_in_the_order_of_arrival(thread_of: impl Fn(u64) -> u64) {
    let author = Author::new(0);
    let (place, founding) = found(&author, BEGINNING, 0, None, 1024);
    let authority = (Role::Authority, founding.id);
    let open = |number| {
        let title = format!("{{\"title\":\"{number}\"}}");
        write(&author, &place, 1024, EventText::new(Kind::Thread, BEGINNING + 1, &[authority], title.as_bytes()))
    };
    let threads: Vec<MadeEvent> = (0..20).map(open).collect();
    let say = |number: u64| {
        let references = [authority, (Role::Thread, threads[thread_of(number) as usize].id)];
        let text = EventText::new(Kind::Message, BEGINNING + 2 + number, &references, b"{\"text\":\"hi\"}");
        write(&author, &place, 1024, text)
    };
    let messages: Vec<MadeEvent> = (0..4000).map(say).collect();
    let core = core();
    deliver(&core, [&founding].into_iter().chain(&messages));
    let before = applied(&core);
    deliver(&core, threads.iter());
    assert_eq!(held(&core), 0);
    let db = core.store().snapshot().unwrap();
    let entries = db.journal(None, before + threads.len() as u64, usize::MAX).unwrap();
    assert_eq!(entries.len(), messages.len());
    assert!(entries.is_sorted_by_key(|(_, entry)| entry.seq), "rows that lie together are written together");
    assert!(core.store().verify(NOW).unwrap().problems.is_empty());
}

#[test]
fn what_is_absent_is_hunted_however_much_is_only_held() {
    let core = core();
    let length = 12_000;
    let chain = chain(length);
    // All but the first and the second: each waits for the one before it, which is here and waits itself.
    deliver(&core, chain[2..].iter());
    assert_eq!(held(&core), length - 2);
    let db = core.store().snapshot().unwrap();
    let (group, absent) = (Group::Space(chain[0].envelope.space), Need::Event(chain[1].id));
    assert_eq!(db.needs_of(&group, 10).unwrap(), [absent]);
    assert!(db.schedule_row(&group).unwrap().is_some(), "somebody looks for it");
    drop(db);
    deliver(&core, chain[1..2].iter());
    let db = core.store().snapshot().unwrap();
    assert_eq!(db.needs_of(&group, 10).unwrap(), [Need::Event(chain[0].id)]);
    drop(db);
    deliver(&core, chain[..1].iter());
    assert_eq!((held(&core), applied(&core)), (0, length));
    let db = core.store().snapshot().unwrap();
    assert!(db.needs_of(&group, 10).unwrap().is_empty() && db.schedule_row(&group).unwrap().is_none());
    assert!(core.store().verify(NOW).unwrap().problems.is_empty());
}
