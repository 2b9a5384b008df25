//! What announces and pushes repositories: a Nostr client, somebody who signs, and the `git` program.

use anyhow::{Context as _, Result, bail, ensure};
use model::nostr::{NostrEvent, VerifiedNostr};
use nostr::key::PublicKey;
use nostr::nips::nip19::ToBech32 as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};
use tungstenite::{Message, WebSocket, client};

pub(crate) fn now() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

/// Signs an event of somebody.
pub(crate) fn sign(author: [u8; 32], at: u64, kind: u16, tags: &[&[&str]], content: &str) -> Result<VerifiedNostr> {
    let tags = tags.iter().map(|tag| tag.iter().map(|value| (*value).to_owned()).collect()).collect();
    NostrEvent::sign(&author, at, kind, tags, content).context("the event cannot be signed")
}

/// A connection to a relay.
pub(crate) struct RelayClient(WebSocket<TcpStream>);

impl RelayClient {
    pub(crate) fn connect(address: SocketAddr) -> Result<RelayClient> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let (socket, _) = client(format!("ws://{address}/"), stream).context("no handshake")?;
        Ok(RelayClient(socket))
    }

    pub(crate) fn say(&mut self, text: String) -> Result<()> {
        Ok(self.0.send(Message::text(text))?)
    }

    /// Puts a message into the buffer, which [`RelayClient::flush`] sends.
    pub(crate) fn write(&mut self, text: String) -> Result<()> {
        Ok(self.0.write(Message::text(text))?)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        Ok(self.0.flush()?)
    }

    /// The next message.
    pub(crate) fn hear(&mut self) -> Result<String> {
        loop {
            match self.0.read()? {
                Message::Text(text) => return Ok(text.as_str().to_owned()),
                Message::Close(_) => bail!("the relay has closed"),
                _ => {}
            }
        }
    }

    /// Publishes an event, which has to be taken.
    pub(crate) fn publish(&mut self, event: &VerifiedNostr) -> Result<()> {
        self.say(format!("[\"EVENT\",{}]", event.to_json()))?;
        let answer = self.hear()?;
        ensure!(answer.contains(",true,"), "{answer}");
        Ok(())
    }
}

/// Runs git, which has to succeed: what it says.
pub(crate) fn git(folder: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(words)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null())
        .output()
        .context("git cannot be started")?;
    ensure!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Announces a repository of somebody whose `main` is this commit: where it is pushed to.
pub(crate) fn announce(address: SocketAddr, author: [u8; 32], identifier: &str, commit: &str) -> Result<String> {
    let mut relay = RelayClient::connect(address)?;
    let now = now()?;
    let owner = sign(author, now, 1, &[], "")?.author;
    let npub = PublicKey::from_hex(&owner.to_string())?.to_bech32()?;
    let (clone, url) = (format!("http://{address}/{npub}/{identifier}.git"), format!("ws://{address}"));
    relay.publish(&sign(author, now, 30617, &[&["d", identifier], &["clone", &clone], &["relays", &url]], "")?)?;
    let head: &[&str] = &["HEAD", "ref: refs/heads/main"];
    relay.publish(&sign(author, now, 30618, &[&["d", identifier], head, &["refs/heads/main", commit]], "")?)?;
    Ok(clone)
}
