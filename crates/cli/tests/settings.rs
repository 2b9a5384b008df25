//! Settings: where they come from, and what is said of those that are wrong.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::Home;
use expect_test::{Expect, expect};

/// Runs `config` with these words and variables, and compares the lines about one setting.
fn check(home: &Home, words: &[&str], environment: &[(&str, &str)], key: &str, expected: Expect) {
    let mut command = home.command(&[words, &["config"]].concat());
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    expected.assert_eq(&words.join(" "));
}

#[test]
fn flags_come_before_the_environment_and_the_environment_before_the_file() {
    let home = Home::new();
    home.write("a.toml", b"data_dir = \"from-file\"\n[store]\ncache_mib = 11\n");
    let (key, variable) = ("store.cache_mib", [("ANTEROOM_STORE_CACHE_MIB", "22")]);
    let (file, set) = (["--config", "a.toml"], ["--set", "store.cache_mib=33"]);
    check(&home, &[], &[], key, expect!["store.cache_mib = 256 # default"]);
    check(&home, &file, &[], key, expect!["store.cache_mib = 11 # file a.toml"]);
    check(&home, &file, &variable, key, expect!["store.cache_mib = 22 # environment ANTEROOM_STORE_CACHE_MIB"]);
    check(&home, &[file, set].concat(), &variable, key, expect!["store.cache_mib = 33 # flag --set"]);

    let (key, variable) = ("data_dir", [("ANTEROOM_DATA_DIR", "from-environment")]);
    check(&home, &[], &[], key, expect![[r#"data_dir = "./anteroom-data" # default"#]]);
    check(&home, &file, &[], key, expect![[r#"data_dir = "from-file" # file a.toml"#]]);
    check(&home, &file, &variable, key, expect![[r#"data_dir = "from-environment" # environment ANTEROOM_DATA_DIR"#]]);
    let flag = ["--data-dir", "from-flag"];
    check(&home, &[file, flag].concat(), &variable, key, expect![[r#"data_dir = "from-flag" # flag --data-dir"#]]);
    check(&home, &flag, &[], "master_key", expect![[r#"master_key = "from-flag/master.key" # default"#]]);
    check(&home, &[], &[("ANTEROOM_CONFIG", "a.toml")], key, expect![[r#"data_dir = "from-file" # file a.toml"#]]);
}

#[test]
fn the_data_folder_that_is_used_is_the_one_that_is_set() {
    let home = Home::new();
    home.run(&["--data-dir", "elsewhere", "init"]).good();
    assert_eq!(home.names(), ["elsewhere"]);
    let output = home.command(&["status"]).env("ANTEROOM_DATA_DIR", "elsewhere").output().unwrap();
    assert!(output.status.success());
    home.run(&["status"]).bad(&["there is no data folder at ./anteroom-data"]);
}

#[test]
fn wrong_settings_are_named_with_what_was_meant() {
    let home = Home::new();
    let file = |text: &str| {
        home.write("a.toml", text.as_bytes());
        home.run(&["--config", "a.toml", "config"])
    };
    file("[store]\ncache_mb = 1\n")
        .bad(&["a.toml: there is no setting store.cache_mb", "did you mean store.cache_mib?"]);
    file("datadir = \"x\"\n").bad(&["there is no setting datadir", "did you mean data_dir?"]);
    file("[heldd]\nhold_days = 1\n").bad(&["there is no setting heldd"]);
    file("store = 1\n").bad(&["there is no setting store"]);
    file("data_dir = 1\n").bad(&["data_dir is not text", "quotes"]);
    file("[store]\ncache_mib = \"many\"\n").bad(&["store.cache_mib = \"many\"", "is not a number from 8 to"]);
    file("[store]\ncache_mib = -1\n").bad(&["is not a number from 8 to"]);
    file("[store]\ncache_mib = 99999999999\n").bad(&["is not a number from 8 to"]);
    file("[store\n").bad(&["is not a configuration file"]);
    file("\u{0}\u{1}").bad(&["is not a configuration file"]);
    home.run(&["--config", ".", "config"]).bad(&["cannot read the configuration file"]);
    home.run(&["--config", "nowhere", "config"]).bad(&["cannot read the configuration file nowhere"]);
    home.run(&["--set", "store.cache_mib", "config"]).bad(&["does not set anything", "KEY=VALUE"]);
    home.run(&["--set", "store.cach=1", "config"]).bad(&["there is no setting store.cach", "did you mean"]);
    home.run(&["--set", "store.cache_mib=99999999999999999999", "config"]).bad(&["is not a number"]);
    for log in ["[", "loud", "a=b=c", "x=loud"] {
        home.run(&["--log", log, "config"]).bad(&["is not a log level or filter", "debug"]);
    }
    home.run(&["--log", "anteroom_node=debug,warn", "config"]).good();
}

#[test]
fn a_variable_that_sets_nothing_is_warned_of() {
    let home = Home::new();
    let output = home.command(&["config"]).env("ANTEROOM_CACHE_MIB", "1").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("did you mean ANTEROOM_STORE_CACHE_MIB?"), "{said}");
}

#[test]
fn the_sample_can_be_used_as_it_is() {
    let home = Home::new();
    let sample = home.run(&["config", "--sample"]).good().out;
    assert!(sample.contains("# Memory that the database may use for its pages, in MiB."), "{sample}");
    home.write("sample.toml", sample.as_bytes());
    let effective = home.run(&["--config", "sample.toml", "config"]).good().out;
    assert!(effective.lines().all(|line| line.ends_with("# default")), "{effective}");
}

#[test]
fn a_key_that_others_can_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::ready();
    assert_eq!(home.run(&["status"]).good().err, "");
    let key = home.data().join("master.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(home.run(&["status"]).good().err.contains("chmod 600"));
    std::fs::write(&key, b"not a key").unwrap();
    home.run(&["status"]).bad(&["is not a master key"]);
    std::fs::write(&key, "ab".repeat(32)).unwrap();
    home.run(&["status"]).bad(&["the master key does not open this data folder", "--master-key"]);
}
