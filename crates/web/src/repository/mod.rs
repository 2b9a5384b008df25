//! The pages of git repositories: files, history, differences, and what is discussed about them.
//!
//! Everything that they show is public, and written by strangers: texts are escaped, Markdown has no raw HTML, and files
//! themselves are served as plain text or as a download. [`open`] finds the repository that a path names, and runs the
//! programs that read it, within the limits of [`server::git_programs`].

pub(crate) mod changes;
pub(crate) mod commits;
pub(crate) mod discussions;
pub(crate) mod document;
pub(crate) mod files;
mod frame;
mod highlight;
mod languages;
pub(crate) mod list;
pub(crate) mod open;
pub(crate) mod raw;
