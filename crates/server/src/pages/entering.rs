//! Coming in: signing in, the operator's link, invitations, and going out.

use super::shell::{PageFrame, respond, to};
use super::typed::FormReplay;
use super::{passwords, shell};
use crate::ask::random_bytes;
use crate::caller::RequestContext;
use crate::door::sessions::{SessionSecret, cookie, read, written};
use crate::extract::{FormFields, Path, Query};
use crate::problem::Problem;
use crate::state::{ServerState, SharedState};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode, header};
use maud::{Markup, html};
use model::{Nanos, SpaceId};
use node::commands::accounts::{AccountCommand, AccountError, AccountRequest, Credential, NewSession, OPERATOR};
use serde::Deserialize;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use store::shared::accounts::SecretHash;

/// How long the operator's link is good.
const LINK_NANOS: u64 = 24 * 3600 * Nanos::SECOND;
/// Links of the operator that are good at the same time.
const LINKS_MAX: usize = 16;
const AGENT_CHARS_MAX: usize = 160;

/// Links by which the operator signs in, each once.
#[derive(Debug, Default)]
pub(crate) struct OperatorLinks(Mutex<HashMap<SecretHash, Nanos>>);

impl OperatorLinks {
    /// The last part of a new link.
    pub(crate) fn make(&self, now: Nanos) -> Result<String, Problem> {
        let secret = SessionSecret::random()?;
        let mut links = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        links.retain(|_, until| *until > now);
        while links.len() >= LINKS_MAX {
            let oldest = links.iter().min_by_key(|(_, until)| **until).map(|(hash, _)| *hash);
            oldest.and_then(|oldest| links.remove(&oldest));
        }
        links.insert(secret.hash, now.plus(LINK_NANOS));
        Ok(secret.text)
    }

    fn is_good(&self, text: &str, now: Nanos) -> bool {
        let hash = SessionSecret::of(text.to_owned()).hash;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&hash).is_some_and(|until| *until > now)
    }

    fn take(&self, text: &str, now: Nanos) -> bool {
        let hash = SessionSecret::of(text.to_owned()).hash;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&hash).is_some_and(|until| until > now)
    }
}

impl ServerState {
    /// Does something about how people come in.
    pub(super) async fn enter(&self, space: SpaceId, what: AccountCommand) -> Result<(), Problem> {
        self.ask(AccountRequest { space, what }).await
    }
}

impl From<AccountError> for Problem {
    fn from(why: AccountError) -> Problem {
        let detail = why.to_string();
        match why {
            AccountError::Command(why) => why.into(),
            AccountError::Store(fault) => fault.into(),
            AccountError::InvitationEnded | AccountError::Unknown(_) => Problem::not_found(detail),
            AccountError::NameTaken(_) => Problem { action: "choose another name", ..Problem::conflict(detail) },
            AccountError::LastWay => Problem {
                action: "go back, and set a password or add another passkey first",
                ..Problem::conflict(detail)
            },
            AccountError::TooMany(..) => Problem::unprocessable(detail),
        }
    }
}

/// The browser that asks, and the secret that it gets.
pub(super) fn browser(headers: &HeaderMap) -> Result<(NewSession, SessionSecret), Problem> {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("unknown");
    let secret = SessionSecret::random()?;
    let agent = agent.chars().take(AGENT_CHARS_MAX).collect();
    Ok((NewSession { hash: secret.hash, agent }, secret))
}

/// An answer that gives the browser a session.
pub(super) fn remember(
    mut response: Response,
    state: &ServerState,
    context: &RequestContext,
    (space, user): (&SpaceId, &str),
    secret: &SessionSecret,
) -> Result<Response, Problem> {
    let front = state.node.snapshot()?.session_prefix(space, user);
    let cookie = cookie(&context.via, &written(&front, secret))?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// A place on this node to go to: anything else leads to the beginning.
pub(super) fn place(next: Option<&str>) -> &str {
    // Browsers leave out what cannot be seen, and take a backslash for a slash.
    let is_plain = |next: &str| next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let is_here = |next: &&str| next.starts_with('/') && !next.starts_with("//") && is_plain(next);
    next.filter(is_here).unwrap_or("/")
}

fn home_of(state: &ServerState) -> Result<Option<(SpaceId, String)>, Problem> {
    let spaces = state.node.snapshot()?.kept_spaces()?;
    let found = spaces.iter().find(|(_, kept)| kept.name == "home").or(spaces.first());
    Ok(found.map(|(space, kept)| (*space, kept.name.clone())))
}

/// The beginning: threads for whoever is signed in, the form for others.
pub(crate) async fn home(State(state): State<SharedState>, context: RequestContext) -> Result<Response, Problem> {
    let Some(signed) = &context.signed else { return Ok(page(StatusCode::OK, "/", None)) };
    let name = state.node.snapshot()?.kept_space(&signed.home)?.map(|kept| kept.name);
    Ok(match name {
        Some(name) => to(&format!("/s/{name}")),
        None => page(StatusCode::OK, "/", Some("The space that you were in is not here any more.")),
    })
}

#[derive(Debug, Deserialize)]
pub(crate) struct NextQuery {
    next: Option<String>,
}

/// The form to sign in.
pub(crate) async fn form(Query(query): Query<NextQuery>) -> Response {
    page(StatusCode::OK, place(query.next.as_deref()), None)
}

/// The form to sign in, where a page asked for somebody.
pub(super) fn asked(next: &str, typed: &FormReplay) -> Response {
    shown(StatusCode::UNAUTHORIZED, (place(Some(next)), ""), None, &typed.markup())
}

fn page(status: StatusCode, next: &str, why_not: Option<&str>) -> Response {
    shown(status, (next, ""), why_not, &Markup::default())
}

fn shown(status: StatusCode, (next, user): (&str, &str), why_not: Option<&str>, typed: &Markup) -> Response {
    let body = html! {
        section.card {
            h1 { "Sign in" }
            @if let Some(why_not) = why_not { p.bad role="alert" { (why_not) } }
            form method="post" action="/in" {
                input type="hidden" name="next" value=(next);
                label { "Name"
                    input name="user" value=(user) autocomplete="username" required maxlength="128" autofocus; }
                label { "Password" input type="password" name="password" autocomplete="current-password" required; }
                details {
                    summary { "In another space than home" }
                    label { "Space" input name="space" maxlength="128" placeholder="home"; }
                }
                button { "Sign in" }
            }
            (by_passkey("/passkey", "Sign in with a passkey", &html! { input type="hidden" name="next" value=(next); }))
            p.note {
                "No account? Ask an admin of the space for an invitation link. Whoever runs this node signs in by the "
                "link that it prints when it starts, or by " code { "anteroom link" } "."
            }
            (typed)
        }
    };
    respond(status, PageFrame::bare("Sign in").page(&body).into_string())
}

/// A button that asks the browser for a passkey, where it has them: the script shows it.
pub(super) fn by_passkey(action: &str, text: &str, fields: &Markup) -> Markup {
    html! {
        @if cfg!(feature = "passkeys") {
            form.passkey method="post" data-passkey=(action) hidden {
                (fields)
                button.quiet type="button" { (text) }
                p.bad role="alert" hidden {}
            }
        }
    }
}

/// Who wants to come in.
#[derive(Debug, Deserialize)]
pub(crate) struct SignInForm {
    user: String,
    password: String,
    #[serde(default)]
    space: String,
    next: Option<String>,
}

/// Signs in by name and password.
pub(crate) async fn sign_in(
    State(state): State<SharedState>,
    context: RequestContext,
    headers: HeaderMap,
    FormFields(form): FormFields<SignInForm>,
) -> Result<Response, Problem> {
    let next = place(form.next.as_deref()).to_owned();
    let form = SignInForm { user: form.user.trim().to_lowercase(), ..form };
    let db = state.node.snapshot()?;
    let spaces = db.kept_spaces()?;
    let name = if form.space.is_empty() { "home" } else { form.space.as_str() };
    let space = spaces.iter().find(|(_, kept)| kept.name == name).map(|(space, _)| *space);
    let account = match &space {
        Some(space) => db.account(space, &form.user)?,
        None => None,
    };
    let is_here = match &space {
        Some(space) => db.user(space, &form.user)?.is_some_and(|user| !user.is_gone),
        None => false,
    };
    drop(db);
    state.rate_limiters.guess(context.via.network, &format!("{name}\n{}", form.user))?;
    let hash = account.and_then(|account| account.password).filter(|_| is_here);
    let fits = passwords::fits(&state, form.password, hash.clone()).await?;
    let (Some(space), Some(proven), true) = (space, hash.map(Credential::Password), fits) else {
        let why_not = "That name and password do not belong together, or there is no such space.";
        return Ok(shown(StatusCode::FORBIDDEN, (&next, &form.user), Some(why_not), &Markup::default()));
    };
    let (browser, secret) = browser(&headers)?;
    state.enter(space, AccountCommand::SignIn { user: form.user.clone(), proven, browser }).await?;
    remember(to(&next), &state, &context, (&space, &form.user), &secret)
}

/// The operator's link: a button, because programs that look at links press none.
pub(crate) async fn link(State(state): State<SharedState>, Path(link): Path<String>) -> Result<Response, Problem> {
    if !state.links.is_good(&link, state.node.now()) {
        return Err(spent());
    }
    let body = html! {
        section.card {
            h1 { "Welcome, operator" }
            p { "This link signs you in once, on this browser. From here you reader after this node and take part in its spaces." }
            form method="post" { button autofocus { "Sign in as operator" } }
        }
    };
    Ok(PageFrame::bare("Sign in as operator").respond(&body))
}

fn spent() -> Problem {
    Problem {
        action: "run anteroom link for another one",
        ..Problem::not_found("this link was used before, or is older than a day")
    }
}

/// Signs the operator in.
pub(crate) async fn use_link(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(link): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some((space, _)) = home_of(&state)? else { return Err(Problem::not_found("this node keeps no space")) };
    if !state.links.take(&link, state.node.now()) {
        return Err(spent());
    }
    let (browser, secret) = browser(&headers)?;
    let entering = AccountCommand::SignInOperator(OPERATOR.to_owned(), browser, Box::new(random_bytes()?));
    state.enter(space, entering).await?;
    remember(to("/"), &state, &context, (&space, OPERATOR), &secret)
}

/// The space and hash of an invitation that is good.
pub(super) fn invited(state: &ServerState, link: &str) -> Result<(SpaceId, SecretHash, String), Problem> {
    let ended = || Problem {
        action: "ask whoever invited you for another link",
        ..Problem::not_found("this invitation was used up, taken back, or has ended")
    };
    let (space, secret) = read::<16>(link).map(|(space, secret)| (SpaceId(space), secret)).ok_or_else(ended)?;
    let db = state.node.snapshot()?;
    let found = db.invitation(&space, &secret.hash)?.filter(|found| found.is_good(state.node.now()));
    let kept = db.kept_space(&space)?;
    match (found, kept) {
        (Some(_), Some(kept)) => Ok((space, secret.hash, kept.name)),
        _ => Err(ended()),
    }
}

/// The page of an invitation.
pub(crate) async fn invitation(
    State(state): State<SharedState>,
    Path(link): Path<String>,
) -> Result<Response, Problem> {
    let (_, _, name) = invited(&state, &link)?;
    Ok(joining(StatusCode::OK, (&name, &link), "", None))
}

fn joining(status: StatusCode, (space, link): (&str, &str), user: &str, why_not: Option<&str>) -> Response {
    let body: Markup = html! {
        section.card {
            h1 { "Join " (space) }
            p { "You were invited. Choose a name, which others will see, and how to come back: a password or a passkey." }
            @if let Some(why_not) = why_not { p.bad role="alert" { (why_not) } }
            form method="post" {
                label { "Name"
                    input name="user" value=(user) autocomplete="username" required maxlength="40" autofocus
                        pattern="[A-Za-z0-9]([A-Za-z0-9._\\-]*[A-Za-z0-9])?" title="Letters, digits, dots and dashes";
                }
                p.note { "Letters without accents, digits, dots and dashes. What people call you can be set later." }
                label { "Password"
                    input type="password" name="password" autocomplete="new-password" required minlength="10";
                }
                p.note { "At least ten characters; several words make a good one." }
                button { "Join" }
            }
            (by_passkey(&format!("/join/{link}/passkey"), "Join with a passkey instead", &html! {
                input type="hidden" name="user" data-from="user";
            }))
        }
    };
    respond(status, PageFrame::bare("Join").page(&body).into_string())
}

/// Whoever joins.
#[derive(Debug, Deserialize)]
pub(crate) struct JoinForm {
    user: String,
    password: String,
}

/// Names that people choose for themselves are small letters, digits, dots and dashes, so that none looks like another's.
pub(super) fn check_name(user: &str) -> Result<(), Problem> {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || ".-_".contains(letter);
    let is_edge = |letter: char| letter.is_ascii_alphanumeric();
    let begins_well = user.starts_with(is_edge) && user.ends_with(is_edge);
    match begins_well && user.len() <= 40 && user.chars().all(is_letter) {
        true => Ok(()),
        false => Err(Problem::unprocessable(
            "a name has 1 to 40 letters, digits, dots and dashes, with a letter or digit first and last",
        )),
    }
}

/// Uses an invitation.
pub(crate) async fn join(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(link): Path<String>,
    headers: HeaderMap,
    FormFields(form): FormFields<JoinForm>,
) -> Result<Response, Problem> {
    let (space, invitation, name) = invited(&state, &link)?;
    state.rate_limiters.guess(context.via.network, &format!("join {link}"))?;
    let (browser, secret) = browser(&headers)?;
    let user = form.user.trim().to_lowercase();
    let joined = match check_name(&user).and_then(|()| passwords::check(&form.password)) {
        Err(problem) => Err(problem),
        Ok(()) => {
            let way = Credential::Password(passwords::hash(&state, form.password).await?);
            let (user, random) = (user.clone(), Box::new(random_bytes()?));
            state.enter(space, AccountCommand::Join { invitation, user, way, browser, random }).await
        }
    };
    match joined {
        Ok(()) => remember(to(&format!("/s/{name}")), &state, &context, (&space, &user), &secret),
        Err(problem) if problem.status < 500 && problem.status != 404 => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
            Ok(joining(status, (&name, &link), &form.user, Some(&shell::sentence(&problem.detail))))
        }
        Err(problem) => Err(problem),
    }
}

/// Ends the session that asks.
pub(crate) async fn out(State(state): State<SharedState>, context: RequestContext) -> Result<Response, Problem> {
    if let Some(signed) = &context.signed {
        // It may have ended already.
        let _ = state.enter(signed.home, AccountCommand::SignOut(signed.user.clone(), signed.id)).await;
        super::account::end_streams(&state, &context)?;
    }
    let mut response = to("/in");
    response.headers_mut().insert(header::SET_COOKIE, cookie(&context.via, "")?);
    Ok(response)
}
