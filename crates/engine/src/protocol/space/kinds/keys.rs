//! Prekeys, and the events that carry a space key to one member.

use super::{Belongs, KindRules};

pub(crate) struct Prekey;

impl KindRules for Prekey {
    fn belongs(&self) -> Belongs {
        Belongs::Anywhere
    }
}

pub(crate) struct Key;

impl KindRules for Key {}
