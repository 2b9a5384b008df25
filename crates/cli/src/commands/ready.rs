//! `anteroom ready`: whether the node of this data folder reads and writes.

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

/// Check that the node is running and can write; for health checks
#[derive(Debug, Args)]
pub(crate) struct Ready {}

#[derive(Debug, Serialize)]
struct IsReady {
    ready: bool,
}

impl fmt::Display for IsReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("The node is ready.")
    }
}

impl Ready {
    pub(super) fn run(&self, context: &Context) -> CommandResult {
        let Some(client) = OperatorClient::find(context) else {
            return Err(Failure::new("no node is running in this data folder", "start it with `anteroom`"));
        };
        client.send_json(Method::GET, "/readyz", "", &json!({}))?;
        context.print(&IsReady { ready: true })?;
        Ok(ExitCode::SUCCESS)
    }
}
