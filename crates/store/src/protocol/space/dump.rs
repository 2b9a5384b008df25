//! The lines of all views of the `space` protocol, free of anything local.

use crate::database::db::Db;
use crate::tables::TableReads;
use engine::reads::{Reads as _, SpaceReads as _, StoreResult};
use engine::rows::{Register, RegisterKey};
use model::{AuthorNo, Identity, Seq, SpaceId, Stamp};

impl<V: TableReads> Db<V> {
    /// Every line of every view of the `space` protocol, in no particular order.
    pub(crate) fn dump_space(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        self.dump_members(out)?;
        self.dump_threads(out)?;
        self.dump_messages(out)?;
        self.dump_registers(out)?;
        self.dump_small(out)
    }

    fn dump_members(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        for entry in self.tables.memberships().iter()? {
            let entry = entry?;
            let (seq, membership) = (entry.key().seq(), entry.value()?);
            let Some(row) = self.event(seq)? else {
                return Err(crate::errors::broken("a membership's event"));
            };
            let (Some(stamp), Some(meta)) = (row.stamp(), &row.meta) else {
                continue;
            };
            let limits: Vec<String> = self.limits_before(seq, Stamp::LAST, |_| false)?.iter().map(limit_line).collect();
            out(format!(
                "member {} {stamp} {} {} counts={} limits={}",
                self.space_id(meta.space)?,
                membership.member,
                membership.role,
                meta.counts,
                limits.join(",")
            ));
        }
        Ok(())
    }

    fn dump_threads(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        for entry in self.tables.threads().iter()? {
            let row = entry?;
            let space = self.space_id(row.key().space())?;
            let Some(thread) = self.thread(row.value()?)? else {
                continue;
            };
            let fields: Vec<String> = thread
                .fields
                .iter()
                .map(|(field, stamp, shown)| format!("{}={stamp}/{}", field.name(), shown.line()))
                .collect();
            out(format!(
                "thread {space} {} {} {} [{}] deleted={} updated={}",
                thread.stamp,
                thread.author,
                thread.content.line(),
                fields.join(" "),
                thread.deleted,
                thread.updated
            ));
        }
        Ok(())
    }

    fn dump_messages(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        for entry in self.tables.timeline().iter()? {
            let entry = entry?;
            let row = crate::views::timeline::TimelineRow::decode(entry.value()?)?;
            let place = self.id_of(entry.key().event())?.to_string();
            self.dump_message("message", &place, row.seq, row.hints, out)?;
        }
        for entry in self.tables.posts().iter()? {
            let row = entry?;
            let space = self.space_id(row.key().space())?.to_string();
            self.dump_message("post", &space, row.value()?, u8::MAX, out)?;
        }
        Ok(())
    }

    fn dump_message(
        &self,
        word: &str,
        place: &str,
        seq: Seq,
        hints: u8,
        out: &mut impl FnMut(String),
    ) -> StoreResult<()> {
        let Some(stamp) = self.event(seq)?.and_then(|row| row.stamp()) else {
            return Ok(());
        };
        let message = self.message(seq, stamp, hints)?;
        let mut versions = Vec::new();
        for (stamp, version) in self.versions(seq, Stamp::FIRST, usize::MAX)? {
            versions.push(format!("{stamp}/{}", self.shown(version)?.line()));
        }
        let mut reactions = Vec::new();
        for (who, reaction) in &message.reactions {
            reactions.push(format!("{who}:{}/{}", self.id_of(*reaction)?, self.shown(*reaction)?.line()));
        }
        out(format!(
            "{word} {place} {stamp} {} shows={}/{} first={} versions=[{}] reactions=[{}] replies={}",
            message.author,
            message.version,
            message.content.line(),
            self.shown(seq)?.line(),
            versions.join(" "),
            reactions.join(" "),
            message.replies
        ));
        Ok(())
    }

    fn dump_registers(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        let mut last: Option<(RegisterKey, Stamp, Seq)> = None;
        for entry in self.tables.registers().iter()? {
            let row = entry?;
            let (register, stamp) = row.key().parts()?;
            if let Some(winner) = last.replace((register, stamp, row.value()?)).filter(|winner| winner.0 != register) {
                self.dump_register(winner, out)?;
            }
        }
        last.map_or(Ok(()), |winner| self.dump_register(winner, out))
    }

    fn dump_register(
        &self,
        (key, stamp, seq): (RegisterKey, Stamp, Seq),
        out: &mut impl FnMut(String),
    ) -> StoreResult<()> {
        let space = self.space_id(key.space)?;
        let subject = match key.register {
            Register::Settings => "settings".to_owned(),
            Register::Profile(author) => format!("profile {}", self.identity(author)?),
            Register::Device(author, device) => format!("device {} {device}", self.identity(author)?),
            Register::ReadMarker(author, thread) => {
                format!("read {} {}", self.identity(author)?, self.id_of(thread)?)
            }
            Register::ThreadField(thread, field) => format!("field {} {field}", self.id_of(thread)?),
            // Follows are listed with their verdict below.
            Register::Follow(..) => return Ok(()),
        };
        out(format!("register {space} {subject} {stamp} {}", self.shown(seq)?.line()));
        Ok(())
    }

    fn dump_small(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        for entry in self.tables.files().iter()? {
            let row = entry?;
            let (space, stamp) = (self.space_id(row.key().space())?, row.key().stamp());
            out(format!("file {space} {stamp} {}", self.shown(row.value()?)?.line()));
        }
        for entry in self.tables.direct().iter()? {
            let key = entry?.key();
            out(format!("direct {} {}", self.id_of(key.thread())?, key.who()));
        }
        for entry in self.tables.mentions().iter()? {
            let key = entry?.key();
            out(format!("mention {} {} {}", self.space_id(key.space())?, key.who(), key.stamp()));
        }
        self.dump_chosen(out)?;
        self.dump_follows(out)
    }

    fn dump_chosen(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        let mut last = None;
        for entry in self.tables.chosen().iter()? {
            let key = entry?.key();
            let subject = (key.space(), key.key());
            if last.replace(subject) != Some(subject) {
                out(format!("chosen {} {} {}", self.space_id(key.space())?, key.key(), key.stamp()));
            }
        }
        Ok(())
    }

    fn dump_follows(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        let mut followed: Vec<SpaceId> = Vec::new();
        let mut authors: Vec<AuthorNo> = Vec::new();
        for entry in self.tables.followers().iter()? {
            let key = entry?.key();
            followed.push(key.followed());
            authors.push(key.follower());
        }
        followed.dedup();
        authors.sort();
        authors.dedup();
        for space in followed {
            let followers: Vec<String> = self.followers(&space)?.iter().map(Identity::to_string).collect();
            out(format!("followers {space} [{}]", followers.join(" ")));
        }
        for author in authors {
            let identity = self.identity(author)?;
            let follows: Vec<String> = self.follows(&identity)?.iter().map(SpaceId::to_string).collect();
            out(format!("follows {identity} [{}]", follows.join(" ")));
        }
        Ok(())
    }
}

/// A limit of a membership as its line tells it.
fn limit_line(limit: &engine::rows::MembershipLimit) -> String {
    format!("{}={}", limit.from, limit.cap.map_or("none".to_owned(), |cap| cap.to_string()))
}
