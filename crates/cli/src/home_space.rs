//! What the node needs before it can serve: a home space, and a token for the operator.

use crate::context::Context;
use crate::failure::Failure;
use node::commands::{AdminCommand, AdminRequest, AdminResult};
use node::{AskError, Node};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The space that a new node begins with.
const HOME: &str = "home";
/// Where the operator's token is while the node runs.
const TOKEN_FILE: &str = "operator.token";

/// Makes the home space, if the node keeps no space yet. Says whether it did.
pub(crate) fn found_home(node: &Node) -> Result<bool, Failure> {
    if !node.snapshot()?.kept_spaces()?.is_empty() {
        return Ok(false);
    }
    let what = AdminCommand::FoundSpace { name: HOME.to_owned(), sealed: true, random: Box::new(random_bytes()?) };
    match administer(node, what)? {
        AdminResult::Founded(_) => Ok(true),
        other => Err(Failure::new(format!("the home space was not founded: {other:?}"), "run `anteroom verify`")),
    }
}

/// Goes on with a change of the master key that was begun.
pub(crate) fn go_on_rewrapping(node: &Node) -> Result<(), Failure> {
    if node.snapshot()?.is_rewrapping()? {
        administer(node, AdminCommand::Begin(store::shared::jobs::JobKind::Rewrap))?;
    }
    Ok(())
}

/// Administers as the operator.
pub(crate) fn administer(node: &Node, what: AdminCommand) -> Result<AdminResult, Failure> {
    node.ask(AdminRequest::by("operator", what)).map_err(|why| match why {
        AskError::Refused(why) => Failure::new(why.to_string(), "change what the message names"),
        AskError::NotRun(why) => Failure::new(why.to_string(), "look into the log"),
    })
}

/// Chance from the system.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let failed = |_| Failure::new("the system gives no randomness", "try again later");
    getrandom::fill(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Where the node is reached.
pub(crate) fn url(context: &Context, address: SocketAddr) -> String {
    let scheme = if context.loaded.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// The file with the operator's token; it goes when the node stops.
#[derive(Debug)]
pub(crate) struct TokenFile(PathBuf);

impl TokenFile {
    /// Writes address, token and, under TLS, where the certificate is, where only this user can read them.
    pub(crate) fn write(context: &Context, address: SocketAddr, token: &str) -> Result<TokenFile, Failure> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let path = context.data_dir().join(TOKEN_FILE);
        let _ = std::fs::remove_file(&path);
        let failed = |why: std::io::Error| Failure::file("write the operator's token", &path, &why);
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        let certificate = context.loaded.tls.as_ref().map(|(certificate, _)| certificate);
        let certificate = certificate.map(std::path::absolute).transpose().map_err(failed)?;
        let certificate = certificate.map(|path| path.display().to_string()).unwrap_or_default();
        writeln!(file, "{}\nop_{token}\n{certificate}", url(context, address)).map_err(failed)?;
        Ok(TokenFile(path))
    }

    /// Address, token and certificate of the node that runs in this data folder.
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
