//! Who follows whom, and the feed of those whom somebody follows.

use crate::database::db::{Db, fault};
use crate::encode;
use crate::tables::TableReads;
use engine::reads::{Reads, StoreResult};
use engine::rows::{Register, RegisterKey};
use model::planted::{PlantedBug, is_planted};
use model::{AuthorNo, Identity, Kind, Seq, SpaceId, Stamp};
use redb::ReadableTable as _;

impl<V: TableReads> Db<V> {
    /// The public spaces that an identity follows.
    pub fn follows(&self, identity: &Identity) -> StoreResult<Vec<SpaceId>> {
        let home = model::crypto::public_space(identity);
        let (Some(space), Some(author)) = (self.space_no(&home)?, self.author_no(identity)?) else {
            return Ok(Vec::new());
        };
        let bound = |aux: u8, stamp| {
            let register = Register::Follow(author, model::AuxKey([aux; 16]));
            encode::register_key(&RegisterKey { space, register }, stamp)
        };
        let mut winners: Vec<(SpaceId, Seq)> = Vec::new();
        let range = bound(0, Stamp::FIRST)..=bound(0xff, Stamp::LAST);
        for entry in self.tables.registers().range(range).map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let followed = SpaceId(crate::keys::key(&[&key.value()[9..25]]));
            self.keep_follow(&mut winners, followed, Seq(value.value()))?;
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
        let from: [u8; 44] = crate::keys::key(&[&space.0]);
        let to: [u8; 44] = crate::keys::key(&[&space.0, &[0xff; 28]]);
        let mut winners: Vec<(AuthorNo, Seq)> = Vec::new();
        for entry in self.tables.followers().range(from..=to).map_err(fault)? {
            let (key, value) = entry.map_err(fault)?;
            let follower = AuthorNo(u32::from_be_bytes(crate::keys::key(&[&key.value()[16..20]])));
            self.keep_follow(&mut winners, follower, Seq(value.value()))?;
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
