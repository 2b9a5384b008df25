//! Settings: where values come from, and error messages for wrong ones.
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
fn flags_override_the_environment_and_the_environment_overrides_the_file() {
    let home = Home::new();
    home.write("a.toml", b"data_dir = \"from-file\"\n[store]\ncache_mib = 11\n");
    let (key, variable) = ("store.cache_mib", [("ANTEROOM_STORE_CACHE_MIB", "22")]);
    let (file, set) = (["--config", "a.toml"], ["--set", "store.cache_mib=33"]);
    check(&home, &[], &[], key, expect!["store.cache_mib = 128 # default"]);
    check(&home, &file, &[], key, expect!["store.cache_mib = 11 # file a.toml"]);
    check(&home, &file, &variable, key, expect!["store.cache_mib = 22 # environment ANTEROOM_STORE_CACHE_MIB"]);
    check(&home, &[file, set].concat(), &variable, key, expect!["store.cache_mib = 33 # flag --set"]);

    let (key, variable) = ("data_dir", [("ANTEROOM_DATA_DIR", "from-environment")]);
    check(&home, &[], &[], key, expect![[r#"data_dir = "./anteroom-data" # default"#]]);
    check(&home, &file, &[], key, expect![[r#"data_dir = "from-file" # file a.toml"#]]);
    check(&home, &file, &variable, key, expect![[r#"data_dir = "from-environment" # environment ANTEROOM_DATA_DIR"#]]);
    let flag = ["--data-dir", "from-flag"];
    check(&home, &[file, flag].concat(), &variable, key, expect![[r#"data_dir = "from-flag" # flag --data-dir"#]]);
    check(&home, &flag, &[], "master_key_file", expect![[r#"master_key_file = "from-flag/master.key" # default"#]]);
    check(&home, &[], &[("ANTEROOM_CONFIG", "a.toml")], key, expect![[r#"data_dir = "from-file" # file a.toml"#]]);
}

#[test]
fn the_configured_data_folder_is_used() {
    let home = Home::new();
    home.run(&["--data-dir", "elsewhere", "init"]).good();
    assert_eq!(home.names(), ["elsewhere"]);
    let output = home.command(&["status"]).env("ANTEROOM_DATA_DIR", "elsewhere").output().unwrap();
    assert!(output.status.success());
    home.run(&["status"]).bad(&["there is no data folder at ./anteroom-data"]);
}

#[test]
fn wrong_settings_are_reported_with_a_suggestion() {
    let home = Home::new();
    let file = |text: &str| {
        home.write("a.toml", text.as_bytes());
        home.run(&["--config", "a.toml", "config"])
    };
    file("[store]\ncache_mb = 1\n").bad(&["a.toml: unknown setting store.cache_mb", "did you mean store.cache_mib?"]);
    file("datadir = \"x\"\n").bad(&["unknown setting datadir", "did you mean data_dir?"]);
    file("[heldd]\ntimeout_days = 1\n").bad(&["unknown setting heldd"]);
    file("store = 1\n").bad(&["unknown setting store"]);
    file("data_dir = 1\n").bad(&["the value of data_dir must be a string", "quotes"]);
    file("[store]\ncache_mib = \"many\"\n").bad(&["store.cache_mib = \"many\"", "is not a number from 8 to"]);
    file("[store]\ncache_mib = -1\n").bad(&["is not a number from 8 to"]);
    file("[store]\ncache_mib = 99999999999\n").bad(&["is not a number from 8 to"]);
    file("[store\n").bad(&["is not valid TOML"]);
    file("\u{0}\u{1}").bad(&["is not valid TOML"]);
    home.run(&["--config", ".", "config"]).bad(&["cannot read the configuration file"]);
    home.run(&["--config", "nowhere", "config"]).bad(&["cannot read the configuration file nowhere"]);
    home.run(&["--set", "store.cache_mib", "config"]).bad(&["has no value", "KEY=VALUE"]);
    home.run(&["--set", "store.cach=1", "config"]).bad(&["unknown setting store.cach", "did you mean"]);
    home.run(&["--set", "store.cache_mib=99999999999999999999", "config"]).bad(&["is not a number"]);
    for log in ["[", "loud", "a=b=c", "x=loud"] {
        home.run(&["--log", log, "config"]).bad(&["is not a log level or filter", "debug"]);
    }
    home.run(&["--log", "anteroom_node=debug,warn", "config"]).good();
}

#[test]
fn an_unknown_variable_logs_a_warning() {
    let home = Home::new();
    let output = home.command(&["config"]).env("ANTEROOM_CACHE_MIB", "1").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("did you mean ANTEROOM_STORE_CACHE_MIB?"), "{said}");
}

#[test]
fn the_sample_file_is_valid() {
    let home = Home::new();
    let sample = home.run(&["config", "--sample"]).good().out;
    assert!(sample.contains("# Memory for the page cache of the database, in MiB."), "{sample}");
    home.write("sample.toml", sample.as_bytes());
    let effective = home.run(&["--config", "sample.toml", "config"]).good().out;
    assert!(effective.lines().all(|line| line.ends_with("# default")), "{effective}");
}

#[test]
fn a_key_file_that_others_can_read_logs_a_warning() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::ready();
    assert_eq!(home.run(&["status"]).good().err, "");
    let key = home.data().join("master.key");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(home.run(&["status"]).good().err.contains("chmod 600"));
    std::fs::write(&key, b"not a key").unwrap();
    home.run(&["status"]).bad(&["is not a master key file"]);
    std::fs::write(&key, "ab".repeat(32)).unwrap();
    home.run(&["status"]).bad(&["the master key does not open this data folder", "--master-key"]);
}
