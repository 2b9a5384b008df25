//! The people of a space: talking to one of them, blocking, inviting others.

use crate::article::{picture, short, time};
use crate::shell::{NavItem, PageFrame, redirect_to};
use axum::extract::State;
use axum::response::Response;
use engine::access::{Action, UserStanding};
use http::{HeaderMap, Uri};
use maud::{Markup, html};
use model::Nanos;
use model::payload::MemberRole;
use node::commands::accounts::AccountCommand;
use node::commands::{self, AdminCommand, NewThread, UserCommand};
use serde::Deserialize;
use serde_json::Map;
use server::auth::sessions::host;
use server::context::RequestContext;
use server::extract::{FormFields, Path, Query};
use server::problem::Problem;
use server::secrets::{Secret, write_secret};
use server::state::{ServerState, SharedState};
use store::shared::accounts::Invitation;
use store::shared::moderation::BlockKind;

/// People on one page.
const PAGE: usize = 200;
const DAY: u64 = 24 * 3600 * Nanos::SECOND;

/// Which page of the list.
#[derive(Debug, Deserialize)]
pub(crate) struct PeopleQuery {
    cursor: Option<String>,
}

/// One of them, as a reader sees them.
struct Person {
    user: String,
    role: Option<MemberRole>,
    display: String,
    has_picture: bool,
    since: u64,
    block: Option<BlockKind>,
}

fn list_people(
    state: &ServerState,
    context: &RequestContext,
    after: Option<[u8; 32]>,
) -> Result<(Vec<Person>, Option<[u8; 32]>), Problem> {
    let (db, now) = (state.node.snapshot()?, state.node.now());
    let viewer = context.read_as(&db, now)?;
    let found = db.users(&viewer.space, after, PAGE)?;
    let next = found.last().filter(|_| found.len() == PAGE).map(|(key, _)| *key);
    let mut people = Vec::new();
    for (_, user) in found {
        let role = match commands::standing(&*db, &user, now)? {
            UserStanding::Member(role) => Some(role),
            UserStanding::New | UserStanding::Gone => None,
        };
        let account = db.account(&viewer.space, &user.id)?;
        let block = match viewer.identity() {
            Some(own) => db.block_between(&viewer.space, own, &user.identity)?,
            None => None,
        };
        people.push(Person {
            role,
            display: account.as_ref().map(|account| account.display.clone()).unwrap_or_default(),
            has_picture: account.is_some_and(|account| account.picture.is_some()),
            since: user.since.0,
            block,
            user: user.id,
        });
    }
    people.retain(|person| person.role.is_some());
    people.sort_by(|a, b| a.user.cmp(&b.user));
    Ok((people, next))
}

/// Whether the caller may invite and give roles.
fn may_administer(state: &ServerState, context: &RequestContext) -> Result<bool, Problem> {
    let viewer = context.read_as(&*state.node.snapshot()?, state.node.now())?;
    let is_operator = context.session.as_ref().is_some_and(|session| session.is_operator);
    Ok(is_operator || viewer.may(Action::Administer))
}

/// The page.
pub(crate) async fn list(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
    Query(query): Query<PeopleQuery>,
) -> Result<Response, Problem> {
    let mut after = None;
    if let Some(text) = query.cursor {
        let mut key = [0; 32];
        let bad = |_| Problem::bad_request("the cursor is not one that this page gave out");
        hex::decode_to_slice(text, &mut key).map_err(bad)?;
        after = key.starts_with(&context.space()?.0).then_some(key);
    }
    let (people, next) = list_people(&state, &context, after)?;
    let may_invite = may_administer(&state, &context)?;
    let may_write = context.read_as(&*state.node.snapshot()?, state.node.now())?.may(Action::Write);
    Ok(PageFrame::new("People", NavItem::People, &context).of(&space).respond(&html! {
        h1 { "People" }
        @if may_invite { p { a href={ "/s/" (space) "/reports" } { "Reports" } } }
        @if may_invite { (invitations_html(&state, &context, &space, None)?) }
        ul.plain.people { @for person in &people { (entry(&space, person, &context, (may_invite, may_write))) } }
        @if let Some(next) = next { p { a href={ "?cursor=" (hex::encode(next)) } { "More people" } } }
    }))
}

fn entry(space: &str, person: &Person, context: &RequestContext, (may_invite, may_write): (bool, bool)) -> Markup {
    let own = format!("/s/{space}/people/{}", person.user);
    let is_self = context.caller.user.as_deref() == Some(person.user.as_str());
    let role = person.role.map(|role| role.to_string()).unwrap_or_default();
    html! {
        li.card.row {
            (picture(space, &person.user, person.has_picture))
            div.grow {
                b { (short(&person.user)) } @if !person.display.is_empty() { " · " (person.display) }
                br; span.note { (role) ", here since " (time(person.since))
                    @match person.block {
                        Some(BlockKind::Block) => ", blocked by you",
                        Some(BlockKind::Mute) => ", muted by you",
                        None => "",
                    } }
            }
            @if !is_self {
                @if may_write { form method="post" action={ (own) "/talk" } { button title="Open a private thread with them" { "Talk" } } }
                details.menu { summary aria-label={ "More about " (person.user) } { "⋯" }
                    div.card {
                        b { (short(&person.user)) }
                        form method="post" action={ (own) "/block" } {
                            @if person.block.is_none() {
                                p.note { "Mute: their messages do not count as unread. Block: you do not see their messages at all. "
                                    "They are not notified." }
                            }
                            @if person.block != Some(BlockKind::Mute) { button.quiet name="kind" value="mute" { "Mute" } }
                            @if person.block != Some(BlockKind::Block) { button.quiet name="kind" value="block" { "Block" } }
                            @if person.block.is_some() { button.quiet name="kind" value="none" { "Unblock or unmute" } }
                        }
                        @if may_invite {
                            form method="post" action={ (own) "/role" } {
                                label { "Role" select name="role" {
                                    @for word in ["reader", "member", "admin"] {
                                        option value=(word) selected[word == role] { (word) }
                                    }
                                } }
                                button.quiet { "Set role" }
                                details.really { summary { "Remove from the space" }
                                    p { "Their messages stay. They cannot sign in any more, and their name cannot be used again." }
                                    button.bad name="remove" value="1" { "Remove them" }
                                }
                            }
                        }
                    }
                }
            } @else { span.note { "you" } }
        }
    }
}

/// Inviting: a form, and the links that are out. One that was just made is shown, for the only time.
fn invitations_html(
    state: &ServerState,
    context: &RequestContext,
    space: &str,
    made: Option<&str>,
) -> Result<Markup, Problem> {
    let mut open = state.node.snapshot()?.invitations(&context.space()?)?;
    open.retain(|(_, invitation)| invitation.is_good(state.node.now()));
    open.sort_by_key(|(_, invitation)| std::cmp::Reverse(invitation.since));
    Ok(html! {
        section.card #invite {
            h2 { "Invite somebody" }
            @if let Some(made) = made {
                p role="status" { "Send this link to the person you want to invite. It is shown only once." }
                p { input.link readonly value=(made) aria-label="Invitation link"; }
            }
            form.row method="post" action={ "/s/" (space) "/invite" } {
                label { "As" select name="role" {
                    option value="member" { "member" } option value="reader" { "reader" } option value="admin" { "admin" }
                } }
                label { "Good for" select name="days" {
                    option value="1" { "a day" } option value="7" selected { "a week" } option value="30" { "a month" }
                } }
                label { "For how many" input type="number" name="uses" value="1" min="1" max="100"; }
                label { "Note" input name="note" maxlength="80" placeholder="for whom"; }
                button { "Make a link" }
            }
            @if !open.is_empty() {
                ul.plain { @for (hash, invitation) in &open {
                    li.row { span.grow {
                        (invitation.role().map(|role| role.to_string()).unwrap_or_default())
                        @if !invitation.note.is_empty() { " · " (invitation.note) }
                        " " span.note { "for " (invitation.uses_left) ", until " (time(invitation.ends_at.0))
                            ", by " (invitation.by) } }
                        form method="post" action={ "/s/" (space) "/uninvite" } {
                            button.quiet name="invitation" value=(hex::encode(hash)) { "Take back" } }
                    }
                } }
            }
        }
    })
}

/// An invitation to make.
#[derive(Debug, Deserialize)]
pub(crate) struct InviteForm {
    role: String,
    days: u64,
    uses: u32,
    #[serde(default)]
    note: String,
}

fn parse_role(word: &str) -> Result<MemberRole, Problem> {
    match word {
        "reader" => Ok(MemberRole::Reader),
        "member" => Ok(MemberRole::Member),
        "admin" => Ok(MemberRole::Admin),
        _ => Err(Problem::unprocessable("a role is reader, member or admin")),
    }
}

/// Makes a link and shows it.
pub(crate) async fn invite(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
    headers: HeaderMap,
    uri: Uri,
    FormFields(form): FormFields<InviteForm>,
) -> Result<Response, Problem> {
    let role = parse_role(&form.role)?;
    if !(1..=366).contains(&form.days) || !(1..=1000).contains(&form.uses) || form.note.chars().count() > 80 {
        return Err(Problem::unprocessable("an invitation is good for 1 to 366 days and 1 to 1,000 people"));
    }
    let (now, secret) = (state.node.now(), Secret::random()?);
    let by = context.session.as_ref().map(|session| session.user.clone()).unwrap_or_default();
    let invitation = Invitation::new(role, by, form.note, now, now.plus(form.days.saturating_mul(DAY)), form.uses);
    state
        .change_account(context.space()?, AccountCommand::Invite(context.caller.clone(), secret.hash, invitation))
        .await?;
    let scheme = if context.via.is_secure { "https" } else { "http" };
    let host = host(&headers, &uri).unwrap_or("localhost");
    let link = format!("{scheme}://{host}/join/{}", write_secret(&context.space()?.0, &secret));
    let body = html! {
        h1 { "People" }
        (invitations_html(&state, &context, &space, Some(&link))?)
        p { a href={ "/s/" (space) "/people" } { "Back to people" } }
    };
    Ok(PageFrame::new("People", NavItem::People, &context).of(&space).respond(&body))
}

/// An invitation to take back.
#[derive(Debug, Deserialize)]
pub(crate) struct UninviteForm {
    invitation: String,
}

/// Takes a link back.
pub(crate) async fn revoke_invitation(
    State(state): State<SharedState>,
    context: RequestContext,
    Path(space): Path<String>,
    FormFields(form): FormFields<UninviteForm>,
) -> Result<Response, Problem> {
    let mut hash = [0; 32];
    let unknown = |_| Problem::not_found("there is no such invitation");
    hex::decode_to_slice(form.invitation, &mut hash).map_err(unknown)?;
    state.change_account(context.space()?, AccountCommand::Uninvite(context.caller.clone(), hash)).await?;
    Ok(redirect_to(&format!("/s/{space}/people")))
}

/// Whether to block or mute somebody.
#[derive(Debug, Deserialize)]
pub(crate) struct DistanceForm {
    kind: String,
}

/// Blocks or mutes, or no longer.
pub(crate) async fn set_block(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, user)): Path<(String, String)>,
    FormFields(form): FormFields<DistanceForm>,
) -> Result<Response, Problem> {
    let kind = match form.kind.as_str() {
        "block" => Some(BlockKind::Block),
        "mute" => Some(BlockKind::Mute),
        "none" => None,
        _ => return Err(Problem::unprocessable("block, mute or none")),
    };
    state.set_block(context, user, kind).await?;
    Ok(redirect_to(&format!("/s/{space}/people")))
}

/// A role to give.
#[derive(Debug, Deserialize)]
pub(crate) struct RoleForm {
    role: String,
    remove: Option<String>,
}

/// Gives a role, or removes somebody.
pub(crate) async fn set_role(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, user)): Path<(String, String)>,
    FormFields(form): FormFields<RoleForm>,
) -> Result<Response, Problem> {
    let role = if form.remove.is_some() { None } else { Some(parse_role(&form.role)?) };
    context.refuse_changing_operator(&user)?;
    let id = context.space()?;
    if state.node.snapshot()?.user(&id, &user)?.is_none() {
        return Err(Problem::not_found("there is no such user"));
    }
    state.administer(&context, AdminCommand::SetRole { space: id, user, role, random: Box::new([0; 32]) }).await?;
    state.recheck_streams_of_space(&id)?;
    Ok(redirect_to(&format!("/s/{space}/people")))
}

/// Goes to the conversation with somebody, which is opened if there is none.
pub(crate) async fn open_direct_thread(
    State(state): State<SharedState>,
    context: RequestContext,
    Path((space, user)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let own = context.caller.user.clone().ok_or_else(|| Problem::forbidden("sign in as somebody"))?;
    let name = {
        let (db, space) = (state.node.snapshot()?, context.space()?);
        let identity = |name: &str| db.user(&space, name).map(|found| found.map(|user| user.identity.to_string()));
        // Whoever has never written has no identity yet; their name stands for them until then.
        let mut pair = [identity(&own)?.unwrap_or(own.clone()), identity(&user)?.unwrap_or(user.clone())];
        pair.sort();
        // Nobody else can know what it is called, and be there first.
        let hash = blake3::hash(format!("{space}\n{}", pair.join("\n")).as_bytes());
        let mut salt = [0; 16];
        salt.copy_from_slice(&hash.as_bytes()[..16]);
        format!("direct-{}", hex::encode(&state.node.store().secret_from(&salt)[..12]))
    };
    let known = {
        let db = state.node.snapshot()?;
        let viewer = context.read_as(&db, state.node.now())?;
        queries::visibility::find_thread(&db, &viewer, &name).is_ok()
    };
    if !known {
        let (chosen, participants) = (Some(name.clone()), vec![user]);
        let new = NewThread { chosen, participants, is_private: true, is_direct: true, fields: Map::new() };
        state.act(context, UserCommand::OpenThread(new)).await?;
    }
    Ok(redirect_to(&format!("/s/{space}/t/{name}")))
}
