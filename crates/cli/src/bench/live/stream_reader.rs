//! Clients that listen: as little work as possible, so that the figures are the node's.

use anyhow::{Result, ensure};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// What stands before the time of sending in every message, in microseconds of twelve digits.
pub(super) const MARK: &str = "sent-at-";
const DIGITS: usize = 12;

/// A stream that was opened.
pub(super) struct Reader {
    stream: TcpStream,
    /// What was read and not looked at yet.
    rest: Vec<u8>,
}

/// What arrived.
#[derive(Default)]
pub(super) struct Counted {
    pub(super) delivered: u64,
    microseconds: Vec<u32>,
}

impl Counted {
    pub(super) fn sort(&mut self) {
        self.microseconds.sort_unstable();
    }

    pub(super) fn add(&mut self, other: Counted) {
        self.delivered += other.delivered;
        self.microseconds.extend(other.microseconds);
    }

    /// The time that so many of a hundred took at most; the times must be in order.
    pub(super) fn percentile_ms(&self, percent: usize) -> f64 {
        let at = self.microseconds.len() * percent / 100;
        f64::from(self.microseconds.get(at).copied().unwrap_or_default()) / 1e3
    }
}

impl Reader {
    /// Opens a stream and reads the head of the answer.
    pub(super) async fn open(address: SocketAddr, key: String, query: String, user: usize) -> Result<Reader> {
        let stream = TcpStream::connect(address).await?;
        let mut reader = Reader { stream, rest: Vec::new() };
        let asked = format!(
            "GET /v1/events{query} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\nx-user-id: listener-{user}\r\n\r\n"
        );
        let mut asked = asked.as_bytes();
        while !asked.is_empty() {
            reader.stream.writable().await?;
            match reader.stream.try_write(asked) {
                Ok(written) => asked = &asked[written..],
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(why) => return Err(why.into()),
            }
        }
        while !reader.rest.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            reader.read().await?;
        }
        let head = String::from_utf8_lossy(&reader.rest).into_owned();
        ensure!(head.starts_with("HTTP/1.1 200"), "the node answered {head}");
        reader.rest = Vec::new();
        Ok(reader)
    }

    async fn read(&mut self) -> Result<()> {
        let mut bytes = [0; 4096];
        loop {
            self.stream.readable().await?;
            match self.stream.try_read(&mut bytes) {
                Ok(0) => anyhow::bail!("the node ended a stream"),
                Ok(read) => {
                    self.rest.extend_from_slice(&bytes[..read]);
                    return Ok(());
                }
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(why) => return Err(why.into()),
            }
        }
    }

    /// Waits until the node has written something.
    pub(super) async fn sign_of_life(&mut self) -> Result<()> {
        self.read().await?;
        self.rest = Vec::new();
        Ok(())
    }

    /// Counts messages until all have arrived, or for so long.
    pub(super) async fn count(mut self, begun: Instant, messages: u64, patience: Duration) -> Result<Counted> {
        let mut counted = Counted::default();
        let until = tokio::time::Instant::from_std(begun + patience);
        while counted.delivered < messages {
            match tokio::time::timeout_at(until, self.read()).await {
                Err(_) => break,
                Ok(read) => read?,
            }
            self.look(begun, &mut counted);
        }
        Ok(counted)
    }

    /// Finds the marks in what was read; a mark that is not whole is left for later.
    fn look(&mut self, begun: Instant, counted: &mut Counted) {
        let now = begun.elapsed().as_micros() as u64;
        let mut from = 0;
        while let Some(at) = find(&self.rest[from..]) {
            let digits = from + at + MARK.len();
            let Some(text) = self.rest.get(digits..digits + DIGITS) else { break };
            let sent = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(now);
            counted.delivered += 1;
            counted.microseconds.push(u32::try_from(now.saturating_sub(sent)).unwrap_or(u32::MAX));
            from = digits + DIGITS;
        }
        let keep = from.max(self.rest.len().saturating_sub(MARK.len() + DIGITS));
        self.rest.drain(..keep);
    }
}

fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARK.len()).position(|part| part == MARK.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_is_counted_once_however_it_is_cut() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let stream = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a stream");
        let (mut reader, mut counted) = (Reader { stream, rest: Vec::new() }, Counted::default());
        let text = b"data: {\"text\":\"sent-at-000000000001\"}\n\n".repeat(3);
        let begun = Instant::now();
        for byte in text {
            reader.rest.push(byte);
            reader.look(begun, &mut counted);
        }
        assert_eq!(counted.delivered, 3);
    }
}
