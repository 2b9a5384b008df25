//! The operator's token: a file in the data folder while the node runs. Commands use it to call the running node, so
//! whoever can read the file is the operator.

use crate::context::Context;
use crate::failure::Failure;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

const TOKEN_FILE: &str = "operator.token";

/// Where commands on this machine reach the node. A node that listens on all addresses is also at the loopback one.
pub(crate) fn node_url(context: &Context, address: SocketAddr) -> String {
    let scheme = if context.settings.tls.is_some() { "https" } else { "http" };
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

/// What links begin with that people follow.
pub(crate) fn public_url(context: &Context, local: &str) -> String {
    context.settings.public_url.clone().unwrap_or_else(|| local.to_owned())
}

/// The lines of the token file.
#[derive(Debug)]
pub(crate) struct TokenLines {
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) certificate: PathBuf,
    /// What links begin with that people follow.
    pub(crate) public_url: String,
}

/// The token file of a running node, removed on drop.
#[derive(Debug)]
pub(crate) struct TokenFile(PathBuf);

impl TokenFile {
    /// Writes four lines that only this user can read: URL, token, with TLS the path of the certificate, and the URL that
    /// others use.
    pub(crate) fn write(context: &Context, address: SocketAddr, token: &str) -> Result<TokenFile, Failure> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let path = context.data_dir().join(TOKEN_FILE);
        let _ = std::fs::remove_file(&path);
        let failed = |why: std::io::Error| Failure::file("write the operator's token", &path, &why);
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        let certificate = context.settings.tls.as_ref().map(|(certificate, _)| certificate);
        let certificate = certificate.map(std::path::absolute).transpose().map_err(failed)?;
        let certificate = certificate.map(|path| path.display().to_string()).unwrap_or_default();
        let url = node_url(context, address);
        let public = public_url(context, &url);
        writeln!(file, "{url}\nop_{token}\n{certificate}\n{public}").map_err(failed)?;
        Ok(TokenFile(path))
    }

    /// What the node that runs in this data folder says of itself.
    pub(crate) fn read(context: &Context) -> Option<TokenLines> {
        let text = std::fs::read_to_string(context.data_dir().join(TOKEN_FILE)).ok()?;
        let mut lines = text.lines().map(str::to_owned);
        let (url, token) = (lines.next()?, lines.next()?);
        let certificate = lines.next().unwrap_or_default().into();
        let public_url = lines.next().unwrap_or_else(|| url.clone());
        Some(TokenLines { url, token, certificate, public_url })
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
