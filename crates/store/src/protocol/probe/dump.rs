//! The lines of the views of the `probe` protocol, free of anything local.

use crate::database::db::Db;
use crate::tables::TableReads;
use engine::Opened;
use engine::reads::{Reads as _, StoreResult};
use model::Seq;

impl<V: TableReads> Db<V> {
    /// Every value with its content, and which of them wins under its name.
    pub(crate) fn dump_probe(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        let mut last = None;
        for entry in self.tables.probe_values().iter()? {
            let row = entry?;
            let (subject, seq) = ((row.key().author(), row.key().name()), row.value()?);
            let (line, _) = self.probe_line(seq)?;
            out(format!("value {line} {}", self.shown(seq)?.line()));
            if let Some((_, winner)) = last.replace((subject, seq)).filter(|(before, _)| *before != subject) {
                self.dump_winner(winner, out)?;
            }
        }
        last.map_or(Ok(()), |(_, winner)| self.dump_winner(winner, out))
    }

    fn dump_winner(&self, seq: Seq, out: &mut impl FnMut(String)) -> StoreResult<()> {
        let (line, _) = self.probe_line(seq)?;
        out(format!("winner {line}"));
        Ok(())
    }

    /// The author, name and stamp of a value, as its event says them.
    pub(super) fn probe_line(&self, seq: Seq) -> StoreResult<(String, model::probe::ProbeStatement)> {
        let (Some(row), Some(Opened::Probe(event))) = (self.event(seq)?, self.open_event(seq)?) else {
            return Err(crate::errors::broken("a probe value"));
        };
        let stamp = row.stamp().ok_or_else(|| crate::errors::broken("a probe value"))?;
        Ok((format!("{} {} {stamp}", event.author, event.name), event))
    }
}
