//! A node's writer over a folder, one sealed space, and users who act in it.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part of it")]

use anteroom_node::commands::files::{FileCommand, FileRequest, NewFile, UploadForm, UploadedBytes};
use anteroom_node::commands::{
    AdminCommand, AdminRequest, AdminResult, Caller, CallerKind, CommandError, CommandRequest, CommandResult,
    MessageRef, NameOrId, NewMessage, UserCommand, message_content, reaction_content,
};
use anteroom_node::files::reading::{FileReader, as_fault};
use anteroom_node::large_content::StagedContent;
use anteroom_node::{AskError, WriterCore};
use engine::Policy;
use engine::access::KeyRole;
use engine::reads::{Reads as _, StoreResult};
use model::payload::MemberRole;
use model::{EventId, FileId, Nanos, Seq, SpaceId};
use objects::{ContentWriter, WriteForm};
use std::path::Path;
use std::sync::Arc;
use store::shared::files::FileRecord;
use store::tables::Snapshot;
use store::{Db, FolderDisk, KeySource, MasterKey, Store, StoreOptions};

pub const NOW: Nanos = Nanos(1_800_000_000 * Nanos::SECOND);

pub type Answer = Result<CommandResult, AskError<CommandError>>;

pub struct Home {
    pub core: WriterCore,
    pub space: SpaceId,
    /// Every byte of the master key that the folder is opened with.
    pub master: u8,
    _folder: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Home {
        Home::with_policy(Policy::default())
    }

    pub fn with_policy(policy: Policy) -> Home {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(FolderDisk::new(folder.path()).unwrap());
        let options = StoreOptions { policy, cache_bytes: 4 << 20, reserve_bytes: 0, random: KeySource::Seed(1) };
        let core = WriterCore::new(Store::open(disk, MasterKey::new(&[7; 32]), options).unwrap());
        let mut home = Home { core, space: SpaceId::ZERO, master: 7, _folder: folder };
        home.space = home.found("home", 3);
        home
    }

    /// Closes it, and leaves the folder.
    pub fn into_folder(self) -> tempfile::TempDir {
        drop(self.core);
        self._folder
    }

    /// Closes it and opens it again.
    pub fn reopen(self) -> Home {
        let (space, master) = (self.space, self.master);
        Home::open(self.into_folder(), space, master)
    }

    /// Kills it and starts it again: what is on disk at this moment is all that is left.
    pub fn crash(self) -> Home {
        let left = tempfile::tempdir().unwrap();
        copy_folder(self._folder.path(), left.path());
        Home::open(left, self.space, self.master)
    }

    pub fn open(folder: tempfile::TempDir, space: SpaceId, master: u8) -> Home {
        let disk = Arc::new(FolderDisk::new(folder.path()).unwrap());
        let core = WriterCore::new(Store::open(disk, MasterKey::new(&[master; 32]), options()).unwrap());
        Home { core, space, master, _folder: folder }
    }

    pub fn folder(&self) -> &Path {
        self._folder.path()
    }

    /// The thread of a message.
    pub fn subject_of(&self, db: &Db<Snapshot>, seq: Seq) -> EventId {
        let meta = db.event(seq).unwrap().unwrap().meta.unwrap();
        db.event(meta.subject.unwrap()).unwrap().unwrap().id
    }

    /// Whether the content of a message was deleted for ever.
    pub fn is_purged(&self, id: EventId) -> bool {
        let db = self.core.store().snapshot().unwrap();
        let row = db.event(db.seq(&id).unwrap().unwrap()).unwrap().unwrap();
        matches!(row.content, model::ContentState::Deleted { .. })
    }

    pub fn time_of(&self, db: &Db<Snapshot>, seq: Seq) -> u64 {
        db.event(seq).unwrap().unwrap().meta.unwrap().at.0
    }

    /// When the version of a message that is shown was written.
    pub fn version_of(&self, db: &Db<Snapshot>, id: EventId) -> u64 {
        let seq = db.seq(&id).unwrap().unwrap();
        db.message_by_seq(seq).unwrap().unwrap().version.at.0
    }

    pub fn found(&self, name: &str, random: u8) -> SpaceId {
        self.found_space(name, true, random)
    }

    pub fn found_open(&self, name: &str, random: u8) -> SpaceId {
        self.found_space(name, false, random)
    }

    fn found_space(&self, name: &str, sealed: bool, random: u8) -> SpaceId {
        let what = AdminCommand::FoundSpace { name: name.to_owned(), sealed, random: Box::new([random; 80]) };
        match self.administer(what) {
            AdminResult::Founded(space) => space,
            other => panic!("{other:?}"),
        }
    }

    pub fn administer(&self, what: AdminCommand) -> AdminResult {
        self.core.ask(AdminRequest::by("a test", what), NOW).unwrap()
    }

    pub fn make_admin(&self, user: &str) {
        let (user, role) = (user.to_owned(), Some(MemberRole::Admin));
        let random = Box::new(*blake3::hash(user.as_bytes()).as_bytes());
        self.administer(AdminCommand::SetRole { space: self.space, user, role, random });
    }

    /// Uploads a file, into an object whatever its size.
    pub fn upload(&self, user: &str, file: FileId, bytes: &[u8]) -> FileRecord {
        upload(&self.core, &self.space, &caller(user), file, bytes, NOW)
    }

    pub fn by(&self, user: &str, command: UserCommand) -> CommandRequest {
        let random = *blake3::hash(user.as_bytes()).as_bytes();
        CommandRequest { space: self.space, caller: caller(user), idempotency: None, expected: None, command, random }
    }

    pub fn ask(&self, user: &str, command: UserCommand) -> Answer {
        self.core.ask(self.by(user, command), NOW)
    }

    pub fn posting(&self, user: &str, text: &str) -> CommandRequest {
        let thread = Some(NameOrId::Chosen("lobby".to_owned()));
        let content = message_content(text.into(), None).unwrap();
        let (mentions, attachments) = (Vec::new(), Vec::new());
        let new = NewMessage { thread, chosen: None, content, reply_to: None, mentions, attachments };
        self.by(user, UserCommand::Post(new))
    }

    /// Posts into the lobby, which the first message opens.
    pub fn post(&self, user: &str, text: &str) -> EventId {
        self.core.ask(self.posting(user, text), NOW).unwrap().shown
    }

    pub fn is_user(&self, user: &str) -> bool {
        self.core.store().snapshot().unwrap().user(&self.space, user).unwrap().is_some()
    }

    pub fn position(&self) -> u64 {
        self.core.store().snapshot().unwrap().position().unwrap().number
    }

    /// Does what is left to do, and checks every row against its rules.
    pub fn verify(&self) {
        self.core.settle(NOW).unwrap();
        assert_eq!(self.core.store().verify(NOW).unwrap().problems, Vec::<String>::new());
    }
}

pub fn options() -> StoreOptions {
    StoreOptions { cache_bytes: 4 << 20, reserve_bytes: 0, random: KeySource::Seed(1), ..StoreOptions::default() }
}

fn copy_folder(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let into = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&into).unwrap();
            copy_folder(&entry.path(), &into);
        } else {
            std::fs::copy(entry.path(), into).unwrap();
        }
    }
}

pub fn caller(user: &str) -> Caller {
    let kind = CallerKind::Key(KeyRole::Backend);
    Caller { kind, user: Some(user.to_owned()), audit_name: "a test".to_owned() }
}

pub fn message(id: EventId) -> MessageRef {
    MessageRef { thread: None, message: NameOrId::Event(id) }
}

pub fn edit(id: EventId) -> UserCommand {
    UserCommand::Edit(message(id), message_content("edited".into(), None).unwrap())
}

pub fn react(id: EventId) -> UserCommand {
    UserCommand::React(message(id), reaction_content("+1").unwrap())
}

/// Uploads a file as a running node does, into an object whatever its size.
pub fn upload(
    core: &WriterCore,
    space: &SpaceId,
    caller: &Caller,
    file: FileId,
    bytes: &[u8],
    now: Nanos,
) -> FileRecord {
    let random = *blake3::hash(caller.user.as_deref().unwrap_or_default().as_bytes()).as_bytes();
    let ask = |command| {
        let (space, caller) = (*space, caller.clone());
        core.ask(FileRequest { space, caller, file, command, idempotency: None, random }, now).unwrap()
    };
    let new = NewFile { name: format!("{file}.bin"), ..NewFile::default() };
    let place = ask(FileCommand::Receive(Some(new))).place.unwrap();
    let form = match place.form {
        UploadForm::Sealed(key) => WriteForm::Sealed(key),
        UploadForm::Encrypted(key) => WriteForm::Encrypted(key),
    };
    let backend = core.store().disk().objects();
    let mut writer = ContentWriter::new(backend.as_ref(), place.object, form, u64::MAX).unwrap();
    writer.write(bytes).unwrap();
    let written = writer.finish().unwrap();
    let uploaded = UploadedBytes {
        content: StagedContent::Object(place.object, written.len),
        hash: written.hash,
        len: written.len,
        size: written.plain_len,
        media_type: None,
        is_renderable: false,
        by_link: None,
    };
    ask(FileCommand::Finish(None, uploaded)).record
}

/// The bytes of a file, if they can be read.
pub fn read_file(db: &Db<Snapshot>, space: &SpaceId, file: FileId) -> StoreResult<Option<Vec<u8>>> {
    let Some(record) = db.file(space, file)? else { return Ok(None) };
    let content = db.file_version(space, file, record.version)?.and_then(|row| row.content);
    let (Some(content), Some(no)) = (content, db.space_no(space)?) else { return Ok(None) };
    let Some(mut reader) = FileReader::open(db, (space, no), &content)? else { return Ok(None) };
    let mut bytes = Vec::new();
    let read = reader.read::<objects::ObjectError>(0..u64::MAX, &mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    });
    read.map(|()| Some(bytes)).map_err(|why| as_fault(&why))
}
