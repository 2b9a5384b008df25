//! Passkeys: what a browser is asked to prove, and what it answers. How they work is the library's; here is which host
//! they are for, which challenges are open, and what becomes of an answer.

use super::account::{change, signed};
use super::entering::{browser, check_name, invited, place, remember};
use super::passwords;
use crate::ask::fresh;
use crate::caller::Guest;
use crate::door::sessions::{Secret, host};
use crate::extract::{Filled, Path, Sent};
use crate::problem::Problem;
use crate::state::{House, Shared};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Uri};
use model::{Nanos, SpaceId};
use node::acts::entering::{AccountChange, Entering, OPERATOR, Way};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use store::accounts::{Account, Passkey, SecretHash};
use webauthn_rs::prelude as webauthn;

/// How long a challenge is good.
const CHALLENGE_NANOS: u64 = 300 * Nanos::SECOND;
/// Challenges that are open, of one address and of all.
const OPEN_OF_ONE_MAX: usize = 32;
const OPEN_MAX: usize = 4096;
const LABEL_CHARS_MAX: usize = 80;

/// What a browser was asked to prove.
enum Asked {
    /// Whose it is.
    ComeIn(webauthn::DiscoverableAuthentication),
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
    asked: Asked,
}

/// Challenges that were not answered yet, the oldest first.
#[derive(Default)]
pub(crate) struct Challenges(Mutex<VecDeque<Challenge>>);

impl Challenges {
    /// Keeps one. Whoever asks for many pushes out their own.
    fn open(&self, guest: &Guest, now: Nanos, host: String, asked: Asked) -> Result<String, Problem> {
        let (secret, network) = (Secret::fresh()?, guest.via.network);
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|one| one.until > now);
        let own = open.iter().filter(|one| one.network == network).count();
        let first = match (own >= OPEN_OF_ONE_MAX, open.len() >= OPEN_MAX) {
            (true, _) => open.iter().position(|one| one.network == network),
            (false, true) => Some(0),
            (false, false) => None,
        };
        first.and_then(|first| open.remove(first));
        open.push_back(Challenge { ticket: secret.hash, network, until: now.plus(CHALLENGE_NANOS), host, asked });
        Ok(secret.text)
    }

    /// Takes one, which can be answered once.
    fn take(&self, ticket: String, now: Nanos, host: &str) -> Result<Asked, Problem> {
        let hash = Secret::of(ticket).hash;
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.iter().position(|one| one.ticket == hash).and_then(|found| open.remove(found));
        let found = found.filter(|one| one.until > now && one.host == host);
        found.map(|one| one.asked).ok_or_else(|| Problem {
            action: "begin again",
            ..Problem::bad_request("this was answered before, or took longer than five minutes")
        })
    }
}

impl std::fmt::Debug for Challenges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Challenges")
    }
}

/// The host that a browser asked for, without its port, if passkeys can be made for it.
pub(super) fn name_of(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    let host = host(headers, uri)?;
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_address = name.starts_with('[') || name.parse::<IpAddr>().is_ok();
    (!is_address && !name.is_empty()).then(|| name.to_ascii_lowercase())
}

/// The library for this host, and the host's name.
fn site(guest: &Guest, headers: &HeaderMap, uri: &Uri) -> Result<(webauthn::Webauthn, String), Problem> {
    let unfit = || Problem {
        action: "open this page under a host name: localhost on this machine, a name with HTTPS elsewhere",
        ..Problem::bad_request("browsers have no passkeys for a bare address")
    };
    let name = name_of(headers, uri).ok_or_else(unfit)?;
    let scheme = if guest.via.is_secure { "https" } else { "http" };
    let origin = format!("{scheme}://{}", host(headers, uri).unwrap_or_default());
    let origin = webauthn::Url::parse(&origin).map_err(|_| unfit())?;
    let site = webauthn::WebauthnBuilder::new(&name, &origin).and_then(|site| site.rp_name("Anteroom").build());
    Ok((site.map_err(|_| unfit())?, name))
}

fn refused(why: &webauthn::WebauthnError) -> Problem {
    tracing::debug!(%why, "a passkey was refused");
    Problem::forbidden("this passkey does not prove anybody here")
}

fn broken(_: impl std::error::Error) -> Problem {
    Problem::broken("a passkey could not be asked for")
}

/// What a browser is asked, as its own functions take it.
fn question(ticket: &str, options: &impl serde::Serialize) -> Result<Response, Problem> {
    let mut options = serde_json::to_value(options).map_err(broken)?;
    let mut asked = options.get_mut("publicKey").map(Value::take).unwrap_or_default();
    // Whoever comes in says no name, so the passkey has to know it.
    if let Some(selection) = asked.get_mut("authenticatorSelection") {
        selection["residentKey"] = json!("required");
        selection["requireResidentKey"] = json!(true);
    }
    Ok(Json(json!({ "ticket": ticket, "publicKey": asked })).into_response())
}

/// An answer of a browser.
#[derive(Deserialize)]
struct Answered<T> {
    ticket: String,
    credential: T,
    next: Option<String>,
}

fn answered<T: DeserializeOwned>(body: &[u8]) -> Result<Answered<T>, Problem> {
    let unfit = |why| Problem::unprocessable(format!("the answer of the browser does not fit: {why}"));
    serde_json::from_slice(body).map_err(unfit)
}

/// Where to go now.
fn next(place: &str) -> Response {
    Json(json!({ "next": place })).into_response()
}

/// Asks whoever wants to come in for a passkey.
pub(crate) async fn ask(
    State(house): State<Shared>,
    guest: Guest,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let (site, host) = site(&guest, &headers, &uri)?;
    let (options, state) = site.start_discoverable_authentication().map_err(broken)?;
    let ticket = house.challenges.open(&guest, house.node.now(), host, Asked::ComeIn(state))?;
    question(&ticket, &options)
}

/// Whose passkey this is.
fn owner(
    house: &House,
    credential: &webauthn::PublicKeyCredential,
    host: &str,
) -> Result<Option<(SpaceId, Account, Passkey)>, Problem> {
    let Some(handle) = credential.get_user_unique_id().and_then(|handle| handle.try_into().ok()) else {
        return Ok(None);
    };
    let db = house.node.snapshot()?;
    for (space, _) in db.kept_spaces()? {
        let Some(account) = db.account_by_handle(&space, &handle)? else { continue };
        let fits = |known: &&Passkey| known.id == credential.get_credential_id() && known.host == host;
        let found = account.passkeys.iter().find(fits).cloned();
        return Ok(found.map(|passkey| (space, account, passkey)));
    }
    Ok(None)
}

/// Signs in by a passkey.
pub(crate) async fn come_in(
    State(house): State<Shared>,
    guest: Guest,
    headers: HeaderMap,
    uri: Uri,
    Sent(body): Sent,
) -> Result<Response, Problem> {
    let (site, host) = site(&guest, &headers, &uri)?;
    let answer = answered::<webauthn::PublicKeyCredential>(&body)?;
    let Asked::ComeIn(state) = house.challenges.take(answer.ticket, house.node.now(), &host)? else {
        return Err(Problem::bad_request("this was asked for something else"));
    };
    let handle = hex::encode(answer.credential.get_user_unique_id().unwrap_or_default());
    house.gates.guess(guest.via.network, &format!("passkey {handle}"))?;
    let Some((space, account, known)) = owner(&house, &answer.credential, &host)? else {
        return Err(refused(&webauthn::WebauthnError::CredentialNotFound));
    };
    let mut passkey: webauthn::Passkey =
        serde_json::from_slice(&known.key).map_err(|_| Problem::broken("a passkey that is kept cannot be read"))?;
    let proven = site.finish_discoverable_authentication_v2(&answer.credential, state, &passkey);
    passkey.update_credential(&proven.map_err(|why| refused(&why))?);
    let proven = Way::Passkey(Passkey { key: serde_json::to_vec(&passkey).map_err(broken)?, ..known });
    let (browser, secret) = browser(&headers)?;
    house.enter(space, Entering::SignIn { user: account.user.clone(), proven, browser }).await?;
    remember(next(place(answer.next.as_deref())), &house, &guest, (&space, &account.user), &secret)
}

/// Begins to make a passkey.
fn begin(
    house: &House,
    guest: &Guest,
    (site, host): (webauthn::Webauthn, String),
    (space, user): (SpaceId, &str),
    asked: impl FnOnce(webauthn::PasskeyRegistration) -> Asked,
) -> Result<Response, Problem> {
    let db = house.node.snapshot()?;
    let handle = webauthn::Uuid::from_bytes(db.handle(&space, user));
    let account = db.account(&space, user)?;
    let known = account.map(|account| account.passkeys).unwrap_or_default();
    let known = known.into_iter().map(|passkey| passkey.id).collect();
    let name = db.kept_space(&space)?.map(|kept| kept.name).unwrap_or_default();
    let shown = format!("{user} in {name}");
    let (options, state) = site.start_passkey_registration(handle, &shown, user, Some(known)).map_err(broken)?;
    let ticket = house.challenges.open(guest, house.node.now(), host, asked(state))?;
    question(&ticket, &options)
}

/// What is kept of a passkey that was made.
fn made(
    house: &House,
    (site, host): (webauthn::Webauthn, String),
    headers: &HeaderMap,
    credential: &webauthn::RegisterPublicKeyCredential,
    state: &webauthn::PasskeyRegistration,
) -> Result<Passkey, Problem> {
    let passkey = site.finish_passkey_registration(credential, state).map_err(|why| {
        tracing::debug!(%why, "a new passkey was refused");
        Problem::unprocessable("the browser's passkey cannot be used here")
    })?;
    let (browser, _) = browser(headers)?;
    let now = house.node.now();
    Ok(Passkey {
        id: passkey.cred_id().to_vec(),
        host,
        label: browser.agent.chars().take(LABEL_CHARS_MAX).collect(),
        since: now,
        used: now,
        key: serde_json::to_vec(&passkey).map_err(broken)?,
    })
}

/// Whoever adds a passkey.
#[derive(Debug, Deserialize)]
pub(crate) struct AddForm {
    #[serde(default)]
    before: String,
}

/// Asks for a new passkey of whoever is signed in.
pub(crate) async fn begin_adding(
    State(house): State<Shared>,
    guest: Guest,
    headers: HeaderMap,
    uri: Uri,
    Filled(form): Filled<AddForm>,
) -> Result<Response, Problem> {
    let site = site(&guest, &headers, &uri)?;
    let signed = signed(&guest)?;
    passwords::still_fits(&house, &guest, signed, form.before).await?;
    begin(&house, &guest, site, (signed.home, &signed.user), |state| {
        Asked::Add(signed.home, signed.user.clone(), state)
    })
}

/// Adds a passkey.
pub(crate) async fn add(
    State(house): State<Shared>,
    guest: Guest,
    headers: HeaderMap,
    uri: Uri,
    Sent(body): Sent,
) -> Result<Response, Problem> {
    let site = site(&guest, &headers, &uri)?;
    let signed = signed(&guest)?;
    let answer = answered(&body)?;
    let state = match house.challenges.take(answer.ticket, house.node.now(), &site.1)? {
        Asked::Add(space, user, state) if space == signed.home && user == signed.user => state,
        _ => return Err(Problem::bad_request("this was asked for something else")),
    };
    let passkey = made(&house, site, &headers, &answer.credential, &state)?;
    change(&house, signed, AccountChange::AddPasskey(passkey)).await?;
    Ok(next("/me"))
}

/// A passkey to be forgotten.
#[derive(Debug, Deserialize)]
pub(crate) struct ForgetForm {
    passkey: String,
}

/// Forgets a passkey.
pub(crate) async fn forget(
    State(house): State<Shared>,
    guest: Guest,
    Filled(form): Filled<ForgetForm>,
) -> Result<Response, Problem> {
    let id = hex::decode(&form.passkey).map_err(|_| Problem::not_found("there is no such passkey"))?;
    change(&house, signed(&guest)?, AccountChange::ForgetPasskey(id)).await?;
    Ok(super::shell::to("/me"))
}

/// Whoever joins.
#[derive(Debug, Deserialize)]
pub(crate) struct JoinForm {
    user: String,
}

/// Asks whoever was invited for a new passkey.
pub(crate) async fn begin_joining(
    State(house): State<Shared>,
    guest: Guest,
    headers: HeaderMap,
    uri: Uri,
    Path(link): Path<String>,
    Filled(form): Filled<JoinForm>,
) -> Result<Response, Problem> {
    let (space, invitation, _) = invited(&house, &link)?;
    let site = site(&guest, &headers, &uri)?;
    house.gates.guess(guest.via.network, &format!("join {link}"))?;
    let user = form.user.trim().to_lowercase();
    check_name(&user)?;
    // A passkey for a name that cannot be had would stay in the browser.
    if user == OPERATOR || house.node.snapshot()?.user(&space, &user)?.is_some() {
        return Err(Problem::conflict(format!("the name {user:?} is taken")));
    }
    begin(&house, &guest, site, (space, &user), |state| Asked::Join(invitation, user.clone(), state))
}

/// Uses an invitation, with a passkey.
pub(crate) async fn join(
    State(house): State<Shared>,
    guest: Guest,
    headers: HeaderMap,
    uri: Uri,
    Path(link): Path<String>,
    Sent(body): Sent,
) -> Result<Response, Problem> {
    let (space, invitation, name) = invited(&house, &link)?;
    let site = site(&guest, &headers, &uri)?;
    let answer = answered(&body)?;
    let (user, state) = match house.challenges.take(answer.ticket, house.node.now(), &site.1)? {
        Asked::Join(asked, user, state) if asked == invitation => (user, state),
        _ => return Err(Problem::bad_request("this was asked for something else")),
    };
    let way = Way::Passkey(made(&house, site, &headers, &answer.credential, &state)?);
    let (browser, secret) = browser(&headers)?;
    let entering = Entering::Join { invitation, user: user.clone(), way, browser, fresh: Box::new(fresh()?) };
    house.enter(space, entering).await?;
    remember(next(&format!("/s/{name}")), &house, &guest, (&space, &user), &secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn passkeys_are_for_names_and_not_for_addresses() {
        for (host, expected) in [
            ("localhost:7117", Some("localhost")),
            ("Chat.Example.org", Some("chat.example.org")),
            ("127.0.0.1:7117", None),
            ("[::1]:7117", None),
            ("[::1]", None),
            (":80", None),
            ("", None),
        ] {
            let headers = HeaderMap::from_iter([(http::header::HOST, HeaderValue::from_static(host))]);
            assert_eq!(name_of(&headers, &Uri::from_static("/")).as_deref(), expected, "{host}");
        }
    }
}
