//! Damage in any table is noticed where it is read.

use super::*;

#[test]
fn a_changed_byte_of_any_table_is_noticed_where_it_is_read() {
    let database = redb::Builder::new().create_with_backend(redb::backends::InMemoryBackend::new());
    let transaction = database.expect("a database").begin_write().expect("a transaction");
    let mut tables = Tables::open(&transaction).expect("tables");
    check_that_damage_is_noticed(&mut tables);
    assert!(census(&tables).expect("read").iter().all(|(_, _, rows)| *rows == 0));
}

#[test]
fn no_two_tables_share_a_name() {
    let database = redb::Builder::new().create_with_backend(redb::backends::InMemoryBackend::new());
    let transaction = database.expect("a database").begin_write().expect("a transaction");
    let tables = Tables::open(&transaction).expect("tables");
    let mut names: Vec<&str> = census(&tables).expect("read").iter().map(|(_, name, _)| *name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}
