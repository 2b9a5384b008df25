//! Starting other programs from the repository's root, and what is said when one of them fails.

use anyhow::{Context, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// A step that ran and did not succeed; its exit code becomes ours.
#[derive(Debug)]
pub(crate) struct Failed {
    /// What was tried, and what to do next where that is known.
    pub(crate) what: String,
    /// The exit code to end with, never zero.
    pub(crate) code: u8,
}

impl fmt::Display for Failed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)
    }
}

impl std::error::Error for Failed {}

/// The exit code for an error: that of the step that failed, otherwise 1.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    let code = error.downcast_ref::<Failed>().map_or(1, |failed| failed.code);
    ExitCode::from(code)
}

/// The repository's root: the folder above this crate.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable when it runs us; the path known at compile time is for a binary started by hand.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The folder of what is built.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |target| root().join(target))
}

/// A program with its arguments, to be run from the repository's root and in the environment `cargo xtask` was
/// started in: without the variables that cargo set for us.
pub(crate) fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    for variable in std::env::vars_os().filter_map(|(variable, _)| variable.into_string().ok()) {
        if is_set_by_cargo(&variable) {
            command.env_remove(variable);
        }
    }
    command
}

/// Whether cargo sets the variable for a program that it runs. Build scripts watch some of these (that of `ring` watches
/// `CARGO_PKG_NAME`), so a cargo that inherits them from us rebuilds what a cargo started by hand has built, and the
/// other way round. What configures cargo, such as `CARGO_TARGET_DIR`, is the user's and stays.
fn is_set_by_cargo(variable: &str) -> bool {
    const NAMES: [&str; 9] = [
        "CARGO",
        "CARGO_BIN_NAME",
        "CARGO_CRATE_NAME",
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_LINKS",
        "CARGO_MANIFEST_PATH",
        "CARGO_PRIMARY_PACKAGE",
        "CARGO_TARGET_TMPDIR",
        "OUT_DIR",
    ];
    const BEGINNINGS: [&str; 4] = ["CARGO_PKG_", "CARGO_BIN_EXE_", "CARGO_CFG_", "CARGO_FEATURE_"];
    NAMES.contains(&variable) || BEGINNINGS.iter().any(|beginning| variable.starts_with(beginning))
}

/// A `cargo` command of the toolchain that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    program(&cargo, arguments)
}

/// Shows the command, runs it with our own output, and fails with its exit code.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if status.success() {
        return Ok(());
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Err(Failed { what: format!("`{shown}` failed: {status}"), code }.into())
}

/// Whether the command can be started and succeeds; its output is dropped.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// What the command prints; its errors go to our own.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start `{shown}`"))?;
    anyhow::ensure!(output.status.success(), "`{shown}` failed: {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed something that is not UTF-8"))
}

fn show(command: &Command) -> String {
    // The full path to a toolchain's cargo helps nobody who wants to repeat the command.
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Failed, cargo, exit_code, is_set_by_cargo, output, program, run, show, succeeds};
    use std::process::ExitCode;

    #[test]
    fn a_failing_program_hands_on_its_exit_code() {
        let outcome = run(&mut program("sh", &["-c", "exit 7"]));
        let code = outcome.err().map(|error| format!("{:?}", exit_code(&error)));
        assert_eq!(code, Some(format!("{:?}", ExitCode::from(7))));
    }

    #[test]
    fn other_errors_end_with_one() {
        let code = exit_code(&anyhow::anyhow!("no disk"));
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::from(1)));
        let context = anyhow::Error::from(Failed { what: "step".into(), code: 4 }).context("while testing");
        assert_eq!(format!("{:?}", exit_code(&context)), format!("{:?}", ExitCode::from(4)));
    }

    #[test]
    fn programs_are_asked_and_read() -> anyhow::Result<()> {
        assert!(succeeds(&mut program("true", &[])));
        assert!(!succeeds(&mut program("false", &[])));
        assert!(!succeeds(&mut program("no-such-program-anywhere", &[])));
        assert_eq!(output(&mut program("printf", &["hello"]))?, "hello");
        Ok(())
    }

    #[test]
    fn children_do_not_see_what_cargo_set_for_us() -> anyhow::Result<()> {
        // Cargo sets these for a test as well as for a program that it runs.
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some() && std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        let inherited = output(&mut program("env", &[]))?;
        let names = inherited.lines().filter_map(|line| Some(line.split_once('=')?.0));
        assert_eq!(names.filter(|name| is_set_by_cargo(name)).collect::<Vec<_>>(), [""; 0]);
        let command = cargo(&["build"]);
        let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert!(removed.contains(&"CARGO_PKG_NAME".as_ref()) && removed.contains(&"CARGO_MANIFEST_DIR".as_ref()));
        Ok(())
    }

    #[test]
    fn what_a_user_sets_for_cargo_stays() {
        let set_by_cargo = ["CARGO", "CARGO_MANIFEST_DIR", "CARGO_PKG_VERSION_MAJOR", "CARGO_BIN_NAME", "OUT_DIR"];
        assert_eq!(set_by_cargo.map(is_set_by_cargo), [true; 5]);
        let set_by_users =
            ["CARGO_HOME", "CARGO_TARGET_DIR", "CARGO_BUILD_JOBS", "CARGO_NET_OFFLINE", "CARGO_INCREMENTAL"];
        assert_eq!(set_by_users.map(is_set_by_cargo), [false; 5]);
        let set_by_users = ["CARGO_TERM_COLOR", "CARGO_PROFILE_RELEASE_LTO", "CARGO_ENCODED_RUSTFLAGS", "PATH", "HOME"];
        assert_eq!(set_by_users.map(is_set_by_cargo), [false; 5]);
    }

    #[test]
    fn commands_are_shown_without_their_folder() {
        assert_eq!(show(&program("/somewhere/bin/cargo", &["fmt", "--all"])), "cargo fmt --all");
    }
}
