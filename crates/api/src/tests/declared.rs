//! API keys that the configuration declares, beside those in the store.

use super::Home;
use engine::access::KeyRole;
use model::{Nanos, SpaceId};
use serde_json::json;
use server::NewKey;
use server::ServerOptions;
use server::test_support::{OPERATOR, found};
use std::collections::BTreeMap;
use store::shared::api_keys::ApiKey;

const ID: [u8; 8] = [0xdd; 8];

/// A home whose configuration declares an admin key of a space.
fn home(space: SpaceId) -> (Home, String) {
    let key = NewKey::new(ID, &[9; 32]);
    let declared = ApiKey::new(KeyRole::Admin, space, key.hash, "from the file".into(), Nanos(0));
    let home = Home::with(ServerOptions { keys: BTreeMap::from([(ID, declared)]), ..ServerOptions::default() });
    (home, key.text)
}

/// The id of the home space is the same in every test, since its chance is.
fn home_space() -> SpaceId {
    Home::new().space
}

#[tokio::test]
async fn a_declared_key_works_and_is_never_stored() {
    let (home, key) = home(home_space());
    let headers = [("x-api-key", key.as_str()), ("x-user-id", "alice")];
    let made = home.send("POST", "/v1/threads/t1/messages", &headers, Some(&json!({ "body": "hi" }))).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert!(home.state.node.snapshot().expect("a snapshot").api_key(&ID).expect("read").is_none());
    let listed = home.send("GET", "/admin/api-keys", &headers, None).await.body;
    let keys = listed["keys"].as_array().expect("keys");
    let shown: Vec<_> =
        keys.iter().map(|key| (&key["label"], &key["declared"], key["created_at"].is_string())).collect();
    assert_eq!(shown.len(), 4);
    assert_eq!(shown[3], (&json!("from the file"), &json!(true), false));
    assert_eq!((shown[0].1, shown[0].2), (&json!(false), true));
}

#[tokio::test]
async fn a_wrong_secret_is_refused_in_the_same_words_as_for_a_stored_key() {
    let (home, key) = home(home_space());
    let wrong = key.replace("0909", "0908");
    let declared = home.send("GET", "/v1/threads", &[("x-api-key", &wrong)], None).await;
    let wrong = home.backend.replace("0202", "0203");
    let stored = home.send("GET", "/v1/threads", &[("x-api-key", &wrong)], None).await;
    assert_eq!((declared.status, &declared.body), (stored.status, &stored.body));
    assert_eq!(declared.body["detail"], "the key is not accepted");
}

#[tokio::test]
async fn a_declared_key_cannot_be_revoked_by_asking() {
    let (home, key) = home(home_space());
    let path = format!("/admin/api-keys/{}", hex::encode(ID));
    let operator = format!("Bearer op_{OPERATOR}");
    let answer = home.send("DELETE", &path, &[("authorization", &operator)], None).await;
    assert_eq!((answer.status.as_u16(), &answer.body["type"]), (409, &json!("/problems/declared")));
    assert!(answer.body["action"].as_str().expect("text").contains("remove it from the node's configuration file"));
    assert_eq!(home.send("GET", "/v1/threads", &[("x-api-key", &key)], None).await.status, 200);
    // Who administers another space does not learn of it.
    found(&home.state.node, "other", 2);
    let answer = home.send("DELETE", &path, &[("authorization", &operator), ("x-space", "other")], None).await;
    assert_eq!(answer.status, 404);
}
