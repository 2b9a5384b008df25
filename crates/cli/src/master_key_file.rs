//! The file with the master key, and the recovery text that people write down.
//!
//! Both are the same 64 hexadecimal digits; the recovery text has them in groups of four.

use crate::failure::Failure;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use store::disk::sync_dir;
use zeroize::Zeroizing;

/// The secret bytes of a master key. They are wiped when they are no longer needed.
pub(crate) type Secret = Zeroizing<[u8; 32]>;

const DIGITS: usize = 64;
const FILE_BYTES_MAX: u64 = 4096;

/// A new secret.
pub(crate) fn make() -> Result<Secret, Failure> {
    let mut secret = Secret::default();
    getrandom::fill(secret.as_mut_slice())
        .map_err(|why| Failure::new(format!("the machine gives no randomness: {why}"), "try again in a moment"))?;
    Ok(secret)
}

/// The recovery text of a secret.
pub(crate) fn recovery_text(secret: &Secret) -> Zeroizing<String> {
    let digits = Zeroizing::new(hex::encode(secret.as_slice()));
    let groups: Vec<&str> = (0..DIGITS / 4).map(|group| &digits[4 * group..4 * group + 4]).collect();
    Zeroizing::new(groups.join(" "))
}

/// The secret that a recovery text stands for. Spaces, line ends, hyphens and capitals do not matter.
pub(crate) fn read_recovery_text(text: &str) -> Result<Secret, Failure> {
    let digits: Zeroizing<String> =
        Zeroizing::new(text.chars().filter(|letter| !letter.is_whitespace() && *letter != '-').collect());
    let mut secret = Secret::default();
    hex::decode_to_slice(digits.as_bytes(), secret.as_mut_slice()).map_err(|_| {
        let what = format!("a recovery text has {DIGITS} digits from 0 to 9 and a to f, and this has other ones");
        Failure::new(what, "compare it with what was written down, group by group")
    })?;
    Ok(secret)
}

/// The recovery text as it was passed, or from standard input for `-`.
pub(crate) fn recovery_argument(text: &str) -> Result<Secret, Failure> {
    if text != "-" {
        return read_recovery_text(text);
    }
    let mut text = Zeroizing::new(String::new());
    std::io::stdin()
        .take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .map_err(|why| Failure::new(format!("cannot read the recovery text: {why}"), "pass it as text"))?;
    read_recovery_text(&text)
}

/// Writes a secret to a new file that only its owner may read.
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

/// Reads the master key. Warns if others could, too.
pub(crate) fn read(path: &Path) -> Result<Secret, Failure> {
    let secret = read_quietly(path)?;
    warn_if_readable_by_others(path);
    Ok(secret)
}

/// Reads the master key from a file that somebody else looks after.
pub(crate) fn read_quietly(path: &Path) -> Result<Secret, Failure> {
    let failed = |why: std::io::Error| match why.kind() {
        std::io::ErrorKind::NotFound => Failure::new(
            format!("there is no master key at {}", path.display()),
            "put the file back, pass --master-key FILE, or recreate it with `anteroom init --recover` and the \
             recovery text",
        ),
        _ => Failure::file("read the master key", path, &why),
    };
    let file = File::open(path).map_err(failed)?;
    let mut text = Zeroizing::new(Vec::new());
    file.take(FILE_BYTES_MAX).read_to_end(&mut text).map_err(failed)?;
    let secret = std::str::from_utf8(&text).ok().and_then(|text| read_recovery_text(text).ok());
    let Some(secret) = secret else {
        let what = format!("{} is not a master key: it does not hold {DIGITS} hexadecimal digits", path.display());
        return Err(Failure::new(what, "pass the right file with --master-key, or recreate it with `init --recover`"));
    };
    Ok(secret)
}

fn warn_if_readable_by_others(path: &Path) {
    if let Ok(metadata) = fs::metadata(path)
        && metadata.permissions().mode() & 0o077 != 0
    {
        let path = path.display();
        tracing::warn!("others can read the master key {path}; run: chmod 600 {path}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recovery_texts_read_back_however_they_are_written() {
        let mut secret = Secret::default();
        secret.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8 * 7);
        let text = recovery_text(&secret);
        assert_eq!((text.len(), text.split(' ').count()), (79, 16));
        for written in [text.to_string(), text.to_uppercase(), text.replace(' ', "-\n"), text.replace(' ', "")] {
            assert_eq!(read_recovery_text(&written), Ok(secret.clone()));
        }
        for wrong in ["", "00", &text[..78], &text.replace('0', "g"), &format!("{}00", *text)] {
            assert!(read_recovery_text(wrong).is_err());
        }
    }
}
