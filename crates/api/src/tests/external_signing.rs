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

async fn submit(home: &Home, key: &SigningKey, draft: Value) -> (u16, Value) {
    let prepared = home.by("bob", "POST", "/v1/prepare", Some(draft)).await;
    assert_eq!(prepared.status, 200, "{prepared:?}");
    let answer = home.by("bob", "POST", "/v1/submit", Some(signed(key, &prepared.body))).await;
    (answer.status.as_u16(), answer.body)
}

#[tokio::test]
async fn a_role_given_anew_replaces_the_one_before_and_a_removed_identity_has_none() {
    let home = Home::new();
    let key = SigningKey::from_bytes(&[42; 32]);
    let identity = hex::encode(key.verifying_key().to_bytes());
    let path = format!("/admin/identities/{identity}");
    home.by("alice", "POST", "/v1/threads", Some(json!({ "id": "t" }))).await;
    let message = home.by("alice", "POST", "/v1/threads/t/messages", Some(json!({ "body": "mine" }))).await.body;
    let as_admin = admin(&home, "PUT", &path, json!({ "role": "admin" })).await["membership"].clone();
    let again = admin(&home, "PUT", &path, json!({ "role": "admin" })).await["membership"].clone();
    assert_eq!(again, as_admin, "a role that it has already makes no other membership");
    let edit = |authority: &Value| json!({ "identity": identity, "authority": authority, "kind": "edit", "target": message["event"], "body": "x" });
    home.clock.advance(1);
    assert_eq!(submit(&home, &key, edit(&as_admin)).await.0, 201, "an admin changes what others wrote");
    let as_member = admin(&home, "PUT", &path, json!({ "role": "member" })).await["membership"].clone();
    let again = admin(&home, "PUT", &path, json!({ "role": "member" })).await["membership"].clone();
    assert_eq!(again, as_member, "nor does it after a change");
    home.clock.advance(1);
    // Neither membership gives the right any more, the one before included.
    assert_eq!(submit(&home, &key, edit(&as_admin)).await.0, 403, "it is not in force any more");
    assert_eq!(submit(&home, &key, edit(&as_member)).await.0, 422, "it never gave that right");
    let thread = home.by("alice", "GET", "/v1/threads/t", None).await.body["event"].clone();
    let say = |authority: &Value| json!({ "identity": identity, "authority": authority, "kind": "message", "thread": thread, "body": "hello" });
    assert_eq!(submit(&home, &key, say(&as_member)).await.0, 201, "a member writes");
    let prepared = home.by("bob", "POST", "/v1/prepare", Some(say(&as_member))).await.body;
    let backend = [("x-api-key", home.admin.as_str())];
    assert_eq!(home.send("DELETE", &path, &backend, None).await.status, 204);
    assert_eq!(home.send("DELETE", &path, &backend, None).await.status, 404, "it has no role any more");
    home.clock.advance(1);
    for authority in [&as_admin, &as_member] {
        assert_eq!(home.by("bob", "POST", "/v1/prepare", Some(say(authority))).await.status, 403);
    }
    assert_eq!(
        home.by("bob", "POST", "/v1/submit", Some(signed(&key, &prepared))).await.status,
        403,
        "a removed member"
    );
    let log = home.send("GET", "/admin/audit", &backend, None).await.body;
    assert_eq!(log["entries"][0]["what"], "remove identity", "{log}");
    // Users of this node have their own way, and the owner of the space stays.
    let alice = home.send("GET", "/admin/users", &backend, None).await.body["users"][0]["identity"].clone();
    let path = format!("/admin/identities/{}", alice.as_str().expect("an identity"));
    assert_eq!(home.send("DELETE", &path, &backend, None).await.status, 409);
    let keeper =
        home.state.node.snapshot().expect("a snapshot").hosted_space(&home.space).expect("read").expect("kept").keeper;
    assert_eq!(home.send("DELETE", &format!("/admin/identities/{keeper}"), &backend, None).await.status, 409);
}

#[tokio::test]
async fn an_id_that_two_have_chosen_is_that_of_the_first() {
    let home = Home::new();
    let key = SigningKey::from_bytes(&[42; 32]);
    let identity = hex::encode(key.verifying_key().to_bytes());
    let thread = home.by("alice", "POST", "/v1/threads", Some(json!({ "id": "t" }))).await.body["event"].clone();
    let member = admin(&home, "PUT", &format!("/admin/identities/{identity}"), json!({ "role": "member" })).await;
    let mut submissions = Vec::new();
    for body in ["first", "second"] {
        let draft = json!({
            "identity": identity, "authority": member["membership"], "kind": "message",
            "thread": thread, "body": body, "id": "m1",
        });
        let prepared = home.by("bob", "POST", "/v1/prepare", Some(draft)).await.body;
        submissions.push(signed(&key, &prepared));
        home.clock.advance(1);
    }
    for submission in submissions {
        assert_eq!(home.by("bob", "POST", "/v1/submit", Some(submission)).await.status, 201);
    }
    let page = home.by("bob", "GET", "/v1/messages?thread=t", None).await.body;
    let shown = |number: usize| (&page["messages"][number]["body"], &page["messages"][number]["id"]);
    assert_eq!(shown(0), (&json!("first"), &json!("m1")), "{page}");
    assert_eq!(shown(1), (&json!("second"), &page["messages"][1]["event"]), "{page}");
}
