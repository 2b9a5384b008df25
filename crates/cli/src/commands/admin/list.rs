//! Lists of `anteroom admin`: read page by page, to their end or to `--limit`.

use super::percent_encode;
use crate::context::Context;
use crate::failure::Failure;
use crate::json_table::JsonTable;
use crate::operator_client::OperatorClient;
use crate::output;
use clap::Args;
use http::Method;
use serde_json::{Value, json};

/// How much of a list is shown where nothing is said: more than anybody reads, less than would fill the memory.
const ROWS_DEFAULT: u64 = 1000;
/// How many rows one request asks for: what every list gives out at once.
const ROWS_PER_REQUEST: u64 = 200;

/// How much of a list is shown.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ListLength {
    /// Show at most this many
    #[arg(long, value_name = "N", default_value_t = ROWS_DEFAULT, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: u64,
}

/// A list of the admin API.
pub(super) struct AdminList {
    pub(super) path: &'static str,
    /// The name of its rows in the answer.
    pub(super) rows: &'static str,
    pub(super) limit: u64,
}

impl AdminList {
    /// All pages as one, with the `next` of the last.
    pub(super) fn read(&self, client: &OperatorClient, space: &str) -> Result<Value, Failure> {
        let mut rows: Vec<Value> = Vec::new();
        let mut cursor = String::new();
        loop {
            let wanted = (self.limit - rows.len() as u64).min(ROWS_PER_REQUEST);
            let path = format!("{}?limit={wanted}&cursor={}", self.path, percent_encode(&cursor));
            let mut page = client.send_json(Method::GET, &path, space, &json!({}))?;
            rows.extend(page[self.rows].as_array_mut().map(std::mem::take).unwrap_or_default());
            match page["next"].as_str() {
                Some(next) if (rows.len() as u64) < self.limit => cursor = next.to_owned(),
                _ => {
                    page[self.rows] = rows.into();
                    return Ok(page);
                }
            }
        }
    }
}

/// Prints a list, and says if there is more. As JSON, its `next` says so.
pub(super) fn print(context: &Context, mut document: Value, columns: &'static [&'static str]) -> Result<(), Failure> {
    let has_more = !context.json && !document["next"].is_null();
    if has_more {
        document["next"] = Value::Null;
    }
    context.print(&JsonTable { document, columns })?;
    if has_more {
        output::write_stderr("there are more; --limit N shows so many\n");
    }
    Ok(())
}
