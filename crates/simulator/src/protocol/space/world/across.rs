//! What reaches from one space into another, wears the wrong clothes, or falls and rises again.

use super::Story;
use crate::protocol::space::cast::{EventText, Wrapping, grant};
use crate::random::SeededRandom;
use model::crypto::SpaceKey;
use model::envelope::Role;
use model::payload::MemberRole;
use model::{EventId, Kind, SpaceId};
use std::sync::Arc;

/// Somebody with a membership: number, event, time.
type Member = (usize, EventId, u64);

impl Story<'_> {
    /// An event of one space that refers to something of another. No node may apply it there, whoever signed it.
    pub(super) fn reach_across(&mut self, room: usize, by: Member) {
        let others: Vec<usize> = (0..self.rooms.len()).filter(|other| *other != room).collect();
        let Some(other) = (!others.is_empty()).then(|| *self.random.pick(&others)) else {
            return self.wrong_clothes(room, by);
        };
        let content = self.content();
        let thread = self.rooms[room].threads.first().copied();
        let far_thread = self.rooms[other].threads.last().copied();
        let far_message = self.pick_message(other);
        let far_member = self.rooms[other].members.iter().rev().find(|member| member.0 == by.0).copied();
        let far_target = self.rooms[other].targets.last().copied();
        let far_file = self.rooms[other].files.last().copied();
        let latest = [far_thread.map(|far| far.1), far_message.map(|far| far.2), far_member.map(|far| far.2)];
        let latest = latest.into_iter().flatten().chain([by.2, thread.map_or(0, |thread| thread.1)]).max();
        let at = self.time_after(latest.unwrap_or(by.2).max(far_file.map_or(0, |file| file.1)));
        let own = (Role::Authority, by.1);
        let told: Option<(Kind, Vec<(Role, EventId)>)> = match self.random.below(8) {
            0 => far_thread.map(|far| (Kind::Message, vec![own, (Role::Thread, far.0)])),
            1 => far_member
                .zip(thread)
                .map(|(far, thread)| (Kind::Message, vec![(Role::Authority, far.1), (Role::Thread, thread.0)])),
            2 | 3 => far_target.map(|far| (Kind::Delete, vec![own, (Role::Target, far)])),
            4 => far_message.map(|far| (Kind::Edit, vec![own, (Role::Target, far.0)])),
            5 => far_message.map(|far| (Kind::Reaction, vec![own, (Role::Target, far.0)])),
            6 => far_message
                .zip(thread)
                .map(|(far, thread)| (Kind::Message, vec![own, (Role::Thread, thread.0), (Role::ReplyTo, far.0)])),
            _ => far_file
                .zip(thread)
                .map(|(far, thread)| (Kind::Message, vec![own, (Role::Thread, thread.0), (Role::Attachment, far.0)])),
        };
        let Some((kind, references)) = told else { return self.wrong_clothes(room, by) };
        let content = if kind == Kind::Delete { Vec::new() } else { content };
        let place = self.place(room);
        self.put(by.0, &place, EventText::new(kind, at, &references, &content));
    }

    /// A message that anyone can read in a sealed space, or one of an open space under a key.
    fn wrong_clothes(&mut self, room: usize, by: Member) {
        let Some(thread) = self.rooms[room].threads.first().copied() else { return self.open_thread(room, by) };
        let at = self.time_after(by.2.max(thread.1));
        let space = self.rooms[room].place.space;
        let key = match &self.rooms[room].place.key {
            Some(_) => None,
            None => Some(Arc::new(SpaceKey::new(&space, self.random.bytes32()))),
        };
        let content = self.content();
        let references = [(Role::Authority, by.1), (Role::Thread, thread.0)];
        self.put(by.0, &Wrapping { space, key }, EventText::new(Kind::Message, at, &references, &content));
    }

    /// A member writes and deletes; an admin had removed them before that; and the owner had removed that admin before.
    /// Whether what the member did counts changes with each removal that becomes known.
    pub(super) fn fall_and_rise(&mut self, room: usize) {
        let owner = self.rooms[room].members[0];
        let Some(thread) = self.rooms[room].threads.first().copied() else { return self.open_thread(room, owner) };
        let begun = self.time_after(owner.2.max(thread.1));
        let mut granted = Vec::new();
        for (member, role) in [(3, MemberRole::Admin), (4, MemberRole::Member)] {
            let payload = grant(&self.authors[member], role);
            let place = self.place(room);
            let text = EventText::new(Kind::Member, begun + 1, &[(Role::Authority, owner.1)], b"").payload(payload);
            granted.push((member, self.put(owner.0, &place, text)));
        }
        let (admin, member) = (granted[0], granted[1]);
        let first = self.step_of_fall(room, member, Kind::Message, begun + 2, (Role::Thread, thread.0));
        // Without this the removal of the member stands.
        if self.random.percent(60) {
            self.step_of_fall(room, (owner.0, owner.1), Kind::Removal, begun + 3, (Role::Target, admin.1));
        }
        self.step_of_fall(room, admin, Kind::Removal, begun + 4, (Role::Target, member.1));
        self.step_of_fall(room, member, Kind::Message, begun + 5, (Role::Thread, thread.0));
        self.step_of_fall(room, member, Kind::Edit, begun + 5, (Role::Target, first));
        let by = if self.random.percent(50) { member } else { (owner.0, owner.1) };
        self.step_of_fall(room, by, Kind::Delete, begun + 6, (Role::Target, first));
        self.now = self.now.max(begun + 7);
    }

    fn step_of_fall(
        &mut self,
        room: usize,
        by: (usize, EventId),
        kind: Kind,
        at: u64,
        reference: (Role, EventId),
    ) -> EventId {
        let content = if matches!(kind, Kind::Message | Kind::Edit) { self.content() } else { Vec::new() };
        let place = self.place(room);
        self.put(by.0, &place, EventText::new(kind, at, &[(Role::Authority, by.1), reference], &content))
    }

    /// How events of a space are wrapped: under its first key, or a later one.
    pub(super) fn place(&mut self, room: usize) -> Wrapping {
        let room = &self.rooms[room];
        match &room.later_key {
            Some(later) if self.random.percent(40) => later.clone(),
            _ => room.place.clone(),
        }
    }
}

/// The same space under another key.
pub(super) fn later_key(random: &mut SeededRandom, place: &Wrapping) -> Option<Wrapping> {
    let space: SpaceId = place.space;
    (place.key.is_some() && random.percent(60))
        .then(|| Wrapping { space, key: Some(Arc::new(SpaceKey::new(&space, random.bytes32()))) })
}
