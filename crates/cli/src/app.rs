//! The application that the binary serves: the API and the pages on one server, and the relay and git beside them.

use node::git::GitService;
use server::{App, ServerState};
use std::sync::Arc;

/// The API and the pages; a path that neither has answers with a page for people, and a problem for programs.
pub(crate) fn app(state: &Arc<ServerState>) -> App {
    App::new(state.clone()).with(api::part(state)).with(web::part(state)).with_fallback(web::answer_unknown_path)
}

/// The same with a Nostr relay at `/`, and the git repositories that are announced to it.
pub(crate) fn app_with_git(state: &Arc<ServerState>, git: Arc<GitService>, gathers: bool) -> App {
    let (access, outbound) = (git.access().clone(), git.sources.outbound().clone());
    let pages = app(state).with(web::repository_part(state));
    let gatherer = gathers.then_some(outbound);
    relay::with_relay(git_http::with_git(pages, state, git), state, access, gatherer)
}
