//! Reading what a repository has, for people: folders, files, history and differences.
//!
//! Everything is bounded, because whoever may push decides what is read: how much of an answer is taken (the program is
//! ended when it says more), how long a program may compute, and which files are large enough to be passed over by
//! comparisons. Names and texts that are not UTF-8 are shown as well as they can be.

mod bounded;
mod compare;
mod history;
mod tree;

pub use bounded::BoundedText;
pub use compare::{ChangeKind, ChangedFile, Comparison};
pub use history::{Commit, History};
pub use tree::{Folder, FolderEntry, FoundPath, PathKind};
