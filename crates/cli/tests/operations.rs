//! Operating a node: TLS, API keys in the configuration, sources of the master key, backups while it serves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use common::served::{Served, request};
use serde_json::{Value, json};

/// Writes a new certificate for `localhost` beside its key, and answers with the certificate.
fn certify(home: &Home) -> Vec<u8> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    home.write("certificate.pem", made.cert.pem().as_bytes());
    home.write("key.pem", made.signing_key.serialize_pem().as_bytes());
    made.cert.pem().into_bytes()
}

/// Sends a body, or asks for something, trusting only this certificate if one is given.
fn send(url: &str, key: &str, body: Option<Value>, certificate: Option<&[u8]>) -> Result<(u16, Value), String> {
    request(if body.is_some() { "POST" } else { "GET" }, url, key, body, certificate)
}

#[test]
fn a_node_with_a_certificate_serves_https_only_and_its_operator_still_reaches_it() {
    let home = Home::new();
    let certificate = certify(&home);
    home.write("a.toml", b"tls_certificate = \"certificate.pem\"\ntls_key = \"key.pem\"\n");
    let served = Served::start(home, &["--config", "a.toml"]);
    assert!(served.url.starts_with("https://127.0.0.1:"), "{}", served.url);
    // The command does not need the configuration file.
    let key = served.key("backend");
    let url = served.url.replace("127.0.0.1", "localhost");
    let path = format!("{url}/v1/threads/t1/messages");
    let (status, _) = send(&path, &key, Some(json!({ "body": "hi" })), Some(&certificate)).unwrap();
    assert_eq!(status, 201);
    send(&path, &key, None, None).expect_err("an unknown certificate");
    send(&path.replace("https", "http"), &key, None, None).expect_err("no answer in the clear");
    served.home.run(&["backup", "under-tls.backup"]).good();
    assert!(served.home.path().join("under-tls.backup").exists());
    // The file now has another certificate than the node, so the connection is not trusted.
    certify(&served.home);
    served.home.run(&["key", "list"]).bad(&["the request to the node at", "within a minute"]);
}

#[test]
fn a_certificate_that_cannot_be_used_stops_the_start() {
    let home = Home::new();
    certify(&home);
    let key = String::from_utf8(home.read("key.pem")).unwrap();
    certify(&home);
    home.write("other.pem", key.as_bytes());
    let start = |lines: &str| {
        home.write("a.toml", lines.as_bytes());
        home.run(&["--config", "a.toml", "--listen", "127.0.0.1:0"])
    };
    start("tls_certificate = \"certificate.pem\"\n").bad(&["tls_certificate is set but tls_key is not"]);
    start("tls_key = \"key.pem\"\n").bad(&["tls_key is set but tls_certificate is not"]);
    start("tls_certificate = \"nowhere\"\ntls_key = \"key.pem\"\n").bad(&["cannot read", "nowhere", "tls_certificate"]);
    start("tls_certificate = \"a.toml\"\ntls_key = \"key.pem\"\n").bad(&["holds no certificate"]);
    start("tls_certificate = \"certificate.pem\"\ntls_key = \"other.pem\"\n")
        .bad(&["other.pem does not fit the certificate", "issued together"]);
    assert!(!home.data().exists());
}

#[test]
fn listening_for_other_machines_without_tls_logs_one_warning() {
    let home = Home::new();
    let served = Served::start(home, &["--listen", "0.0.0.0:0"]);
    // Nobody can follow a link to 0.0.0.0.
    assert!(served.url.starts_with("http://127.0.0.1:"), "{}", served.url);
    let link = served.home.run(&["link"]).good().out;
    assert!(link.starts_with(&format!("{}/in/", served.url)), "{link}");
    let said = served.stop();
    assert_eq!(said.matches("without TLS").count(), 1, "{said}");
    assert_eq!(said.matches("set public_url").count(), 1, "{said}");
    let served = Served::start(Home::new(), &[]);
    assert!(!served.stop().contains("without TLS"));
}

#[test]
fn links_begin_with_the_address_that_others_use() {
    let home = Home::new();
    home.write("a.toml", b"public_url = \"https://chat.example.org/\"\n");
    let served = Served::start(home, &["--config", "a.toml", "--listen", "localhost:0"]);
    assert_eq!(served.url, "https://chat.example.org");
    let link = served.home.run(&["link"]).good().out;
    assert!(link.starts_with("https://chat.example.org/in/"), "{link}");
    // It says where it listens as well, and commands reach it there.
    let health = common::served::request("GET", &format!("{}/healthz", served.listens_on), "", None, None);
    assert!(matches!(health, Ok((200, _))), "{}: {health:?}", served.listens_on);
    served.home.run(&["key", "create", "backend"]).good();
    assert!(!served.stop().contains("public_url"));
    for wrong in ["chat.example.org", "ftp://a.example", "https://a.example/path", "https://", "https://a@b.example"] {
        let home = Home::new();
        home.write("a.toml", format!("public_url = \"{wrong}\"\n").as_bytes());
        home.run(&["--config", "a.toml"]).bad(&["is not the address of a node", "https://HOST"]);
    }
}

#[test]
fn a_key_is_declared_with_what_hash_prints() {
    let home = Home::ready();
    let made = home.json(&["key", "hash", "admin", "--label", "from \"the\" file"]);
    home.write("a.toml", made["config"].as_str().unwrap().as_bytes());
    let (key, id) = (made["key"].as_str().unwrap(), made["id"].as_str().unwrap());
    let declared = |listed: Value| {
        let key = listed["keys"].as_array().unwrap().iter().find(|key| key["id"] == id).unwrap().clone();
        assert_eq!((&key["declared"], &key["label"]), (&json!(true), &json!("from \"the\" file")));
    };
    declared(home.json(&["--config", "a.toml", "key", "list"]));
    home.run(&["--config", "a.toml", "key", "revoke", id]).bad(&["is declared in the configuration", "a.toml, line 2"]);
    assert_eq!(home.json(&["key", "list"])["keys"], json!([]));
    let served = Served::start(home, &["--config", "a.toml"]);
    let path = format!("{}/v1/threads/t1/messages", served.url);
    assert_eq!(send(&path, key, Some(json!({ "body": "hi" })), None).unwrap().0, 201);
    let stored = served.key("backend");
    assert_eq!(send(&path, &stored, None, None).unwrap().0, 200);
    declared(served.home.json(&["key", "list"]));
    served.home.run(&["key", "revoke", id]).bad(&["is declared in the configuration", "remove it from the node's"]);
    assert_eq!(send(&path, key, None, None).unwrap().0, 200);
    assert!(served.home.run(&["key", "list"]).good().out.contains("declared"));
}

#[test]
fn a_key_that_is_declared_wrongly_stops_the_start() {
    let home = Home::ready();
    let made = home.json(&["key", "hash", "backend"]);
    let lines = made["config"].as_str().unwrap();
    let start = |lines: &str| {
        home.write("a.toml", lines.as_bytes());
        home.run(&["--config", "a.toml", "--listen", "127.0.0.1:0"])
    };
    let what_to_do = "anteroom key hash";
    start(&lines.replace("backend", "king")).bad(&["a.toml, line 4: api_keys.role must be", what_to_do]);
    start(&lines.replace("hash = \"", "hash = \"x")).bad(&["a.toml, line 3: api_keys.hash must have 64", what_to_do]);
    start(&lines.replace("id = \"", "id = \"x")).bad(&["a.toml, line 2: api_keys.id must have 16", what_to_do]);
    start(&lines.replace("role", "rôle")).bad(&["is not valid TOML"]);
    start(&lines.replace("label", "lable")).bad(&["line 6", "unknown field `lable`", what_to_do]);
    start(&format!("{lines}{lines}")).bad(&["line 8: another key has the same api_keys.id"]);
    start("api_keys = 7\n").bad(&["line 1: invalid entry in [[api_keys]]"]);
    start(&lines.replace("\"home\"", "\"den\""))
        .bad(&["a.toml, line 2: api_keys.space: this node has no space \"den\"", "the spaces of this node are: home"]);
    let stored = home.json(&["key", "create", "backend"]);
    let (id, taken) = (made["id"].as_str().unwrap(), stored["id"].as_str().unwrap());
    start(&lines.replace(id, taken)).bad(&["a key in the data folder has the same api_keys.id", what_to_do]);
}

fn read_key_digits(home: &Home) -> String {
    String::from_utf8(home.read("anteroom-data/master.key")).unwrap().trim().to_owned()
}

#[test]
fn the_master_key_comes_from_a_file_the_environment_or_a_credential() {
    let home = Home::ready();
    let (right, wrong) = (read_key_digits(&home), "ab".repeat(32));
    home.write("right.key", right.as_bytes());
    home.write("wrong.key", wrong.as_bytes());
    std::fs::remove_file(home.data().join("master.key")).unwrap();
    for (folder, key) in [("good", &right), ("bad", &wrong)] {
        std::fs::create_dir(home.path().join(folder)).unwrap();
        home.write(&format!("{folder}/anteroom-master-key"), key.as_bytes());
    }
    home.write("right.toml", b"master_key_file = \"right.key\"\n");
    let groups: Vec<String> = right.as_bytes().chunks(4).map(|four| String::from_utf8_lossy(four).into()).collect();
    let recovery = groups.join(" ");
    let check = |words: &[&str], variables: &[(&str, &str)], expected: &str| {
        let output = home.command(&[words, &["status"]].concat()).envs(variables.iter().copied()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), expected.is_empty(), "{words:?} {variables:?}: {said}");
        assert!(said.contains(expected) && !said.contains(&wrong) && !said.contains(&right), "{said}");
    };
    let (variable, credentials) = ("ANTEROOM_MASTER_KEY", "CREDENTIALS_DIRECTORY");
    let refused = "does not open this data folder";
    check(&[], &[], "there is no master key");
    check(&[], &[(variable, &right)], "");
    check(&[], &[(variable, &recovery)], "");
    check(&[], &[(variable, &wrong)], refused);
    check(&[], &[(variable, "right.key")], "ANTEROOM_MASTER_KEY_FILE");
    check(&[], &[("ANTEROOM_MASTER_KEY_FILE", "right.key"), (variable, &wrong)], "");
    check(&[], &[(credentials, "good")], "");
    check(&[], &[(credentials, "bad")], refused);
    check(&[], &[(credentials, "bad"), (variable, &right)], "");
    check(&["--master-key", "right.key"], &[(credentials, "bad"), (variable, &wrong)], "");
    check(&["--config", "right.toml"], &[(credentials, "bad"), (variable, &wrong)], "");
    check(&["--master-key", "wrong.key"], &[(variable, &right)], refused);
    let shown = home.command(&["config"]).env(variable, &right).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("# environment ANTEROOM_MASTER_KEY") && !shown.contains(&right), "{shown}");
}

#[test]
fn a_key_from_the_environment_is_used_for_a_new_folder_and_never_written() {
    let home = Home::new();
    let key = "cd".repeat(32);
    let run = |words: &[&str]| {
        let output = home.command(words).env("ANTEROOM_MASTER_KEY", &key).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(run(&["init"]).contains("its master key is in the environment variable ANTEROOM_MASTER_KEY"));
    run(&["status"]);
    assert!(!home.data().join("master.key").exists());
    let again = home.command(&["init"]).env("ANTEROOM_MASTER_KEY", &key).output().unwrap();
    assert!(String::from_utf8_lossy(&again.stderr).contains("already has a database"));
    run(&["backup", "whole.backup"]);
    run(&["--data-dir", "new", "restore", "whole.backup"]);
    run(&["--data-dir", "new", "verify"]);
}

#[test]
fn the_first_start_of_a_service_makes_its_folder_under_the_credential() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("credentials")).unwrap();
    home.write("credentials/anteroom-master-key", "ef".repeat(32).as_bytes());
    let served = Served::start_with(home, &[], &[("CREDENTIALS_DIRECTORY", "credentials")]);
    served.key("backend");
    assert!(!served.home.data().join("master.key").exists());
}

#[test]
fn a_running_node_is_backed_up_and_restored() {
    let served = Served::start(Home::new(), &[]);
    let (key, path) = (served.key("backend"), format!("{}/v1/threads/t1/messages", served.url));
    for number in 0..20 {
        assert_eq!(send(&path, &key, Some(json!({ "body": number })), None).unwrap().0, 201);
    }
    let home = &served.home;
    let made = home.json(&["backup", "running.backup"]);
    assert_eq!(made["bytes"], std::fs::metadata(home.path().join("running.backup")).unwrap().len());
    assert!(made["rows"].as_u64() > Some(20), "{made}");
    home.run(&["backup", "running.backup"]).bad(&["is there already", "choose another name"]);
    home.run(&["backup", "no/such/folder"]).bad(&["cannot write the backup", "folder exists"]);
    home.run(&["backup", "-"]).bad(&["not a pipe"]);
    assert_eq!(send(&path, &key, Some(json!({ "body": "after" })), None).unwrap().0, 201);
    let new = ["--data-dir", "new", "--master-key", "anteroom-data/master.key"];
    home.run(&[new.as_slice(), &["restore", "running.backup"]].concat()).good();
    home.run(&[new.as_slice(), &["verify"]].concat()).good();
    // The token file of a killed node does not disturb.
    let home = served.kill();
    assert!(home.data().join("operator.token").exists());
    home.run(&["backup", "stopped.backup"]).good();
    home.run(&["key", "list"]).good();
}

#[test]
fn with_the_disk_below_its_reserve_a_node_reads_and_is_backed_up() {
    let served = Served::start(Home::new(), &[]);
    let (key, path) = (served.key("backend"), "v1/threads/t1/messages");
    let sent = send(&format!("{}/{path}", served.url), &key, Some(json!({ "body": "before" })), None);
    assert_eq!(sent.unwrap().0, 201);
    served.home.write("full.toml", b"[store]\nmin_free_disk_mib = 1048576\n");
    let mut served = Served::start(served.kill(), &["--config", "full.toml"]);
    let url = format!("{}/{path}", served.url);
    let (status, problem) = send(&url, &key, Some(json!({ "body": "after" })), None).unwrap();
    assert_eq!(
        (status, problem["detail"].as_str()),
        (503, Some("the disk is full, so the node only reads; free some space and try again")),
        "{problem}"
    );
    let (status, page) = send(&url, &key, None, None).unwrap();
    assert_eq!((status, page["messages"].as_array().map(Vec::len)), (200, Some(1)), "{page}");
    served.home.json(&["backup", "full.backup"]);
    let new = ["--data-dir", "new", "--master-key", "anteroom-data/master.key"];
    served.home.run(&[new.as_slice(), &["restore", "full.backup"]].concat()).good();
    served.home.run(&[new.as_slice(), &["verify"]].concat()).good();
    // A folder that is gone is not taken for a full disk.
    std::fs::rename(served.home.data(), served.home.path().join("moved")).unwrap();
    served.wait_for("the data folder is not in its place");
    assert_eq!(served.exit_code(), Some(1));
}

#[test]
fn a_data_folder_that_is_moved_away_or_replaced_ends_the_node_before_it_acknowledges_anything() {
    for is_replaced in [false, true] {
        let mut served = Served::start(Home::new(), &[]);
        let (key, url) = (served.key("backend"), format!("{}/v1/threads/t1/messages", served.url));
        assert_eq!(send(&url, &key, Some(json!({ "body": "before" })), None).unwrap().0, 201);
        let (data, moved) = (served.home.data(), served.home.path().join("moved"));
        if is_replaced {
            std::fs::rename(data.join("anteroom.redb"), &moved).unwrap();
            std::fs::copy(&moved, data.join("anteroom.redb")).unwrap();
        } else {
            std::fs::rename(&data, &moved).unwrap();
        }
        let answer = send(&url, &key, Some(json!({ "body": "into the void" })), None);
        assert!(answer.as_ref().map_or(true, |(status, _)| *status == 503), "{answer:?}");
        served.wait_for("the data folder is not in its place");
        assert_eq!(served.exit_code(), Some(1), "so that a supervisor starts it again");
    }
}

#[test]
fn scheduled_backups_begin_with_the_start() {
    let home = Home::new();
    home.write("a.toml", b"backup_dir = \"kept\"\n[backup]\ninterval_hours = 1\nkeep = 3\n");
    let mut served = Served::start(home, &["--config", "a.toml"]);
    served.wait_for("a backup was made");
    let kept = std::fs::read_dir(served.home.path().join("kept")).unwrap().flatten();
    let names: Vec<String> = kept.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() == 1 && names[0].ends_with("Z.backup"), "{names:?}");
    served.stop();
}

#[test]
fn lists_longer_than_one_request_are_shown_to_their_end() {
    let served = Served::start(Home::new(), &[]);
    let messages: Vec<Value> =
        (0..201).map(|number| json!({ "thread": format!("t{number}"), "body": number })).collect();
    let key = served.key("backend");
    let (status, _) = served.send(&key, "POST", "/v1/bulk/messages", Some(json!({ "messages": messages })));
    assert_eq!(status, 200);
    let listed = served.home.json(&["admin", "threads"]);
    let ids: std::collections::BTreeSet<&str> =
        listed["threads"].as_array().unwrap().iter().filter_map(|thread| thread["id"].as_str()).collect();
    assert!((0..201).all(|number| ids.contains(&*format!("t{number}"))), "{} threads", ids.len());
    assert!(listed["next"].is_null());
    let some = served.home.run(&["admin", "threads", "--limit", "201"]).good();
    // A line of names, and one that is left: the node's own.
    assert_eq!((some.out.lines().count(), some.err.as_str()), (202, "there are more; --limit N shows so many\n"));
}
