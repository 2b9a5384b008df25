//! Tests of the index through its public functions, and of the bytes in its files.

use super::*;
use model::{Identity, Nanos};
use std::path::PathBuf;

const KEY: [u8; 32] = [7; 32];

fn at(number: u64) -> Position {
    Position { epoch: 1, number }
}

fn message(seq: u64, text: &str) -> IndexedMessage {
    IndexedMessage {
        seq: Seq(seq),
        thread: Seq(seq % 2),
        author: Identity([(seq % 3) as u8; 32]),
        at: Nanos(seq * 10),
        title: String::new(),
        text: text.to_owned(),
    }
}

fn text_query(text: &str) -> IndexQuery {
    IndexQuery { text: text.to_owned(), ..IndexQuery::default() }
}

fn found(index: &Index, query: &IndexQuery) -> Vec<u64> {
    let mut numbers: Vec<u64> = index.search(query, 100, 0).expect("hits").iter().map(|hit| hit.seq.0).collect();
    numbers.sort_unstable();
    numbers
}

fn filled(folder: &Path, texts: &[&str]) -> Index {
    let index = Index::open(folder, &KEY).expect("an index");
    for (number, text) in texts.iter().enumerate() {
        index.put(&message(number as u64 + 1, text)).expect("put");
    }
    index.commit(at(texts.len() as u64)).expect("committed");
    index
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    // The index may delete a file between listing and reading.
    let read = |path: PathBuf| match fs::read(&path) {
        Ok(bytes) => Some((path, bytes)),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => None,
        Err(why) => panic!("{}: {why}", path.display()),
    };
    entries.filter_map(read).collect()
}

#[test]
fn words_prefixes_and_phrases_are_found() {
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(
        home.path(),
        &["the quick brown fox", "the brown quick fox", "a slow Café, quickly", "東京へ行く", "mail me: a@b.example"],
    );
    for (text, expected) in [
        ("quick", vec![1, 2, 3]),
        ("quick fox", vec![1, 2]),
        ("fox qui", vec![1, 2]),
        ("\"quick brown\"", vec![1]),
        ("\"quick\" slow", vec![]),
        ("\"quick brown\" fo", vec![1]),
        ("cafe", vec![3]),
        ("CAFÉ", vec![3]),
        ("東京", vec![4]),
        ("京東", vec![]),
        ("a@b.ex", vec![5]),
        ("b@a", vec![]),
        ("nothing", vec![]),
        ("text:fox OR slow", vec![]),
    ] {
        assert_eq!(found(&index, &text_query(text)), expected, "{text}");
    }
}

#[test]
fn hits_are_filtered_and_paged() {
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(home.path(), &["word"; 9]);
    let query = text_query("word");
    assert_eq!(found(&index, &IndexQuery { thread: Some(Seq(0)), ..query.clone() }), [2, 4, 6, 8]);
    assert_eq!(found(&index, &IndexQuery { author: Some(Identity([0; 32])), ..query.clone() }), [3, 6, 9]);
    assert_eq!(found(&index, &IndexQuery { after: Some(Nanos(30)), before: Some(Nanos(60)), ..query.clone() }), [4, 5]);
    assert_eq!(found(&index, &IndexQuery { thread: Some(Seq(0)), before: Some(Nanos(60)), ..query.clone() }), [2, 4]);
    let pages: Vec<usize> = (0..4).map(|page| index.search(&query, 4, page * 4).expect("hits").len()).collect();
    assert_eq!(pages, [4, 4, 1, 0]);
    assert!(matches!(index.search(&query, 10, REACH_MAX), Err(IndexError::Bad(BadQuery::Far))));
    assert!(matches!(index.search(&text_query("\""), 10, 0), Err(IndexError::Bad(BadQuery::Quote))));
}

#[test]
fn words_in_the_title_score_higher() {
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(home.path(), &["plan b or c", "plan of something else"]);
    index.put(&IndexedMessage { title: "plan".to_owned(), ..message(3, "plan and much more about it") }).expect("put");
    index.commit(at(4)).expect("committed");
    assert_eq!(index.search(&text_query("plan"), 1, 0).expect("hits")[0].seq, Seq(3));
}

#[test]
fn replaced_and_removed_messages_are_not_found() {
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(home.path(), &["first words", "other words"]);
    index.put(&message(1, "second thoughts")).expect("put");
    index.remove(Seq(2)).expect("removed");
    assert_eq!(found(&index, &text_query("words")), [1, 2], "not before the commit");
    index.commit(at(9)).expect("committed");
    assert_eq!((found(&index, &text_query("words")), found(&index, &text_query("thoughts"))), (vec![], vec![1]));
}

#[test]
fn committed_words_and_position_survive_and_uncommitted_ones_do_not() {
    let home = tempfile::tempdir().expect("a folder");
    let index = Index::open(home.path(), &KEY).expect("an index");
    assert_eq!(index.position(), None);
    drop(index);
    let index = filled(home.path(), &["kept"]);
    index.put(&message(2, "kept not")).expect("put");
    drop(index);
    let index = Index::open(home.path(), &KEY).expect("an index");
    assert_eq!((index.position(), found(&index, &text_query("kept"))), (Some(at(1)), vec![1]));
    index.put(&message(3, "kept too")).expect("put");
    index.commit(at(3)).expect("committed");
    index.release_writer().expect("released");
    assert_eq!(found(&index, &text_query("kept")), [1, 3]);
}

fn shows(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn no_file_contains_a_word_in_plain_text() {
    use tantivy::Directory as _;
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(home.path(), &["my canarybird sings", "nothing here"]);
    index.release_writer().expect("released");
    assert_eq!(found(&index, &text_query("canarybird")), [1]);
    let files = files(home.path());
    assert!(files.len() > 5, "{files:?}");
    for (path, bytes) in files {
        // The engine stores indexed words with shared prefixes, but field names in plain text.
        for word in ["canary", "bird", "thread", "segment", "1-2"] {
            assert!(!shows(&bytes, word), "{word} in {}", path.display());
        }
    }
    let opened = SealedDirectory::new(home.path(), &KEY).expect("a folder").atomic_read(Path::new("meta.json"));
    assert!(["thread", "segment", "1-2"].iter().all(|word| shows(opened.as_ref().expect("bytes"), word)));
}

/// Whether any file contains this word: checks the word lists of all segments, and that there are no other files.
fn has(index: &Index, folder: &Path, word: &str) -> bool {
    let segments = index.index.searchable_segment_ids().expect("segments");
    for (path, _) in files(folder) {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        let is_list = stem.starts_with('.') || stem == "meta";
        assert!(is_list || segments.iter().any(|id| stem.starts_with(&id.uuid_string())), "{} is left", path.display());
    }
    let term = tantivy::Term::from_field_text(index.fields.text, word);
    index.reader.searcher().segment_readers().iter().any(|segment| {
        segment
            .inverted_index(index.fields.text)
            .and_then(|list| Ok(list.get_term_info(&term)?))
            .expect("read")
            .is_some()
    })
}

#[test]
fn removed_words_are_purged_from_the_files() {
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(home.path(), &["secret canarybird", "goldfinch"]);
    index.remove(Seq(1)).expect("removed");
    index.commit(at(3)).expect("committed");
    let has = |index: &Index, word: &str| has(index, home.path(), word);
    assert!(index.has_removed_words().expect("read") && has(&index, "canarybird"), "so the test would see it");
    index.purge_removed().expect("purged");
    assert!(!index.has_removed_words().expect("read"));
    assert!(!has(&index, "canarybird") && has(&index, "goldfinch"));
    assert_eq!((found(&index, &text_query("canarybird")), found(&index, &text_query("goldfinch"))), (vec![], vec![2]));
    assert_eq!(index.position(), Some(at(3)));
    drop(index);
    let again = Index::open(home.path(), &KEY).expect("an index");
    assert_eq!((again.position(), found(&again, &text_query("goldfinch"))), (Some(at(3)), vec![2]));
}

#[test]
fn an_index_that_cannot_be_used_is_recreated() {
    let home = tempfile::tempdir().expect("a folder");
    let is_recreated = |what: &str, spoil: &dyn Fn(&Path), key: [u8; 32]| {
        let folder = home.path().join(what);
        filled(&folder, &["here"]).release_writer().expect("released");
        spoil(&folder);
        let index = Index::open(&folder, &key).expect("an index");
        assert_eq!((index.position(), found(&index, &text_query("here"))), (None, vec![]), "{what}");
        index.put(&message(5, "here again")).expect("put");
        index.commit(at(5)).expect("committed");
        assert_eq!(found(&index, &text_query("here")), [5], "{what}");
    };
    is_recreated("missing", &|folder| fs::remove_dir_all(folder).expect("removed"), KEY);
    is_recreated("other key", &|_| (), [8; 32]);
    is_recreated("no list", &|folder| fs::write(folder.join("meta.json"), b"?").expect("written"), KEY);
    is_recreated(
        "cut off",
        &|folder| {
            for (path, bytes) in files(folder) {
                fs::write(path, &bytes[..bytes.len() / 2]).expect("written");
            }
        },
        KEY,
    );
    let other_version = |folder: &Path| {
        let index = Index::open(folder, &KEY).expect("an index");
        let mut writing = index.lock_writer();
        let mut prepared = writing.writer(&index.index).expect("a writer").prepare_commit().expect("prepared");
        prepared.set_payload("0 1-1");
        prepared.commit().expect("committed");
    };
    is_recreated("other version", &other_version, KEY);
}
