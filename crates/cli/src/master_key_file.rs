//! The master key file, and the recovery text that the operator writes down.
//!
//! Both contain the same 64 hexadecimal digits; the recovery text shows them in groups of four.

use crate::failure::Failure;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use store::disk::sync_dir;
use zeroize::Zeroizing;

/// The secret bytes of a master key. They are overwritten when dropped.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

const DIGITS: usize = 64;
const FILE_BYTES_MAX: u64 = 4096;

pub(crate) fn generate_secret() -> Result<Secret, Failure> {
    let mut secret = Secret::default();
    getrandom::fill(secret.as_mut_slice()).map_err(|why| {
        Failure::new(format!("the operating system provides no random numbers: {why}"), "try again in a moment")
    })?;
    Ok(secret)
}

pub(crate) fn format_recovery_text(secret: &Secret) -> Zeroizing<String> {
    let digits = Zeroizing::new(hex::encode(secret.as_slice()));
    let groups: Vec<&str> = (0..DIGITS / 4).map(|group| &digits[4 * group..4 * group + 4]).collect();
    Zeroizing::new(groups.join(" "))
}

/// The recovery text as it is shown: eight groups a line.
pub(crate) fn write_in_lines(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let groups: Vec<&str> = text.split(' ').collect();
    groups.chunks(8).try_for_each(|line| writeln!(f, "    {}", line.join(" ")))
}

/// Ignores whitespace, hyphens and case.
pub(crate) fn parse_recovery_text(text: &str) -> Result<Secret, Failure> {
    let digits: Zeroizing<String> =
        Zeroizing::new(text.chars().filter(|letter| !letter.is_whitespace() && *letter != '-').collect());
    let mut secret = Secret::default();
    hex::decode_to_slice(digits.as_bytes(), secret.as_mut_slice()).map_err(|_| {
        let what = format!("this is not a recovery text: it must have {DIGITS} hexadecimal digits");
        Failure::new(what, "compare it with your copy, group by group")
    })?;
    Ok(secret)
}

/// Reads the recovery text from the argument, or from standard input if the argument is `-`.
pub(crate) fn read_recovery_argument(text: &str) -> Result<Secret, Failure> {
    if text != "-" {
        return parse_recovery_text(text);
    }
    let mut text = Zeroizing::new(String::new());
    std::io::stdin()
        .take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|why| Failure::new(format!("cannot read the recovery text: {why}"), "pass it as an argument"))?;
    parse_recovery_text(&text)
}

/// Writes a new file that only its owner may read. An existing file is an error.
pub(crate) fn write(path: &Path, secret: &Secret) -> Result<(), Failure> {
    let failed = |why| Failure::file("write the master key", path, &why);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failed)?;
    let digits = Zeroizing::new(format!("{}\n", hex::encode(secret.as_slice())));
    file.write_all(digits.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
    sync_dir(folder).map_err(failed)
}

/// Logs a warning if other users can read the file.
pub(crate) fn read(path: &Path) -> Result<Secret, Failure> {
    let secret = read_without_mode_check(path)?;
    warn_if_readable_by_others(path);
    Ok(secret)
}

pub(crate) fn read_without_mode_check(path: &Path) -> Result<Secret, Failure> {
    let failed = |why: std::io::Error| match why.kind() {
        std::io::ErrorKind::NotFound => Failure::new(
            format!("there is no master key at {}", path.display()),
            "restore the file, pass --master-key FILE, or recreate it from the recovery text with \
             `anteroom init --recover TEXT`",
        ),
        _ => Failure::file("read the master key", path, &why),
    };
    let file = File::open(path).map_err(failed)?;
    let mut text = Zeroizing::new(Vec::new());
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
    let secret = std::str::from_utf8(&text).ok().and_then(|text| parse_recovery_text(text).ok());
    let Some(secret) = secret else {
        let what = format!("{} is not a master key file: it must contain {DIGITS} hexadecimal digits", path.display());
        return Err(Failure::new(
            what,
            "pass the right file with --master-key, or recreate it with `anteroom init --recover TEXT`",
        ));
    };
    Ok(secret)
}

fn warn_if_readable_by_others(path: &Path) {
    if let Ok(metadata) = fs::metadata(path)
        && metadata.permissions().mode() & 0o077 != 0
    {
        let path = path.display();
        tracing::warn!("other users can read the master key {path}; run: chmod 600 {path}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_text_is_parsed_whatever_its_case_and_separators() {
        let mut secret = Secret::default();
        secret.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8 * 7);
        let text = format_recovery_text(&secret);
        assert_eq!((text.len(), text.split(' ').count()), (79, 16));
        for written in [text.to_string(), text.to_uppercase(), text.replace(' ', "-\n"), text.replace(' ', "")] {
            assert_eq!(parse_recovery_text(&written), Ok(secret.clone()));
        }
        for wrong in ["", "00", &text[..78], &text.replace('0', "g"), &format!("{}00", *text)] {
            assert!(parse_recovery_text(wrong).is_err());
        }
    }
}
