//! What people do in their public spaces.

use super::{BEGINNING, Story};
use crate::protocol::space::cast::{EventText, Wrapping};
use model::envelope::Role;
use model::{AuxKey, Kind, SpaceId};

impl Story<'_> {
    pub(super) fn act_in_public(&mut self) {
        let author = self.random.below(self.authors.len());
        let place = Wrapping { space: self.authors[author].home(), key: None };
        let own: Vec<_> = self.posts.iter().filter(|post| post.0 == author).copied().collect();
        let action = self.random.below(8);
        let content = self.content();
        match (action, own.is_empty()) {
            (0..=2, _) | (_, true) if action < 5 => {
                let at = self.later();
                let id = self.put(author, &place, EventText::new(Kind::Post, at, &[], &content));
                self.posts.push((author, id, at));
            }
            (3, false) => {
                let post = *self.random.pick(&own);
                let at = self.time_after(post.2);
                self.put(author, &place, EventText::new(Kind::Edit, at, &[(Role::Target, post.1)], &content));
            }
            (4, false) => {
                let post = *self.random.pick(&own);
                let at = self.later();
                self.put(author, &place, EventText::new(Kind::Delete, at, &[(Role::Target, post.1)], b""));
            }
            _ => {
                let at = self.time_after(BEGINNING);
                let whom: SpaceId = self.authors[self.random.below(3)].home();
                let kind = *self.random.pick(&[Kind::Follow, Kind::Unfollow]);
                self.put(author, &place, EventText::new(kind, at, &[], b"").aux(AuxKey(whom.0)));
            }
        }
    }
}
