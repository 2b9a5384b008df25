//! Running the tests and the simulator with one mistake switched on.

use super::tree::{Mutant, Programs, TestProgram, packages_for};
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How the simulator is run with a mistake that no test has noticed. That a state is reached more rarely is no failure.
const SIMULATOR: [&str; 3] = ["--seeds", "500", "--any-coverage"];
/// What `timeout` answers when it had to kill.
const KILLED: i32 = 137;
/// How much longer than without a mistake a program may run: mistakes may make loops endless.
const TIMEOUT_FACTOR: u32 = 4;
const TIMEOUT_MIN: Duration = Duration::from_secs(30);
const TIMEOUT_MAX: Duration = Duration::from_secs(900);

/// What became of a mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Which program noticed it.
    CaughtBy(String),
    Survived,
    /// It does not compile, so that it is no mistake that anybody could make.
    NotCompiled,
}

/// A program without a mistake: how long it takes, and the places of mistakes that it reaches.
struct Baseline {
    time: Duration,
    reached: BTreeSet<usize>,
}

/// The programs, the quickest first, with what they do without a mistake.
pub(crate) struct Trials {
    tests: Vec<(TestProgram, Baseline)>,
    simulator: (PathBuf, Baseline),
}

impl Trials {
    /// Runs everything without a mistake that these mistakes will meet.
    pub(crate) fn new(programs: Programs, untried: &[&Mutant]) -> Result<Trials> {
        let packages: BTreeSet<&str> =
            untried.iter().flat_map(|mutant| packages_for(mutant.crate_name())).copied().collect();
        let is_needed = |test: &TestProgram| packages.contains(test.package.as_str());
        let mut tests = Vec::new();
        for test in programs.tests.into_iter().filter(is_needed) {
            let baseline = run_baseline(&test.path, &[], &test.folder)?;
            tests.push((test, baseline));
        }
        tests.sort_by_key(|(_, baseline)| baseline.time);
        let simulator = programs.simulate.context("the build has no simulator")?;
        let baseline = run_baseline(&simulator, &SIMULATOR, Path::new("."))?;
        Ok(Trials { tests, simulator: (simulator, baseline) })
    }

    /// Lets a mistake meet the tests of its crate, then the simulator. A program that does not reach its place cannot
    /// notice it.
    pub(crate) fn meet(&self, mutant: &Mutant) -> Result<Outcome> {
        let number = mutant.number;
        let packages = packages_for(mutant.crate_name());
        for (test, baseline) in self.tests.iter().filter(|(_, baseline)| baseline.reached.contains(&number)) {
            if packages.contains(&test.package.as_str())
                && let Some(how) = notices(&test.path, &[], &test.folder, number, timeout(baseline.time))?
            {
                let name = test.path.file_name().unwrap_or_default().to_string_lossy();
                let name = name.rsplit_once('-').map_or(&*name, |(name, _)| name);
                return Ok(Outcome::CaughtBy(format!("{name}{how}")));
            }
        }
        let (simulator, baseline) = &self.simulator;
        if baseline.reached.contains(&number)
            && let Some(how) = notices(simulator, &SIMULATOR, Path::new("."), number, timeout(baseline.time))?
        {
            return Ok(Outcome::CaughtBy(format!("simulate{how}")));
        }
        Ok(Outcome::Survived)
    }
}

fn timeout(time: Duration) -> Duration {
    (time * TIMEOUT_FACTOR).max(TIMEOUT_MIN)
}

/// Runs a program without a mistake, which has to succeed.
fn run_baseline(program: &Path, arguments: &[&str], folder: &Path) -> Result<Baseline> {
    let reached = tempfile::NamedTempFile::new()?;
    let begun = Instant::now();
    let mut command = command(program, arguments, folder, 0, TIMEOUT_MAX);
    let status = command.env("MUTANTS_REACHED", reached.path()).status();
    ensure!(status.is_ok_and(|status| status.success()), "{} fails without a mistake", program.display());
    let time = begun.elapsed();
    let reached = std::fs::read_to_string(reached.path())?.lines().filter_map(|line| line.parse().ok()).collect();
    Ok(Baseline { time, reached })
}

/// Runs a program with a mistake. Says how it notices, if it does. One that fails has to fail again: a test may fail by
/// chance.
fn notices(
    program: &Path,
    arguments: &[&str],
    folder: &Path,
    number: usize,
    timeout: Duration,
) -> Result<Option<&'static str>> {
    for is_again in [false, true] {
        let status = command(program, arguments, folder, number, timeout).status();
        let status = status.with_context(|| format!("cannot start {}", program.display()))?;
        match status.code() {
            Some(0) => return Ok(None),
            Some(KILLED) => return Ok(Some(" (timeout)")),
            _ if is_again => return Ok(Some("")),
            _ => {}
        }
    }
    Ok(None)
}

fn command(program: &Path, arguments: &[&str], folder: &Path, number: usize, timeout: Duration) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--signal=KILL").arg(timeout.as_secs().to_string()).arg(program).args(arguments).current_dir(folder);
    // Tests of the binary keep settings of ours from it, so that these have names of their own.
    command.env("MUTANT_NUMBER", number.to_string()).env("RUST_BACKTRACE", "0").env("PROPTEST_RNG_SEED", "1");
    // Recorded texts are those of the scratch copy.
    command.env("CARGO_MANIFEST_DIR", folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}
