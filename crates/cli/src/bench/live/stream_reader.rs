//! Clients of live streams. They do as little work as possible, so that the figures show the node.

use anyhow::{Result, ensure};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Every message contains this text, followed by the time of sending in microseconds with twelve digits.
pub(super) const MARK: &str = "sent-at-";
const DIGITS: usize = 12;

pub(super) struct StreamReader {
    stream: TcpStream,
    /// Received bytes that were not parsed yet.
    buffer: Vec<u8>,
}

/// Delivered messages and their delays.
#[derive(Default)]
pub(super) struct DeliveryCount {
    pub(super) delivered: u64,
    microseconds: Vec<u32>,
}

impl DeliveryCount {
    pub(super) fn sort(&mut self) {
        self.microseconds.sort_unstable();
    }

    pub(super) fn add(&mut self, other: DeliveryCount) {
        self.delivered += other.delivered;
        self.microseconds.extend(other.microseconds);
    }

    /// Call `sort` first.
    pub(super) fn percentile_ms(&self, percent: usize) -> f64 {
        let at = self.microseconds.len() * percent / 100;
        f64::from(self.microseconds.get(at).copied().unwrap_or_default()) / 1e3
    }
}

impl StreamReader {
    /// Opens a stream and reads the response headers.
    pub(super) async fn open(address: SocketAddr, key: String, query: String, user: usize) -> Result<StreamReader> {
        let stream = TcpStream::connect(address).await?;
        let mut reader = StreamReader { stream, buffer: Vec::new() };
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
        while !reader.buffer.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            reader.read().await?;
        }
        let head = String::from_utf8_lossy(&reader.buffer).into_owned();
        ensure!(head.starts_with("HTTP/1.1 200"), "the node answered {head}");
        reader.buffer = Vec::new();
        Ok(reader)
    }

    async fn read(&mut self) -> Result<()> {
        let mut bytes = [0; 4096];
        loop {
            self.stream.readable().await?;
            match self.stream.try_read(&mut bytes) {
                Ok(0) => anyhow::bail!("the node ended a stream"),
                Ok(read) => {
                    self.buffer.extend_from_slice(&bytes[..read]);
                    return Ok(());
                }
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(why) => return Err(why.into()),
            }
        }
    }

    pub(super) async fn wait_for_keep_alive(&mut self) -> Result<()> {
        self.read().await?;
        self.buffer = Vec::new();
        Ok(())
    }

    /// Counts messages until all have arrived or the timeout is reached.
    pub(super) async fn count_messages(
        mut self,
        begun: Instant,
        messages: u64,
        timeout: Duration,
    ) -> Result<DeliveryCount> {
        let mut counted = DeliveryCount::default();
        let until = tokio::time::Instant::from_std(begun + timeout);
        while counted.delivered < messages {
            match tokio::time::timeout_at(until, self.read()).await {
                Err(_) => break,
                Ok(read) => read?,
            }
            self.parse_marks(begun, &mut counted);
        }
        Ok(counted)
    }

    /// Finds the marks in the buffer. An incomplete mark stays in it.
    fn parse_marks(&mut self, begun: Instant, counted: &mut DeliveryCount) {
        let now = begun.elapsed().as_micros() as u64;
        let mut from = 0;
        while let Some(at) = find_mark(&self.buffer[from..]) {
            let digits = from + at + MARK.len();
            let Some(text) = self.buffer.get(digits..digits + DIGITS) else { break };
            let sent = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok()).unwrap_or(now);
            counted.delivered += 1;
            counted.microseconds.push(u32::try_from(now.saturating_sub(sent)).unwrap_or(u32::MAX));
            from = digits + DIGITS;
        }
        let keep = from.max(self.buffer.len().saturating_sub(MARK.len() + DIGITS));
        self.buffer.drain(..keep);
    }
}

fn find_mark(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARK.len()).position(|part| part == MARK.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_message_is_counted_once_however_it_is_cut() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a listener");
        let stream = TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a stream");
        let (mut reader, mut counted) = (StreamReader { stream, buffer: Vec::new() }, DeliveryCount::default());
        let text = b"data: {\"text\":\"sent-at-000000000001\"}\n\n".repeat(3);
        let begun = Instant::now();
        for byte in text {
            reader.buffer.push(byte);
            reader.parse_marks(begun, &mut counted);
        }
        assert_eq!(counted.delivered, 3);
    }
}
