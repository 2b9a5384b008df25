//! Reads the configuration file. Every name in it must be known, so that a misspelt setting is an error.

use super::api_keys::parse_declared_keys;
use super::load::{TEXT_SETTINGS, unknown_setting};
use super::{DeclaredKey, SECTIONS};
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Larger files are refused: the path is probably wrong.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Paths in the file are relative to its folder.
const PATH_SETTINGS: [&str; 5] = ["data_dir", "master_key_file", "tls_certificate", "tls_key", "backup_dir"];
/// The array of tables that declares API keys.
const API_KEYS: &str = "api_keys";

/// The contents of the configuration file.
#[derive(Debug, Default)]
pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    /// By full name, such as `store.cache_mib`.
    pub(super) values: BTreeMap<String, toml::Value>,
    pub(super) keys: Vec<DeclaredKey>,
}

impl ConfigFile {
    pub(super) fn read(path: PathBuf) -> Result<ConfigFile, Failure> {
        let failed = |why| Failure::file("read the configuration file", &path, &why);
        let metadata = std::fs::metadata(&path).map_err(failed)?;
        if metadata.is_file() && metadata.len() > FILE_BYTES_MAX {
            let what = format!("the configuration file {} is larger than 1 MiB", path.display());
            return Err(Failure::new(what, "check the path"));
        }
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        let shown_path = path.display().to_string();
        let table: toml::Table = text.parse().map_err(|why: toml::de::Error| {
            let what = format!("the configuration file {shown_path} is not valid TOML: {}", why.to_string().trim());
            Failure::new(what, "correct the line; `anteroom config --sample` prints a valid file")
        })?;
        let values = read_settings(&table).map_err(|name| unknown_setting(&name, &shown_path))?;
        for name in TEXT_SETTINGS {
            if values.get(name).is_some_and(|value| !value.is_str()) {
                return Err(Failure::new(
                    format!("{shown_path}: the value of {name} must be a string"),
                    "put it in quotes",
                ));
            }
        }
        let keys = parse_declared_keys(&text, &shown_path)?;
        Ok(ConfigFile { path, values, keys })
    }

    /// The value of a text setting. A path is resolved against the folder of the file.
    pub(super) fn text(&self, name: &str) -> Option<OsString> {
        let value = self.values.get(name)?.as_str()?;
        if !PATH_SETTINGS.contains(&name) {
            return Some(value.into());
        }
        let folder = self.path.parent().unwrap_or(Path::new(""));
        Some(folder.join(value).into())
    }
}

/// The settings of a file by full name. The error is the first name that is not known.
pub(super) fn read_settings(table: &toml::Table) -> Result<BTreeMap<String, toml::Value>, String> {
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
            (None, value) if TEXT_SETTINGS.contains(&name.as_str()) => {
                values.insert(name.clone(), value.clone());
            }
            // `parse_declared_keys` reads these together with their line numbers.
            (None, _) if name == API_KEYS => {}
            (Some(_) | None, _) => return Err(name.clone()),
        }
    }
    Ok(values)
}
