//! The pages without a browser, on a real node; the API is there to set the scene.

mod access;
mod assets;
mod files;
mod hostile;
mod pages;
#[cfg(feature = "passkeys")]
mod passkeys;

use server::test_support::TestServer;
use server::{App, ServerOptions, ServerState};
use std::sync::Arc;

/// A server with the pages, and the API beside them.
pub(super) struct Home(TestServer);

impl std::ops::Deref for Home {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.0
    }
}

fn app(state: Arc<ServerState>) -> App {
    let app = App::new(state.clone()).with(api::part(&state)).with(crate::part(&state));
    let app = app.with(crate::repository_part(&state));
    app.with_fallback(crate::answer_unknown_path)
}

impl Home {
    pub(super) fn new() -> Home {
        Home::with(TestServer::generous_options())
    }

    pub(super) fn with(options: ServerOptions) -> Home {
        Home::on(options, store::StoreOptions::default())
    }

    pub(super) fn on(options: ServerOptions, stored: store::StoreOptions) -> Home {
        Home(TestServer::new(app, options, stored))
    }
}
