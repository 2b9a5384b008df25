//! What is known of repositories: which refs have to be looked at, and which objects are here.

use super::{Item, MINUTE, NOW, address, announcement, bring, key, oid, open, sign, state};
use anteroom_simulator::disk::SimDisk;
use engine::reads::NostrReads as _;
use model::NostrKey;
use model::nostr::NostrId;
use node::WriterCore;
use std::collections::BTreeSet;

/// Whose refs have to be looked at.
fn to_align(core: &WriterCore) -> BTreeSet<NostrKey> {
    let db = core.store().snapshot().unwrap();
    let asked = db.repositories_to_align(100).unwrap();
    asked.into_iter().map(|(alignment, _)| alignment.owner).collect()
}

fn note_aligned(core: &WriterCore) {
    let asked = core.store().snapshot().unwrap().repositories_to_align(100).unwrap();
    core.ask(node::nostr::NoteAligned(asked), NOW).unwrap();
    assert_eq!(to_align(core), BTreeSet::new());
}

#[test]
fn refs_are_looked_at_when_an_event_begins_to_wait_and_when_it_goes() {
    let core = open(&SimDisk::new());
    bring(&core, &Item::Event(announcement(1, 1, true, &[])));
    assert_eq!(to_align(&core), [key(1)].into());
    note_aligned(&core);
    bring(&core, &Item::Event(state(1, 2, &[("main", 1)])));
    assert_eq!(to_align(&core), [key(1)].into());
    note_aligned(&core);
    core.settle(NOW.plus(31 * MINUTE)).unwrap();
    assert_eq!(to_align(&core), [key(1)].into(), "both have expired");
}

#[test]
fn refs_of_everybody_concerned_are_looked_at_when_maintainers_change() {
    let core = open(&SimDisk::new());
    // One and two name each other; three and four do; nobody waits for data.
    for author in 1..=4 {
        bring(&core, &Item::Data { owner: author, present: Vec::new(), is_authorised: true });
    }
    for (author, named) in [(1, [2]), (2, [1]), (3, [4]), (4, [3])] {
        bring(&core, &Item::Event(announcement(author, 1, true, &named)));
    }
    note_aligned(&core);
    // Two leaves one for three, who has not agreed: all four may have other refs now.
    bring(&core, &Item::Event(announcement(2, 2, true, &[3])));
    assert_eq!(to_align(&core), [1, 2, 3, 4].map(key).into());
    note_aligned(&core);
    bring(&core, &Item::Event(announcement(3, 2, true, &[2, 4])));
    note_aligned(&core);
    // Three goes: those who were confirmed through three are others now.
    bring(&core, &Item::Event(sign(3, 3, 5, &[&["a", &address(3)]])));
    assert_eq!(to_align(&core), [2, 3, 4].map(key).into());
}

#[test]
fn data_that_is_known_changes_nothing() {
    let core = open(&SimDisk::new());
    bring(&core, &Item::Event(announcement(1, 1, true, &[])));
    let data = Item::Data { owner: 1, present: vec![1, 2], is_authorised: true };
    bring(&core, &data);
    assert_eq!(to_align(&core), [key(1)].into());
    note_aligned(&core);
    bring(&core, &data);
    assert_eq!(to_align(&core), BTreeSet::new(), "otherwise refs would be looked at without an end");
}

#[test]
fn objects_are_not_forgotten_while_refs_are_to_be_looked_at() {
    let core = open(&SimDisk::new());
    bring(&core, &Item::Event(announcement(1, 1, true, &[])));
    bring(&core, &Item::Data { owner: 1, present: vec![1, 2], is_authorised: true });
    let (owner, name) = (key(1), model::nostr::AddressName::of("tool"));
    let forget = || core.ask(node::nostr::NoteAbsent { owner, name, oids: vec![oid(2)] }, NOW).unwrap();
    let present = || core.store().snapshot().unwrap().present_objects(&owner, &name, None, 100).unwrap();
    assert!(!forget());
    assert_eq!(present(), [oid(1), oid(2)]);
    note_aligned(&core);
    assert!(forget());
    assert_eq!(present(), [oid(1)]);
}

#[test]
fn a_contributors_repository_stays_while_a_push_is_on_its_way_or_has_come() {
    let core = open(&SimDisk::new());
    let (owner, identifier, id) = (key(1), "prs/tool".to_owned(), NostrId([7; 32]));
    let stays = |after: Option<NostrId>| {
        let (owner, identifier) = (owner, identifier.clone());
        let store = [1; 16];
        core.ask(node::nostr::AssignStore { owner, identifier: identifier.clone(), own: store }, NOW).unwrap();
        let forget = node::nostr::ForgetRepository {
            owner,
            identifier: identifier.clone(),
            objects_max: 9,
            is_banned: false,
            after,
        };
        assert!(core.ask(forget, NOW).unwrap());
        core.store().snapshot().unwrap().git_store(&owner, &identifier).unwrap().is_some()
    };
    let pushed =
        engine::rows::PushedCommit { owner, identifier: identifier.clone(), pull_request: id, oid: oid(1), until: NOW };
    let note = |change| core.ask(node::nostr::NotePushed(change, vec![pushed.clone()]), NOW).unwrap();
    assert!(!stays(None), "nothing is left of it");
    note(engine::change::RowChange::Put);
    assert!(stays(None) && stays(Some(id)), "a commit waits for its event");
    note(engine::change::RowChange::Remove);
    assert!(stays(None), "its ref is to be looked at");
    assert!(!stays(Some(id)), "which was just done");
    note_aligned(&core);
    let (owners, identifier, present) = ([owner].into(), identifier.clone(), [oid(1)].into());
    let (is_authorised, looks_anyway, pull_requests) = (false, false, [(owner, id)].into());
    let arrived = node::nostr::GitArrived { owners, identifier, present, is_authorised, looks_anyway, pull_requests };
    core.ask(arrived, NOW).unwrap();
    let asked = core.store().snapshot().unwrap().repositories_to_align(9).unwrap();
    assert!(asked.iter().any(|(alignment, _)| alignment.pull_request == Some(id)), "{asked:?}");
    note_aligned(&core);
    assert!(stays(None), "a commit is here");
    assert!(!stays(Some(id)), "its ref went");
}

#[test]
fn what_is_known_of_a_repository_is_forgotten_unless_it_is_announced_again() {
    let core = open(&SimDisk::new());
    bring(&core, &Item::Data { owner: 1, present: (1..=5).collect(), is_authorised: true });
    bring(&core, &Item::Data { owner: 2, present: vec![1], is_authorised: true });
    bring(&core, &Item::Event(announcement(1, 1, true, &[])));
    let forget = || {
        let (owner, identifier) = (key(1), "tool".to_owned());
        core.ask(
            node::nostr::ForgetRepository { owner, identifier, objects_max: 2, is_banned: false, after: None },
            NOW,
        )
        .unwrap()
    };
    let present = |author: u8| {
        let name = model::nostr::AddressName::of("tool");
        core.store().snapshot().unwrap().present_objects(&key(author), &name, None, 100).unwrap().len()
    };
    assert!(forget());
    assert_eq!(present(1), 5, "it is announced");
    bring(&core, &Item::Event(sign(1, 3, 5, &[&["a", &address(1)]])));
    assert!(!forget() && !forget() && forget());
    let db = core.store().snapshot().unwrap();
    assert!(!db.has_git_data(&key(1), "tool").unwrap() && db.has_git_data(&key(2), "tool").unwrap());
    assert_eq!((present(1), present(2)), (0, 1));
}
