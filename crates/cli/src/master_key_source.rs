//! Where the master key comes from: a file, the environment, or a systemd credential.

use crate::failure::Failure;
use crate::master_key_file::{self, Secret};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use store::MasterKey;
use zeroize::Zeroizing;

/// Contains the key itself.
pub(crate) const VARIABLE: &str = "ANTEROOM_MASTER_KEY";
/// Contains the path of the key file.
const FILE_VARIABLE: &str = "ANTEROOM_MASTER_KEY_FILE";
/// Set by systemd: the folder with the credentials of the service.
pub(crate) const CREDENTIALS_VARIABLE: &str = "CREDENTIALS_DIRECTORY";
const CREDENTIAL_NAME: &str = "anteroom-master-key";

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum MasterKeySource {
    /// `init` creates this file.
    File(PathBuf),
    Variable(Secret),
    /// A file that systemd created.
    Credential(PathBuf),
}

impl fmt::Display for MasterKeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MasterKeySource::File(path) => write!(f, "{}", path.display()),
            MasterKeySource::Variable(_) => write!(f, "the environment variable {VARIABLE}"),
            MasterKeySource::Credential(path) => write!(f, "the credential {}", path.display()),
        }
    }
}

impl fmt::Debug for MasterKeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKeySource({self})")
    }
}

impl MasterKeySource {
    /// Parses the value of the environment variable. The error never shows the value.
    pub(crate) fn from_variable(text: &OsStr) -> Result<MasterKeySource, Failure> {
        let text = Zeroizing::new(text.to_string_lossy().into_owned());
        let secret = master_key_file::parse_recovery_text(&text).map_err(|_| {
            let what = format!("{VARIABLE} is not a master key (64 hexadecimal digits) or a recovery text");
            let what_to_do = format!("correct it; to use a key file, set {FILE_VARIABLE} or pass --master-key");
            Failure::new(what, what_to_do)
        })?;
        Ok(MasterKeySource::Variable(secret))
    }

    pub(crate) fn from_credentials(folder: &Path) -> Option<MasterKeySource> {
        let path = folder.join(CREDENTIAL_NAME);
        path.exists().then_some(MasterKeySource::Credential(path))
    }

    pub(crate) fn exists(&self) -> bool {
        match self {
            MasterKeySource::File(path) | MasterKeySource::Credential(path) => path.exists(),
            MasterKeySource::Variable(_) => true,
        }
    }

    /// The key file that `init` may create. `None` if the environment or systemd provides the key.
    pub(crate) fn key_file(&self) -> Option<&Path> {
        match self {
            MasterKeySource::File(path) => Some(path),
            MasterKeySource::Variable(_) | MasterKeySource::Credential(_) => None,
        }
    }

    pub(crate) fn read_secret(&self) -> Result<Secret, Failure> {
        match self {
            MasterKeySource::File(path) => master_key_file::read(path),
            // systemd controls who may read it, so the file mode says nothing.
            MasterKeySource::Credential(path) => master_key_file::read_without_mode_check(path),
            MasterKeySource::Variable(secret) => Ok(secret.clone()),
        }
    }

    pub(crate) fn read(&self) -> Result<MasterKey, Failure> {
        Ok(MasterKey::new(&*self.read_secret()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_contains_digits_or_a_recovery_text_and_is_never_shown() {
        let digits = "ab".repeat(32);
        for text in [digits.clone(), "abab ".repeat(16), "ABAB-".repeat(16)] {
            let source = MasterKeySource::from_variable(OsStr::new(&text)).expect("a key");
            assert_eq!(source, MasterKeySource::Variable(Secret::new([0xab; 32])));
            assert!(!format!("{source:?} {source}").contains("abab"));
        }
        for wrong in [&digits[1..], "/etc/anteroom/master.key", "zz"] {
            let failure = MasterKeySource::from_variable(OsStr::new(wrong)).expect_err("no key");
            assert!(!format!("{failure:?}").contains(wrong), "{failure:?}");
        }
    }
}
