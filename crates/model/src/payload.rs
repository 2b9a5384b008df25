//! Payloads: the small data of an envelope that decides validity and is never pruned or deleted.

use crate::ids::Identity;
use crate::kind::Kind;
use crate::reader::{ByteReader, TooShort};
use std::fmt;
use std::str::FromStr;

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
    type Err = BadPayload;

    fn from_str(text: &str) -> Result<MemberRole, BadPayload> {
        match text {
            "reader" => Ok(MemberRole::Reader),
            "member" => Ok(MemberRole::Member),
            "admin" => Ok(MemberRole::Admin),
            "owner" => Ok(MemberRole::Owner),
            _ => Err(BadPayload::Role),
        }
    }
}

/// Why a payload is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadPayload {
    #[error("the payload has the wrong length")]
    Length,
    #[error("this kind carries no payload")]
    Unexpected,
    #[error("no such role")]
    Role,
    #[error("a space is sealed (1) or open (0)")]
    Sealed,
}

impl From<TooShort> for BadPayload {
    fn from(_: TooShort) -> BadPayload {
        BadPayload::Length
    }
}

/// The payload of an envelope, by kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// Most kinds.
    None,
    Space {
        /// Whether its events and content travel and rest encrypted.
        sealed: bool,
    },
    Member {
        member: Identity,
        role: MemberRole,
    },
    /// Of a prekey event: an X25519 public key.
    Prekey([u8; 32]),
    /// Of a key event: the space key it carries.
    Key([u8; 32]),
    /// Of a kind that is not known here.
    Opaque(Vec<u8>),
}

impl Payload {
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Payload::None => Vec::new(),
            Payload::Space { sealed } => vec![u8::from(*sealed)],
            Payload::Member { member, role } => {
                let mut bytes = member.0.to_vec();
                bytes.push(role.code());
                bytes
            }
            Payload::Prekey(bytes) | Payload::Key(bytes) => bytes.to_vec(),
            Payload::Opaque(bytes) => bytes.clone(),
        }
    }

    /// The payload of that kind in these bytes, which must be all of it.
    pub fn decode(kind: Kind, bytes: &[u8]) -> Result<Payload, BadPayload> {
        let mut reader = ByteReader::new(bytes);
        let payload = match kind {
            Kind::Space => match reader.u8()? {
                0 => Payload::Space { sealed: false },
                1 => Payload::Space { sealed: true },
                _ => return Err(BadPayload::Sealed),
            },
            Kind::Member => {
                let member = Identity(reader.array()?);
                let role = MemberRole::from_code(reader.u8()?).ok_or(BadPayload::Role)?;
                Payload::Member { member, role }
            }
            Kind::Prekey => Payload::Prekey(reader.array()?),
            Kind::Key => Payload::Key(reader.array()?),
            Kind::Unknown(_) => return Ok(Payload::Opaque(bytes.to_vec())),
            _ if bytes.is_empty() => Payload::None,
            _ => return Err(BadPayload::Unexpected),
        };
        if reader.rest().is_empty() { Ok(payload) } else { Err(BadPayload::Length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_read_back_and_tolerate_nothing_else() {
        let member = Payload::Member { member: Identity([7; 32]), role: MemberRole::Admin };
        for (kind, payload) in [
            (Kind::Space, Payload::Space { sealed: true }),
            (Kind::Member, member),
            (Kind::Prekey, Payload::Prekey([1; 32])),
            (Kind::Key, Payload::Key([2; 32])),
            (Kind::Message, Payload::None),
        ] {
            let mut bytes = payload.encode();
            assert_eq!(Payload::decode(kind, &bytes), Ok(payload));
            bytes.push(0);
            assert!(Payload::decode(kind, &bytes).is_err(), "{kind} took a byte too many");
            if kind.has_payload() {
                bytes.truncate(bytes.len() - 2);
                assert!(Payload::decode(kind, &bytes).is_err(), "{kind} took a byte too few");
            }
        }
        assert_eq!(Payload::decode(Kind::Space, &[2]), Err(BadPayload::Sealed));
        assert_eq!(Payload::decode(Kind::Member, &[9; 33]), Err(BadPayload::Role));
    }

    #[test]
    fn admins_manage_only_lesser_roles() {
        assert!(MemberRole::Owner.may_manage(MemberRole::Owner));
        assert!(MemberRole::Admin.may_manage(MemberRole::Member));
        assert!(!MemberRole::Admin.may_manage(MemberRole::Admin));
        assert!(!MemberRole::Member.may_manage(MemberRole::Reader));
    }
}
