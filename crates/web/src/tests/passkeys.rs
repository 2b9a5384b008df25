//! Passkeys without a browser: a small authenticator of our own, which can also lie.

use super::Home;
use super::pages::{browse, from_here, invited};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const HERE: &str = "node.example";

/// What makes passkeys and proves to have them.
struct Authenticator {
    key: EcdsaKeyPair,
    id: [u8; 16],
    handle: Vec<u8>,
    host: &'static str,
}

fn sha256(bytes: &[u8]) -> Vec<u8> {
    Sha256::digest(bytes).to_vec()
}

impl Authenticator {
    fn new(id: u8) -> Authenticator {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).expect("a key");
        Authenticator { key, id: [id; 16], handle: Vec::new(), host: HERE }
    }

    fn client_data(&self, kind: &str, question: &Value) -> Vec<u8> {
        let challenge = &question["publicKey"]["challenge"];
        let origin = format!("http://{}", self.host);
        json!({ "type": kind, "challenge": challenge, "origin": origin, "crossOrigin": false }).to_string().into()
    }

    fn said(&self, flags: u8) -> Vec<u8> {
        [sha256(self.host.as_bytes()), vec![flags, 0, 0, 0, 0]].concat()
    }

    /// Makes a passkey as it was asked to.
    fn make(&mut self, question: &Value) -> String {
        let handle = question["publicKey"]["user"]["id"].as_str().expect("a handle");
        self.handle = BASE64.decode(handle).expect("base64");
        let point = self.key.public_key().as_ref();
        // The key as COSE has it: EC2, ES256, P-256, x, y.
        let cose = [
            &[0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20],
            &point[1..33],
            &[0x22, 0x58, 0x20],
            &point[33..],
        ]
        .concat();
        // The user was there and proved it, and a key is attached.
        let data = [self.said(0x45), vec![0; 16], vec![0, 16], self.id.to_vec(), cose].concat();
        let head = [b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58".as_slice(), &[data.len() as u8]].concat();
        let answer = json!({
            "clientDataJSON": BASE64.encode(self.client_data("webauthn.create", question)),
            "attestationObject": BASE64.encode([head, data].concat()),
        });
        self.wrapped(question, &answer)
    }

    /// Proves to have it.
    fn prove(&self, question: &Value, flags: u8) -> String {
        let (client, data) = (self.client_data("webauthn.get", question), self.said(flags));
        let signed = self.key.sign(&SystemRandom::new(), &[data.clone(), sha256(&client)].concat());
        let answer = json!({
            "clientDataJSON": BASE64.encode(client), "authenticatorData": BASE64.encode(data),
            "signature": BASE64.encode(signed.expect("a signature")), "userHandle": BASE64.encode(&self.handle),
        });
        self.wrapped(question, &answer)
    }

    fn wrapped(&self, question: &Value, answer: &Value) -> String {
        let id = BASE64.encode(self.id);
        let credential = json!({ "id": id, "rawId": id, "type": "public-key", "response": answer });
        json!({ "ticket": question["ticket"], "credential": credential, "next": "/s/home" }).to_string()
    }
}

/// Asks a path, and gives the status and what was said.
async fn ask(home: &Home, path: &str, headers: &[(&str, String)], body: &str) -> (u16, Value) {
    let headers = [headers, &[("x-part", "1".to_owned())]].concat();
    let said = browse(home, path, &headers, Some(body)).await;
    (said.status.as_u16(), serde_json::from_str(&said.text).unwrap_or_else(|_| Value::String(said.text.clone())))
}

async fn question(home: &Home, path: &str, body: &str) -> Value {
    let (status, question) = ask(home, path, &from_here(), body).await;
    assert_eq!(status, 200, "{question}");
    question
}

/// Somebody who joined with a passkey.
async fn joined(home: &Home, user: &str, id: u8) -> Authenticator {
    let link = invited(home, 1).await;
    let mut passkey = Authenticator::new(id);
    let asked = question(home, &format!("{link}/passkey/begin"), &format!("user={user}")).await;
    let made = passkey.make(&asked);
    let (status, said) = ask(home, &format!("{link}/passkey"), &from_here(), &made).await;
    assert_eq!((status, &said["next"]), (200, &json!("/s/home")), "{said}");
    passkey
}

#[tokio::test]
async fn a_passkey_signs_its_owner_in_and_a_challenge_is_answered_once() {
    let home = Home::new();
    let passkey = joined(&home, "alice", 1).await;
    let asked = question(&home, "/passkey/begin", "").await;
    let proof = passkey.prove(&asked, 0x05);
    let signed = browse(&home, "/passkey", &from_here(), Some(&proof)).await;
    assert_eq!(signed.status, 200, "{}", signed.text);
    let cookie = signed.header("set-cookie").split(';').next().expect("a cookie").to_owned();
    let threads = browse(&home, "/s/home", &[("cookie", cookie)], None).await;
    assert!(threads.status == 200 && threads.text.contains("data-user=\"alice\""), "{}", threads.text);
    let (status, again) = ask(&home, "/passkey", &from_here(), &proof).await;
    assert_eq!(status, 400, "{again}");
    let asked = question(&home, "/passkey/begin", "").await;
    home.clock.advance(301);
    let (status, late) = ask(&home, "/passkey", &from_here(), &passkey.prove(&asked, 0x05)).await;
    assert_eq!(status, 400, "{late}");
}

#[tokio::test]
async fn nobody_comes_in_with_what_is_not_theirs() {
    let home = Home::new();
    let alice = joined(&home, "alice", 1).await;
    let mallory = joined(&home, "mallory", 2).await;
    let forged = [
        // Another key under the names of hers, and her names mixed with the other's.
        Authenticator { id: alice.id, handle: alice.handle.clone(), ..Authenticator::new(1) },
        Authenticator { id: mallory.id, handle: alice.handle.clone(), ..Authenticator::new(2) },
        Authenticator { id: alice.id, handle: mallory.handle.clone(), ..Authenticator::new(1) },
        Authenticator { id: alice.id, ..Authenticator::new(1) },
        Authenticator { id: alice.id, handle: vec![0; 16], ..Authenticator::new(1) },
    ];
    for forged in &forged {
        let asked = question(&home, "/passkey/begin", "").await;
        let (status, said) = ask(&home, "/passkey", &from_here(), &forged.prove(&asked, 0x05)).await;
        assert_eq!(status, 403, "{said}");
    }
    // A key of this node, but not hers.
    let mixed = Authenticator { handle: alice.handle.clone(), ..mallory };
    let asked = question(&home, "/passkey/begin", "").await;
    let (status, said) = ask(&home, "/passkey", &from_here(), &mixed.prove(&asked, 0x05)).await;
    assert_eq!(status, 403, "{said}");
    // Her own key, but she was not there, or it was not shown who was.
    for flags in [0x00, 0x01, 0x04] {
        let asked = question(&home, "/passkey/begin", "").await;
        let (status, said) = ask(&home, "/passkey", &from_here(), &alice.prove(&asked, flags)).await;
        assert_eq!(status, 403, "{said}");
    }
    for junk in ["", "{}", "[]", "{\"ticket\":\"x\",\"credential\":{}}", "null"] {
        let (status, said) = ask(&home, "/passkey", &from_here(), junk).await;
        assert_eq!(status, 422, "{junk}: {said}");
    }
}

#[tokio::test]
async fn a_passkey_is_good_for_its_host_alone() {
    let home = Home::new();
    let alice = joined(&home, "alice", 1).await;
    let elsewhere = |host: &'static str| [from_here(), vec![("host", host.to_owned())]].concat();
    // A page of another name that hands everything on would get this far, with a browser that lies as well.
    let lying = Authenticator { host: "evil.example", ..alice };
    let (status, asked) = ask(&home, "/passkey/begin", &elsewhere("evil.example"), "").await;
    assert_eq!(status, 200, "{asked}");
    let (status, said) = ask(&home, "/passkey", &elsewhere("evil.example"), &lying.prove(&asked, 0x05)).await;
    assert_eq!(status, 403, "{said}");
    // A challenge for one host is not answered under another.
    let asked = question(&home, "/passkey/begin", "").await;
    let (status, said) = ask(&home, "/passkey", &elsewhere("evil.example"), &lying.prove(&asked, 0x05)).await;
    assert_eq!(status, 400, "{said}");
    // A host that hides another one: the browser of a neighbour would say its own name, and be believed.
    let neighbour = Authenticator { host: "sub.node.example", ..lying };
    for host in ["node.example:y@sub.node.example", "node.example@sub.node.example", "sub.node.example"] {
        let asked = question(&home, "/passkey/begin", "").await;
        let (status, said) = ask(&home, "/passkey", &elsewhere(host), &neighbour.prove(&asked, 0x05)).await;
        assert_eq!(status, 400, "{host}: {said}");
    }
    let told = [from_here(), vec![("origin", "https://node.example".to_owned())]].concat();
    let (status, said) = ask(&home, "/passkey/begin", &told, "").await;
    assert!(status == 400 && said["action"].to_string().contains("proxies"), "{said}");
    for address in ["127.0.0.1:7117", "[::1]:7117", "a b", ""] {
        let (status, said) = ask(&home, "/passkey/begin", &elsewhere(address), "").await;
        assert_eq!(status, 400, "{address}: {said}");
    }
}

#[tokio::test]
async fn whoever_is_asked_answers_for_themselves() {
    let home = Home::new();
    joined(&home, "alice", 1).await;
    joined(&home, "bob", 2).await;
    let (alice, bob) = (home.session("alice", false), home.session("bob", false));
    let (status, asked) = ask(&home, "/me/passkey/begin", &alice, "").await;
    assert_eq!(status, 200, "{asked}");
    let made = Authenticator::new(3).make(&asked);
    assert_eq!(ask(&home, "/me/passkey", &bob, &made).await.0, 400, "it was asked of alice");
    let (_, asked) = ask(&home, "/me/passkey/begin", &alice, "").await;
    assert_eq!(ask(&home, "/passkey", &from_here(), &Authenticator::new(3).prove(&asked, 0x05)).await.0, 400);
    let (_, asked) = ask(&home, "/me/passkey/begin", &alice, "").await;
    let (status, said) = ask(&home, "/me/passkey", &alice, &Authenticator::new(3).make(&asked)).await;
    assert_eq!(status, 200, "{said}");
    // Of two passkeys one may go, and no other's.
    let forget = |id: u8| format!("passkey={}", hex::encode([id; 16]));
    assert_eq!(ask(&home, "/me/passkey/forget", &alice, &forget(2)).await.0, 404);
    assert_eq!(ask(&home, "/me/passkey/forget", &alice, &forget(3)).await.0, 303);
    assert_eq!(ask(&home, "/me/passkey/forget", &alice, &forget(1)).await.0, 409, "the last way in");
    // Whoever finds the browser open later changes none of the ways in.
    home.clock.advance(601);
    assert_eq!(ask(&home, "/me/passkey/begin", &alice, "").await.0, 403);
    assert_eq!(ask(&home, "/me/passkey/forget", &alice, &forget(1)).await.0, 403);
    assert_eq!(ask(&home, "/me/password", &alice, "after=correct+horse+battery").await.0, 403);
    // An invitation's challenge is for that invitation and that name.
    let (one, other) = (invited(&home, 1).await, invited(&home, 1).await);
    let asked = question(&home, &format!("{one}/passkey/begin"), "user=carol").await;
    let made = Authenticator::new(4).make(&asked);
    assert_eq!(ask(&home, &format!("{other}/passkey"), &from_here(), &made).await.0, 400);
    for name in ["alice", "operator", "no/body", ""] {
        let (status, said) = ask(&home, &format!("{one}/passkey/begin"), &from_here(), &format!("user={name}")).await;
        assert!([409, 422].contains(&status), "{name}: {said}");
    }
}

#[tokio::test]
async fn who_asks_for_many_challenges_pushes_out_their_own() {
    let home = Home::new();
    let alice = joined(&home, "alice", 1).await;
    let first = question(&home, "/passkey/begin", "").await;
    let mut last = Value::Null;
    for _ in 0..40 {
        last = question(&home, "/passkey/begin", "").await;
    }
    assert_eq!(ask(&home, "/passkey", &from_here(), &alice.prove(&first, 0x05)).await.0, 400);
    assert_eq!(ask(&home, "/passkey", &from_here(), &alice.prove(&last, 0x05)).await.0, 200);
}

#[tokio::test]
async fn there_are_not_too_many_passkeys_and_none_after_removal() {
    let home = Home::new();
    let first = joined(&home, "alice", 1).await;
    let alice = home.session("alice", false);
    let mut statuses = Vec::new();
    for id in 2..=21 {
        let (_, asked) = ask(&home, "/me/passkey/begin", &alice, "").await;
        statuses.push(ask(&home, "/me/passkey", &alice, &Authenticator::new(id).make(&asked)).await.0);
    }
    assert_eq!((&statuses[..19], statuses[19]), ([200; 19].as_slice(), 422), "{statuses:?}");
    let operator = home.session("operator", true);
    let removed = browse(&home, "/s/home/people/alice/role", &operator, Some("role=&remove=1")).await;
    assert_eq!(removed.status, 303, "{}", removed.text);
    let asked = question(&home, "/passkey/begin", "").await;
    let (status, said) = ask(&home, "/passkey", &from_here(), &first.prove(&asked, 0x05)).await;
    assert_eq!(status, 403, "{said}");
}
