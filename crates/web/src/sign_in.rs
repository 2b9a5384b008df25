//! Signing in with a password, an operator link or an invitation, and signing out.

use crate::form_replay::FormReplay;
use crate::passwords::{self, PasswordSlots};
use crate::shell;
use crate::shell::{PageFrame, redirect_to, respond};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode, header};
use maud::{Markup, html};
use model::SpaceId;
use node::commands::accounts::{AccountCommand, Credential, NewSession, OPERATOR};
use serde::Deserialize;
use server::auth::sessions::cookie;
use server::context::RequestContext;
use server::extract::{FormFields, Path, Query};
use server::problem::Problem;
use server::secrets::random_bytes;
use server::secrets::{Secret, read_secret, write_secret};
use server::state::{ServerState, SharedState};
use std::sync::Arc;
use store::shared::accounts::SecretHash;

const AGENT_CHARS_MAX: usize = 160;

/// The browser that asks, and the secret that it gets.
pub(crate) fn new_session(headers: &HeaderMap) -> Result<(NewSession, Secret), Problem> {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("unknown");
    let secret = Secret::random()?;
    let agent = agent.chars().take(AGENT_CHARS_MAX).collect();
    Ok((NewSession { hash: secret.hash, agent }, secret))
}

/// An answer that gives the browser a session.
pub(crate) fn set_session_cookie(
    mut response: Response,
    state: &ServerState,
    context: &RequestContext,
    (space, user): (&SpaceId, &str),
    secret: &Secret,
) -> Result<Response, Problem> {
    let front = state.node.snapshot()?.session_prefix(space, user);
    let cookie = cookie(&context.via, &write_secret(&front, secret))?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// A path on this node to go to; anything else leads to the beginning.
pub(crate) fn local_path(next: Option<&str>) -> &str {
    // Browsers leave out what cannot be seen, and take a backslash for a slash.
    let is_plain = |next: &str| next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    let is_here = |next: &&str| next.starts_with('/') && !next.starts_with("//") && is_plain(next);
    next.filter(is_here).unwrap_or("/")
}

fn home_of(state: &ServerState) -> Result<Option<(SpaceId, String)>, Problem> {
    let spaces = state.node.snapshot()?.hosted_spaces()?;
    let found = spaces.iter().find(|(_, kept)| kept.name == "home").or(spaces.first());
    Ok(found.map(|(space, kept)| (*space, kept.name.clone())))
}

/// The beginning: threads for whoever is signed in, the form for others.
pub(crate) async fn show_home(State(state): State<SharedState>, context: RequestContext) -> Result<Response, Problem> {
    let Some(session) = &context.session else { return Ok(sign_in_page(StatusCode::OK, "/", None)) };
    let name = state.node.snapshot()?.hosted_space(&session.home)?.map(|kept| kept.name);
    Ok(match name {
        Some(name) => redirect_to(&format!("/s/{name}")),
        None => sign_in_page(StatusCode::OK, "/", Some("The space of your account does not exist any more.")),
    })
}

#[derive(Debug, Deserialize)]
pub(crate) struct NextQuery {
    next: Option<String>,
}

/// The form to sign in.
pub(crate) async fn show_form(Query(query): Query<NextQuery>) -> Response {
    sign_in_page(StatusCode::OK, local_path(query.next.as_deref()), None)
}

/// The form to sign in, where a page asked for somebody.
pub(crate) fn ask_to_sign_in(next: &str, typed: &FormReplay) -> Response {
    render_sign_in(StatusCode::UNAUTHORIZED, (local_path(Some(next)), ""), None, &typed.markup())
}

fn sign_in_page(status: StatusCode, next: &str, why_not: Option<&str>) -> Response {
    render_sign_in(status, (next, ""), why_not, &Markup::default())
}

fn render_sign_in(status: StatusCode, (next, user): (&str, &str), why_not: Option<&str>, typed: &Markup) -> Response {
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
                    summary { "Sign in to another space" }
                    label { "Space" input name="space" maxlength="128" placeholder="home"; }
                }
                button { "Sign in" }
            }
            (passkey_button("/passkey", "Sign in with a passkey", &html! { input type="hidden" name="next" value=(next); }))
            p.note {
                "No account? Ask an admin of the space for an invitation link. The operator signs in with the link that the "
                "node prints when it starts, or with one from " code { "anteroom link" } "."
            }
            (typed)
        }
    };
    respond(status, PageFrame::bare("Sign in").page(&body).into_string())
}

/// A button that asks the browser for a passkey, where it has them: the script shows it.
pub(crate) fn passkey_button(action: &str, text: &str, fields: &Markup) -> Markup {
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

/// Who signs in.
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
    State(slots): State<Arc<PasswordSlots>>,
    context: RequestContext,
    headers: HeaderMap,
    FormFields(form): FormFields<SignInForm>,
) -> Result<Response, Problem> {
    let next = local_path(form.next.as_deref()).to_owned();
    let form = SignInForm { user: form.user.trim().to_lowercase(), ..form };
    let db = state.node.snapshot()?;
    let spaces = db.hosted_spaces()?;
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
    state.rate_limiters.count_attempt(context.via.network, &format!("{name}\n{}", form.user))?;
    let hash = account.and_then(|account| account.password).filter(|_| is_here);
    let fits = passwords::fits(&slots, form.password, hash.clone()).await?;
    let (Some(space), Some(proven), true) = (space, hash.map(Credential::Password), fits) else {
        let why_not = "Wrong name or password, or there is no such space.";
        return Ok(render_sign_in(StatusCode::FORBIDDEN, (&next, &form.user), Some(why_not), &Markup::default()));
    };
    let (browser, secret) = new_session(&headers)?;
    state.change_account(space, AccountCommand::SignIn { user: form.user.clone(), proven, browser }).await?;
    set_session_cookie(redirect_to(&next), &state, &context, (&space, &form.user), &secret)
}

/// The operator's link: a button, because programs that look at links press none.
pub(crate) async fn show_operator_link(
    State(state): State<SharedState>,
    Path(link): Path<String>,
) -> Result<Response, Problem> {
    if !state.operator_links.is_good(&link, state.node.now()) {
        return Err(link_ended());
    }
    let body = html! {
        section.card {
            h1 { "Welcome, operator" }
            p { "This link signs you in once, on this browser. From here you administer this node and take part in its spaces." }
            form method="post" { button autofocus { "Sign in as operator" } }
        }
    };
    Ok(PageFrame::bare("Sign in as operator").respond(&body))
}

fn link_ended() -> Problem {
    Problem {
        action: "run anteroom link for another one",
        ..Problem::not_found("this link was used before, or is older than a day")
    }
}

/// Signs the operator in.
pub(crate) async fn use_operator_link(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(link): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Some((space, _)) = home_of(&state)? else { return Err(Problem::not_found("this node keeps no space")) };
    if !state.operator_links.take(&link, state.node.now()) {
        return Err(link_ended());
    }
    let (browser, secret) = new_session(&headers)?;
    let entering = AccountCommand::SignInOperator(OPERATOR.to_owned(), browser, Box::new(random_bytes()?));
    state.change_account(space, entering).await?;
    set_session_cookie(redirect_to("/"), &state, &context, (&space, OPERATOR), &secret)
}

/// The space and hash of an invitation that is good.
pub(crate) fn find_invitation(state: &ServerState, link: &str) -> Result<(SpaceId, SecretHash, String), Problem> {
    let ended = || Problem {
        action: "ask whoever invited you for another link",
        ..Problem::not_found("this invitation was used up, taken back, or has ended")
    };
    let (space, secret) = read_secret::<16>(link).map(|(space, secret)| (SpaceId(space), secret)).ok_or_else(ended)?;
    let db = state.node.snapshot()?;
    let found = db.invitation(&space, &secret.hash)?.filter(|found| found.is_good(state.node.now()));
    let kept = db.hosted_space(&space)?;
    match (found, kept) {
        (Some(_), Some(kept)) => Ok((space, secret.hash, kept.name)),
        _ => Err(ended()),
    }
}

/// The page of an invitation.
pub(crate) async fn show_invitation(
    State(state): State<SharedState>,
    Path(link): Path<String>,
) -> Result<Response, Problem> {
    let (_, _, name) = find_invitation(&state, &link)?;
    Ok(render_invitation(StatusCode::OK, (&name, &link), "", None))
}

fn render_invitation(status: StatusCode, (space, link): (&str, &str), user: &str, why_not: Option<&str>) -> Response {
    let body: Markup = html! {
        section.card {
            h1 { "Join " (space) }
            p { "You were invited. Choose a name, which others will see, and how to sign in later: with a password or a passkey." }
            @if let Some(why_not) = why_not { p.bad role="alert" { (why_not) } }
            form method="post" {
                label { "Name"
                    input name="user" value=(user) autocomplete="username" required maxlength="40" autofocus
                        pattern="[A-Za-z0-9]([A-Za-z0-9._\\-]*[A-Za-z0-9])?" title="Letters, digits, dots and dashes";
                }
                p.note { "Letters without accents, digits, dots and dashes. A display name can be set later." }
                label { "Password"
                    input type="password" name="password" autocomplete="new-password" required minlength="10";
                }
                p.note { "At least ten characters; several words make a good password." }
                button { "Join" }
            }
            (passkey_button(&format!("/join/{link}/passkey"), "Join with a passkey instead", &html! {
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
pub(crate) fn check_name(user: &str) -> Result<(), Problem> {
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
    State(slots): State<Arc<PasswordSlots>>,
    context: RequestContext,
    Path(link): Path<String>,
    headers: HeaderMap,
    FormFields(form): FormFields<JoinForm>,
) -> Result<Response, Problem> {
    let (space, invitation, name) = find_invitation(&state, &link)?;
    state.rate_limiters.count_attempt(context.via.network, &format!("join {link}"))?;
    let (browser, secret) = new_session(&headers)?;
    let user = form.user.trim().to_lowercase();
    let joined = match check_name(&user).and_then(|()| passwords::check(&form.password)) {
        Err(problem) => Err(problem),
        Ok(()) => {
            let way = Credential::Password(passwords::hash(&slots, form.password).await?);
            let (user, random) = (user.clone(), Box::new(random_bytes()?));
            state.change_account(space, AccountCommand::Join { invitation, user, way, browser, random }).await
        }
    };
    match joined {
        Ok(()) => set_session_cookie(redirect_to(&format!("/s/{name}")), &state, &context, (&space, &user), &secret),
        Err(problem) if problem.status < 500 && problem.status != 404 => {
            let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::BAD_REQUEST);
            Ok(render_invitation(status, (&name, &link), &form.user, Some(&shell::sentence(&problem.detail))))
        }
        Err(problem) => Err(problem),
    }
}

/// Ends the session that asks.
pub(crate) async fn sign_out(State(state): State<SharedState>, context: RequestContext) -> Result<Response, Problem> {
    if let Some(session) = &context.session {
        // It may have ended already.
        let _ = state.change_account(session.home, AccountCommand::SignOut(session.user.clone(), session.id)).await;
        state.recheck_streams_of_session(&context)?;
    }
    let mut response = redirect_to("/in");
    response.headers_mut().insert(header::SET_COOKIE, cookie(&context.via, "")?);
    Ok(response)
}
