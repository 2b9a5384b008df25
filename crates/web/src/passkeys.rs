//! Passkeys: what a browser is asked to prove, and what it answers. How they work is the library's; here is which host
//! they are for, which challenges are open, and what becomes of an answer.

use crate::account::{change_account, session_of};
use crate::challenges::{Challenges, PendingChallenge};
use crate::passwords::{self, PasswordSlots};
use crate::sign_in::{check_name, find_invitation, local_path, new_session, set_session_cookie};
use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::response::{IntoResponse as _, Response};
use http::request::Parts;
use http::{HeaderMap, Uri, header};
use model::SpaceId;
use node::commands::accounts::{AccountChange, AccountCommand, Credential};
use node::commands::names::is_operator_like;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use server::auth::sessions::host;
use server::context::RequestContext;
use server::extract::{FormFields, Path, RequestBody};
use server::problem::Problem;
use server::secrets::random_bytes;
use server::state::{ServerState, SharedState};
use std::sync::Arc;
use store::shared::accounts::{Account, Passkey};
use webauthn_rs::prelude as webauthn;

/// What is kept of a passkey; an honest one takes some hundred bytes.
const KEY_BYTES_MAX: usize = 4096;
/// The longest name of a host.
const NAME_BYTES_MAX: usize = 253;

/// Where a browser is, as it says so itself in what it signs.
pub(crate) struct Site {
    /// The library for that place.
    library: webauthn::Webauthn,
    /// The name of the host, which passkeys are bound to.
    host: String,
}

/// The origin of pages of this host, if it has a name and is nothing but a name and perhaps a port.
fn origin(is_secure: bool, host: &str) -> Option<webauthn::Url> {
    let scheme = if is_secure { "https" } else { "http" };
    let origin = webauthn::Url::parse(&format!("{scheme}://{host}")).ok()?;
    let name = origin.domain().filter(|name| name.len() <= NAME_BYTES_MAX)?;
    // What a user name, a path or another spelling would hide is not a host: the browser would mean another one.
    let port = host.rsplit_once(':').map(|(_, port)| port);
    let is_plain = match port {
        Some(port) => port.parse::<u16>().is_ok() && host.eq_ignore_ascii_case(&format!("{name}:{port}")),
        None => host.eq_ignore_ascii_case(name),
    };
    is_plain.then_some(origin)
}

impl Site {
    fn of(context: &RequestContext, headers: &HeaderMap, uri: &Uri) -> Result<Site, Problem> {
        let unfit = || Problem {
            action: "open this page under a host name: localhost on this machine, a name with HTTPS elsewhere",
            ..Problem::bad_request("browsers have no passkeys for a bare address")
        };
        let origin = host(headers, uri).and_then(|host| origin(context.via.is_secure, host)).ok_or_else(unfit)?;
        let told = headers.get(header::ORIGIN).and_then(|told| told.to_str().ok());
        if told.is_some_and(|told| told != origin.origin().ascii_serialization()) {
            return Err(Problem {
                action: "let the proxy pass Host and X-Forwarded-Proto on, and name it in trusted_proxies",
                ..Problem::bad_request("the browser is at another address than this node believes")
            });
        }
        let name = origin.domain().unwrap_or_default().to_owned();
        let library = webauthn::WebauthnBuilder::new(&name, &origin).and_then(|site| site.rp_name("Anteroom").build());
        Ok(Site { library: library.map_err(|_| unfit())?, host: name })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Site {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Site, Problem> {
        let context = RequestContext::from_request_parts(parts, state).await?;
        Site::of(&context, &parts.headers, &parts.uri)
    }
}

fn passkey_refused(why: &webauthn::WebauthnError) -> Problem {
    tracing::debug!(%why, "a passkey was refused");
    Problem {
        action: "use another passkey, or a password; an admin of the space can invite you again",
        ..Problem::forbidden("this passkey does not prove anybody here")
    }
}

fn passkey_broken(_: impl std::error::Error) -> Problem {
    Problem::broken("a passkey could not be asked for")
}

/// What a browser is asked, as its own functions take it.
fn challenge_response(ticket: &str, options: &impl serde::Serialize) -> Result<Response, Problem> {
    let mut options = serde_json::to_value(options).map_err(passkey_broken)?;
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

fn parse_answer<T: DeserializeOwned>(body: &[u8]) -> Result<Answered<T>, Problem> {
    let unfit = |why| Problem::unprocessable(format!("the answer of the browser does not fit: {why}"));
    serde_json::from_slice(body).map_err(unfit)
}

/// Where to go now.
fn next_page(place: &str) -> Response {
    Json(json!({ "next": place })).into_response()
}

/// Asks the browser for a passkey to sign in with.
pub(crate) async fn begin_signing_in(
    State(state): State<SharedState>,
    State(challenges): State<Arc<Challenges>>,
    context: RequestContext,
    site: Site,
) -> Result<Response, Problem> {
    let Site { library, host } = site;
    let (options, ceremony) = library.start_discoverable_authentication().map_err(passkey_broken)?;
    let ticket = challenges.open(&context, state.node.now(), host, PendingChallenge::SignIn(ceremony))?;
    challenge_response(&ticket, &options)
}

/// Whose passkey this is.
fn find_owner(
    state: &ServerState,
    credential: &webauthn::PublicKeyCredential,
    host: &str,
) -> Result<Option<(SpaceId, Account, Passkey)>, Problem> {
    let Some(handle) = credential.get_user_unique_id().and_then(|handle| handle.try_into().ok()) else {
        return Ok(None);
    };
    let db = state.node.snapshot()?;
    for (space, _) in db.hosted_spaces()? {
        let Some(account) = db.account_by_handle(&space, &handle)? else { continue };
        let fits = |known: &&Passkey| known.id == credential.get_credential_id() && known.host == host;
        let found = account.passkeys.iter().find(fits).cloned();
        return Ok(found.map(|passkey| (space, account, passkey)));
    }
    Ok(None)
}

/// Signs in by a passkey.
pub(crate) async fn sign_in(
    State(state): State<SharedState>,
    State(challenges): State<Arc<Challenges>>,
    context: RequestContext,
    site: Site,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Response, Problem> {
    let Site { library, host } = site;
    let answer = parse_answer::<webauthn::PublicKeyCredential>(&body)?;
    let PendingChallenge::SignIn(ceremony) = challenges.take(answer.ticket, state.node.now(), &host)? else {
        return Err(Problem::bad_request("this was asked for something else"));
    };
    let handle = hex::encode(answer.credential.get_user_unique_id().unwrap_or_default());
    state.rate_limiters.count_attempt(context.via.network, &format!("passkey {handle}"))?;
    let Some((space, account, known)) = find_owner(&state, &answer.credential, &host)? else {
        return Err(passkey_refused(&webauthn::WebauthnError::CredentialNotFound));
    };
    let mut passkey: webauthn::Passkey =
        serde_json::from_slice(&known.key).map_err(|_| Problem::broken("a passkey that is kept cannot be read"))?;
    let proven = library.finish_discoverable_authentication_v2(&answer.credential, ceremony, &passkey);
    passkey.update_credential(&proven.map_err(|why| passkey_refused(&why))?);
    let proven = Credential::Passkey(Passkey { key: serde_json::to_vec(&passkey).map_err(passkey_broken)?, ..known });
    let (browser, secret) = new_session(&headers)?;
    state.change_account(space, AccountCommand::SignIn { user: account.user.clone(), proven, browser }).await?;
    set_session_cookie(
        next_page(local_path(answer.next.as_deref())),
        &state,
        &context,
        (&space, &account.user),
        &secret,
    )
}

/// Begins to make a passkey.
fn begin_registration(
    state: &ServerState,
    challenges: &Challenges,
    context: &RequestContext,
    site: Site,
    (space, user): (SpaceId, &str),
    asked: impl FnOnce(webauthn::PasskeyRegistration) -> PendingChallenge,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let handle = webauthn::Uuid::from_bytes(db.handle(&space, user));
    let account = db.account(&space, user)?;
    let known = account.map(|account| account.passkeys).unwrap_or_default();
    let known = known.into_iter().map(|passkey| passkey.id).collect();
    let name = db.hosted_space(&space)?.map(|kept| kept.name).unwrap_or_default();
    let shown = format!("{user} in {name}");
    let (options, ceremony) =
        site.library.start_passkey_registration(handle, &shown, user, Some(known)).map_err(passkey_broken)?;
    let ticket = challenges.open(context, state.node.now(), site.host, asked(ceremony))?;
    challenge_response(&ticket, &options)
}

/// What is kept of a passkey that was made.
fn finish_registration(
    state: &ServerState,
    site: Site,
    headers: &HeaderMap,
    credential: &webauthn::RegisterPublicKeyCredential,
    ceremony: &webauthn::PasskeyRegistration,
) -> Result<Passkey, Problem> {
    let passkey = site.library.finish_passkey_registration(credential, ceremony).map_err(|why| {
        tracing::debug!(%why, "a new passkey was refused");
        Problem::unprocessable("the browser's passkey cannot be used here")
    })?;
    let key = serde_json::to_vec(&passkey).map_err(passkey_broken)?;
    if key.len() > KEY_BYTES_MAX {
        return Err(Problem::unprocessable("the browser's passkey is too large"));
    }
    let ((browser, _), now) = (new_session(headers)?, state.node.now());
    Ok(Passkey { id: passkey.cred_id().to_vec(), host: site.host, label: browser.agent, since: now, used: now, key })
}

/// Whoever adds a passkey.
#[derive(Debug, Deserialize)]
pub(crate) struct AddForm {
    #[serde(default)]
    before: String,
}

/// Asks for a new passkey of whoever is signed in.
pub(crate) async fn begin_adding(
    State(state): State<SharedState>,
    State(challenges): State<Arc<Challenges>>,
    State(slots): State<Arc<PasswordSlots>>,
    context: RequestContext,
    site: Site,
    FormFields(form): FormFields<AddForm>,
) -> Result<Response, Problem> {
    let session = session_of(&context)?;
    passwords::check_still_entitled(&state, &slots, &context, session, form.before).await?;
    begin_registration(&state, &challenges, &context, site, (session.home, &session.user), |ceremony| {
        PendingChallenge::Add(session.home, session.user.clone(), ceremony)
    })
}

/// Adds a passkey.
pub(crate) async fn add(
    State(state): State<SharedState>,
    State(challenges): State<Arc<Challenges>>,
    context: RequestContext,
    site: Site,
    headers: HeaderMap,
    RequestBody(body): RequestBody,
) -> Result<Response, Problem> {
    let session = session_of(&context)?;
    let answer = parse_answer(&body)?;
    let ceremony = match challenges.take(answer.ticket, state.node.now(), &site.host)? {
        PendingChallenge::Add(space, user, ceremony) if space == session.home && user == session.user => ceremony,
        _ => return Err(Problem::bad_request("this was asked for something else")),
    };
    let passkey = finish_registration(&state, site, &headers, &answer.credential, &ceremony)?;
    change_account(&state, session, AccountChange::AddPasskey(passkey)).await?;
    Ok(next_page("/me"))
}

/// A passkey to be forgotten.
#[derive(Debug, Deserialize)]
pub(crate) struct ForgetForm {
    passkey: String,
}

/// Forgets a passkey.
pub(crate) async fn forget(
    State(state): State<SharedState>,
    context: RequestContext,
    FormFields(form): FormFields<ForgetForm>,
) -> Result<Response, Problem> {
    let id = hex::decode(&form.passkey).map_err(|_| Problem::not_found("there is no such passkey"))?;
    let session = session_of(&context)?;
    passwords::check_signed_in_lately(&state, session)?;
    change_account(&state, session, AccountChange::ForgetPasskey(id)).await?;
    Ok(crate::shell::redirect_to("/me"))
}

/// Whoever joins.
#[derive(Debug, Deserialize)]
pub(crate) struct JoinForm {
    user: String,
}

/// Asks whoever was invited for a new passkey.
pub(crate) async fn begin_joining(
    State(state): State<SharedState>,
    State(challenges): State<Arc<Challenges>>,
    context: RequestContext,
    site: Site,
    Path(link): Path<String>,
    FormFields(form): FormFields<JoinForm>,
) -> Result<Response, Problem> {
    let (space, invitation, _) = find_invitation(&state, &link)?;
    state.rate_limiters.count_attempt(context.via.network, &format!("join {link}"))?;
    let user = form.user.trim().to_lowercase();
    check_name(&user)?;
    // A passkey for a name that cannot be had would stay in the browser.
    if is_operator_like(&user) || state.node.snapshot()?.user(&space, &user)?.is_some() {
        return Err(Problem::conflict(format!("the name {user:?} is taken")));
    }
    begin_registration(&state, &challenges, &context, site, (space, &user), |ceremony| {
        PendingChallenge::Join(invitation, user.clone(), ceremony)
    })
}

/// Uses an invitation, with a passkey.
pub(crate) async fn join(
    State(state): State<SharedState>,
    State(challenges): State<Arc<Challenges>>,
    context: RequestContext,
    site: Site,
    headers: HeaderMap,
    Path(link): Path<String>,
    RequestBody(body): RequestBody,
) -> Result<Response, Problem> {
    let (space, invitation, name) = find_invitation(&state, &link)?;
    let answer = parse_answer(&body)?;
    let (user, ceremony) = match challenges.take(answer.ticket, state.node.now(), &site.host)? {
        PendingChallenge::Join(asked, user, ceremony) if asked == invitation => (user, ceremony),
        _ => return Err(Problem::bad_request("this was asked for something else")),
    };
    let way = Credential::Passkey(finish_registration(&state, site, &headers, &answer.credential, &ceremony)?);
    let (browser, secret) = new_session(&headers)?;
    let entering =
        AccountCommand::Join { invitation, user: user.clone(), way, browser, random: Box::new(random_bytes()?) };
    state.change_account(space, entering).await?;
    set_session_cookie(next_page(&format!("/s/{name}")), &state, &context, (&space, &user), &secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passkeys_are_for_names_and_not_for_addresses_or_tricks() {
        for (host, expected) in [
            ("localhost:7117", "http://localhost:7117"),
            ("Chat.Example.org", "http://chat.example.org"),
            ("node.example:80", "http://node.example"),
            ("xn--bcher-kva.example", "http://xn--bcher-kva.example"),
        ] {
            let origin = origin(false, host).map(|origin| origin.origin().ascii_serialization());
            assert_eq!(origin.as_deref(), Some(expected), "{host}");
        }
        let long = format!("{}.example", "a.".repeat(200));
        for host in [
            "127.0.0.1:7117",
            "127.1",
            "[::1]:7117",
            "[::1]",
            ":80",
            "",
            "node.example:y@sub.node.example",
            "y@node.example",
            "node.example/path",
            "node.example?x",
            "node.example#x",
            "node.example\\evil.example",
            "node.example:99999",
            "node.example:",
            "no de.example",
            &long,
        ] {
            assert_eq!(origin(false, host), None, "{host}");
        }
    }
}
