//! Reading the values of settings that are texts.

use super::load::LISTEN_DEFAULT;
use crate::failure::Failure;
use ipnet::IpNet;
use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;

/// An address and port; a name such as `localhost` stands for its first address, rather of the older kind.
pub(super) fn parse_address(name: &str, text: &str) -> Result<SocketAddr, Failure> {
    let named = || {
        let found: Vec<SocketAddr> = text.to_socket_addrs().ok()?.collect();
        found.iter().find(|address| address.is_ipv4()).or(found.first()).copied()
    };
    text.parse().ok().or_else(named).ok_or_else(|| {
        let shown: String = text.chars().take(80).collect();
        let what_to_do = format!("write it as ADDRESS:PORT, such as {LISTEN_DEFAULT} or [::]:7117");
        Failure::new(format!("{name} = {shown:?} is not a valid listen address"), what_to_do)
    })
}

/// Scheme, host and perhaps a port, and nothing after them: the node is at the root of its address.
pub(super) fn parse_public_url(text: &str) -> Result<Option<String>, Failure> {
    let trimmed = text.trim_end_matches('/');
    let bad = || {
        let shown: String = text.chars().take(80).collect();
        let what_to_do = "write it as https://HOST or https://HOST:PORT, without a path";
        Failure::new(format!("public_url = {shown:?} is not the address of a node"), what_to_do)
    };
    if trimmed.is_empty() {
        return Ok(None);
    }
    let url: http::Uri = trimmed.parse().map_err(|_| bad())?;
    let is_web = url.scheme_str().is_some_and(|scheme| scheme == "https" || scheme == "http");
    let has_host = url.host().is_some_and(|host| !host.is_empty()) && !trimmed.contains('@');
    match is_web && has_host && url.path() == "/" && url.query().is_none() {
        true => Ok(Some(trimmed.to_owned())),
        false => Err(bad()),
    }
}

/// Setting only one of them is an error: otherwise the node would silently serve plain HTTP.
pub(super) fn tls_files(
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
) -> Result<Option<(PathBuf, PathBuf)>, Failure> {
    let alone = |set: &str, missing: &str| {
        let what_to_do = format!("set {missing} as well, or remove {set}");
        Err(Failure::new(format!("{set} is set but {missing} is not"), what_to_do))
    };
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        (Some(_), None) => alone("tls_certificate", "tls_key"),
        (None, Some(_)) => alone("tls_key", "tls_certificate"),
    }
}

/// Splits at commas.
pub(super) fn split_list(text: &OsStr) -> Vec<String> {
    let text = text.to_string_lossy();
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

pub(super) fn parse_networks(name: &str, text: &OsStr) -> Result<Vec<IpNet>, Failure> {
    let parse = |part: &String| {
        let net = part.parse::<IpNet>().ok().or_else(|| part.parse::<IpAddr>().ok().map(IpNet::from));
        let what = format!("{name}: {part:?} is not an IP address or network");
        net.ok_or_else(|| Failure::new(what, "write addresses such as 10.0.0.1 or 10.0.0.0/8, separated by commas"))
    };
    split_list(text).iter().map(parse).collect()
}
