//! Who follows whom.

use super::ReferenceModel;
use model::{Identity, Kind, SpaceId};
use std::collections::{BTreeMap, BTreeSet};

impl ReferenceModel<'_> {
    pub(super) fn follow_lines(&self, lines: &mut BTreeSet<String>) {
        let mut winners: BTreeMap<(Identity, SpaceId), Kind> = BTreeMap::new();
        for made in self.counting(&[Kind::Follow, Kind::Unfollow]) {
            winners.insert((made.envelope.author, SpaceId(made.envelope.aux.0)), made.envelope.kind);
        }
        let authors: BTreeSet<Identity> = winners.keys().map(|(author, _)| *author).collect();
        let spaces: BTreeSet<SpaceId> = winners.keys().map(|(_, space)| *space).collect();
        let follows = |author: Identity, space: SpaceId| winners.get(&(author, space)) == Some(&Kind::Follow);
        for author in &authors {
            let list: Vec<String> =
                spaces.iter().filter(|space| follows(*author, **space)).map(SpaceId::to_string).collect();
            lines.insert(format!("follows {author} [{}]", list.join(" ")));
        }
        for space in &spaces {
            let list: Vec<String> =
                authors.iter().filter(|author| follows(**author, *space)).map(Identity::to_string).collect();
            lines.insert(format!("followers {space} [{}]", list.join(" ")));
        }
    }
}
