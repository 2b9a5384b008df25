//! A command that is refused changes nothing, wherever it stood in its batch.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_node::commands::{
    AdminCommand, AdminRequest, AdminResult, Caller, CallerKind, CommandError, CommandRequest, MessageRef, NameOrId,
    NewMessage, UserCommand, message_content, reaction_content,
};
use anteroom_node::{AskError, WriterCore};
use engine::access::KeyRole;
use model::{EventId, Nanos, SpaceId};
use std::sync::Arc;
use store::{FolderDisk, KeySource, MasterKey, Store, StoreOptions};

const NOW: Nanos = Nanos(1_800_000_000 * Nanos::SECOND);

struct Home {
    core: WriterCore,
    space: SpaceId,
    _folder: tempfile::TempDir,
}

fn home() -> Home {
    let folder = tempfile::tempdir().unwrap();
    let disk = Arc::new(FolderDisk::new(folder.path()).unwrap());
    let options =
        StoreOptions { cache_bytes: 4 << 20, reserve_bytes: 0, random: KeySource::Seed(1), ..StoreOptions::default() };
    let core = WriterCore::new(Store::open(disk, MasterKey::new(&[7; 32]), options).unwrap());
    let what = AdminCommand::FoundSpace { name: "home".into(), sealed: true, random: Box::new([3; 80]) };
    let founded = core.ask(AdminRequest::by("a test", what), NOW).unwrap();
    let AdminResult::Founded(space) = founded else { panic!("{founded:?}") };
    Home { core, space, _folder: folder }
}

impl Home {
    fn by(&self, user: &str, command: UserCommand) -> CommandRequest {
        let kind = CallerKind::Key(KeyRole::Backend);
        let caller = Caller { kind, user: Some(user.to_owned()), audit_name: "a test".to_owned() };
        let random = *blake3::hash(user.as_bytes()).as_bytes();
        CommandRequest { space: self.space, caller, idempotency: None, command, random }
    }

    fn post(&self, user: &str, text: &str) -> CommandRequest {
        let thread = Some(NameOrId::Chosen("lobby".to_owned()));
        let content = message_content(text.into(), None).unwrap();
        let (mentions, attachments) = (Vec::new(), Vec::new());
        let new = NewMessage { thread, chosen: None, content, reply_to: None, mentions, attachments };
        self.by(user, UserCommand::Post(new))
    }

    /// A reaction to a message that is not there, by somebody whom a first write would admit.
    fn react_to_nothing(&self, user: &str) -> CommandRequest {
        let message = MessageRef { thread: None, message: NameOrId::Event(EventId([9; 16])) };
        self.by(user, UserCommand::React(message, reaction_content("+").unwrap()))
    }

    fn is_user(&self, user: &str) -> bool {
        self.core.store().snapshot().unwrap().user(&self.space, user).unwrap().is_some()
    }

    fn position(&self) -> u64 {
        self.core.store().snapshot().unwrap().position().unwrap().number
    }
}

fn is_unknown<T>(answer: &Result<T, AskError<CommandError>>) -> bool {
    matches!(answer, Err(AskError::Refused(CommandError::Unknown("message"))))
}

#[test]
fn a_refused_command_admits_nobody() {
    let home = home();
    let before = home.position();
    let answer = home.core.ask(home.react_to_nothing("mallory"), NOW);
    assert!(is_unknown(&answer), "{answer:?}");
    assert_eq!((home.is_user("mallory"), home.position()), (false, before));
}

#[test]
fn the_commands_around_a_refused_one_are_done_once_and_in_order() {
    let home = home();
    let commands = vec![
        home.post("alice", "first"),
        home.react_to_nothing("mallory"),
        home.react_to_nothing("alice"),
        home.post("bob", "second"),
        home.react_to_nothing("trudy"),
    ];
    let answers = home.core.run(commands, NOW).unwrap().answers;
    let seqs: Vec<Option<u64>> = answers.iter().map(|answer| answer.as_ref().ok().map(|done| done.seq.0)).collect();
    assert!([1, 2, 4].iter().all(|number: &usize| is_unknown(&answers[*number])), "{answers:?}");
    assert!(seqs[0].is_some() && seqs[0] < seqs[3], "{answers:?}");
    assert_eq!(["alice", "bob", "mallory", "trudy"].map(|user| home.is_user(user)), [true, true, false, false]);
    let db = home.core.store().snapshot().unwrap();
    let no = engine::reads::Reads::space_no(&*db, &home.space).unwrap().unwrap();
    let (_, thread) = db.chosen(no, "lobby").unwrap().unwrap();
    assert_eq!(db.timeline(thread, model::Stamp::LAST, 10).unwrap().len(), 2, "each message is there once");
    drop(db);
    assert_eq!(home.core.store().verify(NOW).unwrap().problems, Vec::<String>::new());
}
