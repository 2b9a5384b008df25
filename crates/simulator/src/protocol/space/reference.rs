//! The naive model: everything every view must show, recomputed from the set of events alone.
//!
//! It knows nothing of arrival, rows, counts of references or stages. It shares with the product only the formats and
//! the wording of the lines.

mod follows;
mod rules;

use crate::protocol::space::cast::MadeEvent;
use model::crypto::{content_hash, public_space, space_id};
use model::envelope::Role;
use model::payload::{MemberRole, Payload};
use model::{AuxKey, Envelope, EventId, Identity, Kind, Nanos, SpaceId, Stamp};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// The set, and what of its content is here.
pub struct ReferenceModel<'a> {
    events: BTreeMap<EventId, &'a MadeEvent>,
    here: &'a dyn Fn(&MadeEvent) -> bool,
    valid: RefCell<BTreeMap<EventId, bool>>,
    counts: RefCell<BTreeMap<EventId, bool>>,
}

fn stamp(made: &MadeEvent) -> Stamp {
    Stamp { at: made.envelope.created_at, id: made.id }
}

fn refs(envelope: &Envelope, role: Role) -> Vec<EventId> {
    envelope.references.iter().filter(|reference| reference.role == role).map(|reference| reference.id).collect()
}

fn one(envelope: &Envelope, role: Role) -> Option<EventId> {
    refs(envelope, role).first().copied()
}

impl<'a> ReferenceModel<'a> {
    /// The model of these events; `here` says whether the content of an event is here.
    pub fn new(
        events: impl Iterator<Item = &'a MadeEvent>,
        here: &'a dyn Fn(&MadeEvent) -> bool,
    ) -> ReferenceModel<'a> {
        let events = events.map(|made| (made.id, made)).collect();
        ReferenceModel { events, here, valid: RefCell::default(), counts: RefCell::default() }
    }

    fn get(&self, id: EventId) -> Option<&'a MadeEvent> {
        self.events.get(&id).copied().filter(|made| self.is_valid(made))
    }

    fn needed(&self, made: &MadeEvent) -> Option<Vec<(Role, &'a MadeEvent)>> {
        rules::needed(&made.envelope).into_iter().map(|r| Some((r.role, self.get(r.id)?))).collect()
    }

    /// Whether an event is ever applied.
    pub fn is_valid(&self, made: &MadeEvent) -> bool {
        if let Some(known) = self.valid.borrow().get(&made.id) {
            return *known;
        }
        let valid = self.judge(made);
        self.valid.borrow_mut().insert(made.id, valid);
        valid
    }

    fn judge(&self, made: &MadeEvent) -> bool {
        let e = made.envelope.envelope();
        let Some(needed) = self.needed(made) else { return false };
        let earlier = |other: &MadeEvent| other.envelope.created_at < e.created_at && other.envelope.space == e.space;
        if !needed.iter().all(|(_, other)| earlier(other)) {
            return false;
        }
        let kinds = |role: Role| -> Vec<Kind> {
            needed.iter().filter(|(r, _)| *r == role).map(|(_, other)| other.envelope.kind).collect()
        };
        let (threads, targets, files) = (kinds(Role::Thread), kinds(Role::Target), kinds(Role::Attachment));
        let none: Vec<Kind> = Vec::new();
        let is_files = |allowed: bool| (allowed || files.is_empty()) && files.iter().all(|kind| *kind == Kind::File);
        let shape = match e.kind {
            Kind::Unknown(_) => true,
            Kind::Message => threads == [Kind::Thread] && targets == none && is_files(true),
            Kind::Post => threads == none && targets == none && is_files(true),
            Kind::ThreadUpdate | Kind::ThreadDelete => threads == [Kind::Thread] && targets == none && is_files(false),
            Kind::Edit => {
                let target = targets == [Kind::Message] || targets == [Kind::Post];
                threads == none && target && is_files(true)
            }
            Kind::Reaction | Kind::ReactionRemoval => threads == none && targets == [Kind::Message] && is_files(false),
            Kind::ReadMarker => threads == [Kind::Thread] && targets == [Kind::Message] && is_files(false),
            Kind::Member => threads == none && (targets == none || targets == [Kind::Member]) && is_files(false),
            Kind::Removal => {
                let target = targets == [Kind::Member] || targets == [Kind::Space];
                threads == none && target && is_files(false)
            }
            Kind::Delete => threads == none && refs(e, Role::Target).len() == 1 && is_files(false),
            _ => threads == none && targets == none && is_files(false),
        };
        shape && self.aux_fits(e) && self.may(made, e, &needed)
    }

    fn aux_fits(&self, e: &Envelope) -> bool {
        match e.kind {
            Kind::Thread | Kind::Message | Kind::File | Kind::Unknown(_) => true,
            Kind::Space | Kind::Device | Kind::Follow | Kind::Unfollow => e.aux != AuxKey::ZERO,
            Kind::ThreadUpdate => e.aux.0[..15] == [0; 15] && (1..=4).contains(&e.aux.0[15]),
            _ => e.aux == AuxKey::ZERO,
        }
    }

    fn may(&self, made: &MadeEvent, e: &Envelope, needed: &[(Role, &'a MadeEvent)]) -> bool {
        let authorities: Vec<_> = needed.iter().filter(|(role, _)| *role == Role::Authority).collect();
        if let (Kind::Space, Payload::Space { sealed }) = (e.kind, &e.payload) {
            let id = e.space == space_id(&e.author, &e.aux, *sealed);
            return authorities.is_empty() && id && *sealed != e.key.is_zero();
        }
        if e.kind == Kind::Key {
            return authorities.is_empty();
        }
        if authorities.is_empty() {
            let kinds = [Kind::Post, Kind::Follow, Kind::Unfollow, Kind::Profile, Kind::Device, Kind::Prekey];
            let others = [Kind::File, Kind::Edit, Kind::Delete];
            let fits = kinds.contains(&e.kind) || others.contains(&e.kind) || matches!(e.kind, Kind::Unknown(_));
            return e.space == public_space(&e.author) && fits && e.key.is_zero();
        }
        let [(_, authority)] = authorities[..] else {
            return false;
        };
        let Some((member, role)) = self.granted(authority) else {
            return false;
        };
        if member != e.author || matches!(e.kind, Kind::Post | Kind::Follow | Kind::Unfollow) {
            return false;
        }
        if self.is_sealed(authority) == e.key.is_zero() {
            return false;
        }
        self.target_fits(e, needed) && self.permits(made, role)
    }

    fn target_fits(&self, e: &Envelope, needed: &[(Role, &'a MadeEvent)]) -> bool {
        let target = needed.iter().find(|(role, _)| *role == Role::Target).map(|(_, made)| *made);
        match (e.kind, target) {
            (Kind::Member, Some(old)) => {
                let Payload::Member { member, .. } = e.payload else {
                    return false;
                };
                self.granted(old).map(|(who, _)| who) == Some(member)
            }
            (Kind::Removal, Some(old)) => old.envelope.kind == Kind::Member || old.envelope.author == e.author,
            (Kind::ReadMarker, Some(message)) => one(&message.envelope, Role::Thread) == one(e, Role::Thread),
            _ => true,
        }
    }

    fn granted(&self, made: &MadeEvent) -> Option<(Identity, MemberRole)> {
        match made.envelope.payload {
            Payload::Space { .. } => Some((made.envelope.author, MemberRole::Owner)),
            Payload::Member { member, role } => Some((member, role)),
            _ => None,
        }
    }

    fn is_sealed(&self, made: &MadeEvent) -> bool {
        match made.envelope.payload {
            Payload::Space { sealed } => sealed,
            _ => one(&made.envelope, Role::Authority).and_then(|id| self.get(id)).is_some_and(|a| self.is_sealed(a)),
        }
    }

    /// Whether somebody of this role may do what the event does.
    fn permits(&self, made: &MadeEvent, role: MemberRole) -> bool {
        let e = made.envelope.envelope();
        let target = one(e, Role::Target).and_then(|id| self.events.get(&id).copied());
        let owner_of = |made: Option<&MadeEvent>| made.map(|made| made.envelope.author);
        let own_or_admin = |other: Option<&MadeEvent>| {
            let least = if owner_of(other) == Some(e.author) { MemberRole::Member } else { MemberRole::Admin };
            role >= least
        };
        match e.kind {
            Kind::Member => {
                let Payload::Member { role: granted, .. } = e.payload else {
                    return false;
                };
                let old = target.and_then(|old| self.granted(old)).map(|(_, role)| role);
                rules::may_manage(role, granted) && old.is_none_or(|old| rules::may_manage(role, old))
            }
            Kind::Removal => {
                let Some((member, removed)) = target.and_then(|old| self.granted(old)) else {
                    return false;
                };
                member == e.author || rules::may_manage(role, removed)
            }
            Kind::Edit => own_or_admin(target),
            Kind::ThreadUpdate | Kind::ThreadDelete => {
                own_or_admin(one(e, Role::Thread).and_then(|id| self.events.get(&id).copied()))
            }
            Kind::Settings => role >= MemberRole::Admin,
            Kind::Device | Kind::Prekey | Kind::Profile | Kind::ReadMarker | Kind::Unknown(_) => true,
            _ => role >= MemberRole::Member,
        }
    }

    /// The role in which an event acted, if its authority was in force and counts.
    fn acted_as(&self, made: &MadeEvent) -> Option<MemberRole> {
        let authority = self.get(one(&made.envelope, Role::Authority)?)?;
        if !self.counts(authority) {
            return None;
        }
        let (_, mut role) = self.granted(authority)?;
        for (_, cap) in self.limits(authority, stamp(made)) {
            role = role.min(cap?);
        }
        Some(role)
    }

    /// What ends or lessens a membership before a stamp. Only what is earlier is looked at: that is the induction.
    fn limits(&self, membership: &MadeEvent, before: Stamp) -> Vec<(Stamp, Option<MemberRole>)> {
        let mut limits: Vec<_> = self
            .all()
            .filter(|made| matches!(made.envelope.kind, Kind::Member | Kind::Removal))
            .filter(|made| one(&made.envelope, Role::Target) == Some(membership.id))
            .filter(|made| stamp(made) < before && self.counts(made))
            .map(|made| match made.envelope.payload {
                Payload::Member { role, .. } => (stamp(made), Some(role)),
                _ => (stamp(made), None),
            })
            .collect();
        limits.sort();
        limits
    }

    /// Whether an event counts.
    pub fn counts(&self, made: &MadeEvent) -> bool {
        if let Some(known) = self.counts.borrow().get(&made.id) {
            return *known;
        }
        let stands_alone = one(&made.envelope, Role::Authority).is_none();
        let counts = stands_alone || self.acted_as(made).is_some_and(|role| self.permits(made, role));
        self.counts.borrow_mut().insert(made.id, counts);
        counts
    }

    fn all(&self) -> impl Iterator<Item = &'a MadeEvent> + '_ {
        self.events.values().copied().filter(|made| self.is_valid(made))
    }

    fn counting(&self, kinds: &[Kind]) -> Vec<&'a MadeEvent> {
        let mut found: Vec<_> =
            self.all().filter(|made| kinds.contains(&made.envelope.kind) && self.counts(made)).collect();
        found.sort_by_key(|made| stamp(made));
        found
    }

    fn deleted_by(&self, made: &MadeEvent) -> Option<Stamp> {
        let mut targets = vec![made.id];
        if made.envelope.kind == Kind::Edit {
            targets.extend(one(&made.envelope, Role::Target));
        }
        let deletes = self.counting(&[Kind::Delete]);
        let reaching = deletes.iter().filter(|delete| {
            let Some(target) = one(&delete.envelope, Role::Target).filter(|id| targets.contains(id)) else {
                return false;
            };
            let Some(target) = self.get(target) else { return false };
            let own = target.envelope.author == delete.envelope.author;
            let admin = self.acted_as(delete).is_some_and(|role| role >= MemberRole::Admin);
            let same = target.envelope.space == delete.envelope.space;
            same && rules::is_deletable(target.envelope.kind) && (own || admin)
        });
        reaching.map(|delete| stamp(delete)).min()
    }

    /// How the content of an event is written in a line.
    pub fn content(&self, made: &MadeEvent) -> String {
        if let Some(by) = self.deleted_by(made) {
            return format!("deleted:{by}");
        }
        let plain = &made.plain;
        let is_json = rules::is_json(made.envelope.kind);
        let fits = !is_json || rules::fits_json(made.envelope.kind, plain);
        let possible = !is_json || made.wire.len() <= (64 << 10) + 40;
        match ((self.here)(made) || made.wire.is_empty(), fits && possible) {
            (_, false) if !possible => "invalid".into(),
            (false, _) => "absent".into(),
            (true, false) => "invalid".into(),
            (true, true) => format!("here:{}", content_hash(plain)),
        }
    }

    /// Every line of every view.
    pub fn lines(&self) -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        self.member_lines(&mut lines);
        self.thread_lines(&mut lines);
        self.message_lines(&mut lines);
        self.register_lines(&mut lines);
        self.follow_lines(&mut lines);
        for file in self.counting(&[Kind::File]) {
            lines.insert(format!("file {} {} {}", file.envelope.space, stamp(file), self.content(file)));
        }
        let mut chosen: BTreeMap<(SpaceId, AuxKey), Stamp> = BTreeMap::new();
        for made in self.counting(&[Kind::Thread, Kind::Message, Kind::File]) {
            if made.envelope.aux != AuxKey::ZERO {
                chosen.entry((made.envelope.space, made.envelope.aux)).or_insert(stamp(made));
            }
        }
        lines.extend(chosen.iter().map(|((space, aux), stamp)| format!("chosen {space} {aux} {stamp}")));
        lines
    }

    fn member_lines(&self, lines: &mut BTreeSet<String>) {
        for made in self.all() {
            let Some((member, role)) = self.granted(made) else {
                continue;
            };
            let limits: Vec<String> = self
                .limits(made, Stamp::LAST)
                .iter()
                .map(|(from, cap)| format!("{from}={}", cap.map_or("none".to_owned(), |cap| cap.to_string())))
                .collect();
            lines.insert(format!(
                "member {} {} {member} {role} counts={} limits={}",
                made.envelope.space,
                stamp(made),
                self.counts(made),
                limits.join(",")
            ));
        }
    }

    fn thread_lines(&self, lines: &mut BTreeSet<String>) {
        for thread in self.counting(&[Kind::Thread]) {
            let belongs = |made: &&&MadeEvent| one(&made.envelope, Role::Thread) == Some(thread.id);
            let changes = self.counting(&[Kind::ThreadUpdate, Kind::ThreadDelete]);
            let changes: Vec<_> = changes.iter().filter(belongs).copied().collect();
            let mut fields = Vec::new();
            for (code, name) in [(1, "title"), (2, "metadata"), (3, "participants"), (4, "pins")] {
                let is_field =
                    |made: &&&MadeEvent| made.envelope.kind == Kind::ThreadUpdate && made.envelope.aux.0[15] == code;
                let winner = changes.iter().rfind(is_field);
                fields.extend(winner.map(|made| format!("{name}={}/{}", stamp(made), self.content(made))));
            }
            let talking = refs(&thread.envelope, Role::Mention);
            if !talking.is_empty() {
                let own = EventId(public_space(&thread.envelope.author).0);
                lines.extend(talking.into_iter().chain([own]).map(|who| format!("direct {} {who}", thread.id)));
            }
            let deleted = changes.iter().any(|made| made.envelope.kind == Kind::ThreadDelete);
            let messages = self.counting(&[Kind::Message]);
            let times = messages.iter().filter(belongs).map(|made| made.envelope.created_at);
            let winners: Vec<Nanos> = changes.iter().map(|made| made.envelope.created_at).collect();
            let updated = times.chain(winners).chain([thread.envelope.created_at]).max().unwrap_or(Nanos(0));
            lines.insert(format!(
                "thread {} {} {} {} [{}] deleted={deleted} updated={updated}",
                thread.envelope.space,
                stamp(thread),
                thread.envelope.author,
                self.content(thread),
                fields.join(" ")
            ));
        }
    }

    fn message_lines(&self, lines: &mut BTreeSet<String>) {
        let edits = self.counting(&[Kind::Edit]);
        let reactions = self.counting(&[Kind::Reaction, Kind::ReactionRemoval]);
        let answers = self.counting(&[Kind::Message, Kind::Post]);
        for made in self.counting(&[Kind::Message, Kind::Post]) {
            let targets = |other: &&&MadeEvent| one(&other.envelope, Role::Target) == Some(made.id);
            let versions: Vec<_> = edits.iter().filter(targets).collect();
            let latest = versions.last().map_or(made, |made| **made);
            let mut winners: BTreeMap<Identity, &MadeEvent> = BTreeMap::new();
            for reaction in reactions.iter().filter(targets) {
                winners.insert(reaction.envelope.author, reaction);
            }
            winners.retain(|_, made| made.envelope.kind == Kind::Reaction);
            let (word, place) = match made.envelope.kind {
                Kind::Post => ("post", EventId(made.envelope.space.0)),
                _ => ("message", one(&made.envelope, Role::Thread).unwrap_or(EventId::ZERO)),
            };
            let version = |made: &&&MadeEvent| format!("{}/{}", stamp(made), self.content(made));
            let versions: Vec<String> = versions.iter().map(version).collect();
            let reaction = |(who, made): (&Identity, &&MadeEvent)| format!("{who}:{}/{}", made.id, self.content(made));
            let shown: Vec<String> = winners.iter().map(reaction).collect();
            let answers_here = |other: &&&MadeEvent| {
                other.envelope.space == made.envelope.space && refs(&other.envelope, Role::ReplyTo).contains(&made.id)
            };
            let mentioned = refs(&made.envelope, Role::Mention).into_iter().filter(|_| word == "message");
            lines.extend(mentioned.map(|who| format!("mention {} {who} {}", made.envelope.space, stamp(made))));
            let replies = answers.iter().filter(answers_here).count();
            lines.insert(format!(
                "{word} {place} {} {} shows={}/{} first={} versions=[{}] reactions=[{}] replies={replies}",
                stamp(made),
                made.envelope.author,
                stamp(latest),
                self.content(latest),
                self.content(made),
                versions.join(" "),
                shown.join(" ")
            ));
        }
    }

    fn register_lines(&self, lines: &mut BTreeSet<String>) {
        let mut winners: BTreeMap<(SpaceId, String), &MadeEvent> = BTreeMap::new();
        let kinds =
            [Kind::Settings, Kind::Profile, Kind::Device, Kind::ReadMarker, Kind::ThreadUpdate, Kind::ThreadDelete];
        for made in self.counting(&kinds) {
            let e = made.envelope.envelope();
            let thread = one(e, Role::Thread).unwrap_or(EventId::ZERO);
            let subject = match e.kind {
                Kind::Settings => "settings".to_owned(),
                Kind::Profile => format!("profile {}", e.author),
                Kind::Device => format!("device {} {}", e.author, e.aux),
                Kind::ReadMarker => format!("read {} {thread}", e.author),
                Kind::ThreadDelete => format!("field {thread} 255"),
                _ => format!("field {thread} {}", e.aux.0[15]),
            };
            winners.insert((e.space, subject), made);
        }
        for ((space, subject), made) in winners {
            lines.insert(format!("register {space} {subject} {} {}", stamp(made), self.content(made)));
        }
    }
}
