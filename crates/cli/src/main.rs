//! The `anteroom` command: arguments, configuration, logging; the composition root.
//!
//! [`arguments`] says what can be asked, [`config`] where settings come from, and [`commands`] has one file per
//! command. Every command answers with a value that can be shown as text or as one JSON document; every failure says
//! what was tried and what to do. Only this crate reads the real clock, prints, and ends the process.

mod app;
mod arguments;
// The benchmarks say `pub` among themselves, as a crate of their own would.
#[allow(unreachable_pub)]
mod bench;
mod clock;
mod commands;
mod config;
mod configured_keys;
mod context;
mod data_folder;
mod failure;
mod formatting;
mod home_space;
mod huge_pages;
mod json_table;
mod logging;
mod master_key_file;
mod master_key_source;
mod open_file_limit;
mod operator_client;
mod output;
mod progress;
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

/// Pages of the database are allocated on one thread and freed on another all the time; the system's allocator keeps
/// much of that memory, and takes longer.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return misunderstood(&error),
    };
    let json = arguments.global.json;
    let run = || {
        let context = Context::new(&arguments.global)?;
        commands::run(&context, arguments.command)
    };
    // A damaged database can make its engine give up in the middle of an answer.
    std::panic::set_hook(Box::new(|_| ()));
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => output::fail(json, &failure),
        Err(panic) => output::fail(json, &gave_up(panic.as_ref())),
    }
}

fn gave_up(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let what = format!("the command gave up, which it never should: {}", text.unwrap_or("no reason is known"));
    Failure::new(what, "the database may be damaged: keep a copy of the folder, and restore a backup")
}

/// Help and versions are answers; everything else that clap says is a failure.
fn misunderstood(error: &clap::Error) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match output::write(&error.render().to_string()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => output::fail(false, &failure),
        };
    }
    let wants_json = std::env::args_os().any(|word| word == "--json");
    let text = error.render().to_string();
    if wants_json {
        // The first paragraph is what is wrong; the rest is how to use the command.
        let first = text.trim().trim_start_matches("error: ").split("\n\n").next().unwrap_or_default();
        let what: Vec<&str> = first.split_whitespace().collect();
        return output::fail(true, &Failure::new(what.join(" "), "run `anteroom help` to see what can be asked"));
    }
    output::complain(&text);
    ExitCode::from(2)
}
