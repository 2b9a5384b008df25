//! Small backups, cut and changed everywhere: each is noticed, and none leaves anything behind.

use crate::at_rest::master::MasterKey;
use crate::database::open::{Store, StoreOptions};
use crate::disk::FolderDisk;
use crate::maintenance::backup::*;
use model::{Identity, Nanos, SpaceId};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NOW: Nanos = Nanos(1_700_000_000_000_000_000);

fn master() -> MasterKey {
    MasterKey::new(&[7; 32])
}

fn options() -> StoreOptions {
    StoreOptions { cache_bytes: 1 << 20, ..StoreOptions::default() }
}

fn open(folder: &Path) -> Store {
    Store::open(Arc::new(FolderDisk::new(folder).expect("a folder")), master(), options()).expect("opened")
}

/// A folder with a store that holds a few secrets, and its backup.
fn backed_up() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().expect("a folder");
    let store = open(&home.path().join("old"));
    let written = store.write(NOW, |batch| {
        batch.add_space_key(SpaceId([1; 16]), [0x5a; 32])?;
        batch.add_custodian(&Identity([2; 32]), &[0x5b; 32])
    });
    written.expect("written");
    let file = home.path().join("file");
    store.backup(&file, NOW, &mut |_| ()).expect("backed up");
    (home, file)
}

fn restore_to(home: &Path, file: &Path, key: &MasterKey) -> Result<Restored, RestoreError> {
    restore(file, &home.join("new"), key, options(), false, NOW, &mut |_| ())
}

#[test]
fn what_was_backed_up_is_restored_with_its_secrets() {
    let (home, file) = backed_up();
    let old = open(&home.path().join("old"));
    let (old_epoch, node) = old.snapshot().and_then(|db| Ok((db.epoch()?, db.node_id()?))).expect("read");
    let header = *BackupFile::open(&file).expect("a backup").header();
    assert_eq!((header.created_at, header.epoch), (NOW, old_epoch));
    let epoch = restore_to(home.path(), &file, &master()).expect("restored").epoch;
    let store = open(&home.path().join("new"));
    let db = store.snapshot().expect("a snapshot");
    // The journal is another, the node is the same.
    assert_eq!((db.epoch().expect("read"), db.node_id().expect("read")), (epoch, node));
    assert!(epoch != old_epoch && epoch < 1 << 53 && old_epoch < 1 << 53);
    assert_eq!(
        store
            .snapshot()
            .and_then(|db| db.shared::<crate::shared::Custodians>(&crate::keys::IdentityKey::new(Identity([2; 32]))))
            .expect("read"),
        Some([0x5b; 32])
    );
    assert!(store.current_key(&SpaceId([1; 16])).expect("read").is_some());
}

#[test]
fn secrets_stay_wrapped_in_the_file() {
    let (_home, file) = backed_up();
    let bytes = std::fs::read(file).expect("read");
    for secret in [[0x5a; 32], [0x5b; 32], [7; 32]] {
        assert!(!bytes.windows(32).any(|window| window == secret));
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let (home, file) = backed_up();
    let whole = std::fs::read(&file).expect("read");
    let mut opened = BackupFile::open(&file).expect("a backup");
    assert!(opened.check_whole(&master(), &mut |_| ()).is_ok());
    for length in 0..whole.len() {
        std::fs::write(&file, &whole[..length]).expect("written");
        let refused = BackupFile::open(&file).and_then(|mut cut| cut.check_whole(&master(), &mut |_| ()));
        let named = matches!(refused, Err(BadBackup::CutOff(_))) || (length == 0 && refused.is_err());
        assert!(named, "cut at {length}: {refused:?}");
    }
    assert!(matches!(restore_to(home.path(), &file, &master()), Err(RestoreError::Backup(BadBackup::CutOff(_)))));
    assert!(!home.path().join("new").exists());
}

#[test]
fn any_changed_byte_is_noticed() {
    let (home, file) = backed_up();
    let whole = std::fs::read(&file).expect("read");
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        std::fs::write(&file, &changed).expect("written");
        let refused = BackupFile::open(&file).and_then(|mut other| other.check_whole(&master(), &mut |_| ()));
        assert!(refused.is_err(), "byte {at}");
    }
    assert!(restore_to(home.path(), &file, &master()).is_err());
    let names: Vec<_> =
        std::fs::read_dir(home.path()).expect("read").map(|entry| entry.expect("read").file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn another_key_is_named_and_nothing_is_replaced() {
    let (home, file) = backed_up();
    let other = restore_to(home.path(), &file, &MasterKey::new(&[8; 32]));
    assert!(matches!(other, Err(RestoreError::Backup(BadBackup::WrongKey))));
    restore_to(home.path(), &file, &master()).expect("restored");
    assert!(matches!(restore_to(home.path(), &file, &master()), Err(RestoreError::NotEmpty { .. })));
    let again = open(&home.path().join("new")).backup(&file, NOW, &mut |_| ());
    assert!(matches!(again, Err(BackupError::Exists(_))));
}

/// Files beside the database: one that is whole, and one that cannot be read to its end.
struct TwoFiles;

impl ExtraFiles for TwoFiles {
    fn names(&self) -> std::io::Result<Vec<String>> {
        Ok(vec!["git/broken".to_owned(), "git/whole".to_owned()])
    }

    fn read(&self, name: &str, each: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>) -> Result<bool, BackupError> {
        each(&vec![7; PIECE_BYTES + 1])?;
        each(name.as_bytes())?;
        Ok(name == "git/whole")
    }
}

#[test]
fn files_beside_the_database_come_along_and_what_is_not_whole_is_named() {
    let (home, _) = backed_up();
    let (file, into) = (home.path().join("with files"), home.path().join("restored"));
    let go_on = &mut |_| std::ops::ControlFlow::Continue(());
    let made = open(&home.path().join("old")).backup_with(&file, NOW, &TwoFiles, go_on).expect("a backup");
    assert_eq!((made.extra_files, made.damaged), (1, 1));
    assert_eq!(made.first_damaged, ["the file git/broken is damaged"]);
    let refused = restore(&file, &into, &master(), options(), false, NOW, &mut |_| ());
    assert!(matches!(refused, Err(RestoreError::Incomplete { count: 1, .. })), "{refused:?}");
    assert!(!into.exists());
    let restored = restore(&file, &into, &master(), options(), true, NOW, &mut |_| ()).expect("restored");
    assert_eq!((restored.extra_files, restored.damaged), (1, vec!["the file git/broken is damaged".to_owned()]));
    let bytes = std::fs::read(into.join("git/whole")).expect("read");
    assert_eq!((bytes.len(), &bytes[PIECE_BYTES + 1..]), (PIECE_BYTES + 1 + 9, &b"git/whole"[..]));
    assert!(!into.join("git/broken").exists());
}

#[test]
fn a_backup_that_is_stopped_leaves_nothing() {
    let (home, _) = backed_up();
    let file = home.path().join("stopped");
    let stop = &mut |_| std::ops::ControlFlow::Break(());
    let stopped = open(&home.path().join("old")).backup_with(&file, NOW, &NoExtraFiles, stop);
    assert!(matches!(stopped, Err(BackupError::Stopped)), "{stopped:?}");
    let names = std::fs::read_dir(home.path()).expect("read").flatten().map(|entry| entry.file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with("stopped")));
}

#[test]
fn what_stands_under_the_temporary_name_is_left_alone() {
    let (home, _) = backed_up();
    let (file, part) = (home.path().join("new"), home.path().join("new.part"));
    std::fs::write(&part, "mine").expect("written");
    let refused = open(&home.path().join("old")).backup(&file, NOW, &mut |_| ());
    assert!(matches!(&refused, Err(BackupError::Exists(path)) if *path == part), "{refused:?}");
    assert_eq!((std::fs::read(&part).expect("read"), file.exists()), (b"mine".to_vec(), false));
}

#[test]
fn a_backup_that_a_crash_cut_off_does_not_block_its_name_and_one_under_way_does() {
    let (home, _) = backed_up();
    let (file, part) = (home.path().join("new"), home.path().join("new.part"));
    let store = open(&home.path().join("old"));
    for beginning in [b"".as_slice(), b"anteroom", b"anteroom backup\x01 and more"] {
        std::fs::write(&part, beginning).expect("written");
        store.backup(&file, NOW, &mut |_| ()).expect("made");
        assert!(!part.exists());
        std::fs::remove_file(&file).expect("removed");
    }
    let other = std::fs::File::create(&part).expect("written");
    rustix::fs::flock(&other, rustix::fs::FlockOperation::LockExclusive).expect("locked");
    let refused = store.backup(&file, NOW, &mut |_| ());
    assert!(matches!(&refused, Err(BackupError::Exists(path)) if *path == part), "{refused:?}");
}
