//! Keys give back their parts, sort as their parts do, and no two of them share a type in the database.

use super::*;
use engine::rows::{Origin, Owner, Register, RegisterKey, Task};
use model::{AuthorNo, AuxKey, ContentHash, EventId, Group, Identity, Nanos, Need, Seq, SpaceId, SpaceNo, Stamp};
use proptest::prelude::*;

fn stamp(at: u64, id: u8) -> Stamp {
    Stamp { at: Nanos(at), id: EventId([id; 16]) }
}

fn owner(number: u32) -> Owner {
    match number % 4 {
        0 => Owner::Author(AuthorNo(number)),
        1 => Owner::Door(Origin::Local),
        2 => Owner::Door(Origin::Import),
        _ => Owner::Door(Origin::Peer(number)),
    }
}

proptest! {
    #[test]
    fn fixed_keys_give_back_their_parts_and_sort_as_they_do(
        (one, other) in (any::<(u32, u32, u64, u8)>(), any::<(u32, u32, u64, u8)>()),
    ) {
        let parts = |(space, author, at, id): (u32, u32, u64, u8)| (SpaceNo(space), AuthorNo(author), stamp(at, id));
        let key = |(space, author, stamp)| AuthorStamp::new(space, author, stamp);
        let (one, other) = (parts(one), parts(other));
        prop_assert_eq!((key(one).space(), key(one).author(), key(one).stamp()), one);
        prop_assert_eq!(key(one).cmp(&key(other)), one.cmp(&other));
        prop_assert_eq!(<AuthorStamp as redb::Key>::compare(key(one).as_bytes(), key(other).as_bytes()), one.cmp(&other));
        let held = HeldByOwnerKey::new(owner(one.1.0), Seq(one.2.at.0 >> 16));
        prop_assert_eq!((held.owner(), held.seq()), (owner(one.1.0), Seq(one.2.at.0 >> 16)));
    }

    #[test]
    fn a_range_holds_exactly_the_keys_that_begin_with_its_parts(
        (space, other, author, at, id) in any::<(u32, u32, u32, u64, u8)>(),
    ) {
        let key = AuthorStamp::new(SpaceNo(other), AuthorNo(author), stamp(at, id));
        prop_assert_eq!(AuthorStamp::of_space(SpaceNo(space)).contains(&key), space == other);
        prop_assert!(AuthorStamp::of_space(SpaceNo(other)).contains(&key));
        prop_assert!(AuthorStamp::of_author(SpaceNo(other), AuthorNo(author)).contains(&key));
        prop_assert!(!AuthorStamp::of_author(SpaceNo(other), AuthorNo(author ^ 1)).contains(&key));
    }

    #[test]
    fn registers_read_back_and_sort_by_stamp_within_each(
        (code, author, thread, aux) in any::<(u8, u32, u64, u8)>(),
        (first, second) in any::<(u64, u64)>(),
    ) {
        let register = match code % 6 {
            0 => Register::Settings,
            1 => Register::Profile(AuthorNo(author)),
            2 => Register::Device(AuthorNo(author), AuxKey([aux; 16])),
            3 => Register::ReadMarker(AuthorNo(author), Seq(thread >> 16)),
            4 => Register::ThreadField(Seq(thread >> 16), aux),
            _ => Register::Follow(AuthorNo(author), AuxKey([aux; 16])),
        };
        let key = RegisterKey { space: SpaceNo(7), register };
        let (one, other) = (RegisterStamp::new(&key, stamp(first, aux)), RegisterStamp::new(&key, stamp(second, aux)));
        prop_assert_eq!(one.parts().expect("a key"), (key, stamp(first, aux)));
        prop_assert_eq!(one.stamp().expect("a key"), stamp(first, aux));
        prop_assert_eq!(one.cmp(&other), first.cmp(&second));
        prop_assert!(RegisterStamp::of_register(&key).contains(&one));
    }
}

#[test]
fn numbers_of_events_end_ranges_where_they_are_greater_than_any_can_be() {
    let greatest = Seq((1 << 48) - 1);
    assert_eq!(EventNo::new(greatest).seq(), greatest);
    assert_eq!(EventNo::new(Seq(u64::MAX)).seq(), greatest);
    assert!(EventNo::new(Seq(greatest.0 - 1)) < EventNo::new(greatest));
    assert!(EventNo::new(Seq(255)) < EventNo::new(Seq(256)));
}

#[test]
fn varying_keys_read_back() {
    let needs = [
        Need::Event(EventId([1; 16])),
        Need::Time(Nanos(7)),
        Need::GitData { owner: model::NostrKey([8; 32]), identifier: "repository".into() },
    ];
    for need in needs {
        let key = WaitingKey::new(&need, Seq(9));
        assert_eq!(key.parts().expect("a key"), (need.clone(), Seq(9)));
        assert_eq!(key.seq().expect("a key"), Seq(9));
        assert!(key < WaitingKey::after(&need) && WaitingKey::new(&need, Seq(u64::MAX)) < WaitingKey::after(&need));
        assert_eq!(HuntedKey::new(&SpaceId([3; 16]), &need).need().expect("a key"), need);
        let hunter = HunterKey::new(&need, &SpaceId([3; 16]));
        assert_eq!(hunter.parts().expect("a key"), (need.clone(), SpaceId([3; 16])));
        assert!(HunterKey::of_need(&need).contains(&hunter));
        assert!(HuntedKey::of_space(&SpaceId([3; 16])).contains(&HuntedKey::new(&SpaceId([3; 16]), &need)));
        let task = Task::Release(need);
        assert_eq!(TaskKey::new(&task).task().expect("a key"), task);
    }
    let rederive = Task::Space(engine::rows::SpaceTask::Rederive(Seq(3), stamp(5, 1)));
    assert_eq!(TaskKey::new(&rederive).task().expect("a key"), rederive);
    assert!(TaskKey::of_rederive().contains(&TaskKey::new(&rederive)));
    for group in [Group::Repository("relays".into()), Group::Author(SpaceId([1; 16]), Identity([2; 32]))] {
        assert_eq!(GroupKey::new(&group).group().expect("a key"), group);
        assert_eq!(DueKey::new(Nanos(3), &group).parts().expect("a key"), (Nanos(3), group));
    }
}

#[test]
fn bytes_of_another_width_or_form_are_no_key() {
    assert!(ContentKey::parse(&[0; 36]).is_some());
    assert!(ContentKey::parse(&[0; 35]).is_none() && ContentKey::parse(&[0; 37]).is_none());
    let key = WaitingKey::new(&Need::Key(model::KeyId([1; 16])), Seq(1));
    assert!(WaitingKey::parse(key.as_bytes()).is_some());
    assert!(WaitingKey::parse(&key.as_bytes()[1..]).is_none());
    assert!(RegisterStamp::parse(&[0; 3]).is_none());
}

#[test]
fn keys_of_equal_width_are_types_of_their_own() {
    let names = [
        <UnusedContentKey as redb::Value>::type_name(),
        <ObjectDueKey as redb::Value>::type_name(),
        <ContentWaitingKey as redb::Value>::type_name(),
    ];
    assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
    let key = UnusedContentKey::new(Nanos(1), SpaceNo(2), ContentHash([3; 32]));
    assert_eq!(
        format!("{key:?}"),
        format!("UnusedContentKey {{ since: 1, space: s2, hash: {:?} }}", ContentHash([3; 32]))
    );
}
