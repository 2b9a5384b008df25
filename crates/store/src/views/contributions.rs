//! Contributions to the views: one row per event and place, put while the event counts and removed when it stops.

use crate::database::batch::{Batch, put_or_remove};
use crate::database::db::fault;
use crate::encode;
use crate::views::timeline::{HINT_REACTIONS, HINT_REFERS, HINT_REPLIES, HINT_VERSIONS};
use engine::change::RowChange;
use engine::reads::{Reads, SpaceReads as _, StoreResult};
use engine::rows::{Register, ViewRow};
use model::{AuthorNo, Seq, SpaceNo, Stamp};
use redb::ReadableTable as _;

impl Batch<'_> {
    pub(crate) fn view(&mut self, row_change: RowChange, row: ViewRow, stamp: Stamp, seq: Seq) -> StoreResult<()> {
        match row {
            ViewRow::Thread { space } => {
                self.touched_threads.insert(seq.0);
                put_or_remove(row_change, &mut self.db.tables.threads, encode::space_stamp(space, stamp), seq.0)
            }
            ViewRow::Timeline { space, thread, refers } => self.timeline(row_change, space, thread, refers, stamp, seq),
            ViewRow::Version { target } => {
                put_or_remove(row_change, &mut self.db.tables.versions, encode::number_stamp(target, stamp), seq.0)?;
                self.hint(target, HINT_VERSIONS)
            }
            ViewRow::Reaction { target, author } => {
                let key = encode::reaction_key(target, author, stamp);
                put_or_remove(row_change, &mut self.db.tables.reactions, key, seq.0)?;
                self.hint(target, HINT_REACTIONS)
            }
            ViewRow::Reply { space, target } => {
                put_or_remove(
                    row_change,
                    &mut self.db.tables.replies,
                    encode::reply_key(space, &target, stamp),
                    seq.0,
                )?;
                match self.db.seq(&target)? {
                    Some(target) => self.hint(target, HINT_REPLIES),
                    None => Ok(()),
                }
            }
            ViewRow::Mention { space, who } => {
                let key = encode::reply_key(space, &model::EventId(who.0), stamp);
                put_or_remove(row_change, &mut self.db.tables.mentions, key, seq.0)
            }
            ViewRow::Register(key) => {
                if let Register::ThreadField(thread, _) = key.register {
                    self.touched_threads.insert(thread.0);
                }
                put_or_remove(row_change, &mut self.db.tables.registers, encode::register_key(&key, stamp), seq.0)
            }
            ViewRow::Follower { followee, follower } => {
                let key: [u8; 44] = crate::keys::key(&[&followee.0, &follower.0.to_be_bytes(), &stamp.to_bytes()]);
                put_or_remove(row_change, &mut self.db.tables.followers, key, seq.0)
            }
            ViewRow::Post { space } => {
                put_or_remove(row_change, &mut self.db.tables.posts, encode::space_stamp(space, stamp), seq.0)
            }
            ViewRow::Chosen { space, key } => {
                let key: [u8; 44] = crate::keys::key(&[&space.0.to_be_bytes(), &key.0, &stamp.to_bytes()]);
                put_or_remove(row_change, &mut self.db.tables.chosen, key, seq.0)
            }
            ViewRow::File { space } => {
                put_or_remove(row_change, &mut self.db.tables.files, encode::space_stamp(space, stamp), seq.0)
            }
        }
    }

    fn timeline(
        &mut self,
        row_change: RowChange,
        space: SpaceNo,
        thread: Seq,
        refers: bool,
        stamp: Stamp,
        seq: Seq,
    ) -> StoreResult<()> {
        let mut hints = if refers { HINT_REFERS } else { 0 };
        if row_change == RowChange::Put {
            // Answers need not wait for what they answer; versions and reactions may be here when a message that was
            // hidden is shown again.
            let answers =
                encode::reply_key(space, &stamp.id, Stamp::FIRST)..=encode::reply_key(space, &stamp.id, Stamp::LAST);
            let replies = self.db.tables.replies.range(answers).map_err(fault)?.next().is_some();
            hints |= if replies { HINT_REPLIES } else { 0 };
            hints |= if self.db.last_version(seq)?.is_some() { HINT_VERSIONS } else { 0 };
            let first = encode::reaction_key(seq, AuthorNo(0), Stamp::FIRST);
            let last = encode::reaction_key(seq, AuthorNo(u32::MAX), Stamp::LAST);
            let reactions = self.db.tables.reactions.range(first..=last).map_err(fault)?.next().is_some();
            hints |= if reactions { HINT_REACTIONS } else { 0 };
        }
        self.touched_threads.insert(thread.0);
        let key = encode::number_stamp(thread, stamp);
        match row_change {
            RowChange::Put => self.put_in_timeline(key, seq, hints),
            RowChange::Remove => self.db.tables.timeline.remove(key).map_err(fault).map(drop),
        }
    }

    fn hint(&mut self, target: Seq, hint: u8) -> StoreResult<()> {
        let Some(row) = self.db.event(target)? else {
            return Ok(());
        };
        let thread = row.meta.as_ref().and_then(|meta| meta.subject);
        let (Some(thread), Some(stamp)) = (thread, row.stamp()) else {
            return Ok(());
        };
        self.hint_in_timeline(encode::number_stamp(thread, stamp), hint)
    }
}
