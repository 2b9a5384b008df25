//! API keys: made here, shown once, kept as a hash; by the store, or by the configuration that declares them.

use super::{ProvenCredential, single_value};
use crate::problem::Problem;
use crate::state::SharedState;
use http::{HeaderMap, HeaderName, header};
use node::commands::CallerKind;
use subtle::ConstantTimeEq as _;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
/// What every key begins with, so that scanners of leaked secrets can know it.
const PREFIX: &str = "ark_";

/// The secret part of a key.
pub type ApiKeySecret = [u8; 32];

/// A key that was just made.
#[derive(Clone)]
pub struct NewKey {
    /// Its id, which is not secret.
    pub id: [u8; 8],
    /// The hash of its secret.
    pub hash: [u8; 32],
    /// The text to hand out, once.
    pub text: String,
}

impl std::fmt::Debug for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewKey({})", hex::encode(self.id))
    }
}

impl NewKey {
    /// From random bytes.
    pub fn new(id: [u8; 8], secret: &ApiKeySecret) -> NewKey {
        let text = format!("{PREFIX}{}_{}", hex::encode(id), hex::encode(secret));
        NewKey { id, hash: *blake3::hash(secret).as_bytes(), text }
    }
}

/// The id and secret in the text of a key.
fn parse(text: &str) -> Option<([u8; 8], ApiKeySecret)> {
    let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
    let (mut id_bytes, mut secret_bytes) = ([0; 8], [0; 32]);
    hex::decode_to_slice(id, &mut id_bytes).ok()?;
    hex::decode_to_slice(secret, &mut secret_bytes).ok()?;
    Some((id_bytes, secret_bytes))
}

/// What was sent as a key, in whichever header.
fn sent(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let bearer = match single_value(headers, &header::AUTHORIZATION)? {
        Some(text) => match text.split_once(' ') {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => Some(key.trim()),
            _ => return Err(refused()),
        },
        None => None,
    };
    match (single_value(headers, &API_KEY)?, bearer) {
        (Some(_), Some(_)) => Err(Problem::unproven("send the key in one header, not in two")),
        (key, bearer) => Ok(key.or(bearer)),
    }
}

/// The same words for every key that is not accepted.
fn refused() -> Problem {
    Problem::unproven("the key is not accepted")
}

/// Proves a key. None was sent: nobody.
pub(super) fn prove(state: &SharedState, headers: &HeaderMap) -> Result<Option<ProvenCredential>, Problem> {
    let Some(text) = sent(headers)? else { return Ok(None) };
    if let Some(token) = text.strip_prefix("op_") {
        let hash = blake3::hash(token.as_bytes());
        let is_operator: bool = hash.as_bytes().ct_eq(&state.operator).into();
        return if is_operator { Ok(Some(operator())) } else { Err(refused()) };
    }
    // A key that cannot be one costs as much as one that is unknown.
    let (id, secret) = parse(text).unwrap_or_default();
    let hash = blake3::hash(&secret);
    let known = state.api_key(&*state.node.snapshot()?, &id)?;
    let stored = known.as_ref().map_or([0; 32], |key| key.hash);
    let fits: bool = hash.as_bytes().ct_eq(&stored).into();
    let now = state.node.now();
    match known {
        Some(key) if fits && key.is_accepted(now) => {
            let role = key.role().ok_or_else(refused)?;
            let audit_name = format!("key {}", hex::encode(id));
            Ok(Some(ProvenCredential { kind: CallerKind::Key(role), space: Some(key.space), account: id, audit_name }))
        }
        Some(_) | None => Err(refused()),
    }
}

fn operator() -> ProvenCredential {
    ProvenCredential { kind: CallerKind::Operator, space: None, account: *b"operator", audit_name: "operator".into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_reads_back_and_nothing_else_does() {
        let key = NewKey::new([1; 8], &[2; 32]);
        assert_eq!(parse(&key.text), Some(([1; 8], [2; 32])));
        for bad in ["", "ark_", "ark_01_02", &key.text[1..], &format!("{}0", key.text), "ark_zz_zz"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
