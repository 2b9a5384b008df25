//! Who follows whom, and the feed of those whom somebody follows.

use crate::database::db::Db;
use crate::keys::*;
use crate::tables::TableReads;
use engine::reads::{Reads, StoreResult};
use engine::rows::Register;
use model::planted::{PlantedBug, is_planted};
use model::{AuthorNo, Identity, Kind, Seq, SpaceId, Stamp};

impl<V: TableReads> Db<V> {
    /// The public spaces that an identity follows.
    pub fn follows(&self, identity: &Identity) -> StoreResult<Vec<SpaceId>> {
        let home = model::crypto::public_space(identity);
        let (Some(space), Some(author)) = (self.space_no(&home)?, self.author_no(identity)?) else {
            return Ok(Vec::new());
        };
        let mut winners: Vec<(SpaceId, Seq)> = Vec::new();
        for row in self.tables.registers().range(RegisterStamp::of_follows(space, author))? {
            let row = row?;
            if let Register::Follow(_, followed) = row.key().parts()?.0.register {
                self.keep_follow(&mut winners, SpaceId(followed.0), row.value()?)?;
            }
        }
        self.only_follows(winners)
    }

    fn keep_follow<T: PartialEq>(&self, winners: &mut Vec<(T, Seq)>, whom: T, seq: Seq) -> StoreResult<()> {
        match winners.last_mut() {
            Some(winner) if winner.0 == whom => {
                let stays =
                    is_planted(PlantedBug::FollowBeatsUnfollow) && self.kind_of(winner.1)? == Some(Kind::Follow);
                if !stays {
                    winner.1 = seq;
                }
            }
            _ => winners.push((whom, seq)),
        }
        Ok(())
    }

    fn only_follows<T>(&self, winners: Vec<(T, Seq)>) -> StoreResult<Vec<T>> {
        let mut follows = Vec::new();
        for (whom, seq) in winners {
            if self.kind_of(seq)? == Some(Kind::Follow) {
                follows.push(whom);
            }
        }
        Ok(follows)
    }

    /// Who follows a public space.
    pub fn followers(&self, space: &SpaceId) -> StoreResult<Vec<Identity>> {
        let mut winners: Vec<(AuthorNo, Seq)> = Vec::new();
        for row in self.tables.followers().range(FollowerKey::of_followed(*space))? {
            let row = row?;
            self.keep_follow(&mut winners, row.key().follower(), row.value()?)?;
        }
        let followers = self.only_follows(winners)?;
        let mut identities = followers.into_iter().map(|no| self.identity(no)).collect::<StoreResult<Vec<_>>>()?;
        identities.sort();
        Ok(identities)
    }

    /// The latest posts of everyone an identity follows, newest first.
    pub fn feed(&self, identity: &Identity, before: Stamp, most: usize) -> StoreResult<Vec<(Stamp, Seq)>> {
        let mut feed = Vec::new();
        for space in self.follows(identity)? {
            if let Some(space) = self.space_no(&space)? {
                feed.extend(self.posts(space, before, most)?);
            }
        }
        feed.sort_by(|one, other| other.cmp(one));
        feed.truncate(most);
        Ok(feed)
    }
}
