//! A small Nostr client over a WebSocket, and authors who sign events.

use model::nostr::NostrEvent;
use nostr::key::PublicKey;
use nostr::nips::nip19::ToBech32 as _;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tungstenite::{Message, WebSocket, client};

/// How many events were made: each is later than the one before, whoever makes it.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Somebody with a key.
pub struct Author {
    secret: [u8; 32],
    beginning: u64,
}

impl Author {
    pub fn new(number: u8) -> Author {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        Author { secret: [number; 32], beginning: now - 290 }
    }

    /// An event, later than all before.
    pub fn event(&self, kind: u16, tags: &[&[&str]], content: &str) -> NostrEvent {
        self.event_at(self.beginning + MADE.fetch_add(1, Ordering::Relaxed), kind, tags, content)
    }

    /// An event of one moment.
    pub fn event_at(&self, created_at: u64, kind: u16, tags: &[&[&str]], content: &str) -> NostrEvent {
        let tags = tags.iter().map(|tag| tag.iter().map(|value| (*value).to_owned()).collect()).collect();
        NostrEvent::clone(&NostrEvent::sign(&self.secret, created_at, kind, tags, content).expect("signed"))
    }

    pub fn key(&self) -> String {
        NostrEvent::sign(&self.secret, 1, 1, Vec::new(), "").expect("signed").author.to_string()
    }

    pub fn npub(&self) -> String {
        PublicKey::from_hex(&self.key()).expect("a key").to_bech32().expect("an npub")
    }

    /// Announces a repository on a node.
    pub fn announcement(&self, url: &str, identifier: &str, maintainers: &[&str]) -> NostrEvent {
        let clone = format!("{url}/{}/{identifier}.git", self.npub());
        let relay = url.replacen("http", "ws", 1);
        let maintainers = [&["maintainers"], maintainers].concat();
        let tags: [&[&str]; 4] = [&["d", identifier], &["clone", &clone], &["relays", &relay], &maintainers];
        self.event(30617, &tags, "")
    }

    /// Says where the refs of a repository point.
    pub fn state(&self, identifier: &str, refs: &[(&str, &str)]) -> NostrEvent {
        let mut tags: Vec<Vec<&str>> = vec![vec!["d", identifier], vec!["HEAD", "ref: refs/heads/main"]];
        tags.extend(refs.iter().map(|(name, oid)| vec![*name, *oid]));
        let tags: Vec<&[&str]> = tags.iter().map(Vec::as_slice).collect();
        self.event(30618, &tags, "")
    }
}

/// What a relay says of itself (NIP-11).
pub fn relay_document(url: &str) -> Value {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).expect("connected");
    let head =
        format!("GET / HTTP/1.1\r\nHost: {address}\r\nAccept: application/nostr+json\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    serde_json::from_str(answer.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON")
}

/// A connection to a relay.
pub struct NostrClient(WebSocket<TcpStream>);

impl NostrClient {
    pub fn connect(url: &str) -> NostrClient {
        let address = url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        NostrClient(client(format!("ws://{address}/"), stream).expect("a handshake").0)
    }

    pub fn say(&mut self, message: &Value) {
        self.0.send(Message::text(message.to_string())).expect("sent");
    }

    /// Sends a text, whatever it is.
    pub fn say_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).expect("sent");
    }

    /// Sends a text. Says whether the relay took it.
    pub fn try_say(&mut self, text: &str) -> bool {
        self.0.send(Message::text(text)).is_ok()
    }

    /// The next message, unless the connection has ended.
    pub fn try_hear(&mut self) -> Option<Value> {
        match self.0.read().ok()? {
            Message::Text(text) => serde_json::from_str(&text).ok(),
            _ => None,
        }
    }

    /// The next message.
    pub fn hear(&mut self) -> Value {
        loop {
            match self.0.read().expect("a message") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Close(_) => return json!(["the relay has closed"]),
                _ => {}
            }
        }
    }

    /// Publishes an event: whether it was taken, and what was said.
    pub fn publish(&mut self, event: &NostrEvent) -> (bool, String) {
        self.0.send(Message::text(format!("[\"EVENT\",{}]", event.to_json()))).expect("sent");
        let answer = self.hear();
        assert_eq!((&answer[0], &answer[1]), (&json!("OK"), &json!(event.id.to_string())), "{answer}");
        (answer[2].as_bool().expect("a bool"), answer[3].as_str().expect("a text").to_owned())
    }

    /// Publishes an event that has to be taken.
    #[track_caller]
    pub fn publish_well(&mut self, event: &NostrEvent) -> String {
        let (is_taken, said) = self.publish(event);
        assert!(is_taken, "{said}");
        said
    }

    /// Waits until the relay serves these events, stored or live.
    pub fn wait_for_events(&mut self, filter: &Value, events: &[&NostrEvent]) {
        let mut missing: Vec<String> = events.iter().map(|event| event.id.to_string()).collect();
        self.say(&json!(["REQ", "live", filter]));
        while !missing.is_empty() {
            let heard = self.hear();
            assert!(heard[0] == "EVENT" || heard[0] == "EOSE", "{heard}, while {missing:?} are missing");
            missing.retain(|id| heard[2]["id"] != id.as_str());
        }
        self.say(&json!(["CLOSE", "live"]));
        // What came twice, or after the last of them.
        self.say(&json!(["COUNT", "end", { "limit": 0 }]));
        while self.hear()[0] != "COUNT" {}
    }

    /// Looks again until something is so.
    pub fn wait_until(&self, mut is_so: impl FnMut() -> bool) {
        while !is_so() {
            std::thread::yield_now();
        }
    }

    /// The stored events that a filter asks for, by id, the latest first.
    pub fn stored(&mut self, filter: &Value) -> Vec<String> {
        self.say(&json!(["REQ", "stored", filter]));
        let mut ids = Vec::new();
        loop {
            let heard = self.hear();
            match heard[0].as_str() {
                Some("EVENT") => ids.push(heard[2]["id"].as_str().expect("an id").to_owned()),
                Some("EOSE") => break,
                // Whoever polls asks more often than others may.
                Some("CLOSED") if heard[2].as_str().is_some_and(|why| why.starts_with("rate-limited")) => {
                    self.say(&json!(["REQ", "stored", filter]));
                }
                _ => panic!("{heard}"),
            }
        }
        self.say(&json!(["CLOSE", "stored"]));
        ids
    }
}
