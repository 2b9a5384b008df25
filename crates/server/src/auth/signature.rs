//! Users proven by HMAC-SHA256: a backend signs their id, a frontend brings the signature.
//!
//! The plain form signs the user id. The dated form, `v1.{unix seconds}.{nonce}.{hex}`, signs
//! `v1\n{user}\n{seconds}\n{nonce}`, is good for five minutes on either side of now, and once.

use crate::problem::Problem;
use crate::state::ServerState;
use hmac::{Hmac, KeyInit as _, Mac as _};
use model::{Nanos, SpaceId};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

/// How far the date of a signature may be from now.
const WINDOW_SECONDS: u64 = 300;
const NONCE_BYTES_MAX: usize = 64;

/// The signature of a text, in hex.
pub fn sign(secret: &[u8; 32], text: &str) -> String {
    hex::encode(mac(secret, text))
}

/// A signature of a user with the time and a nonce in it.
pub fn sign_dated(secret: &[u8; 32], user: &str, now: Nanos, nonce: &str) -> String {
    let seconds = now.0 / Nanos::SECOND;
    let text = dated_text(user, &seconds.to_string(), nonce);
    format!("v1.{seconds}.{nonce}.{}", sign(secret, &text))
}

/// What a dated signature signs.
fn dated_text(user: &str, seconds: &str, nonce: &str) -> String {
    format!("v1\n{user}\n{seconds}\n{nonce}")
}

fn mac(secret: &[u8; 32], text: &str) -> [u8; 32] {
    // A key shorter than a block is one that is filled up with zeros.
    let mut block = [0; 64];
    block[..32].copy_from_slice(secret);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

/// What is signed, what was sent as its signature, and the date if there is one.
struct Claim<'a> {
    text: String,
    hex: &'a str,
    dated: Option<(u64, &'a str)>,
}

fn claim<'a>(user: &str, signature: &'a str) -> Option<Claim<'a>> {
    let Some(rest) = signature.strip_prefix("v1.") else {
        return Some(Claim { text: user.to_owned(), hex: signature, dated: None });
    };
    let mut parts = rest.split('.');
    let (seconds, nonce, hex) = (parts.next()?, parts.next()?, parts.next()?);
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if parts.next().is_some() || nonce.is_empty() || nonce.len() > NONCE_BYTES_MAX || !is_plain(nonce) {
        return None;
    }
    let date: u64 = seconds.parse().ok().filter(|date: &u64| date.to_string() == seconds)?;
    Some(Claim { text: dated_text(user, seconds, nonce), hex, dated: Some((date, nonce)) })
}

/// Checks that somebody who knows a signing key of the space vouches for this user.
pub(crate) fn check(state: &ServerState, space: &SpaceId, user: &str, signature: &str) -> Result<(), Problem> {
    let refused = || Problem::unproven("the signature does not prove this user");
    let claim = claim(user, signature).ok_or_else(refused)?;
    let mut sent = [0; 32];
    hex::decode_to_slice(claim.hex, &mut sent).map_err(|_| refused())?;
    let now = state.node.now();
    let mut is_proven = false;
    for (_, key) in state.node.snapshot()?.signing_keys(space)? {
        let is_accepted = key.ends_at.is_none_or(|end| now < end);
        let fits: bool = mac(&key.secret, &claim.text).ct_eq(&sent).into();
        is_proven |= is_accepted && fits;
    }
    if !is_proven {
        return Err(refused());
    }
    let Some((date, _)) = claim.dated else {
        let is_refused = state.options.dated_signatures_only;
        return if is_refused { Err(Problem::unproven("this node takes dated signatures only")) } else { Ok(()) };
    };
    let now = now.0 / Nanos::SECOND;
    if now.abs_diff(date) > WINDOW_SECONDS {
        return Err(Problem::unproven("the signature is older or newer than five minutes"));
    }
    let mut what = [0; 16];
    what.copy_from_slice(&blake3::hash(&[&space.0, claim.text.as_bytes()].concat()).as_bytes()[..16]);
    match state.nonces.is_new(what, date + WINDOW_SECONDS, now) {
        Some(true) => Ok(()),
        Some(false) => Err(Problem::unproven("the signature was used before")),
        None => Err(Problem::overloaded("too many dated signatures were used lately").after(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::ServerOptions;
    use node::commands::{AdminCommand, AdminRequest, AdminResult};
    use node::fetch::hunter::NoSources;
    use node::{Node, NodeOptions};
    use std::sync::Arc;

    #[test]
    fn the_plain_form_is_hmac_of_the_user_id() {
        // HMAC-SHA256 of "alice" under 32 zero bytes, computed by Python's standard library.
        let signed = sign(&[0; 32], "alice");
        assert_eq!(signed, "ce3837f76a54a635191b1704ac7672264fc17c3397ff52e7dacfc1ef3603a493");
        assert_ne!(signed, sign(&[0; 32], "alicf"));
        assert_ne!(signed, sign(&[1; 32], "alice"));
    }

    #[test]
    fn dated_signatures_are_read_strictly() {
        assert!(claim("a", "v1.1700000000.n1.00").is_some());
        for bad in ["v1.", "v1.x.n.00", "v1.-1.n.00", "v1.01.n.00", "v1.1.n.00.00", "v1.1..00", "v1.1.a b.00"] {
            assert!(claim("a", bad).is_none(), "{bad}");
        }
        let with_nonce = |length: usize| format!("v1.1.{}.00", "n".repeat(length));
        assert!(claim("a", &with_nonce(NONCE_BYTES_MAX)).is_some());
        assert!(claim("a", &with_nonce(NONCE_BYTES_MAX + 1)).is_none());
    }

    #[derive(Debug)]
    struct FixedClock;

    const NOW: Nanos = Nanos(1_800_000_000 * Nanos::SECOND);

    impl node::Clock for FixedClock {
        fn now(&self) -> Nanos {
            NOW
        }
    }

    #[test]
    fn a_signing_key_is_accepted_until_it_ends_and_not_at_its_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = store::FolderDisk::new(folder.path()).expect("a disk");
        let store = store::Store::open(Arc::new(disk), store::MasterKey::new(&[5; 32]), store::StoreOptions::default());
        let store = store.expect("a store");
        let node = Node::start(store, Arc::new(FixedClock), Arc::new(NoSources), NodeOptions::default());
        let state = ServerState::new(node, ServerOptions::default(), "a token");
        let administer = |what| state.node.ask(AdminRequest::by("a test", what)).expect("a result");
        let founding = AdminCommand::FoundSpace { name: "home".to_owned(), sealed: true, random: Box::new([1; 80]) };
        let AdminResult::Founded(space) = administer(founding) else { panic!("no space") };
        let (number, key) = state.node.snapshot().and_then(|db| db.signing_keys(&space)).expect("read").remove(0);
        let is_accepted = || check(&state, &space, "alice", &sign(&key.secret, "alice")).is_ok();
        assert!(is_accepted());
        for (ends_at, expected) in [(NOW.plus(1), true), (NOW, false)] {
            administer(AdminCommand::EndSigningKey(space, number, ends_at));
            assert_eq!(is_accepted(), expected, "{ends_at:?}");
        }
        state.node.stop();
    }
}
