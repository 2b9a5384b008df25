//! What people install: each package is made of the binary under test, installed into an empty folder, and its node
//! started. The image is not built here: that needs a container engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

fn run(command: &mut Command) -> String {
    let ran = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{command:?}\n{out}{err}");
    out.into_owned()
}

/// Tarball, Debian package and image context, in this order.
fn packages() -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let xtask = Path::new(env!("CARGO_BIN_EXE_anteroom")).with_file_name("xtask");
    assert!(xtask.exists(), "{} is missing; `cargo xtask test` builds it", xtask.display());
    let mut dist = Command::new(xtask);
    // It finds the repository by itself.
    dist.env_remove("CARGO_MANIFEST_DIR");
    dist.args(["dist", "--binary", env!("CARGO_BIN_EXE_anteroom"), "--out"]).arg(folder.path());
    let made = run(&mut dist).lines().filter(|line| line.starts_with('/')).map(PathBuf::from).collect();
    (folder, made)
}

/// Starts an installed node, and asks it whether it is ready.
fn starts(binary: &Path, home: &Path) {
    let command = |words: &[&str]| {
        let mut command = Command::new(binary);
        command.current_dir(home).args(words);
        command
    };
    let mut node = command(&["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines().map_while(Result::ok);
    let is_running = lines.any(|line| line.contains("is running at"));
    let ready = command(&["ready"]).output().unwrap();
    let _ = node.kill();
    node.wait().unwrap();
    assert!(is_running && ready.status.success(), "{}", String::from_utf8_lossy(&ready.stderr));
    assert!(!command(&["ready"]).output().unwrap().status.success(), "nobody answers any more");
}

#[test]
fn each_package_installs_and_its_node_starts() {
    let (folder, made) = packages();
    let [tarball, package, image] = &made[..] else { panic!("{made:?}") };
    let (unpacked, system) = (folder.path().join("unpacked"), folder.path().join("system"));
    std::fs::create_dir(&unpacked).unwrap();
    run(Command::new("tar").arg("--extract").arg("--file").arg(tarball).arg("--directory").arg(&unpacked));
    let inside = std::fs::read_dir(&unpacked).unwrap().next().unwrap().unwrap().path();
    for file in
        ["bin/anteroom", "share/man/man1/anteroom.1", "share/doc/anteroom/README.md", "etc/anteroom/anteroom.toml"]
    {
        assert!(inside.join(file).exists(), "{file} is missing in the tarball");
    }
    starts(&inside.join("bin/anteroom"), &unpacked);
    // An empty system, in which nothing else is installed.
    for part in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"] {
        std::fs::create_dir_all(system.join(part)).unwrap();
    }
    std::fs::write(system.join("var/lib/dpkg/status"), "").unwrap();
    let mut install = Command::new("dpkg");
    install.arg(format!("--root={}", system.display())).args(["--force-depends", "--force-not-root", "--install"]);
    run(install.arg(package).env("PATH", format!("/usr/sbin:/sbin:{}", std::env::var("PATH").unwrap())));
    for file in [
        "usr/lib/systemd/system/anteroom.service",
        "usr/share/bash-completion/completions/anteroom",
        "etc/anteroom/anteroom.toml",
    ] {
        assert!(system.join(file).exists(), "{file} is missing in the package");
    }
    let unit = std::fs::read_to_string(system.join("usr/lib/systemd/system/anteroom.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/anteroom "), "{unit}");
    starts(&system.join("usr/bin/anteroom"), &system);
    let recipe = std::fs::read_to_string(image.join("Dockerfile")).unwrap();
    assert!(recipe.contains("USER anteroom") && recipe.contains("\"ready\"") && image.join("anteroom").exists());
}
