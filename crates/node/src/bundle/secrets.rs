//! The keys of spaces in a bundle, under a passphrase: whoever has it can read the spaces, and can serve them.

use argon2::{Algorithm, Argon2, Params, Version};
use engine::reads::StoreResult;
use model::crypto::{BundleSecret, NONCE_BYTES};
use model::{Identity, SpaceId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use store::Db;
use store::shared::users::{HostedSpace, User};
use store::tables::Snapshot;

/// How many users one record has.
const USERS_PER_RECORD: usize = 500;
const SALT_BYTES: usize = 16;
/// What a passphrase costs: part of the format.
const KDF_KIB: u32 = 19 * 1024;
const KDF_PASSES: u32 = 2;
const KDF_LANES: u32 = 1;
/// The least letters of a passphrase.
pub const PASSPHRASE_CHARS_MIN: usize = 12;
/// The most bytes of a passphrase.
pub const PASSPHRASE_BYTES_MAX: usize = 1000;

/// What a bundle's keys are under.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Passphrase(String);

impl std::fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Passphrase")
    }
}

impl Passphrase {
    /// None if it is too short or too long.
    pub fn new(text: &str) -> Option<Passphrase> {
        Passphrase::of(text).filter(|_| text.chars().count() >= PASSPHRASE_CHARS_MIN)
    }

    /// One that somebody else chose; none if it is too long.
    pub fn of(text: &str) -> Option<Passphrase> {
        (text.len() <= PASSPHRASE_BYTES_MAX).then(|| Passphrase(text.to_owned()))
    }

    fn secret(&self, salt: [u8; SALT_BYTES]) -> Result<SaltedSecret, BadSecrets> {
        let mut key = [0; 32];
        let params = Params::new(KDF_KIB, KDF_PASSES, KDF_LANES, Some(key.len())).map_err(|_| BadSecrets::Record)?;
        let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        argon.hash_password_into(self.0.as_bytes(), &salt, &mut key).map_err(|_| BadSecrets::Record)?;
        Ok(SaltedSecret { salt, secret: BundleSecret::new(key) })
    }
}

/// Why the keys of a bundle cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadSecrets {
    #[error("the passphrase is not the one that the bundle's keys are under, or its keys were changed on the way")]
    Passphrase,
    #[error("the bundle's keys cannot be read: this release does not know their form")]
    Record,
    #[error("the bundle has more records of keys than there can be")]
    TooMany,
    #[error("no random numbers can be had")]
    Random,
}

/// A secret that was made from a passphrase, which takes a while.
pub(super) struct SaltedSecret {
    salt: [u8; SALT_BYTES],
    secret: BundleSecret,
}

impl SaltedSecret {
    /// With a salt of its own.
    pub(super) fn begin(passphrase: &Passphrase) -> Result<SaltedSecret, BadSecrets> {
        passphrase.secret(random()?)
    }

    /// What a record carries: salt, nonce, and what is sealed.
    pub(super) fn seal(&self, secrets: &SpaceSecrets) -> Result<Vec<u8>, BadSecrets> {
        let bytes = serde_json::to_vec(secrets).map_err(|_| BadSecrets::Record)?;
        let nonce: [u8; NONCE_BYTES] = random()?;
        Ok([self.salt.as_slice(), &nonce, &self.secret.seal(&nonce, &self.salt, &bytes)].concat())
    }
}

/// Reads records of keys, making a secret from the passphrase once for all of the same salt.
pub(super) struct SecretsReader<'p> {
    passphrase: &'p Passphrase,
    latest: Option<SaltedSecret>,
}

impl<'p> SecretsReader<'p> {
    pub(super) fn new(passphrase: &'p Passphrase) -> SecretsReader<'p> {
        SecretsReader { passphrase, latest: None }
    }

    pub(super) fn open(&mut self, record: &[u8]) -> Result<SpaceSecrets, BadSecrets> {
        let (salt, rest) = record.split_first_chunk::<SALT_BYTES>().ok_or(BadSecrets::Record)?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(BadSecrets::Record)?;
        let secret = match self.latest.take() {
            Some(latest) if latest.salt == *salt => latest,
            Some(_) | None => self.passphrase.secret(*salt)?,
        };
        let opened = secret.secret.open(nonce, salt, sealed).map_err(|_| BadSecrets::Passphrase)?;
        self.latest = Some(secret);
        serde_json::from_slice(&opened).map_err(|_| BadSecrets::Record)
    }
}

fn random<const N: usize>() -> Result<[u8; N], BadSecrets> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|_| BadSecrets::Random)?;
    Ok(bytes)
}

/// The keys of a space, and what a node that serves it keeps of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SpaceSecrets {
    pub space: SpaceId,
    /// The keys under which its events are sealed, the current one last.
    pub keys: Vec<[u8; 32]>,
    /// How it is hosted, if the node that wrote the bundle hosts it.
    pub hosted: Option<HostedSpace>,
    /// The signing keys of its keeper and of the users below.
    pub custodians: Vec<(Identity, [u8; 32])>,
    pub users: Vec<User>,
}

impl std::fmt::Debug for SpaceSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SpaceSecrets({}, {} keys, {} users)", self.space, self.keys.len(), self.users.len())
    }
}

/// More records of keys than this are none that `export` writes.
pub(super) const KEYS_RECORDS_MAX: usize = 10_000;

impl SpaceSecrets {
    /// Joins the parts of each space.
    pub(super) fn join(parts: Vec<SpaceSecrets>) -> Vec<SpaceSecrets> {
        let mut joined: BTreeMap<SpaceId, SpaceSecrets> = BTreeMap::new();
        for part in parts {
            match joined.entry(part.space) {
                Entry::Vacant(first) => _ = first.insert(part),
                Entry::Occupied(mut known) => {
                    known.get_mut().custodians.extend(part.custodians);
                    known.get_mut().users.extend(part.users);
                }
            }
        }
        joined.into_values().collect()
    }
}

/// The keys of a space, in parts.
pub(super) fn each_part<E: From<engine::reads::StoreError>>(
    db: &Db<Snapshot>,
    space: &SpaceId,
    visit: &mut dyn FnMut(SpaceSecrets) -> Result<(), E>,
) -> Result<(), E> {
    let keys = db.space_keys(space)?;
    let hosted = db.hosted_space(space)?;
    if keys.is_empty() && hosted.is_none() {
        return Ok(());
    }
    let keeper = hosted.as_ref().map(|hosted| hosted.keeper);
    let mut part = SpaceSecrets { space: *space, keys, hosted, custodians: Vec::new(), users: Vec::new() };
    part.custodians = custodians(db, keeper)?;
    let mut after = None;
    loop {
        let rows = db.users(space, after, USERS_PER_RECORD)?;
        let is_last = rows.len() < USERS_PER_RECORD;
        after = rows.last().map(|(row, _)| *row);
        part.users = rows.into_iter().map(|(_, user)| user).collect();
        let held = custodians(db, part.users.iter().map(|user| user.identity))?;
        part.custodians.extend(held);
        visit(part.clone())?;
        if is_last {
            return Ok(());
        }
        part.custodians = custodians(db, keeper)?;
    }
}

fn custodians(
    db: &Db<Snapshot>,
    identities: impl IntoIterator<Item = Identity>,
) -> StoreResult<Vec<(Identity, [u8; 32])>> {
    let mut found = Vec::new();
    for identity in identities {
        found.extend(db.signing_key(&identity)?.map(|key| (identity, key.to_bytes())));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> SpaceSecrets {
        SpaceSecrets {
            space: SpaceId([7; 16]),
            keys: vec![[1; 32], [2; 32]],
            hosted: None,
            custodians: vec![(Identity([3; 32]), [4; 32])],
            users: Vec::new(),
        }
    }

    #[test]
    fn what_was_sealed_is_read_with_the_same_passphrase_only_and_unchanged() {
        let passphrase = Passphrase::new("correct horse battery").expect("long enough");
        let record = SaltedSecret::begin(&passphrase).and_then(|secret| secret.seal(&secrets())).expect("sealed");
        assert_eq!(SecretsReader::new(&passphrase).open(&record), Ok(secrets()));
        let other = Passphrase::new("correct horse batterz").expect("long enough");
        assert_eq!(SecretsReader::new(&other).open(&record), Err(BadSecrets::Passphrase));
        for at in [0, 20, 60, record.len() - 1] {
            let mut changed = record.clone();
            changed[at] ^= 1;
            assert_eq!(SecretsReader::new(&passphrase).open(&changed), Err(BadSecrets::Passphrase), "byte {at}");
        }
        assert_eq!(SecretsReader::new(&passphrase).open(&record[..39]), Err(BadSecrets::Record));
        let carried = |secret: u8| record.windows(4).any(|part| part == [secret; 4]);
        assert!(!carried(1) && !carried(4));
    }

    #[test]
    fn what_was_sealed_before_is_read_for_ever() {
        let passphrase = Passphrase::new("correct horse battery").expect("long enough");
        let secret = passphrase.secret([5; 16]).expect("a secret").secret;
        let sealed = hex(&secret.seal(&[6; 24], &[5; 16], b"keys"));
        expect_test::expect!["9124b33a83c9de5ee0afc552a32013a393d0bbb0"].assert_eq(&sealed);
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn short_and_endless_passphrases_are_refused_and_none_is_shown() {
        assert!(Passphrase::new("eleven chrs").is_none() && Passphrase::new(&"x".repeat(1001)).is_none());
        let passphrase = Passphrase::new("twelve chars").expect("long enough");
        assert_eq!(format!("{passphrase:?} {:?}", secrets()).matches("twelve").count(), 0);
    }
}
