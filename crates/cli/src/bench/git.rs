//! Clones and pushes of a repository with 2,000 commits and 50 MB, beside `git http-backend` behind nginx and fcgiwrap, and
//! beside the file system, in turns; and the memory of the node while 1 GiB is pushed.

use super::backend::Backend;
use super::child_node::ChildNode;
use super::event_generator::create_temp_folder;
use super::hosting::{announce, git};
use super::{BenchOptions, figure, print_figures};
use anyhow::{Context as _, Result, ensure};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const OWNER: [u8; 32] = [201; 32];
/// Files of the repository; each commit changes one of them.
const FILES: usize = 200;

/// How long each way took, in seconds.
#[derive(Default)]
struct Times {
    ours: Vec<f64>,
    backend: Vec<f64>,
    files: Vec<f64>,
}

impl Times {
    fn ratio(&mut self) -> f64 {
        median(&mut self.ours) / median(&mut self.backend)
    }
}

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    let (commits, megabytes, rounds, large_mib) = if options.quick { (200, 5, 3, 64) } else { (2_000, 50, 7, 1_024) };
    let folder = create_temp_folder(options.dir.as_deref())?;
    let folder = folder.path();
    let source = folder.join("source");
    make_repository(&source, commits, megabytes)?;
    let commit = git(&source, &["rev-parse", "main"])?;
    let settings = ["git.enabled=1", "git.owner_mib_max=1000000", "http.address_requests_per_second=1000000"];
    let mut node = ChildNode::start(options, &settings)?;
    let backend = Backend::start(folder, &[Ipv4Addr::LOCALHOST])?;
    let (mut pushes, mut clones) = (Times::default(), Times::default());
    // The first of each is not counted.
    for round in 0..=rounds {
        let name = format!("tool-{round}");
        let ours = announce(node.address, OWNER, &name, &commit)?;
        let (theirs, file) = (backend.create(&name)?, folder.join(format!("{name}-file.git")));
        git(folder, &["init", "--quiet", "--bare", &file.to_string_lossy()])?;
        let file = format!("file://{}", file.display());
        let push = |url: &str| timed(|| git(&source, &["push", "--quiet", url, "main"]).map(drop));
        let (own, other, plain) = in_turn(round, || push(&ours), || push(&theirs), || push(&file))?;
        add(&mut pushes, round, own, other, plain);
        let copy = folder.join("copy");
        let clone = |url: &str| {
            let time = timed(|| git(folder, &["clone", "--quiet", "--bare", url, "copy"]).map(drop))?;
            std::fs::remove_dir_all(&copy)?;
            Ok(time)
        };
        let (own, other, plain) = in_turn(round, || clone(&ours), || clone(&theirs), || clone(&file))?;
        add(&mut clones, round, own, other, plain);
    }
    let before = node.peak_mib()?;
    push_large(folder, &node, large_mib)?;
    let peak = node.peak_mib()?;
    node.stop()?;
    print_figures(
        "git",
        &[
            figure("clone_s", median(&mut clones.ours), "clone, median"),
            figure("clone_backend_s", median(&mut clones.backend), "the same from git http-backend behind nginx"),
            figure("clone_file_s", median(&mut clones.files), "the same from the file system"),
            figure("clone_ratio", clones.ratio(), "clone to http-backend"),
            figure("push_s", median(&mut pushes.ours), "push of everything, median"),
            figure("push_backend_s", median(&mut pushes.backend), "the same to git http-backend behind nginx"),
            figure("push_file_s", median(&mut pushes.files), "the same to the file system"),
            figure("push_ratio", pushes.ratio(), "push to http-backend"),
            figure("rss_before_mib", before, "peak memory of the node before a large push"),
            figure("large_mib", large_mib as f64, "size of the large push"),
            figure("rss_mib", peak, "peak memory of the node after it"),
        ],
    )
}

fn add(times: &mut Times, round: usize, ours: f64, backend: f64, files: f64) {
    if round > 0 {
        times.ours.push(ours);
        times.backend.push(backend);
        times.files.push(files);
    }
}

/// Each of them, ours and the other taking turns at being first.
fn in_turn(
    round: usize,
    ours: impl Fn() -> Result<f64>,
    theirs: impl Fn() -> Result<f64>,
    file: impl Fn() -> Result<f64>,
) -> Result<(f64, f64, f64)> {
    if round.is_multiple_of(2) {
        let own = ours()?;
        Ok((own, theirs()?, file()?))
    } else {
        let other = theirs()?;
        Ok((ours()?, other, file()?))
    }
}

pub(super) fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_secs_f64())
}

pub(super) fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Bytes that cannot be compressed, the same in every run.
fn noise(state: &mut u64, bytes: usize) -> Vec<u8> {
    let mut next = || {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    };
    std::iter::repeat_with(&mut next).take(bytes.div_ceil(8)).flat_map(u64::to_le_bytes).take(bytes).collect()
}

/// A repository with so many commits and about so many megabytes: half of each new file can be compressed.
fn make_repository(folder: &Path, commits: usize, megabytes: usize) -> Result<()> {
    import(folder, &[], |input| {
        let mut state = 1;
        let size = megabytes * 1_000_000 / commits;
        for number in 1..=commits {
            let bytes = noise(&mut state, size);
            let text = format!("Commit {number}\n");
            let when = 1_700_000_000 + number;
            write!(input, "commit refs/heads/main\ncommitter A <a@example.org> {when} +0000\n")?;
            write!(input, "data {}\n{text}\n", text.len())?;
            writeln!(input, "M 100644 inline folder-{}/file-{}", number % 17, number % FILES)?;
            writeln!(input, "data {}", bytes.len())?;
            input.write_all(&bytes)?;
            input.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// What a client is told about files that cannot be compressed: otherwise it would look for differences between them, which
/// takes minutes.
const OF_LARGE_FILES: [&str; 4] = ["-c", "core.compression=0", "-c", "core.bigFileThreshold=1m"];

/// Makes a bare repository of what `git fast-import` is told.
fn import(folder: &Path, settings: &[&str], tell: impl FnOnce(&mut dyn std::io::Write) -> Result<()>) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    git(folder, &["init", "--quiet", "--bare", "--initial-branch=main"])?;
    let mut importing = Command::new("git")
        .args(settings)
        .args(["fast-import", "--quiet"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .spawn()
        .context("git cannot be started")?;
    let input = importing.stdin.take().context("git takes nothing")?;
    let mut input = std::io::BufWriter::new(input);
    tell(&mut input)?;
    input.into_inner().map_err(|why| anyhow::anyhow!("{why}"))?;
    ensure!(importing.wait()?.success(), "git fast-import failed");
    Ok(())
}

/// Pushes so many MiB, in files of 32 MiB.
fn push_large(folder: &Path, node: &ChildNode, mib: usize) -> Result<()> {
    let source = folder.join("large");
    import(&source, &OF_LARGE_FILES, |input| {
        let mut state = 99;
        write!(input, "commit refs/heads/main\ncommitter A <a@example.org> 1700000000 +0000\ndata 5\nlarge\n")?;
        for number in 0..mib / 32 {
            write!(input, "M 100644 inline file-{number}\ndata {}\n", 32 << 20)?;
            input.write_all(&noise(&mut state, 32 << 20))?;
            input.write_all(b"\n")?;
        }
        Ok(())
    })?;
    let commit = git(&source, &["rev-parse", "main"])?;
    let url = announce(node.address, OWNER, "large", &commit)?;
    git(&source, &[&OF_LARGE_FILES[..], &["push", "--quiet", &url, "main"]].concat()).map(drop)
}
