//! Finds the value of each setting: from flags, then the environment, then the file, then the default.

use super::file::ConfigFile;
use super::nostr_keys::{parse_archive, parse_git_access};
use super::object_store::{ObjectStoreSettings, REGION_DEFAULT, parse_object_store};
use super::parsing::{parse_address, parse_networks, parse_public_url, split_list, tls_files};
use super::renditions::{RENDITIONS_DEFAULT, parse_renditions};
use super::suggestion::closest_name;
use super::{Config, DeclaredKey, SECTIONS, Section, Setting};
use crate::failure::Failure;
use crate::master_key_source::{self, MasterKeySource};
use crate::passphrase;
use ipnet::IpNet;
use media::Variant;
use node::git::GitAccess;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Settings that are strings. They are not in a section.
pub(super) const TEXT_SETTINGS: [&str; 22] = [
    "data_dir",
    "master_key_file",
    "listen",
    "public_url",
    "tls_certificate",
    "tls_key",
    "metrics_listen",
    "cors_origins",
    "trusted_proxies",
    "backup_dir",
    "git_owners",
    "git_writers",
    "git_banned",
    "git_operator",
    "git_archive",
    "git_archive_relays",
    "sync_private_networks",
    "renditions",
    "object_store",
    "object_store_region",
    "object_store_key_file",
    "log",
];

/// Where the value of a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Environment(String),
    File(PathBuf),
    Credential,
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) => write!(f, "flag {name}"),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::File(path) => write!(f, "file {}", path.display()),
            Origin::Credential => f.write_str("systemd credential"),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// A setting with the value that is used, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EffectiveSetting {
    /// With its section, such as `store.cache_mib`.
    pub(crate) name: String,
    /// In TOML syntax.
    pub(crate) value: String,
    pub(crate) origin: Origin,
}

/// The flags, and access to the environment.
pub(crate) struct SettingInputs<'a> {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) master_key: Option<PathBuf>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) listen: Option<String>,
    pub(crate) log: Option<String>,
    pub(crate) set: &'a [String],
    pub(crate) environment: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The values of all settings.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) config: Config,
    pub(crate) data_dir: PathBuf,
    pub(crate) master_key: MasterKeySource,
    pub(crate) listen: SocketAddr,
    /// The address under which others reach the node, without a slash at the end.
    pub(crate) public_url: Option<String>,
    /// The certificate file and the private key file. Without them the node serves plain HTTP.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    /// The folder of scheduled backups.
    pub(crate) backup_dir: Option<PathBuf>,
    pub(crate) declared_keys: Vec<DeclaredKey>,
    pub(crate) cors_origins: Vec<String>,
    /// Proxies whose `X-Forwarded-For` header is trusted.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// The address of the separate metrics listener, which needs no key.
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// Whom the operator wants to have repositories here, and whom not.
    pub(crate) git_access: GitAccess,
    /// Private networks that the node may fetch from.
    pub(crate) sync_private_networks: Vec<IpNet>,
    /// What is made of uploaded images.
    pub(crate) renditions: Vec<Variant>,
    /// Where large content is, if not in the data folder.
    pub(crate) object_store: Option<ObjectStoreSettings>,
    pub(crate) log: String,
    /// All settings, for `anteroom config`.
    pub(crate) effective: Vec<EffectiveSetting>,
}

impl Settings {
    pub(crate) fn server_options(&self) -> server::ServerOptions {
        let limits = self.config.server_limits();
        let backups = self.backup_dir.clone().map(|folder| self.config.backup_plan(folder));
        server::ServerOptions {
            origins: self.cors_origins.clone(),
            proxies: self.trusted_proxies.clone(),
            public_url: self.public_url.clone(),
            backups,
            ..limits
        }
    }

    /// Whether a setting has its default because nothing sets it.
    pub(crate) fn is_default(&self, name: &str) -> bool {
        self.effective.iter().any(|setting| setting.name == name && setting.origin == Origin::Default)
    }
}

pub(crate) fn load(inputs: &SettingInputs<'_>) -> Result<Settings, Failure> {
    let mut layers = Layers::new(inputs)?;
    let flag = |path: &Option<PathBuf>| path.clone().map(OsString::from);
    let data_dir = layers.text("data_dir", "--data-dir", flag(&inputs.data_dir), "./anteroom-data".into());
    let data_dir = PathBuf::from(data_dir);
    let master_key = layers.master_key(flag(&inputs.master_key), data_dir.join("master.key"))?;
    let listen = layers.text("listen", "--listen", inputs.listen.clone().map(OsString::from), LISTEN_DEFAULT.into());
    let listen = parse_address("listen", &listen.to_string_lossy())?;
    let public_url = parse_public_url(&layers.text("public_url", "", None, OsString::new()).to_string_lossy())?;
    let tls = tls_files(layers.path("tls_certificate"), layers.path("tls_key"))?;
    let metrics_listen = layers.text("metrics_listen", "", None, "".into());
    let metrics_listen = match metrics_listen.to_string_lossy().as_ref() {
        "" => None,
        text => Some(parse_address("metrics_listen", text)?),
    };
    let cors_origins = split_list(&layers.text("cors_origins", "", None, OsString::new()));
    let mut networks = |name| parse_networks(name, &layers.text(name, "", None, OsString::new()));
    let (trusted_proxies, sync_private_networks) = (networks("trusted_proxies")?, networks("sync_private_networks")?);
    let backup_dir = layers.path("backup_dir");
    let mut git_list = |name| split_list(&layers.text(name, "", None, OsString::new()));
    let (owners, writers) = (git_list("git_owners"), git_list("git_writers"));
    let mut git_access = parse_git_access(&owners, &writers, &git_list("git_banned"), &git_list("git_operator"))?;
    parse_archive(&git_list("git_archive"), &git_list("git_archive_relays"), &mut git_access)?;
    let renditions = layers.text("renditions", "", None, RENDITIONS_DEFAULT.into());
    let renditions = parse_renditions(&split_list(&renditions))?;
    let place = layers.text("object_store", "", None, OsString::new());
    let region = layers.text("object_store_region", "", None, REGION_DEFAULT.into());
    let key_file = layers.path("object_store_key_file");
    let object_store = parse_object_store(&place.to_string_lossy(), &region.to_string_lossy(), key_file)?;
    let log = layers.text("log", "--log", inputs.log.clone().map(OsString::from), "info".into());
    let mut numbers = BTreeMap::new();
    for (section, setting) in all_settings() {
        numbers.insert((section.name, setting.name), layers.number(section, setting)?);
    }
    let config = Config::from_values(|section, name| numbers.get(&(section, name)).copied().unwrap_or_default());
    let log = log.to_string_lossy().into_owned();
    Ok(Settings {
        config,
        data_dir,
        master_key,
        listen,
        public_url,
        tls,
        backup_dir,
        declared_keys: layers.file.keys,
        metrics_listen,
        cors_origins,
        trusted_proxies,
        git_access,
        sync_private_networks,
        renditions,
        object_store,
        log,
        effective: layers.effective,
    })
}

/// Reachable from this machine only.
pub(super) const LISTEN_DEFAULT: &str = "127.0.0.1:7117";

/// The sources of settings, and the values found so far.
struct Layers<'a> {
    inputs: &'a SettingInputs<'a>,
    file: ConfigFile,
    flags: BTreeMap<String, String>,
    effective: Vec<EffectiveSetting>,
}

impl<'a> Layers<'a> {
    fn new(inputs: &'a SettingInputs<'a>) -> Result<Layers<'a>, Failure> {
        let flags = parse_set_flags(inputs.set)?;
        let mut layers = Layers { inputs, file: ConfigFile::default(), flags, effective: Vec::new() };
        if let Some(path) = inputs.config.clone().or_else(|| layers.environment("ANTEROOM_CONFIG").map(PathBuf::from)) {
            layers.file = ConfigFile::read(path)?;
        }
        Ok(layers)
    }

    fn environment(&self, name: &str) -> Option<OsString> {
        (self.inputs.environment)(name).filter(|value| !value.is_empty())
    }

    /// The value of a text setting and its origin, if anything sets it.
    fn find_text(&self, name: &str, flag_name: &'static str, flag: Option<OsString>) -> Option<(OsString, Origin)> {
        if let Some(value) = flag {
            return Some((value, Origin::Flag(flag_name)));
        }
        let variable = text_variable(name);
        if let Some(value) = self.environment(&variable) {
            return Some((value, Origin::Environment(variable)));
        }
        self.file.text(name).map(|value| (value, Origin::File(self.file.path.clone())))
    }

    fn record(&mut self, name: &str, value: &str, origin: Origin) {
        let value = toml::Value::from(value).to_string();
        self.effective.push(EffectiveSetting { name: name.to_owned(), value, origin });
    }

    fn text(&mut self, name: &str, flag_name: &'static str, flag: Option<OsString>, default: OsString) -> OsString {
        let (value, origin) = self.find_text(name, flag_name, flag).unwrap_or((default, Origin::Default));
        self.record(name, &value.to_string_lossy(), origin);
        value
    }

    fn path(&mut self, name: &str) -> Option<PathBuf> {
        let value = self.text(name, "", None, OsString::new());
        (!value.is_empty()).then(|| value.into())
    }

    /// The first of: a configured file, the environment, a systemd credential, the file in the data folder.
    fn master_key(&mut self, flag: Option<OsString>, default: PathBuf) -> Result<MasterKeySource, Failure> {
        let configured = self.find_text("master_key_file", "--master-key", flag);
        let credentials = self.environment(master_key_source::CREDENTIALS_VARIABLE).map(PathBuf::from);
        let credential = credentials.and_then(|folder| MasterKeySource::from_credentials(&folder));
        let (source, origin) = if let Some((path, origin)) = configured {
            (MasterKeySource::File(path.into()), origin)
        } else if let Some(text) = self.environment(master_key_source::VARIABLE) {
            (MasterKeySource::from_variable(&text)?, Origin::Environment(master_key_source::VARIABLE.to_owned()))
        } else if let Some(source) = credential {
            (source, Origin::Credential)
        } else {
            (MasterKeySource::File(default), Origin::Default)
        };
        self.record("master_key_file", &source.to_string(), origin);
        Ok(source)
    }

    fn number(&mut self, section: &Section, setting: &Setting) -> Result<u64, Failure> {
        let name = format!("{}.{}", section.name, setting.name);
        let variable = number_variable(section, setting);
        let (text, origin) = if let Some(value) = self.flags.get(&name) {
            (value.clone(), Origin::Flag("--set"))
        } else if let Some(value) = self.environment(&variable) {
            (value.to_string_lossy().into_owned(), Origin::Environment(variable))
        } else if let Some(value) = self.file.values.get(&name) {
            (value.to_string(), Origin::File(self.file.path.clone()))
        } else {
            (setting.default.to_string(), Origin::Default)
        };
        let number = parse_number(setting, &name, &text, &origin)?;
        self.effective.push(EffectiveSetting { name, value: number.to_string(), origin });
        Ok(number)
    }
}

fn text_variable(name: &str) -> String {
    format!("ANTEROOM_{}", name.to_uppercase())
}

fn number_variable(section: &Section, setting: &Setting) -> String {
    format!("ANTEROOM_{}_{}", section.name, setting.name).to_uppercase()
}

/// A warning if the name begins with `ANTEROOM_` and no setting has it.
pub(crate) fn check_variable_name(name: &str) -> Option<String> {
    let numbers = all_settings().map(|(section, setting)| number_variable(section, setting));
    let texts = TEXT_SETTINGS.iter().map(|text| text_variable(text));
    let others = ["ANTEROOM_CONFIG", master_key_source::VARIABLE, passphrase::VARIABLE].map(str::to_owned);
    let known: Vec<String> = numbers.chain(texts).chain(others).collect();
    if !name.starts_with("ANTEROOM_") || known.iter().any(|known| known == name) {
        return None;
    }
    let similar = closest_name(name, known.iter().map(String::as_str)).unwrap_or_default();
    Some(format!("unknown environment variable {name}; did you mean {similar}?"))
}

fn all_settings() -> impl Iterator<Item = (&'static Section, &'static Setting)> {
    SECTIONS.iter().flat_map(|section| section.settings.iter().map(move |setting| (section, setting)))
}

fn parse_number(setting: &Setting, name: &str, value: &str, origin: &Origin) -> Result<u64, Failure> {
    let number = value.trim().replace('_', "").parse::<u64>().ok();
    let within = number.filter(|number| (setting.min..=setting.max).contains(number));
    within.ok_or_else(|| {
        let shown: String = value.chars().take(40).collect();
        let what = format!("{name} = {shown} ({origin}) is not a number from {} to {}", setting.min, setting.max);
        Failure::new(what, format!("change it; the default is {}", setting.default))
    })
}

fn parse_set_flags(set: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut flags = BTreeMap::new();
    for text in set {
        let Some((key, value)) = text.split_once('=') else {
            let what = format!("--set {text} has no value");
            return Err(Failure::new(what, "write it as KEY=VALUE, such as --set store.cache_mib=64"));
        };
        let key = key.trim();
        if !all_settings().any(|(section, setting)| key == format!("{}.{}", section.name, setting.name)) {
            return Err(unknown_setting(key, "--set"));
        }
        flags.insert(key.to_owned(), value.to_owned());
    }
    Ok(flags)
}

/// The source is `--set` or the path of the configuration file.
pub(super) fn unknown_setting(name: &str, source: &str) -> Failure {
    if source == "--set" && TEXT_SETTINGS.contains(&name) {
        let what_to_do = format!("set it in the configuration file or with {}", text_variable(name));
        return Failure::new(format!("--set takes numbers only, and {name} is a string"), what_to_do);
    }
    let known: Vec<String> =
        all_settings().map(|(section, setting)| format!("{}.{}", section.name, setting.name)).collect();
    let similar =
        closest_name(name, TEXT_SETTINGS.into_iter().chain(known.iter().map(String::as_str))).unwrap_or_default();
    let what_to_do = format!("did you mean {similar}? `anteroom config --sample` lists every setting");
    Failure::new(format!("{source}: unknown setting {name}"), what_to_do)
}
