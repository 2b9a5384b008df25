//! The roles of the members of a space.

use std::fmt;
use std::str::FromStr;

/// Why a text is not a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a role is reader, member, admin or owner")]
pub struct BadRole;

/// What a member of a space may do. Each role may do what the lesser ones may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MemberRole {
    /// Reads, and marks what was read.
    Reader,
    /// Also writes.
    Member,
    /// Also gives roles below its own, removes, changes settings, deletes what others wrote.
    Admin,
    /// Also gives and ends the roles of admins and owners.
    Owner,
}

impl MemberRole {
    pub fn code(self) -> u8 {
        match self {
            MemberRole::Reader => 1,
            MemberRole::Member => 2,
            MemberRole::Admin => 3,
            MemberRole::Owner => 4,
        }
    }

    pub fn from_code(code: u8) -> Option<MemberRole> {
        match code {
            1 => Some(MemberRole::Reader),
            2 => Some(MemberRole::Member),
            3 => Some(MemberRole::Admin),
            4 => Some(MemberRole::Owner),
            _ => None,
        }
    }

    /// Whether somebody of this role may give, replace or end that role.
    pub fn may_manage(self, other: MemberRole) -> bool {
        match self {
            MemberRole::Owner => true,
            MemberRole::Admin => other < MemberRole::Admin,
            MemberRole::Reader | MemberRole::Member => false,
        }
    }
}

impl fmt::Display for MemberRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemberRole::Reader => "reader",
            MemberRole::Member => "member",
            MemberRole::Admin => "admin",
            MemberRole::Owner => "owner",
        })
    }
}

impl FromStr for MemberRole {
    type Err = BadRole;

    fn from_str(text: &str) -> Result<MemberRole, BadRole> {
        match text {
            "reader" => Ok(MemberRole::Reader),
            "member" => Ok(MemberRole::Member),
            "admin" => Ok(MemberRole::Admin),
            "owner" => Ok(MemberRole::Owner),
            _ => Err(BadRole),
        }
    }
}
