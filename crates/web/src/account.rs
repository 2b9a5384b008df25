//! You: profile, picture, password, and the browsers that are signed in.

use crate::article::{picture as picture_markup, time};
use crate::passwords::{self, PasswordSlots};
use crate::shell;
use crate::shell::{NavItem, PageFrame, redirect_to};
use crate::sign_in::passkey_button;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use maud::{Markup, html};
use node::commands::accounts::{AccountChange, AccountCommand, OPERATOR};
use node::commands::names::is_operator_like;
use serde::Deserialize;
use server::context::{PageSession, RequestContext};
use server::extract::{FormFields, Path, RequestBody};
use server::problem::Problem;
use server::state::{ServerState, SharedState};
use std::sync::Arc;
use store::shared::accounts::{Passkey, Session, SessionId};

/// The largest picture.
const PICTURE_BYTES_MAX: usize = 64 * 1024;
const DISPLAY_CHARS_MAX: usize = 80;

/// The session that a page is for.
pub(crate) fn session_of(context: &RequestContext) -> Result<&PageSession, Problem> {
    context.session.as_ref().ok_or_else(|| Problem::bad_request("this page is for whoever signed in to the pages"))
}

/// The page.
pub(crate) async fn show(State(state): State<SharedState>, context: RequestContext) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    context.read_as(&db, state.node.now())?;
    let session = session_of(&context)?;
    let name = db.hosted_space(&session.home)?.map(|kept| kept.name).unwrap_or_default();
    let account = db.account(&session.home, &session.user)?;
    let mut sessions = db.sessions_of(&session.home, &session.user)?;
    sessions.sort_by_key(|(_, known)| std::cmp::Reverse(known.seen));
    let display = account.as_ref().map(|account| account.display.as_str()).unwrap_or_default();
    let has_picture = account.as_ref().is_some_and(|account| account.picture.is_some());
    let has_password = account.as_ref().is_some_and(|account| account.password.is_some());
    let body = html! {
        h1 { "You" }
        @if session.is_operator {
            p.note { "You signed in with an operator link. A password or passkey signs you in as a member of this space, without "
                i { "Waiting" } " and " i { "Inside" } "; those need a link, which " code { "anteroom link" } " makes." }
        }
        section.card {
            h2 { "Profile" }
            div.row {
                (picture_markup(&name, &session.user, has_picture))
                p { b { (session.user) } @if !display.is_empty() { ", shown as " (display) } br; "in " a href={ "/s/" (name) } { (name) }
                    @if session.is_operator { ", and operator of this node" } }
            }
            form method="post" action="/me/profile" {
                label { "Display name" input name="display" value=(display) maxlength="80"; }
                button { "Save" }
            }
            form #picture method="post" action="/me/picture" hidden {
                label { "Picture" input type="file" accept="image/*"; }
                p.note { "It is resized in your browser before it is uploaded." }
            }
        }
        section.card {
            h2 { "Password" }
            form method="post" action="/me/password" {
                @if has_password {
                    label { "Current password"
                        input type="password" name="before" autocomplete="current-password" required; }
                }
                label { "New password"
                    input type="password" name="after" autocomplete="new-password" required minlength="10"; }
                button { @if has_password { "Change password" } @else { "Set a password" } }
            }
            p.note { "Changing it signs out your other browsers." }
        }
        (passkeys(account.as_ref().map_or(&[], |account| &account.passkeys), has_password))
        section.card {
            h2 { "Browsers" }
            ul.plain { @for (id, known) in &sessions { (browser(id, known, *id == session.id)) } }
            form method="post" action="/me/sessions" { button name="others" value="1" { "Sign out all others" } }
            form method="post" action="/out" { button { "Sign out here" } }
        }
    };
    Ok(PageFrame::new("You", NavItem::You, &context).of(&name).respond(&body))
}

/// Passkeys, and how to add one.
fn passkeys(known: &[Passkey], has_password: bool) -> Markup {
    html! {
        @if cfg!(feature = "passkeys") {
            section.card {
                h2 { "Passkeys" }
                @if known.is_empty() { p { "You have no passkeys. With one you sign in without a password." } }
                ul.plain { @for passkey in known {
                    li.row {
                        div { span title=(passkey.label) { (agent_name(&passkey.label)) } " for " (passkey.host) br;
                            span.note { "since " (time(passkey.since.0)) ", last used " (time(passkey.used.0)) } }
                        form method="post" action="/me/passkey/forget" {
                            button name="passkey" value=(hex::encode(&passkey.id)) { "Remove" }
                        }
                    }
                } }
                (passkey_button("/me/passkey", "Add a passkey", &html! {
                    @if has_password {
                        label { "Current password, to confirm that it is you"
                            input type="password" name="before" autocomplete="current-password" required; }
                    }
                }))
                p.note data-without-passkeys="" {
                    "Adding a passkey needs JavaScript, a recent browser, and a host name: " code { "localhost" }
                    " on this machine, a name with HTTPS on others."
                }
            }
        }
    }
}

/// What people call a browser that calls itself so.
pub(crate) fn agent_name(agent: &str) -> String {
    let first =
        |known: &[(&str, &'static str)]| known.iter().find(|(mark, _)| agent.contains(mark)).map(|(_, name)| *name);
    // Many say that they are others as well, so the order matters.
    let browser = first(&[
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ]);
    let system = first(&[
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS", "Mac"),
        ("Linux", "Linux"),
    ]);
    match (browser, system) {
        (Some(browser), Some(system)) => format!("{browser} on {system}"),
        (Some(only), None) | (None, Some(only)) => only.to_owned(),
        (None, None) => agent.to_owned(),
    }
}

fn browser(id: &SessionId, session: &Session, is_this: bool) -> Markup {
    html! {
        li.row {
            div { span title=(session.agent) { (agent_name(&session.agent)) } br;
                span.note { "since " (time(session.since.0)) ", last used " (time(session.seen.0))
                    @if is_this { ", this browser" } } }
            @if !is_this {
                form method="post" action="/me/sessions" { button name="end" value=(hex::encode(id)) { "Sign out" } }
            }
        }
    }
}

/// Which browsers to sign out.
#[derive(Debug, Deserialize)]
pub(crate) struct SessionForm {
    end: Option<String>,
    others: Option<String>,
}

/// Signs out one browser, or all others.
pub(crate) async fn end_sessions(
    State(state): State<SharedState>,
    context: RequestContext,
    FormFields(form): FormFields<SessionForm>,
) -> Result<Response, Problem> {
    let session = session_of(&context)?;
    let entering = match (form.end, form.others) {
        (Some(text), _) => {
            let mut id = [0; 48];
            let unknown = |_| Problem::not_found("there is no such session");
            hex::decode_to_slice(&text, &mut id).map_err(unknown)?;
            AccountCommand::SignOut(session.user.clone(), id)
        }
        (None, Some(_)) => AccountCommand::SignOutOthers(session.user.clone(), session.id),
        (None, None) => return Err(Problem::unprocessable("say which browser to sign out")),
    };
    state.change_account(session.home, entering).await?;
    state.recheck_streams_of_session(&context)?;
    Ok(redirect_to("/me"))
}

/// A profile.
#[derive(Debug, Deserialize)]
pub(crate) struct ProfileForm {
    display: String,
}

pub(crate) async fn change_account(
    state: &ServerState,
    session: &PageSession,
    change: AccountChange,
) -> Result<(), Problem> {
    state.change_account(session.home, AccountCommand::Change(session.user.clone(), Box::new(change))).await
}

/// Whether a character is invisible or changes how others are shown: it would make one name look like another.
fn is_invisible(letter: char) -> bool {
    let ranges = [
        ('\u{ad}', '\u{ad}'),
        ('\u{34f}', '\u{34f}'),
        ('\u{61c}', '\u{61c}'),
        ('\u{115f}', '\u{1160}'),
        ('\u{180b}', '\u{180f}'),
        ('\u{200b}', '\u{200f}'),
        ('\u{2028}', '\u{202e}'),
        ('\u{2060}', '\u{206f}'),
        ('\u{3164}', '\u{3164}'),
        ('\u{fe00}', '\u{fe0f}'),
        ('\u{feff}', '\u{feff}'),
        ('\u{ffa0}', '\u{ffa0}'),
        ('\u{e0000}', '\u{e0fff}'),
    ];
    letter.is_control() || ranges.iter().any(|(first, last)| (*first..=*last).contains(&letter))
}

/// Changes what somebody wants to be called.
pub(crate) async fn change_profile(
    State(state): State<SharedState>,
    context: RequestContext,
    FormFields(form): FormFields<ProfileForm>,
) -> Result<Response, Problem> {
    let display: String = form.display.chars().filter(|letter| !is_invisible(*letter)).collect();
    let display = display.split_whitespace().collect::<Vec<_>>().join(" ");
    if !server::input::fits(&display, DISPLAY_CHARS_MAX) {
        return Err(Problem::over_limit("a name has at most 80 characters"));
    }
    let session = session_of(&context)?;
    let name = display.replace(' ', "").to_lowercase();
    let is_anothers = name != session.user && state.node.snapshot()?.user(&session.home, &name)?.is_some();
    if is_anothers || is_operator_like(&name) && session.user != OPERATOR {
        return Err(Problem { action: "choose another one", ..Problem::conflict("somebody else has this name") });
    }
    state.rate_limiters.count_attempt(context.via.network, &format!("profile {}", session.user))?;
    change_account(&state, session, AccountChange::Display(display)).await?;
    // What they wrote is shown under the other name from now on.
    state.rendered.clear();
    Ok(redirect_to("/me"))
}

/// A password to be changed.
#[derive(Debug, Deserialize)]
pub(crate) struct PasswordForm {
    #[serde(default)]
    before: String,
    after: String,
}

/// Changes the password, and signs out the other browsers.
pub(crate) async fn change_password(
    State(state): State<SharedState>,
    State(slots): State<Arc<PasswordSlots>>,
    context: RequestContext,
    FormFields(form): FormFields<PasswordForm>,
) -> Result<Response, Problem> {
    let session = session_of(&context)?;
    passwords::check(&form.after)?;
    passwords::check_still_entitled(&state, &slots, &context, session, form.before).await?;
    let hash = passwords::hash(&slots, form.after).await?;
    change_account(&state, session, AccountChange::Password(hash)).await?;
    state.change_account(session.home, AccountCommand::SignOutOthers(session.user.clone(), session.id)).await?;
    state.recheck_streams_of_session(&context)?;
    Ok(redirect_to("/me"))
}

/// What kind of picture these bytes are, if they are one that is shown.
fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        _ => None,
    }
}

/// Keeps a picture, as PNG or JPEG; nothing takes it away.
pub(crate) async fn change_picture(
    State(state): State<SharedState>,
    context: RequestContext,
    RequestBody(body): RequestBody,
) -> Result<Response, Problem> {
    let session = session_of(&context)?;
    if body.len() > PICTURE_BYTES_MAX {
        return Err(Problem::too_large("a picture has at most 64 KiB"));
    }
    let picture = match (body.is_empty(), picture_type(&body)) {
        (true, _) => None,
        (false, Some(_)) => Some(body.to_vec()),
        (false, None) => return Err(Problem::media_type("a picture is PNG or JPEG")),
    };
    state.rate_limiters.count_attempt(context.via.network, &format!("profile {}", session.user))?;
    change_account(&state, session, AccountChange::Picture(picture)).await?;
    state.rendered.clear();
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The picture of a member.
pub(crate) async fn show_picture(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((_, user)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let db = state.node.snapshot()?;
    let viewer = context.read_as(&db, state.node.now())?;
    let account = db.account(&viewer.space, &user)?;
    let picture = account.and_then(|account| account.picture);
    let unknown = || Problem::not_found("there is no picture");
    let picture = picture.ok_or_else(unknown)?;
    let media = picture_type(&picture).ok_or_else(unknown)?;
    let headers = [(header::CONTENT_TYPE, media), (header::CACHE_CONTROL, "private, max-age=300")];
    let mut response = (headers, picture).into_response();
    shell::set_security_headers(response.headers_mut());
    Ok(response)
}
