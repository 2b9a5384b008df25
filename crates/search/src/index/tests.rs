//! The index as whoever feeds and asks it meets it, and as whoever reads its files does.

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

fn ask(text: &str) -> IndexQuery {
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
    // A file that the index has replaced may go between the list and the look.
    let read = |path: PathBuf| match fs::read(&path) {
        Ok(bytes) => Some((path, bytes)),
        Err(why) if why.kind() == std::io::ErrorKind::NotFound => None,
        Err(why) => panic!("{}: {why}", path.display()),
    };
    entries.filter_map(read).collect()
}

#[test]
fn words_beginnings_and_phrases_are_found() {
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(
        home.path(),
        &["the quick brown fox", "the brown quick fox", "a slow Café, quickly", "東京へ行く", "mail me: a@b.example"],
    );
    for (question, expected) in [
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
        assert_eq!(found(&index, &ask(question)), expected, "{question}");
    }
}

#[test]
fn hits_are_narrowed_down_and_paged() {
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(home.path(), &["word"; 9]);
    let query = ask("word");
    assert_eq!(found(&index, &IndexQuery { thread: Some(Seq(0)), ..query.clone() }), [2, 4, 6, 8]);
    assert_eq!(found(&index, &IndexQuery { author: Some(Identity([0; 32])), ..query.clone() }), [3, 6, 9]);
    assert_eq!(found(&index, &IndexQuery { after: Some(Nanos(30)), before: Some(Nanos(60)), ..query.clone() }), [4, 5]);
    assert_eq!(found(&index, &IndexQuery { thread: Some(Seq(0)), before: Some(Nanos(60)), ..query.clone() }), [2, 4]);
    let pages: Vec<usize> = (0..4).map(|page| index.search(&query, 4, page * 4).expect("hits").len()).collect();
    assert_eq!(pages, [4, 4, 1, 0]);
    assert!(matches!(index.search(&query, 10, REACH_MAX), Err(IndexError::Bad(BadQuery::Far))));
    assert!(matches!(index.search(&ask("\""), 10, 0), Err(IndexError::Bad(BadQuery::Quote))));
}

#[test]
fn a_title_weighs_more() {
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(home.path(), &["plan b or c", "plan of something else"]);
    index.put(&IndexedMessage { title: "plan".to_owned(), ..message(3, "plan and much more about it") }).expect("put");
    index.commit(at(4)).expect("committed");
    assert_eq!(index.search(&ask("plan"), 1, 0).expect("hits")[0].seq, Seq(3));
}

#[test]
fn what_is_replaced_or_removed_is_not_found() {
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(home.path(), &["first words", "other words"]);
    index.put(&message(1, "second thoughts")).expect("put");
    index.remove(Seq(2)).expect("removed");
    assert_eq!(found(&index, &ask("words")), [1, 2], "not before the commit");
    index.commit(at(9)).expect("committed");
    assert_eq!((found(&index, &ask("words")), found(&index, &ask("thoughts"))), (vec![], vec![1]));
}

#[test]
fn the_position_and_the_words_survive_and_what_was_not_committed_does_not() {
    let home = tempfile::tempdir().expect("a folder");
    let index = Index::open(home.path(), &KEY).expect("an index");
    assert_eq!(index.position(), None);
    drop(index);
    let index = filled(home.path(), &["kept"]);
    index.put(&message(2, "kept not")).expect("put");
    drop(index);
    let index = Index::open(home.path(), &KEY).expect("an index");
    assert_eq!((index.position(), found(&index, &ask("kept"))), (Some(at(1)), vec![1]));
    index.put(&message(3, "kept too")).expect("put");
    index.commit(at(3)).expect("committed");
    index.rest().expect("rested");
    assert_eq!(found(&index, &ask("kept")), [1, 3]);
}

fn shows(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

#[test]
fn no_byte_of_the_folder_shows_a_word() {
    use tantivy::Directory as _;
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(home.path(), &["my canarybird sings", "nothing here"]);
    index.rest().expect("rested");
    assert_eq!(found(&index, &ask("canarybird")), [1]);
    let files = files(home.path());
    assert!(files.len() > 5, "{files:?}");
    for (path, bytes) in files {
        // The engine keeps words folded into each other, but its own ones in plain sight.
        for word in ["canary", "bird", "thread", "segment", "1-2"] {
            assert!(!shows(&bytes, word), "{word} in {}", path.display());
        }
    }
    let opened = Folder::new(home.path(), &KEY).expect("a folder").atomic_read(Path::new("meta.json"));
    assert!(["thread", "segment", "1-2"].iter().all(|word| shows(opened.as_ref().expect("bytes"), word)));
}

/// Whether any file has this word: the word lists of all segments say, and there are no files beside those.
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
fn a_removed_word_leaves_the_files_too() {
    let home = tempfile::tempdir().expect("a folder");
    let index = filled(home.path(), &["secret canarybird", "goldfinch"]);
    index.remove(Seq(1)).expect("removed");
    index.commit(at(3)).expect("committed");
    let has = |index: &Index, word: &str| has(index, home.path(), word);
    assert!(index.has_remains().expect("read") && has(&index, "canarybird"), "so the test would see it");
    index.cleanse().expect("cleansed");
    assert!(!index.has_remains().expect("read"));
    assert!(!has(&index, "canarybird") && has(&index, "goldfinch"));
    assert_eq!((found(&index, &ask("canarybird")), found(&index, &ask("goldfinch"))), (vec![], vec![2]));
    assert_eq!(index.position(), Some(at(3)));
    drop(index);
    let again = Index::open(home.path(), &KEY).expect("an index");
    assert_eq!((again.position(), found(&again, &ask("goldfinch"))), (Some(at(3)), vec![2]));
}

#[test]
fn an_index_that_cannot_be_used_is_begun_anew() {
    let home = tempfile::tempdir().expect("a folder");
    let begins_anew = |what: &str, spoil: &dyn Fn(&Path), key: [u8; 32]| {
        let folder = home.path().join(what);
        filled(&folder, &["here"]).rest().expect("rested");
        spoil(&folder);
        let index = Index::open(&folder, &key).expect("an index");
        assert_eq!((index.position(), found(&index, &ask("here"))), (None, vec![]), "{what}");
        index.put(&message(5, "here again")).expect("put");
        index.commit(at(5)).expect("committed");
        assert_eq!(found(&index, &ask("here")), [5], "{what}");
    };
    begins_anew("missing", &|folder| fs::remove_dir_all(folder).expect("removed"), KEY);
    begins_anew("other key", &|_| (), [8; 32]);
    begins_anew("no list", &|folder| fs::write(folder.join("meta.json"), b"?").expect("written"), KEY);
    begins_anew(
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
        let mut writing = index.writing();
        let mut prepared = writing.writer(&index.index).expect("a writer").prepare_commit().expect("prepared");
        prepared.set_payload("0 1-1");
        prepared.commit().expect("committed");
    };
    begins_anew("other version", &other_version, KEY);
}
