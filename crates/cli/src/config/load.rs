//! Where settings come from: flags, then the environment, then the file, then defaults.

use super::nearest::nearest;
use super::{Config, SECTIONS, Section, Setting};
use crate::failure::Failure;
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// A configuration file larger than this is something else.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Settings that are text and stand at the top of the file.
const TEXTS: [&str; 7] =
    ["data_dir", "master_key", "listen", "metrics_listen", "cors_origins", "trusted_proxies", "log"];

/// Where a setting came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Environment(String),
    File(PathBuf),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) => write!(f, "flag {name}"),
            Origin::Environment(name) => write!(f, "environment {name}"),
            Origin::File(path) => write!(f, "file {}", path.display()),
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
    pub(crate) master_key: PathBuf,
    /// Where the node listens.
    pub(crate) listen: SocketAddr,
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
    pub(crate) fn server_options(&self) -> server::Options {
        let limits = self.config.server_limits();
        server::Options { origins: self.cors_origins.clone(), proxies: self.trusted_proxies.clone(), ..limits }
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
    let beside = data_dir.join("master.key").into();
    let master_key = layers.text("master_key", "--master-key", flag(&given.master_key), beside).into();
    let listen = layers.text("listen", "--listen", given.listen.clone().map(OsString::from), LISTEN.into());
    let listen = parse_address("listen", &listen.to_string_lossy())?;
    let metrics_listen = layers.text("metrics_listen", "", None, "".into());
    let metrics_listen = match metrics_listen.to_string_lossy().as_ref() {
        "" => None,
        text => Some(parse_address("metrics_listen", text)?),
    };
    let cors_origins = listed(&layers.text("cors_origins", "", None, OsString::new()));
    let trusted_proxies = parse_networks(&layers.text("trusted_proxies", "", None, OsString::new()))?;
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

    fn text(&mut self, name: &str, flag_name: &'static str, flag: Option<OsString>, default: OsString) -> OsString {
        let variable = format!("ANTEROOM_{}", name.to_uppercase());
        let (value, origin) = if let Some(value) = flag {
            (value, Origin::Flag(flag_name))
        } else if let Some(value) = self.environment(&variable) {
            (value, Origin::Environment(variable))
        } else if let Some(value) = self.file.text(name) {
            (value, Origin::File(self.file.path.clone()))
        } else {
            (default, Origin::Default)
        };
        let shown = toml::Value::from(value.to_string_lossy().into_owned()).to_string();
        self.values.push(Value { key: name.to_owned(), value: shown, origin });
        value
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
    let known: Vec<String> = settings.chain(texts).chain(["ANTEROOM_CONFIG".to_owned()]).collect();
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

fn unknown(key: &str, place: &str) -> Failure {
    let known: Vec<String> = all().map(|(section, setting)| format!("{}.{}", section.name, setting.name)).collect();
    let like = nearest(key, TEXTS.into_iter().chain(known.iter().map(String::as_str))).unwrap_or_default();
    let what_to_do = format!("did you mean {like}? `anteroom config --sample` lists every setting");
    Failure::new(format!("{place}: there is no setting {key}"), what_to_do)
}

/// What the configuration file says.
#[derive(Debug, Default)]
struct File {
    path: PathBuf,
    values: BTreeMap<String, toml::Value>,
}

impl File {
    fn read(path: PathBuf) -> Result<File, Failure> {
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
        Ok(File { path, values })
    }

    /// A text; paths are relative to the file.
    fn text(&self, name: &str) -> Option<OsString> {
        let value = self.values.get(name)?.as_str()?;
        if !["data_dir", "master_key"].contains(&name) {
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
            (Some(_) | None, _) => return Err(name.clone()),
        }
    }
    Ok(values)
}
