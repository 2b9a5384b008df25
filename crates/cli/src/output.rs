//! Results go to standard output, errors to standard error. A closed pipe ends the process without a message.

use crate::failure::Failure;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Prints a result to standard error, for commands that write data to standard output.
pub(crate) fn print_to_stderr<T: Serialize + Display>(json: bool, answer: &T) -> Result<(), Failure> {
    write_stderr(&render(json, answer)?);
    Ok(())
}

/// A result as text or as one JSON document.
pub(crate) fn render<T: Serialize + Display>(json: bool, answer: &T) -> Result<String, Failure> {
    let mut text = if json {
        let cannot = |why| Failure::new(format!("cannot write the result as JSON: {why}"), "leave out --json");
        serde_json::to_string_pretty(answer).map_err(cannot)?
    } else {
        answer.to_string()
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

pub(crate) fn write_stdout(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|why| match why.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::new(format!("cannot write to standard output: {why}"), "check where the output is redirected to"),
    })
}

/// Ignores errors: there is nowhere else to report them.
pub(crate) fn write_stderr(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Prints an error and returns the exit code.
pub(crate) fn print_failure(json: bool, failure: &Failure) -> ExitCode {
    match failure {
        // The exit code of a program that SIGPIPE ends.
        Failure::OutputClosed => ExitCode::from(141),
        Failure::Reported { what, what_to_do, so_far } if json => {
            let mut document = serde_json::json!({ "error": what, "what_to_do": what_to_do });
            if let (Some(fields), Some(so_far)) = (document.as_object_mut(), so_far) {
                fields.insert("so_far".into(), so_far.clone());
            }
            write_stderr(&format!("{document}\n"));
            ExitCode::FAILURE
        }
        Failure::Reported { what, what_to_do, .. } => {
            write_stderr(&format!("error: {what}\nwhat to do: {what_to_do}\n"));
            ExitCode::FAILURE
        }
    }
}
