//! Who may see what, said as plainly as it is promised.

use std::collections::BTreeSet;

/// Something that happened.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(crate) name: &'static str,
    /// The private thread, the open one, or the space.
    pub(crate) thread: Option<bool>,
    /// Who did it; none for the keeper of the space.
    pub(crate) by: Option<usize>,
    /// Whose message it shows; none for that of the thread's last message, if it is about a thread.
    pub(crate) shows: Option<usize>,
    /// Its place in the journal.
    pub(crate) number: u64,
}

/// Who may see what, at one moment.
#[derive(Clone, Default)]
pub(crate) struct Rights {
    pub(crate) gone: BTreeSet<usize>,
    pub(crate) insiders: BTreeSet<usize>,
    pub(crate) blocks: BTreeSet<(usize, usize)>,
    /// Who wrote the last message of each thread.
    pub(crate) last: [Option<usize>; 2],
}

impl Rights {
    pub(crate) fn sees(&self, user: usize, told: &Told) -> bool {
        let is_private = told.thread == Some(true);
        let shows = match (told.name, told.thread) {
            ("thread.changed", Some(thread)) => self.last[usize::from(thread)],
            _ => told.shows,
        };
        let blocks = |other: Option<usize>| other.is_some_and(|other| self.blocks.contains(&(user, other)));
        !self.gone.contains(&user)
            && (!is_private || user == 0 || self.insiders.contains(&user))
            && !blocks(told.by)
            && !blocks(shows)
    }
}
