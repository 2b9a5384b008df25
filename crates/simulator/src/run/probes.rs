//! The `probe` protocol in a run: its events arrive among those of the `space` protocol.

use super::ending::difference;
use super::{Item, Run, SimNode, transit_secret};
use crate::protocol::probe::reference::ProbeModel;
use crate::protocol::probe::{MadeProbe, open_door, receive};
use crate::requests::{SimReply, SimRequest};
use engine::reads::Reads as _;
use engine::rows::{Outcome, TurnedAway};
use model::{EventId, SpaceId};
use std::collections::BTreeSet;

impl Run<'_> {
    /// What a node gets of the protocol: events, contents, and now and then something that clashes.
    pub(super) fn probe_items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        for (index, made) in self.probes.kept() {
            items.push(Item::Probe(index));
            if !made.wire.is_empty() {
                items.push(Item::ProbeContent(index));
            }
            if self.random.percent(10) {
                items.push(Item::ProbeClash(index));
            }
        }
        items
    }

    /// What the door makes of an event, signed in one of two ways. No door of the product takes it.
    pub(super) fn probe_request(&mut self, at: usize, index: usize) -> Option<SimRequest> {
        let made = &self.probes.events[index];
        let blob = made.statement.sign(self.random.below(2) as u8);
        let keys = self.nodes[at].core.as_ref()?.store().keys().clone();
        if let Some(door) = open_door(&keys, &self.policy, &blob, transit_secret(0)) {
            panic!("a probe event came in through {door}");
        }
        receive(&keys, &self.policy, blob, made.inline(self.world.inline_max)).ok().map(SimRequest::arrive)
    }

    /// Something with the id of an applied event is turned away, and changes nothing.
    pub(super) fn clash(&mut self, at: usize, index: usize) -> Result<(), String> {
        let made: MadeProbe = self.probes.events[index].clone();
        let node = &mut self.nodes[at];
        let Some(core) = node.core.as_ref().filter(|_| node.is_applied(&made.id)) else { return Ok(()) };
        let keys = core.store().keys().clone();
        let arrival = receive(&keys, &self.policy, made.clash(), None).map_err(|why| why.to_string())?;
        let replies = node.request(vec![SimRequest::arrive(arrival)])?;
        match replies.as_slice() {
            [] if node.disk.is_dead() => self.restart(at),
            [SimReply::Arrived(id, Outcome::TurnedAway(TurnedAway::Clash))] if *id == made.id => Ok(()),
            other => Err(format!("node {at} was sent another event with the id {} and said {other:?}", made.id)),
        }
    }

    /// In the end everything that exists reaches the node.
    pub(super) fn bring_probes(&mut self, at: usize) -> Result<(), String> {
        let kept = |item: fn(usize) -> Item| self.probes.kept().map(|(index, _)| item(index)).collect::<Vec<_>>();
        let (mut events, contents) = (kept(Item::Probe), kept(Item::ProbeContent));
        self.random.shuffle(&mut events);
        self.bring(at, events)?;
        self.bring(at, contents)
    }

    /// The node shows of the protocol what the model does, and applied what can be.
    pub(super) fn compare_probes(&self, node: &SimNode, pruned: &BTreeSet<EventId>) -> Result<(), String> {
        let here = |id: &EventId| !pruned.contains(id);
        let model = ProbeModel::new(self.probes.kept().map(|(_, made)| made), &here);
        let shown = node.lines()?.into_iter().filter(|line| is_probe_line(line)).collect();
        difference(node.index, &model.lines(), &shown)?;
        for (_, made) in self.probes.kept() {
            if node.is_applied(&made.id) != model.is_valid(&made.id) {
                return Err(format!("node {}: probe {} is applied or not, wrongly", node.index, made.id));
            }
        }
        self.check_commons(node)
    }

    /// Everything of the protocol is in the commons.
    fn check_commons(&self, node: &SimNode) -> Result<(), String> {
        let db = node.core()?.store().snapshot().map_err(|fault| fault.to_string())?;
        for (_, made) in self.probes.kept() {
            let Some(seq) = db.seq(&made.id).map_err(|fault| fault.to_string())? else { continue };
            if db.space_of(seq).map_err(|fault| fault.to_string())? != Some(SpaceId::COMMONS) {
                return Err(format!("node {}: probe {} is not in the commons", node.index, made.id));
            }
        }
        Ok(())
    }
}

/// Whether a line belongs to the views of this protocol.
pub(super) fn is_probe_line(line: &str) -> bool {
    line.starts_with("value ") || line.starts_with("winner ")
}
