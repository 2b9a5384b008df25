//! The other nodes as sources: what a node that hunts is told by them, honestly or not.

use super::NODES;
use crate::protocol::probe::MadeProbe;
use crate::protocol::probe::world::ProbeWorld;
use crate::protocol::space::world::World;
use engine::fetch;
use model::probe::{ProbeKind, ProbeStatement};
use model::{Group, Need, SpaceId};
use node::fetch::hunter::{FetchError, Fetched, SourceDirectory};
use store::Db;
use store::tables::Snapshot;

/// The other nodes, as a source: they have everything that is not lost, and may bring something else.
#[derive(Debug)]
pub(super) struct Others<'w> {
    pub(super) at: usize,
    pub(super) world: &'w World,
    pub(super) probes: &'w ProbeWorld,
    pub(super) lies: bool,
    pub(super) is_down: bool,
    /// Nobody is known who could be asked.
    pub(super) is_unknown: bool,
}

impl Others<'_> {
    pub(super) fn bring(&self, need: &Need) -> Option<Fetched> {
        let world = self.world;
        match need {
            Need::Event(id) if !world.lost.contains(id) => {
                let made = world.events.iter().find(|made| made.id == *id)?;
                Some(Fetched::Event { blob: made.blob.clone(), inline: made.inline(world.inline_max) })
            }
            Need::Probe { author, name } => {
                let is_it = |made: &MadeProbe| {
                    let ProbeStatement { kind, author: whose, name: which, .. } = &made.statement;
                    *kind == ProbeKind::Value && whose == author && which == name
                };
                let (_, made) = self.probes.kept().find(|(_, made)| is_it(made))?;
                Some(Fetched::Event { blob: made.statement.sign(0), inline: made.inline(world.inline_max) })
            }
            Need::Content(SpaceId::COMMONS, hash) => {
                let made = self.probes.events.iter().find(|made| made.hash() == *hash)?;
                let bytes = if self.lies { vec![0; made.wire.len()] } else { made.wire.clone() };
                Some(Fetched::Content { space: SpaceId::COMMONS, hash: *hash, bytes })
            }
            Need::Content(space, hash) => {
                let made = world.events.iter().find(|made| made.hash() == *hash && made.envelope.space == *space);
                let file = world.files.iter().find(|file| file.hash == *hash && file.space == *space);
                let wire = made.map(|made| &made.wire).or(file.and_then(|file| file.wire.as_ref()))?;
                let bytes = if self.lies { vec![0; wire.len()] } else { wire.clone() };
                Some(Fetched::Content { space: *space, hash: *hash, bytes })
            }
            _ => None,
        }
    }

    pub(super) fn fetch(&self, _url: &str, needs: &[Need], deliver: &mut dyn FnMut(Fetched)) -> Result<(), FetchError> {
        if self.is_down {
            return Err(FetchError("nobody answers".into()));
        }
        needs.iter().filter_map(|need| self.bring(need)).for_each(deliver);
        Ok(())
    }
}

impl SourceDirectory for Others<'_> {
    fn places(&self, _db: &Db<Snapshot>, _group: &Group) -> Vec<fetch::Source> {
        let place = |number: usize| fetch::Source { url: format!("peer-{number}"), domain: format!("peer-{number}") };
        (0..NODES).filter(|number| *number != self.at && !self.is_unknown).map(place).collect()
    }
}
