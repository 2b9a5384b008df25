//! All views as lines of text, free of anything local, and their digest.
//!
//! Two nodes that keep the same events and content, can open the same keys and have deleted the same things give the
//! same lines. The digest is a sum over the lines, so that their order does not matter and nothing has to be sorted.

use crate::database::db::Db;
use crate::tables::{TableClass, TableReads, census, export_rows};
use engine::reads::{StoreError, StoreResult};
use model::{EventId, Seq};
use std::collections::BTreeMap;

const TIMELINE: &str = "timeline_v1";
const TOMBSTONES: &str = "tombstones_v1";

/// A sum over the lines of all views.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest([u64; 4]);

impl Digest {
    /// Adds a line.
    pub fn add(&mut self, line: &str) {
        self.add_hash(blake3::hash(line.as_bytes()));
    }

    fn add_hash(&mut self, hash: blake3::Hash) {
        for (sum, part) in self.0.iter_mut().zip(hash.as_bytes().chunks_exact(8)) {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(part);
            *sum = sum.wrapping_add(u64::from_be_bytes(bytes));
        }
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|part| write!(f, "{part:016x}"))
    }
}

impl<V: TableReads> Db<V> {
    /// The digest of all views.
    pub fn digest(&self) -> StoreResult<Digest> {
        let mut digest = Digest::default();
        self.dump(&mut |line| digest.add(&line))?;
        Ok(digest)
    }

    /// A sum over the rows of each table of views, as they are stored. Rows of the timeline have hints that depend on what
    /// came when, so only their keys count. A delete that came before a target that it cannot reach left a row.
    pub(crate) fn sums_of_views(&self) -> StoreResult<BTreeMap<&'static str, Digest>> {
        let classes = census(&self.tables)?.into_iter();
        let mut sums: BTreeMap<_, _> = classes
            .filter(|(class, name, _)| *class == TableClass::View && *name != TOMBSTONES)
            .map(|(_, name, _)| (name, Digest::default()))
            .collect();
        export_rows::<StoreError>(&self.tables, &mut |table, key, stored| {
            if let Some(sum) = sums.get_mut(table) {
                let mut hasher = blake3::Hasher::new();
                hasher.update(&(key.len() as u64).to_be_bytes()).update(key);
                if table != TIMELINE {
                    hasher.update(stored.unwrap_or_default());
                }
                sum.add_hash(hasher.finalize());
            }
            Ok(())
        })?;
        Ok(sums)
    }

    /// Every line of every view, in no particular order.
    pub fn dump(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        #[cfg(feature = "simulation")]
        self.dump_probe(out)?;
        self.dump_nostr(out)?;
        self.dump_space(out)
    }

    /// The id of a known event.
    pub fn id_of(&self, seq: Seq) -> StoreResult<EventId> {
        self.with_event(seq, |parts| parts.row.id)?.ok_or_else(|| crate::errors::broken("an event number"))
    }
}
