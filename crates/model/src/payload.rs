//! Payloads: the small data of an envelope that decides validity and is never pruned or deleted.

use crate::ids::Identity;
use crate::kind::Kind;
pub use crate::member_role::{BadRole, MemberRole};
use crate::reader::{ByteReader, TooShort};

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
