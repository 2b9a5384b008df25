//! Answers go to standard output, complaints to standard error. Neither ever panics: a closed pipe ends us quietly.

use crate::failure::Failure;
use serde::Serialize;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// Shows an answer: as text, or as one JSON document.
pub(crate) fn show<T: Serialize + Display>(json: bool, answer: &T) -> Result<(), Failure> {
    write(&render(json, answer)?)
}

/// Shows an answer on standard error, where standard output carries something else.
pub(crate) fn show_beside<T: Serialize + Display>(json: bool, answer: &T) -> Result<(), Failure> {
    complain(&render(json, answer)?);
    Ok(())
}

fn render<T: Serialize + Display>(json: bool, answer: &T) -> Result<String, Failure> {
    let mut text = if json {
        let cannot = |why| Failure::new(format!("cannot write the answer as JSON: {why}"), "leave out --json");
        serde_json::to_string_pretty(answer).map_err(cannot)?
    } else {
        answer.to_string()
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Writes text to standard output.
pub(crate) fn write(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|why| match why.kind() {
        io::ErrorKind::BrokenPipe => Failure::Closed,
        _ => Failure::new(format!("cannot write to standard output: {why}"), "check where the output goes"),
    })
}

/// Writes text to standard error, if anyone listens.
pub(crate) fn complain(text: &str) {
    let mut out = io::stderr().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// Says what went wrong and what to do. Answers with the code to exit with.
pub(crate) fn fail(json: bool, failure: &Failure) -> ExitCode {
    match failure {
        // As a program does that is ended by the signal for this.
        Failure::Closed => ExitCode::from(141),
        Failure::Named { what, what_to_do, so_far } if json => {
            let mut document = serde_json::json!({ "error": what, "what_to_do": what_to_do });
            if let (Some(fields), Some(so_far)) = (document.as_object_mut(), so_far) {
                fields.insert("so_far".into(), so_far.clone());
            }
            complain(&format!("{document}\n"));
            ExitCode::FAILURE
        }
        Failure::Named { what, what_to_do, .. } => {
            complain(&format!("error: {what}\nwhat to do: {what_to_do}\n"));
            ExitCode::FAILURE
        }
    }
}
