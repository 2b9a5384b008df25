//! The delays, compared with tables that were worked out apart from the code.

use super::super::{BackoffPolicy, HuntDelays, Nanoseconds, NeedOrigin, backoff, first_delay, shortened};
use super::ensure;
use super::random::DriverRandom;

/// A minute, half as long again each time and rounded down to whole nanoseconds, up to a day.
const CONTENT_RESTS: [Nanoseconds; 19] = [
    60_000_000_000,
    90_000_000_000,
    135_000_000_000,
    202_500_000_000,
    303_750_000_000,
    455_625_000_000,
    683_437_500_000,
    1_025_156_250_000,
    1_537_734_375_000,
    2_306_601_562_500,
    3_459_902_343_750,
    5_189_853_515_625,
    7_784_780_273_437,
    11_677_170_410_156,
    17_515_755_615_234,
    26_273_633_422_851,
    39_410_450_134_277,
    59_115_675_201_416,
    86_400_000_000_000,
];

/// Twenty seconds, doubled each time, up to two minutes.
const GIT_RESTS: [Nanoseconds; 4] = [20_000_000_000, 40_000_000_000, 80_000_000_000, 120_000_000_000];

pub(super) const RHYTHMS: [BackoffPolicy; 3] = [BackoffPolicy::Content, BackoffPolicy::Git, BackoffPolicy::Space];
pub(super) const ORIGINS: [NeedOrigin; 2] = [NeedOrigin::LocalUser, NeedOrigin::PeerOrRelay];

pub(super) fn check(random: &mut DriverRandom) -> Result<(), String> {
    for rhythm in RHYTHMS {
        let far = random.number() as u32;
        for attempts in (1..=24).chain([far, u32::MAX]) {
            check_rest(random, rhythm, attempts)?;
        }
        for origin in ORIGINS {
            let delay = first_delay(rhythm, origin, HuntDelays::default());
            ensure(delay == expected_delay(rhythm, origin), || format!("{rhythm:?} {origin:?} waits {delay} first"))?;
        }
    }
    Ok(())
}

/// The rest after an attempt, by the tables.
pub(super) fn expected_rest(rhythm: BackoffPolicy, attempts: u32) -> Nanoseconds {
    let rests: &[Nanoseconds] = match rhythm {
        BackoffPolicy::Content => &CONTENT_RESTS,
        BackoffPolicy::Git | BackoffPolicy::Space => &GIT_RESTS,
    };
    let index = (attempts.max(1) as usize - 1).min(rests.len() - 1);
    rests[index]
}

/// The wait before a first hunt, as the design has it.
pub(super) fn expected_delay(rhythm: BackoffPolicy, origin: NeedOrigin) -> Nanoseconds {
    match (rhythm, origin) {
        (BackoffPolicy::Content, _) => 0,
        (_, NeedOrigin::PeerOrRelay) => 500_000_000,
        (_, NeedOrigin::LocalUser) => 180_000_000_000,
    }
}

/// Whether the rest is the expected one or up to a tenth shorter.
pub(super) fn is_jittered(rest: Nanoseconds, expected: Nanoseconds) -> bool {
    rest <= expected && rest >= expected - expected / 10
}

fn check_rest(random: &mut DriverRandom, rhythm: BackoffPolicy, attempts: u32) -> Result<(), String> {
    let (rest, expected) = (backoff(rhythm, attempts), expected_rest(rhythm, attempts));
    ensure(rest == expected, || format!("{rhythm:?} rests {rest} after attempt {attempts}, not {expected}"))?;
    let jitter = random.number() as u16;
    let short = shortened(rest, jitter);
    ensure(is_jittered(short, rest), || format!("jitter {jitter} makes {short} of {rest}"))?;
    ensure(shortened(rest, 0) == rest, || format!("no jitter changes {rest}"))
}
