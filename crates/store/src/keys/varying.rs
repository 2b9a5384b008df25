//! The keys of varying width: those with a need, a group, a task or a register in them. No part is the beginning of
//! another, so that keys with different parts never sort into each other.

use super::TableKey;
use super::parts::{KeyField, seq_bytes, seq_from};
use crate::errors::broken;
use engine::reads::StoreResult;
use engine::rows::{NostrTask, Register, RegisterKey, SpaceTask, Task};
use model::reader::{ByteReader, TooShort};
use model::{AuthorNo, AuxKey, ContentHash, Group, Nanos, Need, Seq, SpaceId, SpaceNo, Stamp};
use std::borrow::Cow;
use std::ops::{Range, RangeFrom, RangeInclusive};

/// Declares keys that are bytes of any length, read with the function that follows the arrow.
macro_rules! varying_keys {
    ($($(#[$doc:meta])* $name:ident = $read:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name<'k>(Cow<'k, [u8]>);

        #[allow(missing_docs)]
        impl $name<'_> {
            /// The bytes, which sort as the keys do.
            pub fn as_bytes(&self) -> &[u8] {
                &self.0
            }
        }

        impl redb::Value for $name<'static> {
            type SelfType<'a> = $name<'a>;
            type AsBytes<'a> = &'a [u8];

            fn fixed_width() -> Option<usize> {
                None
            }

            fn from_bytes<'a>(data: &'a [u8]) -> $name<'a> where Self: 'a {
                $name(Cow::Borrowed(data))
            }

            fn as_bytes<'a, 'b: 'a>(value: &'a $name<'b>) -> &'a [u8] where Self: 'b {
                &value.0
            }

            fn type_name() -> redb::TypeName {
                redb::TypeName::new(concat!("anteroom key ", stringify!($name)))
            }
        }

        impl redb::Key for $name<'static> {
            fn compare(one: &[u8], other: &[u8]) -> std::cmp::Ordering {
                one.cmp(other)
            }
        }

        impl TableKey for $name<'static> {
            fn parse(bytes: &[u8]) -> Option<$name<'_>> {
                let key = $name(Cow::Borrowed(bytes));
                let read: fn(&$name<'_>) -> bool = $read;
                read(&key).then_some(key)
            }
        }
    )*};
}

varying_keys! {
    /// Who waits for what: a need, then the number of an event.
    WaitingKey = |key| key.parts().is_ok();
    /// What hunts of a space ask for: the id of the space, then a need.
    HuntedKey = |key| key.need().is_ok();
    /// A need, then a space whose events wait for it.
    HunterKey = |key| key.parts().is_ok();
    /// Work that goes on in later transactions.
    TaskKey = |key| key.task().is_ok();
    /// A group to hunt for.
    GroupKey = |key| key.group().is_ok();
    /// When a group is due, then the group.
    DueKey = |key| key.parts().is_ok();
    /// A candidate of a register: space, kind of register, whose it is, stamp.
    RegisterStamp = |key| key.parts().is_ok();
}

fn join(parts: &[&[u8]]) -> Cow<'static, [u8]> {
    Cow::Owned(parts.concat())
}

impl WaitingKey<'static> {
    /// That an event waits for a need.
    pub fn new(need: &Need, seq: Seq) -> WaitingKey<'static> {
        WaitingKey(join(&[&need.to_key(), &seq_bytes(seq)]))
    }

    /// After everybody who waits for a need.
    pub fn after(need: &Need) -> WaitingKey<'static> {
        WaitingKey(join(&[&need.to_key(), &[0xff; 9]]))
    }

    /// Everybody who waits for a need whose key begins so.
    pub fn of_keys(beginning: &[u8]) -> Range<WaitingKey<'static>> {
        WaitingKey(join(&[beginning]))..WaitingKey(join(&[beginning, &[0xff; 64]]))
    }

    /// The rows of needs for a time, the earliest first, and what sorts after them.
    pub fn from_first_time() -> RangeFrom<WaitingKey<'static>> {
        WaitingKey(Cow::Borrowed(&[Need::TIME_TAG]))..
    }
}

impl WaitingKey<'_> {
    /// The need and the number of the event.
    pub fn parts(&self) -> StoreResult<(Need, Seq)> {
        let mut reader = ByteReader::new(&self.0);
        let need = Need::read_key(&mut reader).map_err(|_| broken("a key of `waiting`"))?;
        let seq = reader.array().ok().filter(|_| reader.rest().is_empty());
        Ok((need, seq.map(seq_from).ok_or_else(|| broken("a key of `waiting`"))?))
    }

    /// The number of the event alone, without reading the need.
    pub fn seq(&self) -> StoreResult<Seq> {
        self.0.last_chunk().map(|tail| seq_from(*tail)).ok_or_else(|| broken("a key of `waiting`"))
    }
}

impl HunterKey<'static> {
    /// That events of a space wait for a need.
    pub fn new(need: &Need, space: &SpaceId) -> HunterKey<'static> {
        HunterKey(join(&[&need.to_key(), &space.0]))
    }

    /// All spaces whose events wait for a need.
    pub fn of_need(need: &Need) -> RangeInclusive<HunterKey<'static>> {
        HunterKey::new(need, &SpaceId([0; 16]))..=HunterKey::new(need, &SpaceId([0xff; 16]))
    }
}

impl HunterKey<'_> {
    /// The need and the space.
    pub fn parts(&self) -> StoreResult<(Need, SpaceId)> {
        let mut reader = ByteReader::new(&self.0);
        let read = Need::read_key(&mut reader).ok().zip(reader.array().ok().map(SpaceId));
        read.filter(|_| reader.rest().is_empty()).ok_or_else(|| broken("a key of `hunters`"))
    }
}

impl HuntedKey<'static> {
    /// That a need of a space is not here.
    pub fn new(space: &SpaceId, need: &Need) -> HuntedKey<'static> {
        HuntedKey(join(&[&space.0, &need.to_key()]))
    }

    /// Everything that hunts of a space ask for.
    pub fn of_space(space: &SpaceId) -> Range<HuntedKey<'static>> {
        HuntedKey(join(&[&space.0]))..HuntedKey(join(&[&space.0, &[0xff]]))
    }

    /// A place among the needs of a space, by the first byte of what is needed.
    pub fn at_byte(space: &SpaceId, byte: u8) -> HuntedKey<'static> {
        HuntedKey(join(&[&space.0, &[1, byte]]))
    }
}

impl HuntedKey<'_> {
    /// The need.
    pub fn need(&self) -> StoreResult<Need> {
        let mut reader = ByteReader::new(self.0.get(SpaceId::LEN..).unwrap_or_default());
        let need = Need::read_key(&mut reader).ok().filter(|_| reader.rest().is_empty());
        need.ok_or_else(|| broken("a key of `hunted`"))
    }
}

impl GroupKey<'static> {
    /// The key of a group.
    pub fn new(group: &Group) -> GroupKey<'static> {
        GroupKey(Cow::Owned(group.to_key()))
    }
}

impl GroupKey<'_> {
    /// The group.
    pub fn group(&self) -> StoreResult<Group> {
        Group::from_key(&self.0).map_err(|_| broken("a key of `schedule`"))
    }
}

impl DueKey<'static> {
    /// That a group is due at a time.
    pub fn new(due: Nanos, group: &Group) -> DueKey<'static> {
        DueKey(join(&[&due.0.to_be_bytes(), &group.to_key()]))
    }

    /// Everything that is due at a time or later.
    pub fn from_time(due: Nanos) -> RangeFrom<DueKey<'static>> {
        DueKey(join(&[&due.0.to_be_bytes()]))..
    }
}

impl DueKey<'_> {
    /// When, and which group.
    pub fn parts(&self) -> StoreResult<(Nanos, Group)> {
        let read = || {
            let (due, group) = self.0.split_first_chunk::<8>()?;
            Some((Nanos(u64::from_be_bytes(*due)), Group::from_key(group).ok()?))
        };
        read().ok_or_else(|| broken("a key of `schedule_due`"))
    }
}

/// The first byte of a task that wakes what waited.
const RELEASE: u8 = 1;
/// The first byte of a task that looks again at events.
const REDERIVE: u8 = 3;

impl TaskKey<'static> {
    /// The key of a task, which says all of it.
    pub fn new(task: &Task) -> TaskKey<'static> {
        TaskKey(match task {
            Task::Release(need) => join(&[&[RELEASE], &need.to_key()]),
            Task::Content(space, hash, after) => join(&[&[2], &space.0.to_be_bytes(), &hash.0, &after.0.to_be_bytes()]),
            // By stamp, so that the earliest is settled first and each event is looked at once.
            Task::Space(SpaceTask::Rederive(membership, after)) => {
                join(&[&[REDERIVE], &after.to_bytes(), &membership.0.to_be_bytes()])
            }
            Task::Space(SpaceTask::Versions(target, after)) => {
                join(&[&[4], &target.0.to_be_bytes(), &after.to_bytes()])
            }
            Task::Join(space, after) => join(&[&[5], &space.0, &after.0.to_be_bytes()]),
            Task::Nostr(NostrTask::Event { author, id }) => join(&[&[6], &author.0.to_be_bytes(), &id.0]),
            Task::Nostr(NostrTask::Address { kind, name, author, after }) => {
                join(&[&[7], &kind.to_be_bytes(), &name.0, &author.0.to_be_bytes(), &after.to_bytes()])
            }
            Task::Nostr(NostrTask::Author { space, author, after }) => {
                join(&[&[8], &space.0.to_be_bytes(), &author.0.to_be_bytes(), &after.to_bytes()])
            }
            #[cfg(feature = "simulation")]
            Task::Probe(task) => {
                join(&[&[model::probe::PROBE_FORM], &task.author.0.to_be_bytes(), &task.name.0, &task.after.to_bytes()])
            }
        })
    }

    /// The keys of all tasks that wake what waited.
    pub fn of_release() -> Range<TaskKey<'static>> {
        TaskKey(Cow::Borrowed(&[RELEASE]))..TaskKey(Cow::Borrowed(&[RELEASE + 1]))
    }

    /// The keys of all tasks that look again at events.
    pub fn of_rederive() -> Range<TaskKey<'static>> {
        TaskKey(Cow::Borrowed(&[REDERIVE]))..TaskKey(Cow::Borrowed(&[REDERIVE + 1]))
    }
}

impl TaskKey<'_> {
    /// The task.
    pub fn task(&self) -> StoreResult<Task> {
        let read = || {
            let mut reader = ByteReader::new(&self.0);
            Ok(match reader.u8()? {
                RELEASE => Task::Release(Need::read_key(&mut reader).map_err(|_| TooShort)?),
                2 => Task::Content(SpaceNo(reader.u32()?), ContentHash(reader.array()?), Seq(reader.u64()?)),
                REDERIVE => {
                    let after = Stamp::from_bytes(reader.array()?);
                    Task::Space(SpaceTask::Rederive(Seq(reader.u64()?), after))
                }
                4 => Task::Space(SpaceTask::Versions(Seq(reader.u64()?), Stamp::from_bytes(reader.array()?))),
                5 => Task::Join(SpaceId(reader.array()?), Seq(reader.u64()?)),
                6 => {
                    let author = AuthorNo(reader.u32()?);
                    Task::Nostr(NostrTask::Event { author, id: model::EventId(reader.array()?) })
                }
                7 => {
                    let (kind, name) = (reader.u16()?, model::nostr::AddressName(reader.array()?));
                    let (author, after) = (AuthorNo(reader.u32()?), Stamp::from_bytes(reader.array()?));
                    Task::Nostr(NostrTask::Address { kind, name, author, after })
                }
                8 => {
                    let (space, author) = (SpaceNo(reader.u32()?), AuthorNo(reader.u32()?));
                    Task::Nostr(NostrTask::Author { space, author, after: Stamp::from_bytes(reader.array()?) })
                }
                #[cfg(feature = "simulation")]
                model::probe::PROBE_FORM => Task::Probe(engine::rows::ProbeTask {
                    author: AuthorNo(reader.u32()?),
                    name: model::probe::ProbeName(reader.array()?),
                    after: Stamp::from_bytes(reader.array()?),
                }),
                _ => return Err(TooShort),
            })
        };
        read().map_err(|_: TooShort| broken("a key of `tasks`"))
    }
}

impl RegisterStamp<'static> {
    /// A candidate of a register.
    pub fn new(key: &RegisterKey, stamp: Stamp) -> RegisterStamp<'static> {
        let mut bytes = Vec::with_capacity(SpaceNo::WIDTH + 1 + 20 + Stamp::LEN);
        bytes.extend(key.space.0.to_be_bytes());
        put_register(key.register, &mut bytes);
        bytes.extend(stamp.to_bytes());
        RegisterStamp(Cow::Owned(bytes))
    }

    /// All candidates of a register.
    pub fn of_register(key: &RegisterKey) -> std::ops::RangeInclusive<RegisterStamp<'static>> {
        RegisterStamp::new(key, Stamp::FIRST)..=RegisterStamp::new(key, Stamp::LAST)
    }

    /// All follows of an author in a space.
    pub fn of_follows(space: SpaceNo, author: AuthorNo) -> std::ops::RangeInclusive<RegisterStamp<'static>> {
        let bound = |byte: u8, stamp| {
            let register = Register::Follow(author, AuxKey([byte; 16]));
            RegisterStamp::new(&RegisterKey { space, register }, stamp)
        };
        bound(0, Stamp::FIRST)..=bound(0xff, Stamp::LAST)
    }
}

impl RegisterStamp<'_> {
    /// The register and the stamp of the candidate.
    pub fn parts(&self) -> StoreResult<(RegisterKey, Stamp)> {
        let read = || {
            let mut reader = ByteReader::new(&self.0);
            let space = SpaceNo(reader.u32()?);
            let register = read_register(&mut reader)?;
            let stamp = Stamp::from_bytes(reader.array()?);
            if reader.rest().is_empty() { Ok((RegisterKey { space, register }, stamp)) } else { Err(TooShort) }
        };
        read().map_err(|_: TooShort| broken("a key of `registers`"))
    }

    /// The stamp alone.
    pub fn stamp(&self) -> StoreResult<Stamp> {
        self.0.last_chunk().map(|tail| Stamp::from_bytes(*tail)).ok_or_else(|| broken("a key of `registers`"))
    }
}

/// Writes a register: a byte for its kind, then whose it is, which has one width for each kind.
fn put_register(register: Register, out: &mut Vec<u8>) {
    match register {
        Register::Settings => out.push(0),
        Register::Profile(author) => {
            out.push(1);
            out.extend(author.0.to_be_bytes());
        }
        Register::Device(author, device) => {
            out.push(2);
            out.extend(author.0.to_be_bytes());
            out.extend(device.0);
        }
        Register::ReadMarker(author, thread) => {
            out.push(3);
            out.extend(author.0.to_be_bytes());
            out.extend(seq_bytes(thread));
        }
        Register::ThreadField(thread, field) => {
            out.push(4);
            out.extend(seq_bytes(thread));
            out.push(field);
        }
        Register::Follow(author, followed) => {
            out.push(5);
            out.extend(author.0.to_be_bytes());
            out.extend(followed.0);
        }
    }
}

fn read_register(reader: &mut ByteReader<'_>) -> Result<Register, TooShort> {
    Ok(match reader.u8()? {
        0 => Register::Settings,
        1 => Register::Profile(AuthorNo(reader.u32()?)),
        2 => Register::Device(AuthorNo(reader.u32()?), AuxKey(reader.array()?)),
        3 => Register::ReadMarker(AuthorNo(reader.u32()?), seq_from(reader.array()?)),
        4 => Register::ThreadField(seq_from(reader.array()?), reader.u8()?),
        5 => Register::Follow(AuthorNo(reader.u32()?), AuxKey(reader.array()?)),
        _ => return Err(TooShort),
    })
}
