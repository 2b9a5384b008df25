//! Passwords: argon2id, away from the threads that serve, and never more of it at once than the machine can take.

use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use model::Nanos;
use server::context::{PageSession, RequestContext};
use server::problem::Problem;
use server::secrets::random_bytes;
use server::state::ServerState;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The least and the most letters of a password.
const CHARS_MIN: usize = 10;
const BYTES_MAX: usize = 1000;

/// Checks of passwords that are done or wait for their turn; each takes 19 MiB and some tens of milliseconds. More are
/// refused for the moment.
const WAITING_MAX: usize = 16;

/// How long after signing in somebody may change the password and passkeys.
const LATELY_NANOS: u64 = 600 * Nanos::SECOND;

/// Turns to work on passwords: half of the machine, so that the rest goes on.
#[derive(Debug)]
pub(crate) struct PasswordSlots {
    places: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

impl Default for PasswordSlots {
    fn default() -> PasswordSlots {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        PasswordSlots {
            places: Arc::new(Semaphore::new(WAITING_MAX)),
            turns: Arc::new(Semaphore::new((cores / 2).max(1))),
        }
    }
}

/// Whether a password can be one.
pub(crate) fn check(password: &str) -> Result<(), Problem> {
    if password.chars().count() < CHARS_MIN {
        return Err(Problem::over_limit("a password has at least ten characters; several words make a good one"));
    }
    if password.len() > BYTES_MAX {
        return Err(Problem::over_limit("a password has at most 1,000 bytes"));
    }
    Ok(())
}

/// Runs the costly part where it holds nobody up.
async fn run_apart<T: Send + 'static>(
    slots: &PasswordSlots,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let busy = |_| Problem::overloaded("too many people sign in at this moment").after(2);
    let _place = slots.places.clone().try_acquire_owned().map_err(busy)?;
    let turn = slots.turns.clone().acquire_owned().await;
    let turn = turn.map_err(|_| Problem::overloaded("the node is stopping").after(5))?;
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    done.await.map_err(|_| Problem::broken("a password could not be worked on"))?
}

/// The hash of a password, in the form that names how it was made.
pub(crate) async fn hash(slots: &PasswordSlots, password: String) -> Result<String, Problem> {
    let salt = random_bytes::<16>()?;
    run_apart(slots, move || {
        let hashed = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
        Ok(hashed.map_err(|_| Problem::broken("a password could not be hashed"))?.to_string())
    })
    .await
}

/// Whether a password is the one. Without a hash it takes as long, and is not.
pub(crate) async fn fits(slots: &PasswordSlots, password: String, hash: Option<String>) -> Result<bool, Problem> {
    if password.len() > BYTES_MAX {
        return Ok(false);
    }
    run_apart(slots, move || {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| NOBODYS.to_owned());
        let Ok(parsed) = PasswordHash::new(&hash) else { return Ok(false) };
        Ok(Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok() && known)
    })
    .await
}

/// Whether whoever is signed in may change how the account is entered: by its password, or, where it has none, because
/// they came just now, with a passkey or the operator's link.
pub(crate) async fn check_still_entitled(
    state: &ServerState,
    slots: &PasswordSlots,
    context: &RequestContext,
    session: &PageSession,
    before: String,
) -> Result<(), Problem> {
    let account = state.node.snapshot()?.account(&session.home, &session.user)?;
    let Some(known) = account.and_then(|account| account.password) else {
        return check_signed_in_lately(state, session);
    };
    state.rate_limiters.count_attempt(context.via.network, &format!("change {}", session.user))?;
    match fits(slots, before, Some(known)).await? {
        true => Ok(()),
        false => Err(Problem::forbidden("the current password is wrong")),
    }
}

/// Whether a browser was signed in with just now, so that nobody else sits at it.
pub(crate) fn check_signed_in_lately(state: &ServerState, session: &PageSession) -> Result<(), Problem> {
    let since = state.node.snapshot()?.session(&session.id)?.map(|known| known.since);
    match since.is_some_and(|since| state.node.now() < since.plus(LATELY_NANOS)) {
        true => Ok(()),
        false => Err(Problem {
            action: "sign out, sign in again, and do it within ten minutes",
            ..Problem::forbidden("you signed in more than ten minutes ago, and this changes who can sign in")
        }),
    }
}

/// A hash that no password has, so that asking for somebody who is not here costs as much as for somebody who is.
const NOBODYS: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
