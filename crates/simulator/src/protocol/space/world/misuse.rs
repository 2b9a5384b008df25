//! Events that are well formed and that no rule allows, one for each rule.

use super::Story;
use crate::protocol::space::cast::{EventText, Wrapping, chosen, grant};
use model::crypto::space_id;
use model::envelope::Role;
use model::payload::{MemberRole, Payload};
use model::{AuxKey, EventId, Kind, SpaceId};

/// Somebody with a membership: number, event, time.
type Member = (usize, EventId, u64);

impl Story<'_> {
    pub(super) fn misuse(&mut self, room: usize, by: Member) {
        let Some(thread) = self.rooms[room].threads.first().copied() else { return self.open_thread(room, by) };
        let others: Vec<Member> = self.rooms[room].members.iter().copied().filter(|other| other.0 != by.0).collect();
        let other = if others.is_empty() { by } else { *self.random.pick(&others) };
        let at = self.time_after(by.2.max(thread.1).max(other.2));
        let (place, content) = (self.place(room), self.content());
        let (own, in_thread) = ((Role::Authority, by.1), (Role::Thread, thread.0));
        let text = |kind, references: &[(Role, EventId)]| EventText::new(kind, at, references, &content);
        let text = match self.random.below(11) {
            // Somebody else's membership, none, two, or something that is none.
            0 => text(Kind::Message, &[(Role::Authority, other.1), in_thread]),
            1 => text(Kind::Message, &[in_thread]),
            2 => text(Kind::Message, &[own, (Role::Authority, other.1), in_thread]),
            3 => text(Kind::Message, &[(Role::Authority, thread.0), in_thread]),
            // What belongs into a public space.
            4 => text(Kind::Post, &[own]),
            5 => EventText::new(Kind::Follow, at, &[own], b"").aux(AuxKey(self.authors[other.0].home().0)),
            // A thread that is no thread, and a message that says it is in none.
            6 => text(Kind::Message, &[own, (Role::Thread, by.1)]),
            7 => text(Kind::Message, &[own]),
            // A field that there is not.
            8 if thread.1 > by.2 => EventText::new(Kind::Message, thread.1, &[own, in_thread], &content),
            9 => text(Kind::ThreadUpdate, &[own, in_thread]).aux(AuxKey([9; 16])),
            _ => text(Kind::Settings, &[own]).aux(chosen("settings")),
        };
        self.put(by.0, &place, text);
    }

    /// A space whose id does not follow from its creator, or somebody who takes part in a public space of another.
    pub(super) fn trespass(&mut self) {
        let author = self.random.below(self.authors.len());
        let home: SpaceId = self.authors[(author + 1) % self.authors.len()].home();
        let (at, content) = (self.later(), self.content());
        match self.random.below(3) {
            0 => {
                let aux = AuxKey([77; 16]);
                let space = space_id(&self.authors[(author + 1) % self.authors.len()].identity, &aux, false);
                let payload = Payload::Space { sealed: false };
                let text = EventText::new(Kind::Space, at, &[], &content).aux(aux).payload(payload);
                self.put(author, &Wrapping { space, key: None }, text);
            }
            1 => {
                self.put(author, &Wrapping { space: home, key: None }, EventText::new(Kind::Post, at, &[], &content));
            }
            _ => {
                let payload = grant(&self.authors[author], MemberRole::Admin);
                let text = EventText::new(Kind::Member, at, &[], b"").payload(payload);
                self.put(author, &Wrapping { space: home, key: None }, text);
            }
        }
    }
}
