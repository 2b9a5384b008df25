//! Pages as a browser asks for them, without a browser.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// What strangers write wherever they can.
pub const RUNS: &str = "<script>document.title='x'</script>";

/// An answer as it came.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        let line = self.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
        line.map(|line| line[name.len() + 1..].trim()).unwrap_or_default()
    }

    /// A page that has to have come, says all of this, and runs nothing of what strangers write.
    #[track_caller]
    pub fn says(&self, expected: &[&str]) -> String {
        let text = self.text();
        assert_eq!(self.status, 200, "{text}");
        for part in expected {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert!(!text.contains(RUNS), "what somebody wrote runs: {text}");
        text
    }
}

/// Asks as a browser does, with more headers.
pub fn get_with(url: &str, more: &str) -> Answer {
    let (address, path) = url.trim_start_matches("http://").split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let head =
        format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/html\r\nConnection: close\r\n{more}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut body = answer[end + 4..].to_vec();
    if head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        body = dechunk(&body);
    }
    Answer { status: head[9..12].parse().unwrap(), head, body }
}

fn dechunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        body.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 4 + length..];
    }
    body
}

/// Asks as a browser does.
pub fn get(url: &str) -> Answer {
    get_with(url, "")
}

/// The texts that all pages of a list show, each as often as it stands there.
pub fn on_all_pages(site: &str, first: &str, texts: &[String]) -> Vec<String> {
    let (mut seen, mut next) = (Vec::new(), Some(first.to_owned()));
    while let Some(page) = next {
        let text = get(&page).says(&[]);
        seen.extend(texts.iter().filter(|one| text.contains(one.as_str())).cloned());
        let older = text.split("href=\"").find(|link| link.contains(">Older"));
        next = older.map(|link| format!("{site}{}", link.split('"').next().unwrap().replace("&amp;", "&")));
    }
    seen.sort();
    seen
}
