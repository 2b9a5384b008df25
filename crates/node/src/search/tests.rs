//! Search as it follows a node: what is shown is found, what is not is not, and the loop is the test itself.

use crate::commands::{
    AdminCommand, AdminRequest, AdminResult, Caller, CallerKind, CommandRequest, MessageRef, NewMessage, UserCommand,
    message_content,
};
use crate::fetch::hunter::NoSources;
use crate::search::*;
use crate::{Clock, NodeOptions};
use engine::access::KeyRole;
use engine::reads::Reads as _;
use model::{EventId, Position, Seq, SpaceId};
use proptest::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use store::{FolderDisk, MasterKey, Store};

/// A clock that moves a little whenever it is asked.
#[derive(Debug)]
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(1000, Ordering::Relaxed))
    }
}

struct Home {
    node: Node,
    clock: Arc<HandClock>,
    space: SpaceId,
    no: SpaceNo,
    folder: tempfile::TempDir,
}

impl Home {
    fn new() -> Home {
        let folder = tempfile::tempdir().expect("a folder");
        let disk = FolderDisk::new(folder.path()).expect("a disk");
        let store =
            Store::open(Arc::new(disk), MasterKey::new(&[5; 32]), store::StoreOptions::default()).expect("a store");
        let clock = Arc::new(HandClock(AtomicU64::new(1_800_000_000 * Nanos::SECOND)));
        let node = Node::start(store, clock.clone(), Arc::new(NoSources), NodeOptions::default());
        let what = AdminCommand::FoundSpace { name: "home".to_owned(), sealed: true, random: Box::new([1; 80]) };
        let founded = node.ask(AdminRequest::by("a test", what)).expect("a founded space");
        let AdminResult::Founded(space) = founded else { panic!("{founded:?}") };
        let no = node.snapshot().and_then(|db| db.space_no(&space)).expect("read").expect("a number");
        Home { node, clock, space, no, folder }
    }

    fn act(&self, kind: CallerKind, command: UserCommand) -> (EventId, Seq) {
        let user = (kind != CallerKind::Operator).then(|| "alice".to_owned());
        let caller = Caller { kind, user, audit_name: String::new() };
        let act =
            CommandRequest { space: self.space, caller, idempotency: None, expected: None, command, random: [3; 32] };
        let result = self.node.ask(act).expect("a result");
        (result.shown, result.seq)
    }

    fn say(&self, text: &str) -> (EventId, Seq) {
        let content = message_content(text.into(), None).expect("content");
        let thread = Some("lobby".parse().expect("a name"));
        let (mentions, attachments) = (Vec::new(), Vec::new());
        let message = NewMessage { thread, chosen: None, content, reply_to: None, mentions, attachments };
        self.act(CallerKind::Key(KeyRole::Backend), UserCommand::Post(message))
    }

    fn place(id: EventId) -> MessageRef {
        MessageRef { thread: None, message: id.to_string().parse().expect("a name") }
    }

    fn edit(&self, id: EventId, said: serde_json::Value) {
        let content = message_content(said, None).expect("content");
        self.act(CallerKind::Key(KeyRole::Backend), UserCommand::Edit(Home::place(id), content));
    }

    fn indexes(&self) -> PathBuf {
        self.folder.path().join("search")
    }

    fn searching(&self) -> Arc<SearchService> {
        let searching = SearchService::prepare(&self.node, self.indexes()).0;
        searching.catch_up().expect("caught up");
        searching
    }

    fn found(&self, searching: &SearchService, text: &str) -> Vec<Seq> {
        let query = IndexQuery { text: text.to_owned(), ..IndexQuery::default() };
        let mut found: Vec<Seq> =
            searching.search(self.no, &query, 100, 0).expect("hits").iter().map(|hit| hit.seq).collect();
        found.sort();
        found
    }

    /// Puts something into the index that the node does not have, and lets the index say that it is at a position.
    fn plant(&self, text: &str, position: Position) {
        let index = self.index();
        let author = model::Identity([0; 32]);
        let (title, text) = (String::new(), text.to_owned());
        index
            .put(&search::IndexedMessage { seq: PLANTED, thread: Seq(1), author, at: Nanos(1), title, text })
            .expect("put");
        index.commit(position).expect("committed");
    }

    fn index(&self) -> Index {
        let key = self.node.store().search_key(&self.space);
        Index::open(&self.indexes().join(self.space.to_string()), &key).expect("an index")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.node.stop();
    }
}

const PLANTED: Seq = Seq(1_000_000);

#[test]
fn what_is_shown_is_found() {
    let home = Home::new();
    let (first, one) = home.say("the first words");
    let searching = home.searching();
    let (second, two) = home.say("more words");
    assert_eq!(home.found(&searching, "words"), [one], "not before it was looked at");
    searching.catch_up().expect("caught up");
    assert_eq!(home.found(&searching, "words"), [one, two]);
    home.edit(first, serde_json::json!({ "title": "a plan", "items": ["of", { "x": "another kind" }] }));
    home.act(CallerKind::Key(KeyRole::Backend), UserCommand::DeleteMessage(Home::place(second)));
    searching.catch_up().expect("caught up");
    assert_eq!(home.found(&searching, "words"), []);
    assert_eq!(home.found(&searching, "another plan kin"), [one]);
    assert_eq!(home.found(&searching, "items"), [], "names of fields are not words");
}

#[test]
fn what_was_purged_leaves_the_index_and_then_its_files() {
    let home = Home::new();
    let (id, seq) = home.say("a canarybird");
    home.say("something that stays in the same file");
    let searching = home.searching();
    assert_eq!(home.found(&searching, "canarybird"), [seq]);
    home.act(CallerKind::Key(KeyRole::Admin), UserCommand::Purge(id));
    searching.catch_up().expect("caught up");
    assert_eq!(home.found(&searching, "canarybird"), []);
    let index = searching.shared.follower().indexes().remove(&home.no).expect("an index");
    let tend = || searching.shared.with_follower(IndexFollower::tend).expect("tended");
    assert!(tend().is_some() && index.has_removed_words().expect("read"));
    home.clock.0.fetch_add(61 * Nanos::SECOND, Ordering::Relaxed);
    assert_eq!(tend(), None, "there is nothing left to do");
    assert!(!index.has_removed_words().expect("read"));
}

#[test]
fn commits_are_a_second_apart() {
    let home = Home::new();
    let searching = home.searching();
    let tend = || searching.shared.with_follower(IndexFollower::tend).expect("tended");
    home.say("one word");
    home.clock.0.fetch_add(2 * Nanos::SECOND, Ordering::Relaxed);
    tend();
    assert_eq!(home.found(&searching, "word").len(), 1);
    home.say("two words");
    let due = tend().expect("something to do");
    assert_eq!(home.found(&searching, "word").len(), 1);
    assert!(due > home.node.now());
    home.clock.0.store(due.0, Ordering::Relaxed);
    tend();
    assert_eq!(home.found(&searching, "word").len(), 2);
}

#[test]
fn a_restart_goes_on_from_the_position() {
    let home = Home::new();
    let (_, one) = home.say("old words");
    drop(home.searching());
    let position = home.index().position().expect("a position");
    home.plant("planted words", position);
    let (_, two) = home.say("new words");
    assert_eq!(home.found(&home.searching(), "words"), [one, two, PLANTED]);
}

#[test]
fn a_position_that_the_journal_does_not_know_means_to_begin_anew() {
    let home = Home::new();
    let (_, one) = home.say("old words");
    drop(home.searching());
    let known = home.index().position().expect("a position");
    for unknown in [Position { number: known.number + 1000, ..known }, Position { epoch: known.epoch + 1, ..known }] {
        home.plant("planted words", unknown);
        assert_eq!(home.found(&home.searching(), "words"), [one], "{unknown}");
        assert_eq!(home.index().position(), Some(known));
    }
}

#[test]
fn an_index_that_fails_while_it_is_asked_is_made_anew() {
    let home = Home::new();
    let (_, one) = home.say("some words");
    let searching = home.searching();
    spoil(&home.indexes().join(home.space.to_string()));
    let query = IndexQuery { text: "words".to_owned(), ..IndexQuery::default() };
    let asked = searching.search(home.no, &query, 10, 0);
    assert!(matches!(asked, Err(SearchError::Search(IndexError::Damaged(_)))), "{asked:?}");
    searching.catch_up().expect("caught up");
    assert_eq!(home.found(&searching, "words"), [one]);
}

/// Changes every file in place, as a bad disk does.
fn spoil(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let bytes: Vec<u8> = std::fs::read(&path).expect("bytes").iter().map(|byte| !byte).collect();
        std::fs::write(&path, bytes).expect("written");
    }
}

#[test]
fn a_space_that_was_not_looked_at_yet_says_so() {
    let home = Home::new();
    home.say("words");
    let searching = SearchService::prepare(&home.node, home.indexes()).0;
    let query = IndexQuery { text: "words".to_owned(), ..IndexQuery::default() };
    assert!(matches!(searching.search(home.no, &query, 10, 0), Err(SearchError::NotReady)));
}

#[derive(Clone, Debug)]
enum Step {
    Say {
        word: u8,
    },
    Edit {
        which: usize,
        word: u8,
    },
    Delete {
        which: usize,
    },
    Purge {
        which: usize,
    },
    CatchUp,
    /// So many seconds pass, and the loop does what is due.
    Tend {
        seconds: u64,
    },
    /// A month passes, and the journal is trimmed.
    Month,
    /// The loop is gone, with what it had not committed.
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_u8).prop_map(|word| Step::Say { word }),
        3 => (any::<usize>(), 0..3_u8).prop_map(|(which, word)| Step::Edit { which, word }),
        2 => any::<usize>().prop_map(|which| Step::Delete { which }),
        2 => any::<usize>().prop_map(|which| Step::Purge { which }),
        2 => Just(Step::CatchUp),
        3 => (0..90_u64).prop_map(|seconds| Step::Tend { seconds }),
        1 => Just(Step::Month),
        2 => Just(Step::Crash),
    ]
}

const WORDS: [&str; 3] = ["apple", "pear", "plum"];

/// What is said, in the words that it is found by.
struct Said {
    id: EventId,
    seq: Seq,
    word: Option<u8>,
}

struct Trial {
    home: Home,
    searching: Arc<SearchService>,
    said: Vec<Said>,
}

impl Trial {
    fn pick(&mut self, which: usize) -> Option<&mut Said> {
        let among = self.said.len().max(1);
        self.said.get_mut(which % among).filter(|said| said.word.is_some())
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Say { word } => {
                let (id, seq) = self.home.say(WORDS[usize::from(word)]);
                self.said.push(Said { id, seq, word: Some(word) });
            }
            Step::Edit { which, word } => {
                if let Some(said) = self.pick(which) {
                    let id = said.id;
                    said.word = Some(word);
                    self.home.edit(id, WORDS[usize::from(word)].into());
                }
            }
            Step::Delete { which } => {
                if let Some(said) = self.pick(which) {
                    let place = Home::place(said.id);
                    said.word = None;
                    self.home.act(CallerKind::Key(KeyRole::Backend), UserCommand::DeleteMessage(place));
                }
            }
            Step::Purge { which } => {
                if let Some(said) = self.pick(which) {
                    let id = said.id;
                    said.word = None;
                    self.home.act(CallerKind::Key(KeyRole::Admin), UserCommand::Purge(id));
                }
            }
            Step::CatchUp => self.catch_up(),
            Step::Tend { seconds } => {
                self.home.clock.0.fetch_add(seconds * Nanos::SECOND, Ordering::Relaxed);
                self.searching.shared.with_follower(IndexFollower::tend).expect("tended");
            }
            Step::Month => {
                self.home.clock.0.fetch_add(31 * 24 * 3600 * Nanos::SECOND, Ordering::Relaxed);
                let now = self.home.node.now();
                let trimmed = self.home.node.store().write(now, |batch| batch.trim_journal(usize::MAX));
                trimmed.expect("trimmed");
            }
            Step::Crash => {
                self.searching = SearchService::prepare(&self.home.node, self.home.indexes()).0;
                self.catch_up();
            }
        }
    }

    /// What is found is what is said.
    fn catch_up(&self) {
        self.searching.catch_up().expect("caught up");
        // Threads of the loop before may still have the files, which a crash would have taken from them.
        while !self.searching.shared.follower().is_complete() {
            self.searching.catch_up().expect("caught up");
            std::thread::yield_now();
        }
        for (number, word) in WORDS.iter().enumerate() {
            let said = self.said.iter().filter(|said| said.word.is_some_and(|word| usize::from(word) == number));
            let seqs: Vec<Seq> = said.map(|said| said.seq).collect();
            assert_eq!(self.home.found(&self.searching, word), seqs, "{word}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_found_follows_what_is_said(steps in proptest::collection::vec(step(), 1..40)) {
        let home = Home::new();
        let searching = home.searching();
        let mut trial = Trial { home, searching, said: Vec::new() };
        for step in &steps {
            trial.take(step);
        }
        trial.catch_up();
    }
}
