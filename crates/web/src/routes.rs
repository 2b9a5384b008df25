//! The table of all pages: method, path, what it does as far as access is concerned, and its handler.

#[cfg(feature = "passkeys")]
use crate::passkeys;
use crate::plots::{self, Plots};
use crate::problem_pages::render_problems_as_html;
use crate::repository::{commits, discussions, files, list as repositories, raw};
use crate::state::WebState;
use crate::{
    account, assets, attachments, file_form, files as file_pages, form_replay, message, operator, people, reports,
    searching, sign_in, thread, threads, waiting,
};
use axum::middleware::{from_fn, from_fn_with_state};
use engine::access::Action::{Administer, Change, Look, Operate, Own, Read, Write};
use server::app::authenticated;
use server::background::{BackgroundTask, OnEnd};
use server::routes::{Route, RouteRule};
use server::{AppPart, ServerState, SharedState};
use std::sync::Arc;
use std::time::Duration;

/// Signing in and out, invitations, and one's own account.
fn account_pages() -> Vec<Route<WebState>> {
    Vec::from([
        Route::get("/", Look, sign_in::show_home),
        Route::get("/assets/{hash}/{file}", Look, assets::get),
        Route::get("/in", Look, sign_in::show_form),
        Route::post("/in", Look, sign_in::sign_in),
        Route::get("/in/{link}", Look, sign_in::show_operator_link),
        Route::post("/in/{link}", Look, sign_in::use_operator_link),
        Route::get("/join/{link}", Look, sign_in::show_invitation),
        Route::post("/join/{link}", Look, sign_in::join),
        Route::post("/out", Look, sign_in::sign_out),
        Route::get("/me", Own, account::show),
        Route::post("/me/password", Own, account::change_password),
        Route::post("/me/profile", Own, account::change_profile),
        Route::post("/me/picture", Own, account::change_picture),
        Route::post("/me/sessions", Own, account::end_sessions),
        #[cfg(feature = "passkeys")]
        Route::post("/passkey", Look, passkeys::sign_in),
        #[cfg(feature = "passkeys")]
        Route::post("/passkey/begin", Look, passkeys::begin_signing_in),
        #[cfg(feature = "passkeys")]
        Route::post("/join/{link}/passkey", Look, passkeys::join),
        #[cfg(feature = "passkeys")]
        Route::post("/join/{link}/passkey/begin", Look, passkeys::begin_joining),
        #[cfg(feature = "passkeys")]
        Route::post("/me/passkey", Own, passkeys::add),
        #[cfg(feature = "passkeys")]
        Route::post("/me/passkey/begin", Own, passkeys::begin_adding),
        #[cfg(feature = "passkeys")]
        Route::post("/me/passkey/forget", Own, passkeys::forget),
    ])
}

/// How long an upload may take.
const UPLOAD: Duration = Duration::from_secs(24 * 3600);

/// What people do in a space.
fn space_pages() -> Vec<Route<WebState>> {
    Vec::from([
        Route::get("/s/{space}", Read, threads::list),
        Route::post("/s/{space}", Write, threads::open),
        Route::get("/s/{space}/picture/{user}", Read, account::show_picture),
        Route::get("/s/{space}/search", Read, searching::show_results),
        Route::get("/s/{space}/mentions", Own, searching::list_mentions),
        Route::get("/s/{space}/reports", Administer, reports::list),
        Route::post("/s/{space}/reports", Administer, reports::settle),
        Route::get("/s/{space}/t/{thread}", Read, thread::show),
        Route::post("/s/{space}/t/{thread}", Write, thread::post_message),
        Route::get("/s/{space}/t/{thread}/part", Read, thread::show_messages),
        Route::post("/s/{space}/t/{thread}/file", Write, file_form::attach).with_timeout(UPLOAD),
        Route::post("/s/{space}/t/{thread}/attached", Write, file_form::attach_uploaded),
        Route::get("/s/{space}/f/{file}", Read, attachments::show),
        Route::get("/s/{space}/files", Read, file_pages::list),
        Route::get("/s/{space}/files/{file}", Read, file_pages::show),
        Route::post("/s/{space}/files/{file}/change", Change, file_pages::change),
        Route::post("/s/{space}/t/{thread}/read", Own, thread::mark_read),
        Route::post("/s/{space}/t/{thread}/change", Change, thread::change),
        Route::get("/s/{space}/m/{id}", Read, message::show),
        Route::get("/s/{space}/m/{id}/part", Read, message::show_article),
        Route::post("/s/{space}/m/{id}/edit", Change, message::edit),
        Route::post("/s/{space}/m/{id}/delete", Change, message::delete),
        Route::post("/s/{space}/m/{id}/pin", Change, message::toggle_pin),
        Route::post("/s/{space}/m/{id}/react", Write, message::react),
        Route::post("/s/{space}/m/{id}/report", Own, message::report),
        Route::get("/s/{space}/people", Read, people::list),
        Route::post("/s/{space}/people/{user}/talk", Write, people::open_direct_thread),
        Route::post("/s/{space}/people/{user}/block", Own, people::set_block),
        Route::post("/s/{space}/people/{user}/role", Administer, people::set_role),
        Route::post("/s/{space}/invite", Administer, people::invite),
        Route::post("/s/{space}/uninvite", Administer, people::revoke_invitation),
    ])
}

/// What the operator sees of the node.
fn operator_pages() -> Vec<Route<WebState>> {
    Vec::from([
        Route::get("/anteroom", Operate, waiting::list),
        Route::post("/anteroom", Operate, waiting::retry),
        Route::get("/anteroom/{event}", Operate, waiting::explain_event),
        Route::get("/inside", Operate, operator::show_status),
        Route::get("/inside/keys", Operate, operator::explore_keys),
        Route::get("/inside/event/{event}", Operate, operator::show_event),
        Route::get("/inside/jobs", Operate, operator::list_jobs),
        Route::get("/inside/files", Operate, operator::files::show_files),
        Route::post("/inside/files", Operate, operator::files::retry_file),
        Route::get("/inside/audit", Operate, operator::show_audit_log),
        Route::get("/inside/settings", Operate, operator::show_settings),
    ])
}

/// Git repositories. Whatever is here begins with the key of somebody, so that no other path is taken for one.
fn repository_pages() -> Vec<Route<WebState>> {
    Vec::from([
        Route::get("/repositories", Look, repositories::list),
        Route::get("/npub1{owner}/{repository}", Look, files::show_repository),
        Route::get("/npub1{owner}/{repository}/files", Look, files::show),
        Route::get("/npub1{owner}/{repository}/raw", Look, raw::show_file),
        Route::get("/npub1{owner}/{repository}/archive", Look, raw::send_archive),
        Route::get("/npub1{owner}/{repository}/commits", Look, commits::list),
        Route::get("/npub1{owner}/{repository}/commit/{commit}", Look, commits::show),
        Route::get("/npub1{owner}/{repository}/commit/{commit}/patch", Look, raw::send_patch),
        Route::get("/npub1{owner}/{repository}/branches", Look, commits::list_branches),
        Route::get("/npub1{owner}/{repository}/issues", Look, discussions::list_issues),
        Route::get("/npub1{owner}/{repository}/issues/{id}", Look, discussions::show_issue),
        Route::get("/npub1{owner}/{repository}/pulls", Look, discussions::list_pull_requests),
        Route::get("/npub1{owner}/{repository}/pulls/{id}", Look, discussions::show_pull_request),
    ])
}

fn all() -> Vec<Route<WebState>> {
    [account_pages(), space_pages(), operator_pages()].into_iter().flatten().collect()
}

/// The pages, behind authentication, and the task that takes figures for plots.
pub fn part(state: &Arc<ServerState>) -> AppPart {
    let server = SharedState(state.clone());
    let plots = Arc::new(Plots::default());
    let web = WebState::new(server.clone(), plots.clone());
    let replay = from_fn_with_state(server.clone(), form_replay::keep);
    let inner = |router: axum::Router<WebState>| router.route_layer(replay);
    let router = authenticated(&server, web, all(), inner, Some(form_replay::keep_of_refused));
    let task = BackgroundTask::new("plots", OnEnd::GoOn, plots::take_samples(Arc::downgrade(state), plots));
    AppPart { router: router.layer(from_fn(render_problems_as_html)), tasks: vec![task] }
}

/// The pages of git repositories, where the node hosts some.
pub fn repository_part(state: &Arc<ServerState>) -> AppPart {
    let server = SharedState(state.clone());
    let web = WebState::new(server.clone(), Arc::default());
    let router = authenticated(&server, web, repository_pages(), |router| router, None);
    AppPart { router: router.layer(from_fn(render_problems_as_html)), tasks: Vec::new() }
}

/// What is asked of a request to each page before its handler runs.
pub fn rules() -> Vec<RouteRule> {
    all().into_iter().chain(repository_pages()).map(|route| route.rule).collect()
}
