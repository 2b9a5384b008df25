//! Where the master key is: in a file, in the environment, or in a credential that the service manager hands over.

use crate::failure::Failure;
use crate::master_key_file::{self, Secret};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use store::MasterKey;
use zeroize::Zeroizing;

/// The environment variable that holds the key itself.
pub(crate) const VARIABLE: &str = "ANTEROOM_MASTER_KEY";
/// The environment variable that names the file with the key.
pub(crate) const FILE_VARIABLE: &str = "ANTEROOM_MASTER_KEY_FILE";
/// Where systemd puts credentials.
pub(crate) const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";
/// The name of the credential.
const CREDENTIAL: &str = "anteroom-master-key";

/// Where the master key is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// In a file, which `init` makes.
    File(PathBuf),
    /// In the environment.
    Variable(Secret),
    /// In a file that the service manager made.
    Credential(PathBuf),
}

impl fmt::Display for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyPlace::File(path) => write!(f, "{}", path.display()),
            KeyPlace::Variable(_) => write!(f, "the environment variable {VARIABLE}"),
            KeyPlace::Credential(path) => write!(f, "the credential {}", path.display()),
        }
    }
}

impl fmt::Debug for KeyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPlace({self})")
    }
}

impl KeyPlace {
    /// The key that the environment holds. What it holds is never shown, even if it is no key.
    pub(crate) fn of_variable(text: &OsStr) -> Result<KeyPlace, Failure> {
        let text = Zeroizing::new(text.to_string_lossy().into_owned());
        let secret = master_key_file::read_recovery_text(&text).map_err(|_| {
            let what = format!("{VARIABLE} does not hold a master key: 64 hexadecimal digits, or a recovery text");
            let what_to_do = format!("correct it; to name a file with the key, use {FILE_VARIABLE} or --master-key");
            Failure::new(what, what_to_do)
        })?;
        Ok(KeyPlace::Variable(secret))
    }

    /// The credential in the folder of credentials, if there is one.
    pub(crate) fn of_credentials(folder: &Path) -> Option<KeyPlace> {
        let path = folder.join(CREDENTIAL);
        path.exists().then_some(KeyPlace::Credential(path))
    }

    /// Whether there is a key.
    pub(crate) fn exists(&self) -> bool {
        match self {
            KeyPlace::File(path) | KeyPlace::Credential(path) => path.exists(),
            KeyPlace::Variable(_) => true,
        }
    }

    /// The file that holds the key and is ours to make; none if the key is handed to us.
    pub(crate) fn own_file(&self) -> Option<&Path> {
        match self {
            KeyPlace::File(path) => Some(path),
            KeyPlace::Variable(_) | KeyPlace::Credential(_) => None,
        }
    }

    /// The secret, as it is.
    pub(crate) fn secret(&self) -> Result<Secret, Failure> {
        match self {
            KeyPlace::File(path) => master_key_file::read(path),
            // The service manager sees to who may read it.
            KeyPlace::Credential(path) => master_key_file::read_quietly(path),
            KeyPlace::Variable(secret) => Ok(secret.clone()),
        }
    }

    /// The key.
    pub(crate) fn read(&self) -> Result<MasterKey, Failure> {
        Ok(MasterKey::new(&*self.secret()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_holds_digits_or_a_recovery_text_and_is_never_shown() {
        let digits = "ab".repeat(32);
        for text in [digits.clone(), "abab ".repeat(16), "ABAB-".repeat(16)] {
            let place = KeyPlace::of_variable(OsStr::new(&text)).expect("a key");
            assert_eq!(place, KeyPlace::Variable(Secret::new([0xab; 32])));
            assert!(!format!("{place:?} {place}").contains("abab"));
        }
        for wrong in [&digits[1..], "/etc/anteroom/master.key", "zz"] {
            let failure = KeyPlace::of_variable(OsStr::new(wrong)).expect_err("no key");
            assert!(!format!("{failure:?}").contains(wrong), "{failure:?}");
        }
    }
}
