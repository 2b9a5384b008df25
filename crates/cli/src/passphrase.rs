//! Where a passphrase comes from: a file or the environment, never the command line, which other users can see.

use crate::failure::Failure;
use clap::Args;
use node::bundle::{PASSPHRASE_BYTES_MAX, PASSPHRASE_CHARS_MIN, Passphrase};
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

pub(crate) const VARIABLE: &str = "ANTEROOM_PASSPHRASE";

/// The options that name a passphrase.
#[derive(Debug, Default, Args)]
pub(crate) struct PassphraseSource {
    /// The file whose first line is the passphrase; otherwise ANTEROOM_PASSPHRASE is used
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl PassphraseSource {
    /// Whether a file is named.
    pub(crate) fn is_named(&self) -> bool {
        self.passphrase_file.is_some()
    }

    /// The passphrase, if one is given; a new one has a least length.
    pub(crate) fn read(&self, is_new: bool) -> Result<Option<Passphrase>, Failure> {
        let text = match &self.passphrase_file {
            Some(path) => {
                let mut text = String::new();
                let file = File::open(path)
                    .and_then(|file| file.take(2 * PASSPHRASE_BYTES_MAX as u64).read_to_string(&mut text));
                file.map_err(|why| Failure::file("read the passphrase from", path, &why))?;
                text.lines().next().unwrap_or_default().to_owned()
            }
            None => match std::env::var(VARIABLE) {
                Ok(text) => text,
                Err(_) => return Ok(None),
            },
        };
        let what = format!(
            "a passphrase has at least {PASSPHRASE_CHARS_MIN} characters and at most {PASSPHRASE_BYTES_MAX} bytes"
        );
        let passphrase = if is_new { Passphrase::new(&text) } else { Passphrase::of(&text) };
        let what_to_do = if is_new { "choose another passphrase" } else { "pass the one that was given to export" };
        passphrase.map(Some).ok_or_else(|| Failure::new(what, what_to_do))
    }
}
