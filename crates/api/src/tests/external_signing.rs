//! Events that were signed elsewhere.

use super::Home;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};

async fn admin(home: &Home, method: &str, path: &str, body: Value) -> Value {
    let answer = home.send(method, path, &[("x-api-key", home.admin.as_str())], Some(&body)).await;
    assert!(answer.status.is_success(), "{answer:?}");
    answer.body
}

fn signed(key: &SigningKey, prepared: &Value) -> Value {
    let text = prepared["text"].as_str().expect("a text");
    let signature = key.sign(&hex::decode(text).expect("hex"));
    json!({ "text": text, "signature": hex::encode(signature.to_bytes()), "content": prepared["content"] })
}

#[tokio::test]
async fn a_client_with_its_own_key_prepares_signs_and_submits() {
    let home = Home::new();
    let key = SigningKey::from_bytes(&[42; 32]);
    let identity = hex::encode(key.verifying_key().to_bytes());
    let made = home.by("alice", "POST", "/v1/threads", Some(json!({ "id": "t" }))).await.body;
    let member = admin(&home, "PUT", &format!("/admin/identities/{identity}"), json!({ "role": "member" })).await;
    let draft = json!({
        "identity": identity, "authority": member["membership"], "kind": "message",
        "thread": made["event"], "body": "from elsewhere", "id": "m1",
    });
    let prepared = home.by("bob", "POST", "/v1/prepare", Some(draft.clone())).await;
    assert_eq!(prepared.status, 200, "{prepared:?}");
    let submission = signed(&key, &prepared.body);
    let wrong = signed(&SigningKey::from_bytes(&[43; 32]), &prepared.body);
    assert_eq!(home.by("bob", "POST", "/v1/submit", Some(wrong)).await.status, 403);
    // The signature says whose it is: the key that brings it need not act for anybody.
    let backend = [("x-api-key", home.backend.as_str())];
    let submitted = home.send("POST", "/v1/submit", &backend, Some(&submission)).await;
    assert_eq!((submitted.status.as_u16(), &submitted.body["state"]), (201, &json!("applied")), "{submitted:?}");
    assert_eq!(home.by("bob", "POST", "/v1/submit", Some(submission)).await.status, 200);
    let message = home.by("bob", "GET", "/v1/messages/m1", None).await.body;
    assert_eq!((&message["author"], &message["body"]), (&json!(identity), &json!("from elsewhere")));
    // What a moderator deleted stays so, whoever signs the edit.
    let edit = json!({
        "identity": identity, "authority": member["membership"], "kind": "edit", "target": message["event"], "body": "again",
    });
    let prepared = home.by("bob", "POST", "/v1/prepare", Some(edit.clone())).await;
    let earlier = signed(&key, &prepared.body);
    assert_eq!(home.by("bob", "POST", "/v1/submit", Some(earlier.clone())).await.status, 201);
    let prepared = home.by("bob", "POST", "/v1/prepare", Some(edit)).await;
    assert_eq!(prepared.status, 200, "{prepared:?}");
    let deleted = home.send("DELETE", "/v1/messages/m1", &[("x-api-key", home.admin.as_str())], None).await;
    assert!(deleted.status.is_success(), "{deleted:?}");
    let refused = home.by("bob", "POST", "/v1/submit", Some(signed(&key, &prepared.body))).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    assert_eq!(home.by("bob", "POST", "/v1/submit", Some(earlier)).await.status, 200, "what is here is here");
    let unknown =
        json!({ "identity": identity, "authority": made["event"], "kind": "message", "thread": "ab".repeat(16) });
    assert_eq!(home.by("bob", "POST", "/v1/prepare", Some(unknown)).await.status, 404);
}
