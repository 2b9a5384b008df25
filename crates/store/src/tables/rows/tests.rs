//! Damages every byte of a row, for tests.

use super::*;

impl<K: TableKey, V: RowValue> Rows<Table<'_, K, Stored<V>>, K, V> {
    fn damaged_rows(&self) -> usize {
        let mut damaged = 0;
        let count = &mut |_: &'static str, _: &[u8], stored: Option<&[u8]>| {
            damaged += usize::from(stored.is_none());
            Ok::<_, StoreError>(())
        };
        self.export(count).expect("read");
        damaged
    }

    /// Writes a row of ones, changes every byte of what is stored, one after another, and requires that reading, looking
    /// and exporting name the table each time.
    pub(in crate::tables) fn check_that_damage_is_noticed(&mut self) {
        let ones = [1; 128];
        let key = (0..128).find(|length| {
            K::fixed_width().is_none_or(|width| width == *length) && K::parse(&ones[..*length]).is_some()
        });
        let key = &ones[..key.expect("a key of ones")];
        let value =
            (0..128).find(|length| V::WIDTH.is_none_or(|width| width == *length) && V::get(&ones[..*length]).is_some());
        let value = &ones[..value.expect("a value of ones")];
        let typed = || K::parse(key).expect("a key");
        self.insert(typed(), V::get(value).expect("a value")).expect("written");
        let stored = self.inner.get(typed()).expect("read").expect("a row").value().to_vec();
        assert_eq!(stored.len(), value.len() + CHECKSUM_BYTES);
        for at in 0..stored.len() {
            let mut changed = stored.clone();
            changed[at] ^= 0x10;
            self.inner.insert(typed(), changed.as_slice()).expect("written");
            let named = |found: StoreResult<()>| match found {
                Err(StoreError::Broken(text)) => text.contains(self.name.name),
                Ok(()) | Err(_) => false,
            };
            assert!(named(self.get_row(typed()).map(drop)), "{}: byte {at}, found by its key", self.name.name);
            let first = self.iter().expect("read").next().expect("a row").and_then(|row| row.value().map(drop));
            assert!(named(first), "{}: byte {at}, found in order", self.name.name);
            assert_eq!(self.damaged_rows(), 1, "{}: byte {at}, exported", self.name.name);
            assert!(self.import(key, &changed).is_err(), "{}: byte {at}, imported", self.name.name);
        }
        self.remove(typed()).expect("removed");
        // The same value under another key, as if the key had changed.
        for at in 0..key.len() {
            let mut other = key.to_vec();
            other[at] ^= 0x10;
            self.inner.insert(K::from_bytes(&other), stored.as_slice()).expect("written");
            assert_eq!(self.damaged_rows(), 1, "{}: byte {at} of the key", self.name.name);
            self.remove(K::from_bytes(&other)).expect("removed");
        }
    }
}

mod sorted {
    use crate::keys::EventNo;
    use crate::tables::Tables;
    use model::Seq;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn rows_that_are_written_together_or_again_are_those_that_were_given(
            rounds in proptest::collection::vec(
                (proptest::collection::btree_map(0..400_u64, 1..300_usize, 0..120), any::<bool>()), 1..8,
            ),
        ) {
            let database = redb::Builder::new().create_with_backend(redb::backends::InMemoryBackend::new())?;
            let transaction = database.begin_write()?;
            let mut tables = Tables::open(&transaction).map_err(|why| TestCaseError::fail(why.to_string()))?;
            let mut model = BTreeMap::new();
            for (round, (rows, repacks)) in rounds.into_iter().enumerate() {
                let rows: BTreeMap<u64, Vec<u8>> =
                    rows.into_iter().map(|(key, length)| (key, vec![round as u8; length])).collect();
                let sorted = rows.iter().map(|(key, value)| (EventNo::new(Seq(*key)), value.as_slice()));
                tables.events.insert_sorted(sorted).map_err(|why| TestCaseError::fail(why.to_string()))?;
                model.extend(rows);
                if repacks {
                    let range = EventNo::new(Seq(100))..=EventNo::new(Seq(300));
                    tables.events.repack_end(range).map_err(|why| TestCaseError::fail(why.to_string()))?;
                }
            }
            let mut found = BTreeMap::new();
            for row in tables.events.iter().expect("read") {
                let row = row.expect("read");
                found.insert(row.key().seq().0, row.value().expect("sound").to_vec());
            }
            prop_assert_eq!(found, model);
        }
    }
}

mod filling {
    use crate::keys::EventNo;
    use crate::tables::Tables;
    use model::Seq;
    use redb::ReadableTableMetadata as _;

    const ROWS: u64 = 600;

    /// How many pages a table takes whose rows come in batches of so many.
    fn pages(batch: usize, row_bytes: usize, pack: impl Fn(&mut Tables<'_>, u64)) -> u64 {
        let database = redb::Builder::new().create_with_backend(redb::backends::InMemoryBackend::new()).expect("open");
        let transaction = database.begin_write().expect("write");
        let mut tables = Tables::open(&transaction).expect("tables");
        let rows: Vec<_> = (0..ROWS).map(|number| (EventNo::new(Seq(number)), vec![7; row_bytes])).collect();
        for rows in rows.chunks(batch) {
            tables.events.append(rows.iter().map(|(key, bytes)| (*key, bytes.as_slice()))).expect("write");
            pack(&mut tables, rows[0].0.seq().0);
        }
        assert_eq!(tables.events.len().expect("count"), ROWS);
        tables.events.inner.stats().expect("stats").leaf_pages()
    }

    #[test]
    fn rows_that_come_few_at_a_time_fill_their_pages_when_they_are_written_again() {
        let last = EventNo::new(Seq(u64::MAX));
        for batch in [1, 2, 5] {
            let every = |step: u64, number: u64| number / step != (number + batch as u64) / step;
            let ends = pages(batch, 60, |tables, number| {
                if every(200, number) {
                    tables.events.repack_end(EventNo::new(Seq(0))..=last).expect("write");
                }
            });
            let ranges = pages(batch, 660, |tables, number| {
                if every(128, number) {
                    let from = EventNo::new(Seq(number.saturating_sub(144)));
                    tables.events.repack(from..=last).expect("write");
                }
            });
            // 53 rows of 60 bytes fit into a page, or six of 660.
            assert!(ends <= 13 && ranges <= 110, "{ends} and {ranges} pages by {batch}");
            let (small, large) = (pages(batch, 60, |_, _| {}), pages(batch, 660, |_, _| {}));
            assert!(small > 18 && large > 118, "{small} and {large} pages by {batch} if never");
        }
    }
}
