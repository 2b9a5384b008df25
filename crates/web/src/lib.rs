//! Web pages: everything that people see in a browser. See docs/PAGES.md.
//!
//! [`routes`] is the table of all pages. Handlers read with `queries` and hand commands to the node's writer, as the API
//! does, behind the same authentication; what is here is HTML, and how people sign in.
//!
//! Deliberately absent: JSON for programs, authentication, who sees what, decisions about events.

mod account;
mod article;
mod assets;
mod attachments;
#[cfg(feature = "passkeys")]
mod challenges;
mod fetching;
mod file_form;
mod files;
mod form_replay;
mod html_messages;
mod markdown;
mod message;
mod names;
mod operator;
#[cfg(feature = "passkeys")]
mod passkeys;
mod passwords;
mod people;
mod plots;
mod problem_pages;
mod reports;
mod repository;
mod routes;
mod searching;
mod shell;
mod sign_in;
mod state;
mod summaries;
mod thread;
mod threads;
mod waiting;

#[cfg(test)]
mod tests;

pub use problem_pages::answer_unknown_path;
pub use routes::{part, repository_part, rules};
