//! The configuration file: read whole, with every key in it known, before anything is taken from it.

use super::api_keys::declared;
use super::load::{TEXTS, unknown};
use super::{DeclaredKey, SECTIONS};
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A configuration file larger than this is something else.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Settings that are paths, and relative to the file.
const PATHS: [&str; 5] = ["data_dir", "master_key", "tls_certificate", "tls_key", "backup_dir"];
/// Where keys are declared in the file.
const KEYS: &str = "keys";

/// What the configuration file says.
#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// By full key.
    pub(super) values: BTreeMap<String, toml::Value>,
    pub(super) keys: Vec<DeclaredKey>,
}

impl File {
    pub(super) fn read(path: PathBuf) -> Result<File, Failure> {
        let failed = |why| Failure::file("read the configuration file", &path, &why);
        let metadata = std::fs::metadata(&path).map_err(failed)?;
        if metadata.is_file() && metadata.len() > FILE_BYTES_MAX {
            let what = format!("{} is too large for a configuration file", path.display());
            return Err(Failure::new(what, "check the path"));
        }
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        let place = path.display().to_string();
        let table: toml::Table = text.parse().map_err(|why: toml::de::Error| {
            let what = format!("{place} is not a configuration file: {}", why.to_string().trim());
            Failure::new(what, "correct the line; `anteroom config --sample` prints a file that is right")
        })?;
        let values = keys_of(&table).map_err(|key| unknown(&key, &place))?;
        for name in TEXTS {
            if values.get(name).is_some_and(|value| !value.is_str()) {
                return Err(Failure::new(format!("{place}: {name} is not text"), "put it in quotes"));
            }
        }
        let keys = declared(&text, &place)?;
        Ok(File { path, values, keys })
    }

    /// A text; paths are relative to the file.
    pub(super) fn text(&self, name: &str) -> Option<OsString> {
        let value = self.values.get(name)?.as_str()?;
        if !PATHS.contains(&name) {
            return Some(value.into());
        }
        let folder = self.path.parent().unwrap_or(Path::new(""));
        Some(folder.join(value).into())
    }
}

/// The values of a file by full key. The first key that is not known is the error.
pub(super) fn keys_of(table: &toml::Table) -> Result<BTreeMap<String, toml::Value>, String> {
    let mut values = BTreeMap::new();
    for (name, value) in table {
        let section = SECTIONS.iter().find(|section| section.name == name);
        match (section, value) {
            (Some(section), toml::Value::Table(inner)) => {
                for (setting, value) in inner {
                    let key = format!("{name}.{setting}");
                    if !section.settings.iter().any(|known| known.name == setting) {
                        return Err(key);
                    }
                    values.insert(key, value.clone());
                }
            }
            (None, value) if TEXTS.contains(&name.as_str()) => {
                values.insert(name.clone(), value.clone());
            }
            // What is in it is read, and checked, with the places where it stands.
            (None, _) if name == KEYS => {}
            (Some(_) | None, _) => return Err(name.clone()),
        }
    }
    Ok(values)
}
