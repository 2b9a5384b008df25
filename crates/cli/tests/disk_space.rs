//! The size of the database file, and a database that cannot be looked at.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::sample_events::everything;
use common::served::Served;

/// Lets the database file grow by rows that are gone again, except the last: the database itself gives back only what is
/// unused at the end of its file.
fn swell(home: &Home) {
    let table = redb::TableDefinition::<u64, &[u8]>::new("swollen");
    let database = redb::Database::create(home.data().join("anteroom.redb")).unwrap();
    let writing = database.begin_write().unwrap();
    for row in 0..80 {
        writing.open_table(table).unwrap().insert(row, vec![1; 1 << 20].as_slice()).unwrap();
    }
    writing.commit().unwrap();
    let writing = database.begin_write().unwrap();
    for row in 0..79 {
        writing.open_table(table).unwrap().remove(row).unwrap();
    }
    writing.commit().unwrap();
}

#[test]
fn unused_space_is_given_back_by_the_command_and_at_the_start() {
    let home = Home::with(&everything().2);
    let digest = home.digest();
    let mib = |home: &Home| std::fs::metadata(home.data().join("anteroom.redb")).unwrap().len() >> 20;
    swell(&home);
    assert!(mib(&home) > 64);
    let done = home.json(&["compact"]);
    assert!(done["bytes_before"].as_u64() > Some(64 << 20) && done["bytes"].as_u64() < Some(16 << 20), "{done}");
    assert!(mib(&home) < 16);
    assert_eq!(home.digest(), digest);
    swell(&home);
    let served = Served::start(home, &[]);
    assert!(mib(&served.home) < 16);
    served.kill().run(&["verify"]).good();
}

#[test]
fn a_database_that_cannot_be_looked_at_is_not_called_absent() {
    let home = Home::ready();
    let database = home.data().join("anteroom.redb");
    std::fs::rename(&database, home.path().join("aside")).unwrap();
    std::os::unix::fs::symlink("anteroom.redb", &database).unwrap();
    for words in [["verify"].as_slice(), &["init"], &["--listen", "127.0.0.1:0"]] {
        home.run(words).bad(&["cannot access the database", "anteroom.redb"]);
    }
}
