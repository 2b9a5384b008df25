//! What browsers were asked to prove and did not answer yet: in memory, for a few minutes, and not too much of it.

use model::{Nanos, SpaceId};
use queries::sync::lock;
use server::context::RequestContext;
use server::problem::Problem;
use server::secrets::Secret;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use store::shared::accounts::SecretHash;
use webauthn_rs::prelude as webauthn;

/// How long a challenge is good.
const CHALLENGE_NANOS: u64 = 300 * Nanos::SECOND;
/// Challenges that are open, of one address and of all.
const OPEN_OF_ONE_MAX: usize = 32;
const OPEN_MAX: usize = 4096;

/// What a browser was asked to prove.
pub(crate) enum PendingChallenge {
    /// Whose passkey it is.
    SignIn(webauthn::DiscoverableAuthentication),
    /// A new passkey of a member.
    Add(SpaceId, String, webauthn::PasskeyRegistration),
    /// A new passkey of whoever joins by that invitation under that name.
    Join(SecretHash, String, webauthn::PasskeyRegistration),
}

struct Challenge {
    ticket: SecretHash,
    network: u64,
    until: Nanos,
    host: String,
    asked: PendingChallenge,
}

/// Challenges that were not answered yet, the oldest first.
#[derive(Default)]
pub(crate) struct Challenges(Mutex<VecDeque<Challenge>>);

impl Challenges {
    /// Keeps one. Whoever asks for many pushes out their own.
    pub(crate) fn open(
        &self,
        context: &RequestContext,
        now: Nanos,
        host: String,
        asked: PendingChallenge,
    ) -> Result<String, Problem> {
        let (secret, network) = (Secret::random()?, context.via.network);
        let mut open = lock(&self.0);
        open.retain(|one| one.until > now);
        let own = open.iter().filter(|one| one.network == network).count();
        let crowd = match (own >= OPEN_OF_ONE_MAX, open.len() >= OPEN_MAX) {
            (true, _) => Some(network),
            (false, true) => busiest(&open),
            (false, false) => None,
        };
        let first = crowd.and_then(|crowd| open.iter().position(|one| one.network == crowd));
        first.and_then(|first| open.remove(first));
        open.push_back(Challenge { ticket: secret.hash, network, until: now.plus(CHALLENGE_NANOS), host, asked });
        Ok(secret.text)
    }

    /// Takes one, which can be answered once.
    pub(crate) fn take(&self, ticket: String, now: Nanos, host: &str) -> Result<PendingChallenge, Problem> {
        let hash = Secret::of(ticket).hash;
        let mut open = lock(&self.0);
        let found = open.iter().position(|one| one.ticket == hash).and_then(|found| open.remove(found));
        let found = found.filter(|one| one.until > now && one.host == host);
        found.map(|one| one.asked).ok_or_else(|| Problem {
            action: "begin again",
            ..Problem::bad_request("this was answered before, or took longer than five minutes")
        })
    }
}

/// The address that has the most open: others are not pushed out by many who have a few each.
fn busiest(open: &VecDeque<Challenge>) -> Option<u64> {
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for one in open {
        *counts.entry(one.network).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(network, _)| network)
}

impl std::fmt::Debug for Challenges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Challenges")
    }
}
