//! Webhooks against a receiver of our own, which answers what it is told to.

use super::Home;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use server::ServerOptions;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// What a receiver got.
#[derive(Debug)]
struct Got {
    headers: BTreeMap<String, String>,
    body: String,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    fn is_signed_by(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&key).expect("a key");
        let (id, timestamp) = (&self.headers["webhook-id"], &self.headers["webhook-timestamp"]);
        mac.update(format!("{id}.{timestamp}.{}", self.body).as_bytes());
        let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
        self.headers["webhook-signature"].split(' ').any(|signature| signature == expected)
    }
}

struct Receiver(TcpListener);

impl Receiver {
    async fn new() -> Receiver {
        Receiver(TcpListener::bind("127.0.0.1:0").await.expect("a listener"))
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.0.local_addr().expect("an address"))
    }

    /// Takes one request and answers it.
    async fn take(&self, status: u16) -> Got {
        let accepted = tokio::time::timeout(Duration::from_secs(20), self.0.accept());
        let (mut stream, _) = accepted.await.expect("a request in time").expect("a connection");
        let mut bytes = Vec::new();
        loop {
            let mut part = [0; 4096];
            let read = stream.read(&mut part).await.expect("bytes");
            bytes.extend_from_slice(&part[..read]);
            let text = String::from_utf8_lossy(&bytes);
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let headers: BTreeMap<String, String> = head
                .lines()
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect();
            if body.len() >= headers["content-length"].parse::<usize>().expect("a length") {
                let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.write_all(answer.as_bytes()).await.expect("an answer");
                return Got { headers, body: body.to_owned() };
            }
        }
    }
}

async fn open_home() -> Home {
    let home = Home::with(ServerOptions { private_webhooks: true, ..ServerOptions::default() });
    tokio::spawn(home.state.webhook_dispatcher.clone().run(home.state.commits()));
    home
}

async fn admin(home: &Home, method: &str, path: &str, body: Option<Value>) -> server::test_support::Answer {
    home.send(method, path, &[("x-api-key", home.admin.as_str())], body.as_ref()).await
}

async fn make(home: &Home, receiver: &Receiver, events: Value) -> (String, String) {
    let body = json!({ "url": receiver.url(), "events": events });
    let made = admin(home, "POST", "/admin/webhooks", Some(body)).await;
    assert_eq!(made.status, 201, "{made:?}");
    let text = |name: &str| made.body[name].as_str().expect("text").to_owned();
    (text("id"), text("secret"))
}

async fn state(home: &Home) -> Value {
    admin(home, "GET", "/admin/webhooks", None).await.body["webhooks"][0].clone()
}

/// Waits until the list shows something.
async fn until(home: &Home, is_so: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..400 {
        let now = state(home).await;
        if is_so(&now) {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("the webhook stays {}", state(home).await);
}

async fn write(home: &Home, body: &str) {
    home.by("alice", "POST", "/v1/threads/t1/messages", Some(json!({ "body": body }))).await;
}

#[tokio::test]
async fn long_content_is_sent_once() {
    let (home, receiver) = (open_home().await, Receiver::new().await);
    write(&home, "before").await;
    make(&home, &receiver, json!(["message.created", "message.changed"])).await;
    let long = "x".repeat(5000);
    for body in [long.as_str(), "after"] {
        write(&home, body).await;
    }
    for body in [long.as_str(), "after"] {
        let got = receiver.take(204).await.json();
        assert_eq!((&got["type"], &got["data"]["body"]), (&json!("message.created"), &json!(body)), "{got}");
    }
}

#[tokio::test]
async fn what_is_not_taken_comes_again_under_the_same_id_and_in_order() {
    let (home, receiver) = (open_home().await, Receiver::new().await);
    write(&home, "before").await;
    let (_, secret) = make(&home, &receiver, json!(["message.created"])).await;
    write(&home, "one").await;
    write(&home, "two").await;
    let first = receiver.take(500).await;
    assert!(first.is_signed_by(&secret));
    assert_eq!(
        (first.json()["type"].clone(), first.json()["data"]["body"].clone()),
        (json!("message.created"), json!("one"))
    );
    let failing = until(&home, |webhook| webhook["attempts"] == 1).await;
    assert!(failing["next_at"].is_string());
    home.clock.advance(61);
    home.state.webhook_dispatcher.wake();
    let again = receiver.take(200).await;
    assert_eq!(again.headers["webhook-id"], first.headers["webhook-id"]);
    assert_ne!(again.headers["webhook-timestamp"], first.headers["webhook-timestamp"]);
    assert!(again.is_signed_by(&secret));
    let second = receiver.take(204).await;
    assert_eq!(second.json()["data"]["body"], "two");
    let position = home.state.node.snapshot().expect("a snapshot").position().expect("a position").to_string();
    until(&home, |webhook| webhook["position"] == position.as_str() && webhook["attempts"] == 0).await;
}

#[tokio::test]
async fn what_is_gone_is_disabled_until_a_test_is_taken() {
    let (home, receiver) = (open_home().await, Receiver::new().await);
    let (id, secret) = make(&home, &receiver, json!([])).await;
    let other = admin(&home, "POST", &format!("/admin/webhooks/{id}/rotate"), None).await;
    let rotated = other.body["secret"].as_str().expect("a secret").to_owned();
    assert_ne!(rotated, secret);
    write(&home, "one").await;
    let got = receiver.take(410).await;
    assert!(got.is_signed_by(&secret) && got.is_signed_by(&rotated), "both sign for a day");
    until(&home, |webhook| webhook["disabled"] == "it answered 410").await;
    let audit = admin(&home, "GET", "/admin/audit", None).await;
    assert_eq!(audit.body["entries"][0]["what"], "disable webhook", "{audit:?}");
    assert!(!audit.body.to_string().contains("whsec_"));
    let path = format!("/admin/webhooks/{id}/test");
    let (tested, got) = tokio::join!(admin(&home, "POST", &path, None), receiver.take(200));
    assert_eq!((tested.body["taken"].clone(), got.json()["type"].clone()), (json!(true), json!("test")));
    // Nothing was lost: the entry that ended it comes again.
    let again = receiver.take(200).await;
    assert!(again.json()["type"].as_str().is_some_and(|kind| kind != "test"));
    assert_eq!(admin(&home, "DELETE", &format!("/admin/webhooks/{id}"), None).await.status, 204);
    assert_eq!(admin(&home, "GET", "/admin/webhooks", None).await.body["webhooks"], json!([]));
    assert_eq!(admin(&home, "DELETE", &format!("/admin/webhooks/{id}"), None).await.status, 404);
}

#[tokio::test]
async fn places_that_are_not_public_and_unknown_events_are_refused() {
    let home = Home::new();
    for url in ["http://127.0.0.1/x", "https://[::1]/", "http://169.254.169.254/latest", "file:///etc/passwd", "x"] {
        let made = admin(&home, "POST", "/admin/webhooks", Some(json!({ "url": url }))).await;
        assert_eq!(made.status, 422, "{url}: {made:?}");
    }
    let body = json!({ "url": "https://example.org/", "events": ["moon.rises"] });
    assert_eq!(admin(&home, "POST", "/admin/webhooks", Some(body)).await.status, 422);
}
