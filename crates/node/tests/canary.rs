//! A distinctive text is said in every way there is, and no file of the data folder or of a backup shows it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use anteroom_node::acts::{
    Act, Administered, Administration, Caller, Deed, Means, Named, NewMessage, NewThread, message_content,
};
use anteroom_node::{Core, Reply, Request};
use engine::Policy;
use engine::access::KeyRole;
use model::{Nanos, SpaceId};
use serde_json::{Map, json};
use std::path::Path;
use std::sync::Arc;
use store::views::Shown;
use store::{Chance, FolderDisk, MasterKey, Options, Protection, Store};

const CANARY: &str = "yellow-canary-9f31";
const NOW: Nanos = Nanos(1_800_000_000 * Nanos::SECOND);

struct Cage {
    core: Core,
    space: SpaceId,
    folder: tempfile::TempDir,
}

impl Cage {
    fn new(sealed: bool) -> Cage {
        let folder = tempfile::tempdir().unwrap();
        // Bodies have at most 64 KiB, so that files begin lower here.
        let policy = Policy { row_content_bytes_max: 16 << 10, ..Policy::default() };
        let options = Options { policy, cache_bytes: 4 << 20, reserve_bytes: 0, chance: Chance::Seed(1) };
        let disk = Arc::new(FolderDisk::new(&folder.path().join("data")).unwrap());
        let core = Core::new(Store::open(disk, MasterKey::new(&[7; 32]), options).unwrap());
        let found = Administration::FoundSpace { name: CANARY.into(), sealed, fresh: Box::new([3; 80]) };
        let reply = ask(&core, Request::Administer("an operator".into(), Box::new(found)));
        let Reply::Administered(Ok(Administered::Founded(space))) = reply else { panic!("{reply:?}") };
        Cage { core, space, folder }
    }

    fn act(&self, deed: Deed) {
        let user = Some(CANARY.to_owned());
        let caller = Caller { means: Means::Key(KeyRole::Backend), user, called: "a key".into() };
        let act = Act { space: self.space, caller, once: None, deed, fresh: [9; 32] };
        let reply = ask(&self.core, Request::Act(Box::new(act)));
        assert!(matches!(reply, Reply::Acted(Ok(_))), "{reply:?}");
    }

    /// A thread with a title, and messages that rest inline, in a row and in a file.
    fn sing(&self) {
        let fields = Map::from_iter([("title".to_owned(), CANARY.into())]);
        let chosen = Some(CANARY.to_owned());
        self.act(Deed::OpenThread(NewThread { chosen, fields, ..NewThread::default() }));
        for times in [1, 600, 2500] {
            let content = message_content(json!({ "text": CANARY.repeat(times) }), None).unwrap();
            let thread = Some(Named::Chosen(CANARY.into()));
            let (chosen, reply_to) = (None, None);
            let (mentions, attachments) = (vec![CANARY.to_owned()], Vec::new());
            self.act(Deed::Post(NewMessage { thread, chosen, content, reply_to, mentions, attachments }));
        }
        self.core.settle(NOW).unwrap();
    }

    fn said(&self) -> Vec<usize> {
        let db = self.core.store().snapshot().unwrap();
        let no = engine::reads::Reads::space_no(&*db, &self.space).unwrap().unwrap();
        let (_, thread) = db.threads(no, model::Stamp::FIRST, 9).unwrap()[0];
        let page = db.timeline(thread, model::Stamp::LAST, 9).unwrap();
        let length = |shown: &Shown| match shown {
            Shown::Here(bytes) => count(bytes),
            other => panic!("{other:?}"),
        };
        page.iter().map(|message| length(&message.content)).collect()
    }

    /// How often the text stands in the files of the data folder, and in those of a new backup.
    fn heard(&self) -> (usize, usize) {
        let backup = self.folder.path().join("backup");
        let _ = std::fs::remove_file(&backup);
        self.core.store().backup(&backup, NOW, &mut |_| ()).unwrap();
        (search(&self.folder.path().join("data")), search(&backup))
    }
}

fn ask(core: &Core, request: Request) -> Reply {
    core.run(vec![request], NOW).unwrap().replies.remove(0)
}

fn count(bytes: &[u8]) -> usize {
    bytes.windows(CANARY.len()).filter(|window| *window == CANARY.as_bytes()).count()
}

fn search(path: &Path) -> usize {
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap();
        return entries.map(|entry| search(&entry.unwrap().path())).sum();
    }
    assert!(!path.to_string_lossy().contains(CANARY));
    count(&std::fs::read(path).unwrap())
}

#[test]
fn nothing_said_in_a_space_shows_on_the_disk() {
    for sealed in [false, true] {
        let cage = Cage::new(sealed);
        cage.sing();
        assert_eq!(cage.said(), [1, 600, 2500]);
        let files = std::fs::read_dir(cage.folder.path().join("data/content")).unwrap().count();
        assert_eq!(files, 1, "one message rests in a file");
        assert_eq!(cage.heard(), (0, 0), "sealed: {sealed}");
        let report = cage.core.store().verify(NOW).unwrap();
        assert!(report.problems.is_empty(), "{:?}", report.problems);
    }
}

#[test]
fn the_search_would_find_it() {
    let cage = Cage::new(false);
    let unprotected = |batch: &mut store::Batch<'_>| batch.set_protection(&cage.space, &Protection::Nothing);
    cage.core.store().write(NOW, unprotected).unwrap();
    cage.sing();
    assert_eq!(cage.said(), [1, 600, 2500]);
    let (folder, backup) = cage.heard();
    assert!(folder > 3100 && backup > 3100, "{folder}, {backup}");
}

#[test]
fn named_fields_are_hidden_and_the_rest_stays_readable() {
    let cage = Cage::new(false);
    let fields = Protection::fields(&["body.text", "title", "id"]).unwrap();
    cage.core.store().write(NOW, |batch| batch.set_protection(&cage.space, &fields)).unwrap();
    cage.sing();
    assert_eq!(cage.said(), [1, 600, 2500]);
    assert_eq!(cage.heard(), (0, 0));
    let database = std::fs::read(cage.folder.path().join("data/anteroom.redb")).unwrap();
    assert!(database.windows(13).any(|window| window == b"\"text\":{\"_enc"));
    let report = cage.core.store().verify(NOW).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}
