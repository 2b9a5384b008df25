//! `anteroom link`: a link by which the operator signs in to the pages.

use super::Done;
use crate::context::Context;
use crate::failure::Failure;
use crate::operator_client::Remote;
use clap::Args;
use http::Method;
use serde::Serialize;
use serde_json::json;
use std::fmt;
use std::process::ExitCode;

/// Make a link by which you, the operator, sign in to the web page of the node that runs
///
/// It is good once, and for a day.
#[derive(Debug, Args)]
pub(crate) struct Link {}

#[derive(Debug, Serialize)]
struct Made {
    link: String,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.link)
    }
}

impl Link {
    pub(super) fn run(&self, context: &Context) -> Done {
        let Some(remote) = Remote::find(context) else {
            return Err(Failure::new(
                "no node runs in this data folder",
                "start it with `anteroom`, which prints a link",
            ));
        };
        let made = remote.ask(Method::POST, "/admin/links", "", &json!({}))?;
        let path = made["path"].as_str().unwrap_or_default();
        context.show(&Made { link: format!("{}{path}", remote.url()) })?;
        Ok(ExitCode::SUCCESS)
    }
}
