//! Contributions to the views: one row per event and place, put while the event counts and removed when it stops.

use crate::database::batch::{Batch, put_or_remove};
use crate::keys::*;
use crate::views::timeline::{HINT_REACTIONS, HINT_REFERS, HINT_REPLIES, HINT_VERSIONS};
use engine::change::RowChange;
use engine::reads::{Reads, SpaceReads as _, StoreResult};
use engine::rows::{Register, ViewRow};
use model::{Seq, SpaceNo, Stamp};

impl Batch<'_> {
    pub(crate) fn change_view(
        &mut self,
        row_change: RowChange,
        row: ViewRow,
        stamp: Stamp,
        seq: Seq,
    ) -> StoreResult<()> {
        match row {
            ViewRow::Thread { space } => {
                self.touched_threads.insert(seq);
                put_or_remove(row_change, &mut self.db.tables.threads, SpaceStamp::new(space, stamp), seq)
            }
            ViewRow::Direct { who } => {
                put_or_remove(row_change, &mut self.db.tables.direct, DirectKey::new(seq, who), ())
            }
            ViewRow::Timeline { space, thread, refers } => {
                self.change_timeline(row_change, space, thread, refers, stamp, seq)
            }
            ViewRow::Version { target } => {
                put_or_remove(row_change, &mut self.db.tables.versions, EventStamp::new(target, stamp), seq)?;
                self.note_hint(target, HINT_VERSIONS)
            }
            ViewRow::Reaction { target, author } => {
                let key = ReactionKey::new(target, author, stamp);
                put_or_remove(row_change, &mut self.db.tables.reactions, key, seq)?;
                self.note_hint(target, HINT_REACTIONS)
            }
            ViewRow::Reply { space, target } => {
                put_or_remove(row_change, &mut self.db.tables.replies, ReplyKey::new(space, target, stamp), seq)?;
                match self.db.seq(&target)? {
                    Some(target) => self.note_hint(target, HINT_REPLIES),
                    None => Ok(()),
                }
            }
            ViewRow::Mention { space, who } => {
                put_or_remove(row_change, &mut self.db.tables.mentions, MentionKey::new(space, who, stamp), seq)
            }
            ViewRow::Register(key) => {
                if let Register::ThreadField(thread, _) = key.register {
                    self.touched_threads.insert(thread);
                }
                put_or_remove(row_change, &mut self.db.tables.registers, RegisterStamp::new(&key, stamp), seq)
            }
            ViewRow::Follower { followee, follower } => {
                let key = FollowerKey::new(followee, follower, stamp);
                put_or_remove(row_change, &mut self.db.tables.followers, key, seq)
            }
            ViewRow::Post { space } => {
                put_or_remove(row_change, &mut self.db.tables.posts, SpaceStamp::new(space, stamp), seq)
            }
            ViewRow::Chosen { space, key } => {
                put_or_remove(row_change, &mut self.db.tables.chosen, ChosenKey::new(space, key, stamp), seq)
            }
            ViewRow::File { space } => {
                put_or_remove(row_change, &mut self.db.tables.files, SpaceStamp::new(space, stamp), seq)
            }
        }
    }

    fn change_timeline(
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
            let replies = self.db.tables.replies.range(ReplyKey::of_target(space, stamp.id))?.next().is_some();
            hints |= if replies { HINT_REPLIES } else { 0 };
            hints |= if self.db.last_version(seq)?.is_some() { HINT_VERSIONS } else { 0 };
            let reactions = self.db.tables.reactions.range(ReactionKey::of_target(seq))?.next().is_some();
            hints |= if reactions { HINT_REACTIONS } else { 0 };
        }
        self.touched_threads.insert(thread);
        let key = EventStamp::new(thread, stamp);
        match row_change {
            RowChange::Put => self.put_in_timeline(key, seq, hints),
            RowChange::Remove => self.remove_from_timeline(key),
        }
    }

    fn note_hint(&mut self, target: Seq, hint: u8) -> StoreResult<()> {
        let Some(row) = self.db.event(target)? else {
            return Ok(());
        };
        let thread = row.meta.as_ref().and_then(|meta| meta.subject);
        let (Some(thread), Some(stamp)) = (thread, row.stamp()) else {
            return Ok(());
        };
        self.hint_in_timeline(EventStamp::new(thread, stamp), hint)
    }
}
