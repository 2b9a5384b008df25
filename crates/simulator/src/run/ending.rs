//! The end of a run: everything reaches everybody, and what is shown is compared with what must be.

use super::{DAY, Item, NODES, Run};
use super::{probes, repositories};
use crate::protocol::space::cast::MadeEvent;
use crate::protocol::space::reference::ReferenceModel;
use crate::requests::SimRequest;
use crate::staging::remove_objects;
use model::Nanos;
use node::node_commands::Collect;
use std::collections::BTreeSet;

impl Run<'_> {
    /// In the end everything that exists reaches every node, and the clocks are past every time.
    pub(super) fn heal(&mut self) -> Result<(), String> {
        for at in 0..NODES {
            self.nodes[at].disk.crash_at(None);
            self.finish_administration(at)?;
            self.nodes[at].now = self.nodes[at].now.max(self.world.end).max(self.nostr.end) + DAY / 24;
            for round in 0..2 {
                let mut items: Vec<Item> = (0..self.world.key_events[at].len()).map(Item::Key).collect();
                let kept = |index: &usize| !self.world.lost.contains(&self.world.events[*index].id);
                let mut events: Vec<Item> = (0..self.world.events.len()).filter(kept).map(Item::Event).collect();
                self.random.shuffle(&mut events);
                items.extend(&events);
                self.say(|| format!("node {at} is brought everything, round {round}"));
                self.bring(at, items)?;
                let contents = events.iter().filter_map(|item| match item {
                    Item::Event(index) if !self.world.events[*index].wire.is_empty() => Some(Item::Content(*index)),
                    _ => None,
                });
                let files = (0..self.world.files.len()).map(Item::File);
                let contents = contents.chain(files).collect();
                self.bring(at, contents)?;
                self.bring_probes(at)?;
                self.bring_nostr(at)?;
            }
        }
        Ok(())
    }

    pub(super) fn bring(&mut self, at: usize, items: Vec<Item>) -> Result<(), String> {
        for part in items.chunks(20) {
            let mut requests = Vec::new();
            for item in part {
                requests.extend(self.request_of(at, *item));
            }
            self.ask(at, requests)?;
        }
        self.nodes[at].settle()
    }

    pub(super) fn compare(&mut self) -> Result<(), String> {
        for node in &self.nodes {
            node.verify()?;
            let has_key = |made: &&MadeEvent| node.gets_keys || made.envelope.key.is_zero();
            let kept = |made: &&MadeEvent| !self.world.lost.contains(&made.id);
            let pruned = node.pruned()?;
            if let Some(other) = pruned.iter().find(|id| !node.ever_pruned.contains(*id)) {
                return Err(format!("node {} pruned {other} although nobody asked", node.index));
            }
            let here = |made: &MadeEvent| !pruned.contains(&made.id);
            let model = ReferenceModel::new(self.world.events.iter().filter(kept).filter(has_key), &here);
            let is_of_space = |line: &String| !probes::is_probe_line(line) && !repositories::is_nostr_line(line);
            let shown = node.lines()?.into_iter().filter(is_of_space).collect();
            difference(node.index, &model.lines(), &shown)?;
            self.compare_probes(node, &pruned)?;
            self.compare_nostr(node)?;
            node.check_journal()?;
            node.survey(&mut self.reached)?;
            node.check_stages(&model, self.world)?;
        }
        Ok(())
    }

    /// Forgets what nobody refers to, and removes the objects that nothing speaks of.
    pub(super) fn collect_on(&mut self, at: usize) -> Result<(), String> {
        self.ask(at, vec![SimRequest::Collect(Collect)])?;
        let node = &self.nodes[at];
        let Some(core) = &node.core else { return Ok(()) };
        match remove_objects(core, Nanos(node.now)) {
            Err(fault) if !node.disk.is_dead() => Err(fault.to_string()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// When the grace is over, what nobody refers to is gone, and everything else is as before.
    pub(super) fn collect(&mut self) -> Result<(), String> {
        for at in 0..NODES {
            let before = self.nodes[at].lines()?;
            // What waits a day at most gives its references back in the first round, and its content is collected in the
            // second.
            for _ in 0..2 {
                self.nodes[at].now += 2 * DAY;
                for _ in 0..3 {
                    self.collect_on(at)?;
                }
            }
            let node = &self.nodes[at];
            difference(at, &before, &node.lines()?)?;
            node.verify()?;
            node.check_collected()?;
        }
        Ok(())
    }
}

pub(super) fn difference(node: usize, want: &BTreeSet<String>, have: &BTreeSet<String>) -> Result<(), String> {
    if want == have {
        return Ok(());
    }
    let missing: Vec<&String> = want.difference(have).take(3).collect();
    let extra: Vec<&String> = have.difference(want).take(3).collect();
    Err(format!("node {node} shows something else\n  expected {missing:#?}\n  shown {extra:#?}"))
}
