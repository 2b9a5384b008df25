//! Hunting: a node's fetcher asks the other nodes.

use super::*;

impl Run<'_> {
    /// Lets a node's fetcher ask the other nodes.
    pub(super) fn hunt(&mut self, at: usize) -> Result<(), String> {
        let others = Others {
            at,
            world: self.world,
            probes: self.probes,
            lies: self.random.percent(10),
            is_down: self.random.percent(20),
            is_unknown: self.random.percent(10),
        };
        if !others.is_unknown {
            self.nodes[at].hunter.sources_changed();
        }
        for _ in 0..16 {
            let node = &mut self.nodes[at];
            let Some(core) = &node.core else { return Ok(()) };
            let Ok(db) = core.store().snapshot() else { return Ok(()) };
            let orders = node
                .hunter
                .take_orders(&db, &others, Nanos(node.now), usize::MAX)
                .map_err(|fault| fault.to_string())?;
            drop(db);
            if orders.is_empty() {
                return Ok(());
            }
            for order in orders {
                if self.follow(at, &others, order)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn reschedule(&mut self, at: usize, group: &Group, request: SimRequest) -> Result<bool, String> {
        let crashed = self.ask_or_crash(at, vec![request])?;
        let now = Nanos(self.nodes[at].now);
        self.nodes[at].hunter.settled(group, !crashed, now);
        Ok(crashed)
    }

    fn follow(&mut self, at: usize, others: &Others<'_>, order: FetchOrder) -> Result<bool, String> {
        match order {
            FetchOrder::Ended { group, mark, started_at } => {
                let ended = EndHunt { group: group.clone(), mark, started_at, jitter_permille: 0 };
                self.reschedule(at, &group, SimRequest::EndHunt(ended))
            }
            FetchOrder::Rest { group, mark } => {
                self.reschedule(at, &group.clone(), SimRequest::RestGroup(RestGroup { group, mark }))
            }
            FetchOrder::Wake { groups } => self.ask_or_crash(at, vec![SimRequest::WakeGroups(WakeGroups(groups))]),
            FetchOrder::Fetch { ticket, url, needs, .. } => {
                let mut requests = Vec::new();
                let node = &self.nodes[at];
                let Some(core) = &node.core else { return Ok(true) };
                let keys = core.store().keys().clone();
                let _ = others.fetch(&url, &needs, &mut |fetched| match fetched {
                    Fetched::Event { blob, inline } => requests.extend(arrive(&keys, &self.policy, blob, inline)),
                    Fetched::Content { space, hash, bytes } => requests.extend(checked_content(space, hash, bytes)),
                });
                if self.ask_or_crash(at, requests)? {
                    return Ok(true);
                }
                let node = &mut self.nodes[at];
                let Some(core) = &node.core else { return Ok(true) };
                let db = core.store().snapshot().map_err(|fault| fault.to_string())?;
                node.hunter.ended(&db, others, ticket, Nanos(node.now));
                Ok(false)
            }
        }
    }
}
