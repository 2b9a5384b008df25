//! Where settings come from: flags, then the environment, then the file, then defaults.

use super::file::File;
use super::suggestion::nearest;
use super::{Config, DeclaredKey, SECTIONS, Section, Setting};
use crate::failure::Failure;
use crate::master_key_source::{self, KeyPlace};
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Settings that are text and stand at the top of the file.
pub(super) const TEXTS: [&str; 10] = [
    "data_dir",
    "master_key",
    "listen",
    "tls_certificate",
    "tls_key",
    "metrics_listen",
    "cors_origins",
    "trusted_proxies",
    "backup_dir",
    "log",
];

/// Where a setting came from.
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
            Origin::Credential => f.write_str("credential of the service"),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// A setting as it is in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Value {
    /// Its name, with its section.
    pub(crate) key: String,
    /// What it is, as the file would say it.
    pub(crate) value: String,
    /// Who said so.
    pub(crate) origin: Origin,
}

/// What the flags and the environment say.
pub(crate) struct Given<'a> {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) master_key: Option<PathBuf>,
    pub(crate) config: Option<PathBuf>,
    pub(crate) listen: Option<String>,
    pub(crate) log: Option<String>,
    pub(crate) set: &'a [String],
    pub(crate) environment: &'a dyn Fn(&str) -> Option<OsString>,
}

/// Everything that is in force, and where it came from.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) data_dir: PathBuf,
    pub(crate) master_key: KeyPlace,
    /// Where the node listens.
    pub(crate) listen: SocketAddr,
    /// The files with the certificate and its key, if the node speaks HTTPS.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    /// Where backups are written by the clock, if anywhere.
    pub(crate) backup_dir: Option<PathBuf>,
    /// The API keys that the file declares.
    pub(crate) keys: Vec<DeclaredKey>,
    /// Origins that browsers may call from.
    pub(crate) cors_origins: Vec<String>,
    /// Proxies whose word on addresses is taken.
    pub(crate) trusted_proxies: Vec<IpNet>,
    /// Where metrics are served without a key, if anywhere.
    pub(crate) metrics_listen: Option<SocketAddr>,
    pub(crate) log: String,
    /// All of it, for people.
    pub(crate) values: Vec<Value>,
}

impl Loaded {
    /// How the server behaves.
    pub(crate) fn server_options(&self) -> server::ServerOptions {
        let limits = self.config.server_limits();
        let backups = self.backup_dir.clone().map(|folder| self.config.backup_plan(folder));
        server::ServerOptions {
            origins: self.cors_origins.clone(),
            proxies: self.trusted_proxies.clone(),
            backups,
            ..limits
        }
    }

    /// Whether nobody said what a setting is.
    pub(crate) fn is_default(&self, key: &str) -> bool {
        self.values.iter().any(|value| value.key == key && value.origin == Origin::Default)
    }
}

/// Puts together what is in force.
pub(crate) fn load(given: &Given<'_>) -> Result<Loaded, Failure> {
    let mut layers = Layers::new(given)?;
    let flag = |path: &Option<PathBuf>| path.clone().map(OsString::from);
    let data_dir = layers.text("data_dir", "--data-dir", flag(&given.data_dir), "./anteroom-data".into());
    let data_dir = PathBuf::from(data_dir);
    let master_key = layers.master_key(flag(&given.master_key), data_dir.join("master.key"))?;
    let listen = layers.text("listen", "--listen", given.listen.clone().map(OsString::from), LISTEN.into());
    let listen = parse_address("listen", &listen.to_string_lossy())?;
    let tls = tls_files(layers.path("tls_certificate"), layers.path("tls_key"))?;
    let metrics_listen = layers.text("metrics_listen", "", None, "".into());
    let metrics_listen = match metrics_listen.to_string_lossy().as_ref() {
        "" => None,
        text => Some(parse_address("metrics_listen", text)?),
    };
    let cors_origins = listed(&layers.text("cors_origins", "", None, OsString::new()));
    let trusted_proxies = parse_networks(&layers.text("trusted_proxies", "", None, OsString::new()))?;
    let backup_dir = layers.path("backup_dir");
    let log = layers.text("log", "--log", given.log.clone().map(OsString::from), "info".into());
    let mut numbers = BTreeMap::new();
    for (section, setting) in all() {
        numbers.insert((section.name, setting.name), layers.number(section, setting)?);
    }
    let config = Config::of(|section, name| numbers.get(&(section, name)).copied().unwrap_or_default());
    let log = log.to_string_lossy().into_owned();
    Ok(Loaded {
        config,
        data_dir,
        master_key,
        listen,
        tls,
        backup_dir,
        keys: layers.file.keys,
        metrics_listen,
        cors_origins,
        trusted_proxies,
        log,
        values: layers.values,
    })
}

/// Where the node listens unless somebody says otherwise: on this machine only.
const LISTEN: &str = "127.0.0.1:7117";

fn parse_address(name: &str, text: &str) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        let shown: String = text.chars().take(80).collect();
        let what_to_do = format!("write it as ADDRESS:PORT, such as {LISTEN} or [::]:7117");
        Failure::new(format!("{name} = {shown:?} is not an address to listen on"), what_to_do)
    })
}

/// One without the other is a mistake that would leave the node speaking in the clear.
fn tls_files(certificate: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<(PathBuf, PathBuf)>, Failure> {
    let alone = |set: &str, missing: &str| {
        let what_to_do = format!("set {missing} to the file that belongs to it, or remove {set}");
        Err(Failure::new(format!("{set} is set and {missing} is not"), what_to_do))
    };
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        (Some(_), None) => alone("tls_certificate", "tls_key"),
        (None, Some(_)) => alone("tls_key", "tls_certificate"),
    }
}

/// The parts of a text between commas.
fn listed(text: &OsStr) -> Vec<String> {
    let text = text.to_string_lossy();
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn parse_networks(text: &OsStr) -> Result<Vec<IpNet>, Failure> {
    let parse = |part: &String| {
        let net = part.parse::<IpNet>().ok().or_else(|| part.parse::<IpAddr>().ok().map(IpNet::from));
        let what = format!("trusted_proxies: {part:?} is not an address or network");
        net.ok_or_else(|| Failure::new(what, "write addresses such as 10.0.0.1 or 10.0.0.0/8, between commas"))
    };
    listed(text).iter().map(parse).collect()
}

/// Who may say what a setting is, and what was decided so far.
struct Layers<'a> {
    given: &'a Given<'a>,
    file: File,
    flags: BTreeMap<String, String>,
    values: Vec<Value>,
}

impl<'a> Layers<'a> {
    fn new(given: &'a Given<'a>) -> Result<Layers<'a>, Failure> {
        let mut layers = Layers { given, file: File::default(), flags: flag_settings(given.set)?, values: Vec::new() };
        if let Some(path) = given.config.clone().or_else(|| layers.environment("ANTEROOM_CONFIG").map(PathBuf::from)) {
            layers.file = File::read(path)?;
        }
        Ok(layers)
    }

    fn environment(&self, name: &str) -> Option<OsString> {
        (self.given.environment)(name).filter(|value| !value.is_empty())
    }

    /// What somebody said a text is, and who.
    fn said(
        &self,
        name: &str,
        variable: &str,
        flag_name: &'static str,
        flag: Option<OsString>,
    ) -> Option<(OsString, Origin)> {
        if let Some(value) = flag {
            return Some((value, Origin::Flag(flag_name)));
        }
        if let Some(value) = self.environment(variable) {
            return Some((value, Origin::Environment(variable.to_owned())));
        }
        self.file.text(name).map(|value| (value, Origin::File(self.file.path.clone())))
    }

    fn note(&mut self, name: &str, value: &str, origin: Origin) {
        let value = toml::Value::from(value).to_string();
        self.values.push(Value { key: name.to_owned(), value, origin });
    }

    fn text(&mut self, name: &str, flag_name: &'static str, flag: Option<OsString>, default: OsString) -> OsString {
        let variable = format!("ANTEROOM_{}", name.to_uppercase());
        let (value, origin) = self.said(name, &variable, flag_name, flag).unwrap_or((default, Origin::Default));
        self.note(name, &value.to_string_lossy(), origin);
        value
    }

    /// A path that may be absent.
    fn path(&mut self, name: &str) -> Option<PathBuf> {
        let value = self.text(name, "", None, OsString::new());
        (!value.is_empty()).then(|| value.into())
    }

    /// The master key: in a file that somebody named, in the environment, in a credential, or in the data folder.
    fn master_key(&mut self, flag: Option<OsString>, default: PathBuf) -> Result<KeyPlace, Failure> {
        let named = self.said("master_key", master_key_source::FILE_VARIABLE, "--master-key", flag);
        let credentials = self.environment(master_key_source::CREDENTIALS).map(PathBuf::from);
        let credential = credentials.and_then(|folder| KeyPlace::of_credentials(&folder));
        let (place, origin) = if let Some((path, origin)) = named {
            (KeyPlace::File(path.into()), origin)
        } else if let Some(text) = self.environment(master_key_source::VARIABLE) {
            (KeyPlace::of_variable(&text)?, Origin::Environment(master_key_source::VARIABLE.to_owned()))
        } else if let Some(place) = credential {
            (place, Origin::Credential)
        } else {
            (KeyPlace::File(default), Origin::Default)
        };
        self.note("master_key", &place.to_string(), origin);
        Ok(place)
    }

    fn number(&mut self, section: &Section, setting: &Setting) -> Result<u64, Failure> {
        let key = format!("{}.{}", section.name, setting.name);
        let variable = variable_of(section, setting);
        let (said, origin) = if let Some(value) = self.flags.get(&key) {
            (value.clone(), Origin::Flag("--set"))
        } else if let Some(value) = self.environment(&variable) {
            (value.to_string_lossy().into_owned(), Origin::Environment(variable))
        } else if let Some(value) = self.file.values.get(&key) {
            (value.to_string(), Origin::File(self.file.path.clone()))
        } else {
            (setting.default.to_string(), Origin::Default)
        };
        let number = parse(setting, &key, &said, &origin)?;
        self.values.push(Value { key, value: number.to_string(), origin });
        Ok(number)
    }
}

fn variable_of(section: &Section, setting: &Setting) -> String {
    format!("ANTEROOM_{}_{}", section.name, setting.name).to_uppercase()
}

/// What to say of a variable that looks like one of ours and sets nothing; none if it is one of ours, or looks
/// otherwise.
pub(crate) fn unknown_variable(name: &str) -> Option<String> {
    let settings = all().map(|(section, setting)| variable_of(section, setting));
    let texts = TEXTS.iter().map(|text| format!("ANTEROOM_{}", text.to_uppercase()));
    let known: Vec<String> =
        settings.chain(texts).chain(["ANTEROOM_CONFIG", master_key_source::FILE_VARIABLE].map(str::to_owned)).collect();
    if !name.starts_with("ANTEROOM_") || known.iter().any(|known| known == name) {
        return None;
    }
    let like = nearest(name, known.iter().map(String::as_str)).unwrap_or_default();
    Some(format!("the environment variable {name} sets nothing; did you mean {like}?"))
}

fn all() -> impl Iterator<Item = (&'static Section, &'static Setting)> {
    SECTIONS.iter().flat_map(|section| section.settings.iter().map(move |setting| (section, setting)))
}

fn parse(setting: &Setting, key: &str, value: &str, origin: &Origin) -> Result<u64, Failure> {
    let number = value.trim().replace('_', "").parse::<u64>().ok();
    let within = number.filter(|number| (setting.least..=setting.most).contains(number));
    within.ok_or_else(|| {
        let shown: String = value.chars().take(40).collect();
        let what = format!("{key} = {shown} ({origin}) is not a number from {} to {}", setting.least, setting.most);
        Failure::new(what, format!("change it; the default is {}", setting.default))
    })
}

fn flag_settings(set: &[String]) -> Result<BTreeMap<String, String>, Failure> {
    let mut flags = BTreeMap::new();
    for text in set {
        let Some((key, value)) = text.split_once('=') else {
            let what = format!("--set {text} does not set anything");
            return Err(Failure::new(what, "write it as KEY=VALUE, such as --set store.cache_mib=64"));
        };
        let key = key.trim();
        if !all().any(|(section, setting)| key == format!("{}.{}", section.name, setting.name)) {
            return Err(unknown(key, "--set"));
        }
        flags.insert(key.to_owned(), value.to_owned());
    }
    Ok(flags)
}

pub(super) fn unknown(key: &str, place: &str) -> Failure {
    if place == "--set" && TEXTS.contains(&key) {
        let what_to_do = format!("write it into the configuration file, or into ANTEROOM_{}", key.to_uppercase());
        return Failure::new(
            format!("--set takes settings with a number or a switch, and {key} is a text"),
            what_to_do,
        );
    }
    let known: Vec<String> = all().map(|(section, setting)| format!("{}.{}", section.name, setting.name)).collect();
    let like = nearest(key, TEXTS.into_iter().chain(known.iter().map(String::as_str))).unwrap_or_default();
    let what_to_do = format!("did you mean {like}? `anteroom config --sample` lists every setting");
    Failure::new(format!("{place}: there is no setting {key}"), what_to_do)
}
