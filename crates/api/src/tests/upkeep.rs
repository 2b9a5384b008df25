//! Retention, purging, erasing, ending spaces, protection at rest: what goes, and that it is gone.

use super::Home;
use engine::access::KeyRole;
use model::Nanos;
use node::node_commands::{Prune, Tick};
use serde_json::{Value, json};
use server::ServerOptions;
use server::test_support::{OPERATOR, make_key};

async fn say(home: &Home, user: &str, id: &str) -> Value {
    let body = json!({ "id": id, "body": format!("{id} says a word") });
    let said = home.by(user, "POST", "/v1/threads/t1/messages", Some(body)).await;
    assert_eq!(said.status, 201, "{said:?}");
    said.body
}

/// The ids of the messages that still say something.
async fn left(home: &Home) -> Vec<String> {
    let page = home.by("alice", "GET", "/v1/threads/t1/messages?include_deleted=true", None).await.body;
    let messages = page["messages"].as_array().expect("messages").iter();
    let here = messages.filter(|message| message["state"] == "here" && message["deleted"] == false);
    here.map(|message| message["body"].as_str().unwrap_or("-").split(' ').next().unwrap_or("-").to_owned()).collect()
}

async fn as_admin(home: &Home, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let headers = [("x-api-key", home.admin.as_str())];
    let answer = home.send(method, path, &headers, body.as_ref()).await;
    (answer.status.as_u16(), answer.body)
}

async fn as_operator(home: &Home, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
    let token = format!("Bearer op_{OPERATOR}");
    let answer = home.send(method, path, &[("authorization", token.as_str())], body.as_ref()).await;
    (answer.status.as_u16(), answer.body)
}

/// Lets the writer go on until no job is under way and nothing waits. Each round is a commit, so that nothing is waited for.
fn finish_jobs(home: &Home) {
    let node = &home.state.node;
    loop {
        let db = node.snapshot().expect("a snapshot");
        if db.open_jobs().expect("jobs").is_empty() && db.is_at_rest().expect("read") {
            return;
        }
        node.ask(Tick).expect("a tick");
    }
}

#[tokio::test]
async fn retention_by_number_purges_what_its_preview_says() {
    let home = Home::new();
    for number in 0..6 {
        say(&home, "alice", &format!("m{number}")).await;
    }
    let (status, _) = as_admin(&home, "PUT", "/admin/retention", Some(json!({ "count": 2 }))).await;
    assert_eq!(status, 204);
    let (_, preview) = as_admin(&home, "GET", "/admin/retention/preview", None).await;
    assert_eq!((&preview["going"], &preview["more"]), (&json!(4), &json!(false)), "{preview}");
    assert_eq!((&preview["messages"][0]["why"], &preview["messages"][0]["how"]), (&json!("count"), &json!("delete")));
    assert_eq!(left(&home).await.len(), 6, "a preview changes nothing");
    let (status, begun) = as_admin(&home, "POST", "/admin/jobs", Some(json!({ "work": "retain" }))).await;
    assert_eq!(status, 202);
    finish_jobs(&home);
    assert_eq!(left(&home).await, ["m4", "m5"]);
    let (_, job) = as_admin(&home, "GET", &format!("/admin/jobs/{}", begun["job"].as_str().unwrap()), None).await;
    assert_eq!((&job["deleted"], &job["pruned"], &job["failed"]), (&json!(4), &json!(0), &Value::Null), "{job}");
    let (_, again) = as_admin(&home, "GET", "/admin/retention/preview", None).await;
    assert_eq!(again["going"], 0, "what went does not go again: {again}");
    let report = home.state.node.store().verify(home.state.node.now()).expect("a report");
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[tokio::test]
async fn retention_by_age_comes_with_the_clock_and_a_thread_has_its_own_rule() {
    let home = Home::new();
    let kept = home.by("alice", "POST", "/v1/threads", Some(json!({ "id": "t2" }))).await.body;
    say(&home, "alice", "old").await;
    home.by("alice", "POST", "/v1/threads/t2/messages", Some(json!({ "id": "kept", "body": "x" }))).await;
    as_admin(&home, "PUT", "/admin/retention", Some(json!({ "age_seconds": 60 }))).await;
    let own = json!({ "thread": kept["event"], "age_seconds": 1_000_000 });
    assert_eq!(as_admin(&home, "PUT", "/admin/retention", Some(own)).await.0, 204);
    home.clock.advance(3000);
    say(&home, "alice", "new").await;
    finish_jobs(&home);
    assert_eq!(left(&home).await, ["old", "new"], "it is looked at once an hour");
    home.clock.advance(700);
    home.state.node.ask(Tick).expect("a tick");
    finish_jobs(&home);
    assert_eq!(left(&home).await.len(), 0);
    assert_eq!(home.by("alice", "GET", "/v1/messages/kept", None).await.body["state"], "here");
    let (_, jobs) = as_operator(&home, "GET", "/admin/jobs", None).await;
    assert_eq!((&jobs["jobs"][0]["work"], &jobs["jobs"][0]["who"]), (&json!("retain"), &json!("schedule")));
    assert_eq!(as_admin(&home, "DELETE", "/admin/retention", None).await.0, 204);
    assert_eq!(as_admin(&home, "GET", "/admin/retention", None).await.1["rules"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn what_was_deleted_softly_is_purged_after_its_own_time() {
    let home = Home::new();
    for id in ["m1", "m2"] {
        say(&home, "alice", id).await;
    }
    home.by("alice", "DELETE", "/v1/messages/m1", None).await;
    as_admin(&home, "PUT", "/admin/retention", Some(json!({ "deleted_seconds": 100 }))).await;
    as_admin(&home, "POST", "/admin/jobs", Some(json!({ "work": "retain" }))).await;
    finish_jobs(&home);
    let versions = || home.by("alice", "GET", "/v1/messages/m1/versions", None);
    assert_eq!(versions().await.body["versions"][0]["body"], "m1 says a word");
    home.clock.advance(101);
    as_admin(&home, "POST", "/admin/jobs", Some(json!({ "work": "retain" }))).await;
    finish_jobs(&home);
    assert_eq!(versions().await.body["versions"][0]["body"], Value::Null);
    assert_eq!(left(&home).await, ["m2"]);
}

#[tokio::test]
async fn rules_that_make_no_sense_are_turned_away() {
    let home = Home::new();
    for (rule, status) in [
        (json!({ "count": 0 }), 422),
        (json!({ "age_seconds": 0 }), 422),
        (json!({ "age_seconds": 9_999_999_999_u64 }), 422),
        (json!({ "thread": "0".repeat(32), "count": 1 }), 404),
        (json!({ "count": -1 }), 422),
    ] {
        let (told, body) = as_admin(&home, "PUT", "/admin/retention", Some(rule.clone())).await;
        assert_eq!(told, status, "{rule}: {body}");
    }
}

#[tokio::test]
async fn a_purge_gives_a_receipt_and_is_audited() {
    let home = Home::new();
    let event = say(&home, "alice", "m1").await["event"].clone();
    let unknown = "1".repeat(32);
    let (status, receipt) = as_admin(&home, "POST", "/admin/purge", Some(json!({ "events": [event, unknown] }))).await;
    assert_eq!(status, 200, "{receipt}");
    assert_eq!((&receipt["purged"][0]["how"], &receipt["purged"][1]["how"]), (&json!("delete"), &Value::Null));
    let (_, again) = as_admin(&home, "POST", "/admin/purge", Some(json!({ "events": [event] }))).await;
    assert_eq!(again["purged"][0]["how"], "delete", "whoever repeats it hears the same");
    let (_, log) = as_admin(&home, "GET", "/admin/audit", None).await;
    assert_eq!((&log["entries"][0]["what"], &log["entries"][0]["target"]), (&json!("purge"), &event));
}

#[tokio::test]
async fn an_erased_user_leaves_nothing_but_the_places_of_what_they_wrote() {
    let home = Home::new();
    for number in 0..120 {
        say(&home, "alice", &format!("a{number}")).await;
    }
    say(&home, "bob", "b1").await;
    let (_, before) = as_admin(&home, "GET", "/admin/users/alice/export", None).await;
    let (status, begun) = as_admin(&home, "POST", "/admin/users/alice/erase", None).await;
    assert_eq!(status, 202, "{begun}");
    finish_jobs(&home);
    let (_, job) = as_admin(&home, "GET", &format!("/admin/jobs/{}", begun["job"].as_str().unwrap()), None).await;
    assert_eq!(job["deleted"].as_u64(), Some(121), "the thread and its messages: {job}");
    let page = home.by("bob", "GET", "/v1/messages?thread=t1&limit=200&include_deleted=true", None).await;
    // The thread was called by a name that went with it.
    assert_eq!(page.status, 200, "{page:?}");
    let messages = page.body["messages"].as_array().expect("messages");
    assert!(messages.iter().all(|message| message["author"] != "alice"), "{messages:?}");
    assert_eq!(messages.iter().filter(|message| message["state"] == "here").count(), 1);
    assert_eq!(as_admin(&home, "GET", "/admin/users/alice/export", None).await.0, 404);
    assert_eq!(as_admin(&home, "POST", "/admin/users/alice/erase", None).await.0, 404);
    home.by("alice", "POST", "/v1/threads/t2/messages", Some(json!({ "body": "somebody new" }))).await;
    let (_, after) = as_admin(&home, "GET", "/admin/users/alice/export", None).await;
    assert_ne!(before["identity"], after["identity"], "whoever has the name next is somebody else");
}

#[tokio::test]
async fn a_space_that_was_deleted_is_closed_and_cannot_be_read() {
    let home = Home::new();
    let event = say(&home, "alice", "m1").await["event"].clone();
    let other = server::test_support::found(&home.state.node, "other", 2);
    let key = make_key(&home.state.node, other, KeyRole::Backend, 9);
    assert_eq!(as_operator(&home, "DELETE", "/admin/spaces/nowhere", None).await.0, 404);
    let (status, begun) = as_operator(&home, "DELETE", "/admin/spaces/home", None).await;
    assert_eq!(status, 202);
    finish_jobs(&home);
    let (_, job) = as_operator(&home, "GET", &format!("/admin/jobs/{}", begun["job"].as_str().unwrap()), None).await;
    assert!(job["ended_at"].is_string() && job["pruned"].as_u64() > Some(0), "{job}");
    assert_eq!(home.by("alice", "GET", "/v1/messages/m1", None).await.status, 401, "its keys are gone");
    let db = home.state.node.snapshot().expect("a snapshot");
    let id = event.as_str().and_then(|id| id.parse().ok()).expect("an id");
    let seq = engine::reads::Reads::seq(&*db, &id).expect("read").expect("still known");
    assert_eq!(db.shown(seq).expect("read"), store::views::messages::ShownContent::Absent);
    let headers = [("x-api-key", key.as_str()), ("x-user-id", "eve")];
    assert_eq!(home.send("GET", "/v1/threads", &headers, None).await.status, 200, "others are untouched");
}

#[tokio::test]
async fn destroyed_keys_leave_nothing_to_read_not_even_in_memory() {
    let home = Home::new();
    say(&home, "alice", "m1").await;
    assert_eq!(left(&home).await, ["m1"], "rendered once, and kept");
    assert_eq!(as_operator(&home, "DELETE", "/admin/spaces/home/keys", None).await.0, 204);
    let page = home.by("alice", "GET", "/v1/threads/t1/messages", None).await;
    assert!(!page.body.to_string().contains("says a word"), "{page:?}");
    // Without its name it can still be ended.
    assert_eq!(as_operator(&home, "DELETE", "/admin/spaces/home", None).await.0, 404);
    assert_eq!(as_operator(&home, "DELETE", &format!("/admin/spaces/{}", home.space), None).await.0, 202);
    finish_jobs(&home);
    assert!(!home.state.node.snapshot().expect("a snapshot").is_hosted(&home.space));
}

#[tokio::test]
async fn fields_are_encrypted_at_rest_from_then_on_and_before() {
    let home = Home::new();
    let founded =
        node::commands::AdminCommand::FoundSpace { name: "open".into(), sealed: false, random: Box::new([7; 80]) };
    let node::commands::AdminResult::Founded(space) = home.administer(founded) else { panic!("not founded") };
    let key = make_key(&home.state.node, space, KeyRole::Admin, 8);
    let headers = [("x-api-key", key.as_str()), ("x-user-id", "alice")];
    let post = json!({ "body": { "text": "a secret", "color": "blue" } });
    let said = home.send("POST", "/v1/threads/t1/messages", &headers, Some(&post)).await.body;
    let fields = json!({ "encrypt": "fields", "fields": ["body.text"] });
    assert_eq!(as_operator(&home, "PUT", "/admin/spaces/open/protection", Some(fields)).await.0, 202);
    finish_jobs(&home);
    let path = format!("/admin/keys/event:{}", said["event"].as_str().expect("an id"));
    let stored = home.send("GET", &path, &headers, None);
    let stored = stored.await.body.to_string();
    assert!(stored.contains("_enc") && stored.contains("blue") && !stored.contains("a secret"), "{stored}");
    let read = home.send("GET", "/v1/threads/t1/messages", &headers, None).await.body;
    assert_eq!(read["messages"][0]["body"]["text"], "a secret");
    let bad = json!({ "encrypt": "fields", "fields": ["..", ""] });
    assert_eq!(as_operator(&home, "PUT", "/admin/spaces/open/protection", Some(bad)).await.0, 422);
}

#[tokio::test]
async fn the_storage_of_a_user_and_of_a_space_has_a_limit() {
    for (user_max, space_max, told) in [(Some(300), None, "user"), (None, Some(300), "space")] {
        let policy =
            engine::Policy { user_bytes_max: user_max, space_bytes_max: space_max, ..engine::Policy::default() };
        let home = Home::on(ServerOptions::default(), store::StoreOptions { policy, ..store::StoreOptions::default() });
        let post = || home.by("alice", "POST", "/v1/threads/t1/messages", Some(json!({ "body": "x".repeat(90) })));
        let mut refused = None;
        for _ in 0..5 {
            let answer = post().await;
            if answer.status != 201 {
                refused = Some(answer);
                break;
            }
        }
        let refused = refused.expect("a limit");
        assert_eq!(refused.status, 403);
        assert!(refused.body["type"].as_str().is_some_and(|name| name.ends_with("over-quota")), "{refused:?}");
        assert!(refused.body["detail"].as_str().is_some_and(|detail| detail.contains(told)), "{refused:?}");
        let bob = home.by("bob", "POST", "/v1/threads/t1/messages", Some(json!({ "body": "x".repeat(90) }))).await;
        assert_eq!(bob.status.as_u16() == 201, told == "user", "{bob:?}");
    }
}

#[tokio::test]
async fn the_store_is_verified_while_it_serves_and_events_are_looked_at_again() {
    let home = Home::new();
    let event = say(&home, "alice", "m1").await["event"].clone();
    let (status, report) = as_operator(&home, "POST", "/admin/verify", None).await;
    assert_eq!((status, &report["problems"]), (200, &json!([])), "{report}");
    assert_eq!(as_operator(&home, "POST", "/admin/retry", Some(json!({ "event": event }))).await.0, 204);
    assert_eq!(as_operator(&home, "POST", "/admin/retry", Some(json!({ "event": "1".repeat(32) }))).await.0, 404);
    assert_eq!(as_operator(&home, "POST", "/admin/retry", Some(json!({}))).await.0, 422);
    assert_eq!(as_admin(&home, "POST", "/admin/verify", None).await.0, 403);
    assert_eq!(as_admin(&home, "POST", "/admin/jobs", Some(json!({ "work": "encrypt" }))).await.0, 403);
    assert!(home.state.node.now() > Nanos(0));
}

#[tokio::test]
async fn a_private_thread_stays_private_whatever_is_purged() {
    for purged in ["erase", "purge", "prune"] {
        let home = Home::new();
        let new = json!({ "id": "p1", "private": true, "participants": ["bob"] });
        let thread = home.by("alice", "POST", "/v1/threads", Some(new)).await.body["event"].clone();
        home.by("bob", "POST", "/v1/threads/p1/messages", Some(json!({ "id": "m1", "body": "between us" }))).await;
        match purged {
            "erase" => drop(as_admin(&home, "POST", "/admin/users/alice/erase", None).await),
            "purge" => drop(as_admin(&home, "POST", "/admin/purge", Some(json!({ "events": [thread] }))).await),
            _ => {
                let id = thread.as_str().and_then(|id| id.parse().ok()).expect("an id");
                home.state.node.ask(Prune(id)).expect("a reply");
            }
        }
        finish_jobs(&home);
        let event = thread.as_str().expect("an id");
        for path in [format!("/v1/threads/{event}"), "/v1/messages/m1".into(), format!("/v1/messages?thread={event}")] {
            assert_eq!(home.by("mallory", "GET", &path, None).await.status, 404, "{purged} {path}");
        }
        if purged != "prune" {
            let own = home.by("bob", "GET", "/v1/messages/m1", None).await;
            assert_eq!(own.body["body"], "between us", "{purged}: {own:?}");
        }
    }
}

#[tokio::test]
async fn who_takes_part_outlives_whoever_said_so() {
    let home = Home::new();
    let new = json!({ "id": "p1", "private": true, "participants": ["bob", "mod"] });
    home.by("alice", "POST", "/v1/threads", Some(new)).await;
    let random = Box::new([3; 32]);
    let role = Some(model::payload::MemberRole::Admin);
    home.administer(node::commands::AdminCommand::SetRole { space: home.space, user: "mod".into(), role, random });
    let changed = json!({ "participants": ["bob", "mod", "carol"] });
    assert_eq!(home.by("mod", "PUT", "/v1/threads/p1", Some(changed)).await.status, 200);
    as_admin(&home, "POST", "/admin/users/mod/erase", None).await;
    finish_jobs(&home);
    for (user, status) in [("bob", 200), ("carol", 200), ("alice", 200), ("mallory", 404)] {
        assert_eq!(home.by(user, "GET", "/v1/threads/p1", None).await.status, status, "{user}");
    }
}
