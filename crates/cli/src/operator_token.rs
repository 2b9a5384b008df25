//! The operator's token: a file in the data folder while the node runs. Commands use it to call the running node, so
//! whoever can read the file is the operator.

use crate::context::Context;
use crate::failure::Failure;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

const TOKEN_FILE: &str = "operator.token";

pub(crate) fn node_url(context: &Context, address: SocketAddr) -> String {
    let scheme = if context.settings.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// The token file of a running node, removed on drop.
#[derive(Debug)]
pub(crate) struct TokenFile(PathBuf);

impl TokenFile {
    /// Writes three lines that only this user can read: URL, token, and with TLS the path of the certificate.
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
        writeln!(file, "{}\nop_{token}\n{certificate}", node_url(context, address)).map_err(failed)?;
        Ok(TokenFile(path))
    }

    /// URL, token and certificate path of the node that runs in this data folder.
    pub(crate) fn read(context: &Context) -> Option<(String, String, PathBuf)> {
        let text = std::fs::read_to_string(context.data_dir().join(TOKEN_FILE)).ok()?;
        let mut lines = text.lines();
        Some((lines.next()?.to_owned(), lines.next()?.to_owned(), lines.next().unwrap_or_default().into()))
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
