//! How long a group rests: before its first hunt, and after each hunt that left something unmet.
//!
//! All of it is arithmetic on integers, so that the same attempt rests equally long on every machine.

use super::{HOUR, MILLISECOND, MINUTE, Nanoseconds, SECOND};
use model::planted::{PlantedBug, is_planted};

/// How a kind of group is hunted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BackoffPolicy {
    /// One content hash: at once, then ever more rarely, because content may stay away for months.
    Content,
    /// One repository: its servers are public and usually up, so it is never left alone for long.
    Git,
    /// The events, keys and addresses of one space: hunted like git.
    Space,
}

/// Who brought the event that has the need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NeedOrigin {
    /// A user of this node, who will probably push what is missing within minutes.
    LocalUser,
    /// A peer or a relay, which tend to bring related events in bursts.
    PeerOrRelay,
}

/// How long groups other than content wait before their first hunt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HuntDelays {
    /// For what a user of this node sent: whoever announces a state and then pushes has usually pushed by then, and nobody
    /// need be asked.
    pub local_user: Nanoseconds,
    /// For what a peer or relay brought: a burst has usually ended by then, so that one hunt serves all of it.
    pub peer_or_relay: Nanoseconds,
}

impl Default for HuntDelays {
    fn default() -> HuntDelays {
        HuntDelays { local_user: 3 * MINUTE, peer_or_relay: 500 * MILLISECOND }
    }
}

/// Jitter takes at most this many thousandths off a delay.
const JITTER_PERMILLE_MAX: u16 = 100;

/// No growth is computed further than this; the assertions below show that none needs to be.
const STEPS_MAX: u32 = 32;

const CONTENT: Growth = Growth { first: MINUTE, times: 3, over: 2, longest: 24 * HOUR };
const GIT: Growth = Growth { first: 20 * SECOND, times: 2, over: 1, longest: 2 * MINUTE };

const _: () = assert!(CONTENT.after(STEPS_MAX) == CONTENT.longest);
const _: () = assert!(GIT.after(STEPS_MAX) == GIT.longest);

/// The rest after the given number of attempts, of which the first counts one.
pub fn backoff(rhythm: BackoffPolicy, attempts: u32) -> Nanoseconds {
    match rhythm {
        BackoffPolicy::Content => CONTENT.after(steps(attempts, PlantedBug::ContentBackoffOffByOne)),
        BackoffPolicy::Git | BackoffPolicy::Space => GIT.after(steps(attempts, PlantedBug::GitBackoffOffByOne)),
    }
}

/// The delay less its jitter, given in thousandths. Jitter only shortens, and by at most a tenth.
pub fn shortened(delay: Nanoseconds, jitter_permille: u16) -> Nanoseconds {
    let permille = jitter_permille.min(JITTER_PERMILLE_MAX);
    let cut = u128::from(delay) * u128::from(permille) / 1_000;
    delay - cut as Nanoseconds
}

/// The wait between a group's first need and its first hunt.
pub fn first_delay(rhythm: BackoffPolicy, origin: NeedOrigin, delays: HuntDelays) -> Nanoseconds {
    match (rhythm, origin) {
        (BackoffPolicy::Content, NeedOrigin::LocalUser | NeedOrigin::PeerOrRelay) => 0,
        (BackoffPolicy::Git | BackoffPolicy::Space, NeedOrigin::LocalUser) => delays.local_user,
        (BackoffPolicy::Git | BackoffPolicy::Space, NeedOrigin::PeerOrRelay) => delays.peer_or_relay,
    }
}

/// A delay that grows by a fixed ratio with each step, up to a longest one.
struct Growth {
    first: Nanoseconds,
    times: u32,
    over: u32,
    longest: Nanoseconds,
}

impl Growth {
    /// The delay after so many steps. The ratio is raised before it divides, so nothing is rounded twice.
    const fn after(&self, steps: u32) -> Nanoseconds {
        let steps = if steps < STEPS_MAX { steps } else { STEPS_MAX };
        let grown = self.first as u128 * (self.times as u128).pow(steps) / (self.over as u128).pow(steps);
        if grown < self.longest as u128 { grown as Nanoseconds } else { self.longest }
    }
}

/// How often the delay has grown by this attempt; the first attempt has the first delay.
fn steps(attempts: u32, off_by_one: PlantedBug) -> u32 {
    if is_planted(off_by_one) { attempts } else { attempts.saturating_sub(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// Compares the rests, in seconds, after the first so many attempts.
    fn check(rhythm: BackoffPolicy, attempts: u32, expected: Expect) {
        let rest = |attempt| format!("{}\n", backoff(rhythm, attempt) as f64 / SECOND as f64);
        expected.assert_eq(&(1..=attempts).map(rest).collect::<String>());
    }

    #[test]
    fn content_rests_half_as_long_again_up_to_a_day() {
        check(
            BackoffPolicy::Content,
            20,
            expect![[r#"
                60
                90
                135
                202.5
                303.75
                455.625
                683.4375
                1025.15625
                1537.734375
                2306.6015625
                3459.90234375
                5189.853515625
                7784.780273437
                11677.170410156
                17515.755615234
                26273.633422851
                39410.450134277
                59115.675201416
                86400
                86400
            "#]],
        );
    }

    #[test]
    fn git_and_spaces_double_up_to_two_minutes() {
        check(
            BackoffPolicy::Git,
            5,
            expect![[r#"
                20
                40
                80
                120
                120
            "#]],
        );
        check(
            BackoffPolicy::Space,
            5,
            expect![[r#"
                20
                40
                80
                120
                120
            "#]],
        );
    }

    #[test]
    fn no_attempt_rests_like_the_first_and_the_last_like_the_longest() {
        for rhythm in [BackoffPolicy::Content, BackoffPolicy::Git, BackoffPolicy::Space] {
            assert_eq!(backoff(rhythm, 0), backoff(rhythm, 1));
            assert_eq!(backoff(rhythm, u32::MAX), backoff(rhythm, STEPS_MAX));
        }
    }

    #[test]
    fn jitter_only_shortens_and_by_at_most_a_tenth() {
        assert_eq!(shortened(SECOND, 0), SECOND);
        assert_eq!(shortened(SECOND, 50), 950 * MILLISECOND);
        assert_eq!(shortened(SECOND, 100), 900 * MILLISECOND);
        assert_eq!(shortened(SECOND, u16::MAX), 900 * MILLISECOND);
        assert_eq!(shortened(9, 100), 9);
        assert_eq!(shortened(Nanoseconds::MAX, 100), Nanoseconds::MAX - Nanoseconds::MAX / 10);
    }

    #[test]
    fn only_content_is_hunted_at_once() {
        let first_delay = |rhythm, origin| super::first_delay(rhythm, origin, HuntDelays::default());
        for origin in [NeedOrigin::LocalUser, NeedOrigin::PeerOrRelay] {
            assert_eq!(first_delay(BackoffPolicy::Content, origin), 0);
        }
        for rhythm in [BackoffPolicy::Git, BackoffPolicy::Space] {
            assert_eq!(first_delay(rhythm, NeedOrigin::PeerOrRelay), 500 * MILLISECOND);
            assert_eq!(first_delay(rhythm, NeedOrigin::LocalUser), 180 * SECOND);
        }
        let delays = HuntDelays { local_user: 7, peer_or_relay: 5 };
        assert_eq!(super::first_delay(BackoffPolicy::Git, NeedOrigin::LocalUser, delays), 7);
        assert_eq!(super::first_delay(BackoffPolicy::Space, NeedOrigin::PeerOrRelay, delays), 5);
    }
}
