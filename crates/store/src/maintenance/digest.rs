//! All views as lines of text, free of anything local, and their digest.
//!
//! Two nodes that keep the same events and content, can open the same keys and have deleted the same things give the
//! same lines. The digest is a sum over the lines, so that their order does not matter and nothing has to be sorted.

use crate::database::db::{Db, fault};
use crate::encode;
use crate::tables::TableReads;
use crate::views::messages::ShownContent;
use engine::reads::{Reads, SpaceReads as _, StoreResult};
use model::{AuthorNo, ContentHash, EventId, Identity, Seq, SpaceId, SpaceNo, Stamp};
use redb::ReadableTable as _;

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
        for entry in self.tables.memberships().iter().map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let seq = Seq(key.value());
            let membership = encode::decode_membership(value.value())?;
            let Some(row) = self.event(seq)? else {
                return Err(encode::broken("a membership's event"));
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
        for entry in self.tables.threads().iter().map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let space = self.space_id(SpaceNo(u32::from_be_bytes(crate::keys::key(&[&key.value()[..4]]))))?;
            let Some(thread) = self.thread(Seq(value.value()))? else {
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
        for entry in self.tables.timeline().iter().map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let thread = Seq(u64::from_be_bytes(crate::keys::key(&[&key.value()[..8]])));
            let row = crate::views::timeline::TimelineRow::decode(value.value())?;
            let place = self.id_of(thread)?;
            self.dump_message("message", &place, row.seq, row.hints, out)?;
        }
        for entry in self.tables.posts().iter().map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let space = self.space_id(SpaceNo(u32::from_be_bytes(crate::keys::key(&[&key.value()[..4]]))))?;
            self.dump_message("post", &EventId(space.0), Seq(value.value()), u8::MAX, out)?;
        }
        Ok(())
    }

    fn dump_message(
        &self,
        word: &str,
        place: &EventId,
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
        let mut last: Option<([u8; 25], Stamp, Seq)> = None;
        for entry in self.tables.registers().iter().map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let register: [u8; 25] = crate::keys::key(&[&key.value()[..25]]);
            let candidate = (register, encode::stamp_at_end(&key.value()), Seq(value.value()));
            if let Some(winner) = last.replace(candidate).filter(|winner| winner.0 != register) {
                self.dump_register(winner, out)?;
            }
        }
        last.map_or(Ok(()), |winner| self.dump_register(winner, out))
    }

    fn dump_register(
        &self,
        (key, stamp, seq): ([u8; 25], Stamp, Seq),
        out: &mut impl FnMut(String),
    ) -> StoreResult<()> {
        let space = self.space_id(SpaceNo(u32::from_be_bytes(crate::keys::key(&[&key[..4]]))))?;
        let author = || self.identity(AuthorNo(u32::from_be_bytes(crate::keys::key(&[&key[5..9]]))));
        let subject = match key[4] {
            0 => "settings".to_owned(),
            1 => format!("profile {}", author()?),
            2 => format!("device {} {}", author()?, EventId(crate::keys::key(&[&key[9..]]))),
            3 => {
                let thread = Seq(u64::from_be_bytes(crate::keys::key(&[&key[9..17]])));
                format!("read {} {}", author()?, self.id_of(thread)?)
            }
            4 => {
                let thread = Seq(u64::from_be_bytes(crate::keys::key(&[&key[5..13]])));
                format!("field {} {}", self.id_of(thread)?, key[13])
            }
            // Follows are listed with their verdict below.
            _ => return Ok(()),
        };
        out(format!("register {space} {subject} {stamp} {}", content_text(&self.shown(seq)?)));
        Ok(())
    }

    fn dump_small(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        for entry in self.tables.files().iter().map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let space = self.space_id(SpaceNo(u32::from_be_bytes(crate::keys::key(&[&key.value()[..4]]))))?;
            let stamp = encode::stamp_at_end(&key.value());
            out(format!("file {space} {stamp} {}", content_text(&self.shown(Seq(value.value()))?)));
        }
        for entry in self.tables.mentions().iter().map_err(fault)? {
            let key = entry.map_err(fault)?.0.value();
            let space = self.space_id(SpaceNo(u32::from_be_bytes(crate::keys::key(&[&key[..4]]))))?;
            let who = EventId(crate::keys::key(&[&key[4..20]]));
            out(format!("mention {space} {who} {}", encode::stamp_at_end(&key)));
        }
        self.dump_chosen(out)?;
        self.dump_follows(out)
    }

    fn dump_chosen(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        let mut last = None;
        for entry in self.tables.chosen().iter().map_err(fault)? {
            let key = entry.map_err(fault)?.0.value();
            let subject: [u8; 20] = crate::keys::key(&[&key[..20]]);
            if last.replace(subject) != Some(subject) {
                let space = self.space_id(SpaceNo(u32::from_be_bytes(crate::keys::key(&[&key[..4]]))))?;
                let chosen = EventId(crate::keys::key(&[&key[4..20]]));
                out(format!("chosen {space} {chosen} {}", encode::stamp_at_end(&key)));
            }
        }
        Ok(())
    }

    fn dump_follows(&self, out: &mut impl FnMut(String)) -> StoreResult<()> {
        let mut followed: Vec<SpaceId> = Vec::new();
        let mut authors: Vec<AuthorNo> = Vec::new();
        for entry in self.tables.followers().iter().map_err(fault)? {
            let key = entry.map_err(fault)?.0.value();
            followed.push(SpaceId(crate::keys::key(&[&key[..16]])));
            authors.push(AuthorNo(u32::from_be_bytes(crate::keys::key(&[&key[16..20]]))));
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
        self.with_event(seq, |parts| parts.row.id)?.ok_or_else(|| encode::broken("an event number"))
    }
}

/// A limit of a membership as its line tells it.
fn limit_line(limit: &engine::rows::MembershipLimit) -> String {
    format!("{}={}", limit.from, limit.cap.map_or("none".to_owned(), |cap| cap.to_string()))
}
