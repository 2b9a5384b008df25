//! What rows say together: numbers that are kept equal a recount.

use super::Check;
use crate::keys::{AuthorName, AuthorNoKey, SpaceNoKey};
use crate::tables::TableReads as _;
use engine::reads::StoreResult;
use model::{AuthorNo, Group};
use std::collections::{HashMap, HashSet};

impl Check<'_> {
    pub(super) fn totals(&mut self) -> StoreResult<()> {
        let tables = &self.db.tables;
        let pairs = [
            ("reverse rows of needs", tables.waiting.len()?, self.waiting),
            ("held events by deadline", tables.held.len()?, self.held),
            ("held events by owner", tables.held_by_owner.len()?, self.held),
            ("events waiting for content", tables.content_waiting.len()?, self.content_waiting),
            ("bytes of file events", tables.file_bytes.len()?, self.file_bytes),
            ("carried events", tables.carried.len()?, self.carried),
            ("carried events by age", tables.carried_order.len()?, self.carried),
            ("ready events", tables.ready.len()?, self.ready),
            ("unused contents", tables.unused.len()?, self.unused),
            ("owners of held events", tables.held_counts.len()?, self.owners.len() as u64),
        ];
        for (what, rows, counted) in pairs {
            self.require(rows == counted, || format!("{rows} rows of {what}, but {counted} counted"));
        }
        let (hunters, counted) = (tables.hunters.len()?, self.hunters.len() as u64);
        self.require(hunters == counted, || format!("{hunters} needs are waited for, but {counted} counted"));
        for (key, counted) in std::mem::take(&mut self.hunters) {
            let stored = tables.hunters.get(key)?.unwrap_or(0);
            self.require(stored == counted, || format!("a need has {counted} waiting, but {stored} are noted"));
        }
        let (hunted, absent) = (tables.hunted.len()?, self.hunted.len() as u64);
        self.require(hunted == absent, || format!("{hunted} needs are hunted, but {absent} are absent"));
        for key in std::mem::take(&mut self.hunted) {
            let is_hunted = tables.hunted.contains(key)?;
            self.require(is_hunted, || "a need is absent, but not hunted".to_owned());
        }
        for (owner, counted) in self.owners.clone() {
            let stored = tables.held_counts.get(owner)?.unwrap_or(0);
            self.require(stored == counted, || format!("an owner has {counted} held, but {stored} are noted"));
        }
        Ok(())
    }

    /// Numbers of spaces and authors lead back to them.
    pub(super) fn numbers(&mut self) -> StoreResult<()> {
        let tables = &self.db.tables;
        let counts = [
            ("spaces", tables.spaces.len()?, tables.space_ids.len()?),
            ("authors", tables.authors.len()?, tables.author_ids.len()?),
        ];
        for (what, numbered, named) in counts {
            self.require(numbered == named, || format!("{numbered} {what} have numbers, but {named} are named"));
        }
        for row in tables.spaces.iter()? {
            let row = row?;
            let (space, number) = (row.key().id(), row.value()?);
            let named = tables.space_ids.get(SpaceNoKey::new(number))?;
            self.require(named == Some(space), || format!("the number {number} of {space} leads to {named:?}"));
        }
        for row in tables.authors.iter()? {
            let row = row?;
            let (author, number) = (row.key(), row.value()?);
            let named = tables.author_ids.get(AuthorNoKey::new(number))?.map(AuthorName::of);
            self.require(named == Some(author), || format!("the number {number} of an author leads to another"));
        }
        Ok(())
    }

    pub(super) fn usage(&mut self) -> StoreResult<()> {
        let mut counted = std::mem::take(&mut self.usage);
        let mut spaces: HashMap<AuthorNo, u64> = HashMap::new();
        counted.keys().for_each(|key| *spaces.entry(key.author()).or_default() += 1);
        for entry in self.db.tables.author_ids().iter()? {
            let author = entry?.key().number();
            let (stored, recount) =
                (self.db.tables.author_spaces().get(AuthorNoKey::new(author))?, spaces.remove(&author));
            self.require(stored == recount && recount.is_some(), || {
                format!("the author {author} is noted in {stored:?} spaces, and has events in {recount:?}")
            });
        }
        self.require(spaces.is_empty(), || format!("{} authors with events have no number", spaces.len()));
        for entry in self.db.tables.space_ids().iter()? {
            let space = entry?.key().number();
            let is_used = !self.db.is_unused(space)?;
            self.require(is_used, || format!("the space {space} has a number, and nothing is kept of it"));
        }
        for entry in self.db.tables.usage().iter()? {
            let row = entry?;
            let stored = row.value()?;
            let recount = counted.remove(&row.key()).unwrap_or_default();
            self.require(stored == recount, || format!("usage {stored:?} noted, {recount:?} counted"));
        }
        self.require(counted.is_empty(), || format!("{} authors without a usage row", counted.len()));
        Ok(())
    }

    pub(super) fn schedule(&mut self) -> StoreResult<()> {
        let rows = self.db.schedule()?;
        let due = self.db.tables.schedule_due().len()?;
        self.require(rows.len() as u64 == due, || format!("{} groups scheduled, {due} by time", rows.len()));
        for (group, _) in &rows {
            let pending = !self.db.needs_of(group, 1)?.is_empty() || !self.at_rest;
            self.require(pending, || format!("{group} is scheduled but nothing of it is pending"));
        }
        let scheduled: HashSet<Group> = rows.into_iter().map(|(group, _)| group).collect();
        for group in self.groups.clone() {
            let is_scheduled = scheduled.contains(&group) || !self.at_rest;
            self.require(is_scheduled, || format!("{group} has needs but is not scheduled"));
        }
        Ok(())
    }
}
