//! `anteroom link`: creates a sign-in link for the operator.

use super::CommandResult;
use crate::context::Context;
use crate::failure::Failure;
use crate::operator_client::OperatorClient;
use clap::Args;
use http::Method;
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::process::ExitCode;

/// Create a link that signs you in to the web page of the running node as its operator
///
/// The link can be used once, within 24 hours.
#[derive(Debug, Args)]
pub(crate) struct Link {}

#[derive(Debug, Serialize)]
struct CreatedLink {
    link: String,
}

impl fmt::Display for CreatedLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.link)
    }
}

impl Link {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let Some(client) = OperatorClient::find(context) else {
            return Err(Failure::new(
                "no node is running in this data folder",
                "start it with `anteroom`, which prints a link",
            ));
        };
        let made = client.send_json(Method::POST, "/admin/links", "", &json!({}))?;
        let path = made["path"].as_str().unwrap_or_default();
        context.print(&CreatedLink { link: format!("{}{path}", client.public_url()) })?;
        Ok(ExitCode::SUCCESS)
    }
}
