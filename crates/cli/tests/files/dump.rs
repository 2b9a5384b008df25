//! Files that another system kept, from a dump of its records.

use super::common::Home;
use super::common::served::Served;
use super::content;
use serde_json::{Value, json};

/// A dump of another system: every kind of row, and what makes no sense.
fn dump() -> String {
    let lines = [
        json!({ "table": "file", "id": "cat", "owner": "alice", "name": "cat.bin", "status": "processed",
                "metadata": { "album": "pets" }, "created_at": "2020-01-02T03:04:05.000000006Z" }),
        json!({ "table": "object", "file": "cat", "path": "cat/2", "status": "processed", "version": 2 }),
        json!({ "table": "object", "file": "cat", "path": "cat/1", "status": "uploaded", "version": 1 }),
        json!({ "table": "file", "id": "cat-small", "owner": "alice", "name": "cat", "media_type": "image/png",
                "status": "uploaded", "derivation_type": "thumbnail" }),
        json!({ "table": "object", "file": "cat-small", "path": "small", "status": "uploaded" }),
        json!({ "table": "derived", "parent": "cat", "child": "cat-small", "derivation_type": "thumbnail",
                "variant": "thumbnail_99", "status": "uploaded", "parameters": { "edge": 99 } }),
        json!({ "table": "derived", "parent": "cat", "child": null, "derivation_type": "thumbnail",
                "variant": "thumbnail_9", "status": "active" }),
        json!({ "table": "file", "id": "old", "owner": "alice", "name": "old.bin", "status": "deleted",
                "deleted_at": "2021-01-01T00:00:00Z" }),
        json!({ "table": "object", "file": "old", "path": "cat/1", "status": "deleted" }),
        json!({ "table": "object", "file": "old", "path": "cat/1", "status": "uploaded", "version": 1 }),
        json!({ "table": "file", "id": "away", "owner": "alice", "name": "away.bin", "status": "archived" }),
        json!({ "table": "object", "file": "away", "path": "small", "status": "uploaded" }),
        json!({ "table": "file", "id": "odd", "owner": "alice", "name": "odd.bin", "status": "active" }),
        json!({ "table": "file", "id": "broken", "owner": "alice", "name": "broken.bin", "status": "failed" }),
        json!({ "table": "file", "id": "thief", "owner": "alice", "name": "thief.bin", "status": "uploaded" }),
        json!({ "table": "object", "file": "thief", "path": "../secret", "status": "uploaded" }),
        json!({ "table": "file", "id": "link", "owner": "alice", "name": "link.bin", "status": "uploaded" }),
        json!({ "table": "object", "file": "link", "path": "link", "status": "uploaded" }),
        json!({ "table": "file", "id": "liar", "owner": "alice", "name": "liar.bin", "status": "uploaded" }),
        json!({ "table": "object", "file": "liar", "path": "small", "status": "uploaded", "sha256": "00".repeat(32) }),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn files_of_another_system_come_with_their_versions_and_statuses_and_what_makes_no_sense_is_told() {
    let node = Served::start(Home::new(), &["--set", "files.workers=0"]);
    let key = node.key("backend");
    let folder = node.home.path().join("dump");
    std::fs::create_dir_all(folder.join("cat")).unwrap();
    for (path, bytes) in [("cat/1", &b"\x01first"[..]), ("cat/2", b"\x01second"), ("small", b"\x01small")] {
        std::fs::write(folder.join(path), bytes).unwrap();
    }
    std::fs::write(node.home.path().join("secret"), b"\x01secret").unwrap();
    std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
    std::fs::write(folder.join("dump.jsonl"), dump()).unwrap();
    let import = || {
        let ran = node.home.run(&["--json", "files", "import-dump", "dump/dump.jsonl"]);
        assert_eq!(ran.code, 1, "something made no sense: {}", ran.err);
        serde_json::from_str::<Value>(&ran.out).unwrap()
    };
    let first = import();
    let count = |told: &Value| ["imported", "skipped", "derived"].map(|name| told[name].as_u64().unwrap());
    assert_eq!(count(&first), [7, 0, 1], "{first}");
    let troubles = |told: &Value| -> Vec<String> {
        let rows = told["troubles"].as_array().unwrap().iter();
        rows.map(|row| format!("{}: {}", row["id"].as_str().unwrap(), row["why"].as_str().unwrap())).collect()
    };
    let told = troubles(&first);
    for (number, beginning) in [
        "cat: thumbnail_9: \"active\" is no status",
        "liar: the bytes are not those that were declared",
        "link: link is not below the folder",
        "odd: \"active\" is no status",
        "thief: ../secret is not below the folder",
    ]
    .into_iter()
    .enumerate()
    {
        assert!(told[number].starts_with(beginning), "{told:?}");
    }
    assert_eq!(told.len(), 5, "{told:?}");
    let again = import();
    assert_eq!(count(&again)[0], 0, "{again}");
    assert_eq!(count(&again)[2], 0, "{again}");
    let statuses = "created,uploaded,failed,archived";
    let path = format!("/v1/files?include_deleted=true&derivation_type=&limit=50&status={statuses}");
    let (_, listed) = node.send(&key, "GET", &path, None);
    let files = listed["files"].as_array().unwrap();
    let named =
        |name: &str| files.iter().find(|file| file["name"] == name).unwrap_or_else(|| panic!("{name}: {files:?}"));
    let cat = named("cat.bin");
    assert_eq!((&cat["version"], &cat["metadata"]), (&json!(2), &json!({ "album": "pets" })), "{cat}");
    assert_eq!(cat["created_at"], "2020-01-02T03:04:05.000000006Z");
    assert_eq!(content(&node, &key, cat, "").body, b"\x01second");
    assert_eq!(content(&node, &key, cat, "?version=1").body, b"\x01first");
    assert_eq!(content(&node, &key, cat, "?variant=thumbnail_99").body, b"\x01small");
    let derived = &cat["renditions"][0];
    assert_eq!((&derived["status"], &derived["derivation_type"]), (&json!("processed"), &json!("thumbnail")));
    let old = named("old.bin");
    assert_eq!((&old["status"], &old["deleted_at"]), (&json!("uploaded"), &json!("2021-01-01T00:00:00.000000000Z")));
    assert_eq!([&named("away.bin")["status"], &named("broken.bin")["status"]], ["archived", "failed"]);
    assert!(files.iter().all(|file| file["name"] != "odd.bin"), "nothing is guessed");
    node.kill().run(&["verify"]).good();
}
