//! The application that the binary serves: the API and the pages on one server.

use server::{App, ServerState};
use std::sync::Arc;

/// The API and the pages; a path that neither has answers with a page for people, and a problem for programs.
pub(crate) fn app(state: &Arc<ServerState>) -> App {
    App::new(state.clone()).with(api::part(state)).with(web::part(state)).with_fallback(web::answer_unknown_path)
}
