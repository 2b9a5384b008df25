//! `cargo xtask dist`: what people install. A tarball, a Debian package and the context of a container image, all from one
//! release binary, with man pages, completions and the systemd unit.

use crate::process::{cargo, output, program, root, run as run_command, target};
use anyhow::{Context as _, Result};
use clap::Args;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Make what people install: a tarball, a Debian package and the context of an image.
#[derive(Args)]
pub(crate) struct Dist {
    /// Package this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Where to put them.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// The image of a binary that is built already; the Dockerfile of the repository builds one from its source.
const IMAGE: &str = include_str!("dist/Dockerfile.txt");

/// What belongs to the program besides itself, from the root of the repository, and where a package has it.
const DOCUMENTS: [&str; 5] = ["README.md", "CHANGELOG.md", "LICENSE", "LICENSE-MIT", "LICENSE-APACHE"];
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/anteroom"),
    ("zsh", "usr/share/zsh/vendor-completions/_anteroom"),
    ("fish", "usr/share/fish/vendor_completions.d/anteroom.fish"),
];

pub(crate) fn run(dist: &Dist) -> Result<()> {
    let binary = match &dist.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => {
            run_command(&mut cargo(&["build", "--release", "--locked", "--package", "anteroom-cli"]))?;
            target().join("release/anteroom")
        }
    };
    let out = dist.out.clone().unwrap_or_else(|| target().join("dist"));
    let out = std::path::absolute(out)?;
    let version = output(&mut program(&binary.to_string_lossy(), &["--version"]))?;
    let version = version.split_whitespace().last().context("the binary says no version")?.to_owned();
    let tree = out.join("tree");
    if tree.exists() {
        fs::remove_dir_all(&tree)?;
    }
    fill_tree(&binary, &tree)?;
    let made = [tarball(&out, &tree, &version)?, debian_package(&out, &tree, &version)?, image_context(&out, &binary)?];
    fs::remove_dir_all(&tree)?;
    made.iter().for_each(|made| println!("{}", made.display()));
    Ok(())
}

fn install(from: &Path, to: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(to.parent().context("a folder")?)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    fs::set_permissions(to, fs::Permissions::from_mode(mode))?;
    Ok(())
}

fn write(to: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(to.parent().context("a folder")?)?;
    fs::write(to, text)?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(0o644))?)
}

/// The files as a system has them.
fn fill_tree(binary: &Path, tree: &Path) -> Result<()> {
    let ask = |arguments: &[&str]| output(&mut program(&binary.to_string_lossy(), arguments));
    install(binary, &tree.join("usr/bin/anteroom"), 0o755)?;
    install(&root().join("docs/anteroom.service"), &tree.join("usr/lib/systemd/system/anteroom.service"), 0o644)?;
    let unit = tree.join("usr/lib/systemd/system/anteroom.service");
    write(&unit, &fs::read_to_string(&unit)?.replace("/usr/local/bin/", "/usr/bin/"))?;
    write(&tree.join("etc/anteroom/anteroom.toml"), &ask(&["config", "--sample"])?)?;
    for (shell, place) in SHELLS {
        write(&tree.join(place), &ask(&["completions", shell])?)?;
    }
    let pages = tree.join("usr/share/man/man1");
    fs::create_dir_all(&pages)?;
    ask(&["man", &pages.to_string_lossy()])?;
    for name in DOCUMENTS {
        install(&root().join(name), &tree.join("usr/share/doc/anteroom").join(name), 0o644)?;
    }
    for page in fs::read_dir(root().join("docs"))? {
        let page = page?.path();
        if page.extension().is_some_and(|ending| ending == "md") {
            let name = page.file_name().context("a name")?;
            install(&page, &tree.join("usr/share/doc/anteroom/docs").join(name), 0o644)?;
        }
    }
    Ok(())
}

/// Everything below one folder, to be unpacked anywhere.
fn tarball(out: &Path, tree: &Path, version: &str) -> Result<PathBuf> {
    let name = format!("anteroom-{version}-{}-linux", std::env::consts::ARCH);
    let file = out.join(format!("{name}.tar.gz"));
    let rename = format!("--transform=s,^\\./usr,{name},;s,^\\./etc,{name}/etc,");
    let owner = ["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "--mtime=@0"];
    let mut tar = program("tar", &["--create", "--gzip", "--file"]);
    tar.arg(&file).args(owner).arg(rename).arg("--directory").arg(tree).args(["./usr", "./etc"]);
    run_command(&mut tar)?;
    Ok(file)
}

fn debian_package(out: &Path, tree: &Path, version: &str) -> Result<PathBuf> {
    let machine = output(&mut program("dpkg", &["--print-architecture"]))?;
    let (machine, size) = (machine.trim(), fs::metadata(tree.join("usr/bin/anteroom"))?.len() / 1024);
    let control = format!(
        "Package: anteroom\nVersion: {version}-1\nSection: net\nPriority: optional\nArchitecture: {machine}\n\
         Depends: libc6, libgcc-s1\nInstalled-Size: {size}\nMaintainer: The Anteroom developers <anteroom@localhost>\n\
         Description: self-hosted node for conversations\n Everything users write is a signed event, which is kept, \
         waits until everything it needs\n has arrived, is applied exactly once, and can always be explained.\n"
    );
    write(&tree.join("DEBIAN/control"), &control)?;
    write(&tree.join("DEBIAN/conffiles"), "/etc/anteroom/anteroom.toml\n")?;
    let file = out.join(format!("anteroom_{version}-1_{machine}.deb"));
    let mut build = program("dpkg-deb", &["--root-owner-group", "-Zgzip", "--build"]);
    run_command(build.arg(tree).arg(&file))?;
    fs::remove_dir_all(tree.join("DEBIAN"))?;
    Ok(file)
}

/// The binary and how to make an image of it.
fn image_context(out: &Path, binary: &Path) -> Result<PathBuf> {
    let folder = out.join("image");
    install(binary, &folder.join("anteroom"), 0o755)?;
    write(&folder.join("Dockerfile"), IMAGE)?;
    Ok(folder)
}
