//! Passwords: argon2id, away from the threads that serve, and never more of it at once than the machine can take.

use crate::ask::random_bytes;
use crate::context::{PageSession, RequestContext};
use crate::problem::Problem;
use crate::state::ServerState;
use argon2::password_hash::phc::PasswordHash;
use argon2::{Argon2, PasswordHasher as _, PasswordVerifier as _};
use model::Nanos;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// The least and the most letters of a password.
const CHARS_MIN: usize = 10;
const BYTES_MAX: usize = 1000;

/// Checks of passwords that are done or wait for their turn; each takes 19 MiB and some tens of milliseconds. More are
/// told to come again.
const WAITING_MAX: usize = 16;

/// How long whoever came in may change the ways in.
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
pub(super) fn check(password: &str) -> Result<(), Problem> {
    if password.chars().count() < CHARS_MIN {
        return Err(Problem::unprocessable("a password has at least ten characters; several words make a good one"));
    }
    if password.len() > BYTES_MAX {
        return Err(Problem::unprocessable("a password has at most 1,000 bytes"));
    }
    Ok(())
}

/// Runs the costly part where it holds nobody up.
async fn apart<T: Send + 'static>(
    state: &ServerState,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let busy = |_| Problem::overloaded("too many people sign in at this moment").after(2);
    let _place = state.passwords.places.clone().try_acquire_owned().map_err(busy)?;
    let turn = state.passwords.turns.clone().acquire_owned().await;
    let turn = turn.map_err(|_| Problem::overloaded("the node is stopping").after(5))?;
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    done.await.map_err(|_| Problem::broken("a password could not be worked on"))?
}

/// The hash of a password, in the form that names how it was made.
pub(super) async fn hash(state: &ServerState, password: String) -> Result<String, Problem> {
    let salt = random_bytes::<16>()?;
    apart(state, move || {
        let hashed = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
        Ok(hashed.map_err(|_| Problem::broken("a password could not be hashed"))?.to_string())
    })
    .await
}

/// Whether a password is the one. Without a hash it takes as long, and is not.
pub(super) async fn fits(state: &ServerState, password: String, hash: Option<String>) -> Result<bool, Problem> {
    if password.len() > BYTES_MAX {
        return Ok(false);
    }
    apart(state, move || {
        let known = hash.is_some();
        let hash = hash.unwrap_or_else(|| NOBODYS.to_owned());
        let Ok(parsed) = PasswordHash::new(&hash) else { return Ok(false) };
        Ok(Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok() && known)
    })
    .await
}

/// Whether whoever is signed in may change how the account is entered: by its password, or, where it has none, because
/// they came just now, with a passkey or the operator's link.
pub(super) async fn still_fits(
    state: &ServerState,
    context: &RequestContext,
    signed: &PageSession,
    before: String,
) -> Result<(), Problem> {
    let account = state.node.snapshot()?.account(&signed.home, &signed.user)?;
    let Some(known) = account.and_then(|account| account.password) else { return came_lately(state, signed) };
    state.rate_limiters.guess(context.via.network, &format!("change {}", signed.user))?;
    match fits(state, before, Some(known)).await? {
        true => Ok(()),
        false => Err(Problem::forbidden("the present password is another one")),
    }
}

/// Whether a browser was signed in with just now, so that nobody else sits at it.
pub(super) fn came_lately(state: &ServerState, signed: &PageSession) -> Result<(), Problem> {
    let since = state.node.snapshot()?.session(&signed.id)?.map(|session| session.since);
    match since.is_some_and(|since| state.node.now() < since.plus(LATELY_NANOS)) {
        true => Ok(()),
        false => Err(Problem {
            action: "sign out, sign in again, and do it within ten minutes",
            ..Problem::forbidden("you signed in a while ago, and this changes who can come in")
        }),
    }
}

/// A hash that no password has, so that asking for somebody who is not here costs as much as for somebody who is.
const NOBODYS: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
