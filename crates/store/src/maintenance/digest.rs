//! All views as lines of text, free of anything local, and their digest.
//!
//! Two nodes that keep the same events and content, can open the same keys and have deleted the same things give the
//! same lines. The digest is a sum over the lines, so that their order does not matter and nothing has to be sorted.

use crate::database::db::Db;
use crate::tables::TableReads;
use crate::views::messages::ShownContent;
use engine::reads::{Reads, SpaceReads as _, StoreResult};
use engine::rows::{Register, RegisterKey};
use model::{AuthorNo, ContentHash, EventId, Identity, Seq, SpaceId, Stamp};

/// A sum over the lines of all views.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest([u64; 4]);

impl Digest {
    /// Adds a line.
    pub fn add(&mut self, line: &str) {
        let hash = blake3::hash(line.as_bytes());
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

/// How a view's line writes content.
pub fn content_text(shown: &ShownContent) -> String {
    match shown {
        ShownContent::Here(bytes) => format!("here:{}", ContentHash(*blake3::hash(bytes).as_bytes())),
        ShownContent::Absent => "absent".into(),
        ShownContent::Invalid => "invalid".into(),
        ShownContent::Deleted(by) => format!("deleted:{by}"),
    }
}

impl<V: TableReads> Db<V> {
    /// The digest of all views.
    pub fn digest(&self) -> StoreResult<Digest> {
        let mut digest = Digest::default();
        self.dump(&mut |line| digest.add(&line))?;
        Ok(digest)
    }

    /// Every line of every view, in no particular order.
    pub fn dump(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
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
                .map(|(field, stamp, shown)| format!("{}={stamp}/{}", field.name(), content_text(shown)))
                .collect();
            out(format!(
                "thread {space} {} {} {} [{}] deleted={} updated={}",
                thread.stamp,
                thread.author,
                content_text(&thread.content),
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
            versions.push(format!("{stamp}/{}", content_text(&self.shown(version)?)));
        }
        let mut reactions = Vec::new();
        for (who, reaction) in &message.reactions {
            reactions.push(format!("{who}:{}/{}", self.id_of(*reaction)?, content_text(&self.shown(*reaction)?)));
        }
        out(format!(
            "{word} {place} {stamp} {} shows={}/{} first={} versions=[{}] reactions=[{}] replies={}",
            message.author,
            message.version,
            content_text(&message.content),
            content_text(&self.shown(seq)?),
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
        out(format!("register {space} {subject} {stamp} {}", content_text(&self.shown(seq)?)));
        Ok(())
    }

    fn dump_small(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        for entry in self.tables.files().iter()? {
            let row = entry?;
            let (space, stamp) = (self.space_id(row.key().space())?, row.key().stamp());
            out(format!("file {space} {stamp} {}", content_text(&self.shown(row.value()?)?)));
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

    /// The id of a known event.
    pub fn id_of(&self, seq: Seq) -> StoreResult<EventId> {
        self.with_event(seq, |parts| parts.row.id)?.ok_or_else(|| crate::errors::broken("an event number"))
    }
}

/// A limit of a membership as its line tells it.
fn limit_line(limit: &engine::rows::MembershipLimit) -> String {
    format!("{}={}", limit.from, limit.cap.map_or("none".to_owned(), |cap| cap.to_string()))
}
