//! How often somebody may ask: per key, per user, per address. Known only here and in memory.

use crate::context::RequestContext;
use crate::options::Limits;
use crate::problem::Problem;
use engine::access::KeyRole;
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use node::commands::CallerKind;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};

/// More callers than this at a time, and those who have been quiet are forgotten.
const CALLERS_MAX: usize = 100_000;
/// Odd, and no multiple of three: a request counts two or three times, and each counter has its turn.
const LOOK_EVERY: u64 = 1021;
/// Passwords that may be tried for one account from one address, and from one address for all of them.
const GUESSES_PER_MINUTE: NonZeroU32 = number(10);
const FEW: NonZeroU32 = number(6);

const fn number(number: u32) -> NonZeroU32 {
    match NonZeroU32::new(number) {
        Some(number) => number,
        None => NonZeroU32::MIN,
    }
}

/// The counters.
#[derive(Debug)]
pub struct RateLimiters {
    keys: DefaultKeyedRateLimiter<[u8; 8]>,
    users: DefaultKeyedRateLimiter<[u8; 16]>,
    vouched: DefaultKeyedRateLimiter<[u8; 16]>,
    addresses: DefaultKeyedRateLimiter<u64>,
    guesses: DefaultKeyedRateLimiter<[u8; 16]>,
    sources: DefaultKeyedRateLimiter<[u8; 16]>,
    clock: DefaultClock,
    asked: AtomicU64,
}

fn quota(per_second: u32) -> Quota {
    let rate = NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN);
    // Two seconds' worth may come at once.
    Quota::per_second(rate).allow_burst(rate.saturating_add(rate.get()))
}

/// What is counted as one address: an IPv6 customer usually has a whole /64.
pub(crate) fn network(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        IpAddr::V6(address) => (u128::from(address) >> 64) as u64,
    }
}

/// What a user of a key is counted by.
fn user_hash(key: &[u8; 8], user: &str) -> [u8; 16] {
    let mut hash = [0; 16];
    hash.copy_from_slice(&blake3::hash(&[key, user.as_bytes()].concat()).as_bytes()[..16]);
    hash
}

impl RateLimiters {
    pub(crate) fn new(limits: &Limits) -> RateLimiters {
        RateLimiters {
            keys: RateLimiter::keyed(quota(limits.key_per_second)),
            users: RateLimiter::keyed(quota(limits.user_per_second)),
            vouched: RateLimiter::keyed(quota(limits.backend_user_per_second)),
            addresses: RateLimiter::keyed(quota(limits.address_per_second)),
            guesses: RateLimiter::keyed(Quota::per_minute(GUESSES_PER_MINUTE)),
            sources: RateLimiter::keyed(Quota::per_minute(GUESSES_PER_MINUTE.saturating_mul(FEW))),
            clock: DefaultClock::default(),
            asked: AtomicU64::new(0),
        }
    }

    /// Counts a request of a key.
    pub(crate) fn count_key(&self, key: &[u8; 8]) -> Result<(), Problem> {
        self.count(&self.keys, key, "this key")
    }

    /// Counts a request of a user.
    pub(crate) fn count_user(&self, key: &[u8; 8], user: &str) -> Result<(), Problem> {
        self.count(&self.users, &user_hash(key, user), "this user")
    }

    /// Counts a request of a user for whom a backend vouches.
    pub(crate) fn count_vouched_user(&self, key: &[u8; 8], user: &str) -> Result<(), Problem> {
        self.count(&self.vouched, &user_hash(key, user), "this user")
    }

    /// Counts a request that was let in for its key, and names its user only in its body.
    pub fn count_named_user(&self, context: &RequestContext) -> Result<(), Problem> {
        match (context.caller.kind, &context.caller.user) {
            (CallerKind::Key(_), Some(user)) => self.count_vouched_user(&context.account, user),
            _ => Ok(()),
        }
    }

    /// Counts one more thing that a request which was let in asks for.
    pub fn count_again(&self, context: &RequestContext) -> Result<(), Problem> {
        let user = context.caller.user.as_deref().unwrap_or_default();
        match context.caller.kind {
            CallerKind::Operator => Ok(()),
            CallerKind::Session => self.count_user(&context.account, ""),
            CallerKind::Key(_) if user.is_empty() => self.count_key(&context.account),
            CallerKind::Key(KeyRole::Frontend) => self.count_user(&context.account, user),
            CallerKind::Key(_) => {
                self.count_vouched_user(&context.account, user).and_then(|()| self.count_key(&context.account))
            }
        }
    }

    /// Counts an attempt to sign in to an account, or to join: by who is tried from where, so that nobody locks others
    /// out, and by where from alone.
    pub fn count_attempt(&self, network: u64, what: &str) -> Result<(), Problem> {
        let hash = |text: String| {
            let mut hash = [0; 16];
            hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
            hash
        };
        self.count(&self.guesses, &hash(format!("{network} {what}")), "signing in to this account")?;
        self.count(&self.sources, &hash(format!("{network}")), "this address")
    }

    /// Counts a request from an address.
    pub(crate) fn count_address(&self, address: IpAddr) -> Result<(), Problem> {
        self.count(&self.addresses, &network(address), "this address")
    }

    fn count<K: Clone + Eq + std::hash::Hash>(
        &self,
        gate: &DefaultKeyedRateLimiter<K>,
        key: &K,
        who: &str,
    ) -> Result<(), Problem> {
        // Counting the callers costs more than counting the request, so it is done now and then.
        if self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(LOOK_EVERY) && gate.len() > CALLERS_MAX {
            gate.retain_recent();
        }
        gate.check_key(key).map_err(|until| {
            let wait = until.wait_time_from(self.clock.now());
            Problem::too_often(format!("{who} exceeds its rate limit")).after(wait.as_secs() + 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_who_have_been_quiet_are_forgotten_when_there_are_many() {
        // At this rate a caller has been quiet for long enough after a nanosecond.
        let limits = Limits { address_per_second: 1_000_000_000, ..Limits::default() };
        let limiters = RateLimiters::new(&limits);
        for address in 0..CALLERS_MAX as u32 + 2 * LOOK_EVERY as u32 {
            limiters.count_address(IpAddr::V4(address.into())).expect("below the limit");
        }
        assert!(limiters.addresses.len() <= CALLERS_MAX, "{}", limiters.addresses.len());
    }
}
