//! The `anteroom` command: arguments, configuration, logging; the composition root.
//!
//! [`arguments`] defines the options, [`config`] finds the settings, and [`commands`] has one file per command. Every
//! command returns a result that is printed as text or as one JSON document; every error says what happened and what to
//! do. Only this crate reads the system clock, prints, and ends the process.

mod app;
mod arguments;
// `pub` is used inside the benchmarks as if they were a crate of their own.
#[allow(unreachable_pub)]
mod bench;
mod clock;
mod commands;
mod config;
mod configured_keys;
mod context;
mod data_folder;
mod event_id_argument;
mod failure;
mod formatting;
mod home_space;
mod huge_pages;
mod json_table;
mod logging;
mod master_key_file;
mod master_key_source;
mod object_store;
mod open_file_limit;
mod operator_client;
mod operator_token;
mod output;
mod passphrase;
mod progress;
mod random;
mod render_process;
mod row_rewrite;
mod signals;
mod welcome_thread;

use arguments::Arguments;
use clap::Parser as _;
use clap::error::ErrorKind;
use context::Context;
use failure::Failure;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// The database allocates pages on one thread and frees them on another. The system's allocator is slower at that and
/// keeps much of the memory.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if render_process::is_asked() {
        return render_process::run();
    }
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return handle_clap_error(&error),
    };
    let json = arguments.global.json;
    let run = || {
        let context = Context::new(&arguments.global)?;
        commands::run(&context, arguments.command)
    };
    std::panic::set_hook(Box::new(log_panic));
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => output::print_failure(json, &failure),
        Err(panic) => output::print_failure(json, &describe_panic(panic.as_ref())),
    }
}

/// A panic on the main thread becomes the error of the command; one on any other thread is logged here, with its place.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let thread = std::thread::current();
    if thread.name() == Some("main") {
        return;
    }
    let at = panic.location().map(ToString::to_string).unwrap_or_default();
    let what = panic_text(panic.payload());
    tracing::error!(thread = thread.name().unwrap_or_default(), at, what, "internal error: a thread ended");
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("unknown reason")
}

/// The database engine can panic on a damaged file.
fn describe_panic(panic: &(dyn std::any::Any + Send)) -> Failure {
    let what = format!("internal error: {}", panic_text(panic));
    Failure::new(what, "the database may be damaged: keep a copy of the data folder, and restore a backup")
}

/// clap reports help and version as errors too; they go to standard output.
fn handle_clap_error(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match output::write_stdout(&error.render().to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => output::print_failure(false, &failure),
        };
    }
    let wants_json = std::env::args_os().any(|word| word == "--json");
    let text = error.render().to_string();
    if wants_json {
        // The first paragraph is the error; the rest is usage information.
        let first = text.trim().trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
        let what: Vec<&str> = first.split_whitespace().collect();
        return output::print_failure(
            true,
            &Failure::new(what.join(" "), "run `anteroom help` for the commands and options"),
        );
    }
    output::write_stderr(&text);
    ExitCode::from(2)
}
