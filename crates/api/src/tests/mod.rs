//! The API as clients meet it: a real node in a folder of its own, asked through the router.

mod access;
mod backups;
mod bulk;
mod conditions;
mod conversations;
mod declared;
mod explorer;
mod external_signing;
mod files;
mod hostile;
mod hostile_http1;
mod hostile_http2;
mod live;
mod load;
mod metrics;
mod openapi;
mod people;
mod progressdb;
mod repeating;
mod rules;
#[cfg(feature = "search")]
mod search;
mod tls;
mod upkeep;
mod webhooks;

use server::test_support::TestServer;
use server::{App, ServerOptions, ServerState};
use std::sync::Arc;

/// A server with the routes of this crate.
pub(super) struct Home(TestServer);

impl std::ops::Deref for Home {
    type Target = TestServer;

    fn deref(&self) -> &TestServer {
        &self.0
    }
}

fn app(state: Arc<ServerState>) -> App {
    App::new(state.clone()).with(crate::part(&state))
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
