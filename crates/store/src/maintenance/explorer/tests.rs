//! The text of every key reads back, and sorts as the key does.

use crate::maintenance::explorer::families::{FAMILIES, Family};
use crate::maintenance::explorer::pattern::{KeyPart, NumberNames, parse, span, to_text};
use engine::reads::StoreResult;
use model::{AuthorNo, EventId, Seq, SpaceId, SpaceNo};
use proptest::prelude::*;
use std::ops::Bound;

/// Every number has an id, whose order is another than that of the numbers.
struct Everybody;

fn scrambled(number: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    id[8..].copy_from_slice(&number.to_be_bytes());
    id
}

fn unscrambled(id: &[u8]) -> u64 {
    id.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail))
}

impl NumberNames for Everybody {
    fn event_no(&self, id: &EventId) -> StoreResult<Option<Seq>> {
        Ok(Some(Seq(unscrambled(&id.0))))
    }

    fn event_id(&self, seq: Seq) -> StoreResult<EventId> {
        Ok(EventId(scrambled(seq.0)))
    }

    fn space_of_event(&self, _: Seq) -> StoreResult<Option<SpaceId>> {
        Ok(None)
    }

    fn space_no(&self, id: &SpaceId) -> StoreResult<Option<SpaceNo>> {
        Ok(Some(SpaceNo(unscrambled(&id.0) as u32)))
    }

    fn space_id(&self, no: SpaceNo) -> StoreResult<SpaceId> {
        Ok(SpaceId(scrambled(no.0.into())))
    }

    fn author_no(&self, key: &[u8; 32]) -> StoreResult<Option<AuthorNo>> {
        Ok(Some(AuthorNo(unscrambled(key) as u32)))
    }

    fn author_bytes(&self, no: AuthorNo) -> StoreResult<[u8; 32]> {
        let mut identity = [0; 32];
        identity.as_chunks_mut::<16>().0.fill(scrambled(no.0.into()));
        Ok(identity)
    }
}

fn is_numbered(part: KeyPart) -> bool {
    matches!(part, KeyPart::Event | KeyPart::Space | KeyPart::Author)
}

/// Two keys of a family that agree up to their last numbered part.
fn siblings(family: &Family, random: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let last = family.parts.iter().rposition(|part| is_numbered(*part));
    let (mut first, mut second, mut random) = (Vec::new(), Vec::new(), random.iter().copied().cycle());
    for (at, part) in family.parts.iter().enumerate() {
        let mut drawn = || -> Vec<u8> {
            match part {
                KeyPart::Fixed(bytes) => bytes.to_vec(),
                KeyPart::Word => random.by_ref().take(8).map(|byte| b'a' + byte % 26).collect(),
                other => random.by_ref().take(other.bytes().unwrap_or_default()).collect(),
            }
        };
        let (one, other) = (drawn(), drawn());
        second.extend(if last.is_some_and(|last| at <= last) { &one } else { &other });
        first.extend(one);
    }
    (first, second)
}

fn text(family: &Family, key: &[u8]) -> String {
    to_text(family.parts, key, &Everybody).expect("a text")
}

proptest! {
    #[test]
    fn every_key_reads_back_and_its_text_sorts_as_it_does(random in prop::collection::vec(any::<u8>(), 131)) {
        for family in FAMILIES {
            let (one, other) = siblings(family, &random);
            let (one_text, other_text) = (text(family, &one), text(family, &other));
            prop_assert_eq!(parse(family.parts, &one_text, &Everybody).expect("a key"), Some(one.clone()));
            prop_assert_eq!(one.cmp(&other), one_text.cmp(&other_text), "{} {}", one_text, other_text);
        }
    }

    #[test]
    fn a_key_is_in_the_range_of_every_prefix_of_its_text(random in prop::collection::vec(any::<u8>(), 131)) {
        for family in FAMILIES {
            let (key, _) = siblings(family, &random);
            let text = text(family, &key);
            for end in 0..=text.len() {
                // A prefix that ends within a numbered id names nothing; all others name at least this key.
                let Some(found) = span(family.parts, &text[..end], &Everybody, None).expect("a range") else {
                    continue;
                };
                let Bound::Included(low) = found.from else { panic!("a range without a beginning") };
                prop_assert!(low <= key && key <= found.to, "{}", &text[..end]);
            }
            prop_assert!(span(family.parts, &text, &Everybody, None).expect("a range").is_some());
        }
    }
}

#[test]
fn no_text_belongs_to_two_families() {
    for family in FAMILIES {
        let (key, _) = siblings(family, &[7, 11, 13]);
        let text = text(family, &key);
        let owners = FAMILIES.iter().filter(|other| other.parse(&Everybody, &text).expect("a key").is_some());
        assert_eq!(owners.count(), 1, "{text}");
    }
}

#[test]
fn what_is_no_key_is_none() {
    let whole = format!("thread:{}:meta", EventId(scrambled(7)));
    for text in ["", "thread", "thread::meta", "moon:1", "journal:1", "journal:99999999999999999999", "held:"] {
        assert!(FAMILIES.iter().all(|family| family.parse(&Everybody, text).expect("a key").is_none()), "{text}");
    }
    for text in [format!("{whole}x"), whole.to_uppercase(), whole.replace(":meta", ":Meta")] {
        assert!(FAMILIES.iter().all(|family| family.parse(&Everybody, &text).expect("a key").is_none()), "{text}");
    }
}
