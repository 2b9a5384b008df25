//! The pages without a browser: coming in, what is refused, and what is told to browsers.

use super::Home;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use tower::ServiceExt as _;

/// A page as it came.
pub(super) struct Page {
    pub(super) status: StatusCode,
    headers: http::HeaderMap,
    pub(super) text: String,
}

impl Page {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

async fn page(response: Response<Body>) -> Page {
    let (status, headers) = (response.status(), response.headers().clone());
    let bytes = axum::body::to_bytes(response.into_body(), 1 << 22).await.expect("a body");
    Page { status, headers, text: String::from_utf8(bytes.to_vec()).expect("text") }
}

/// Asks as a browser does; a form makes it a POST.
pub(super) async fn browse(home: &Home, path: &str, headers: &[(&str, String)], form: Option<&str>) -> Page {
    let mut request = Request::builder().method(if form.is_some() { "POST" } else { "GET" }).uri(path);
    for (name, value) in headers {
        request = request.header(*name, value.as_str());
    }
    if headers.iter().all(|(name, _)| *name != "host") {
        request = request.header("host", "node.example");
    }
    let length = form.unwrap_or_default().len();
    let request = request.header("content-type", "application/x-www-form-urlencoded").header("content-length", length);
    let request = request.body(Body::from(form.unwrap_or_default().to_owned())).expect("a request");
    page(home.router().oneshot(request).await.expect("an answer")).await
}

pub(super) fn from_here() -> Vec<(&'static str, String)> {
    vec![("sec-fetch-site", "same-origin".to_owned())]
}

/// The path of a new invitation, made by the operator.
pub(super) async fn invited(home: &Home, uses: u32) -> String {
    let operator = home.session("operator", true);
    let form = format!("role=member&days=7&uses={uses}&note=x");
    let made = browse(home, "/s/home/invite", &operator, Some(&form)).await;
    assert_eq!(made.status, 200, "{}", made.text);
    let from = made.text.find("/join/").expect("a link");
    made.text[from..].split('"').next().expect("a link").to_owned()
}

#[tokio::test]
async fn an_invitation_admits_as_many_as_it_says_and_no_longer_than_it_says() {
    let home = Home::new();
    let link = invited(&home, 2).await;
    let join = async |user: &str| {
        let form = format!("user={user}&password=correct+horse+battery");
        browse(&home, &link, &from_here(), Some(&form)).await
    };
    assert_eq!(browse(&home, &link, &[], None).await.status, 200);
    assert_eq!(join("alice").await.status, 303);
    let taken = join("alice").await;
    assert_eq!(taken.status, 409);
    assert!(taken.text.contains("is taken"), "{}", taken.text);
    let short = browse(&home, &link, &from_here(), Some("user=bob&password=short")).await;
    assert!(short.status == 422 && short.text.contains("ten characters"), "{}", short.text);
    assert_eq!(join("no/body").await.status, 422);
    let joined = join("bob").await;
    assert_eq!((joined.status, joined.header("location")), (StatusCode::SEE_OTHER, "/s/home"));
    let cookie = joined.header("set-cookie");
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"), "{cookie}");
    assert_eq!(join("carol").await.status, 404, "it was for two");
    let late = invited(&home, 1).await;
    home.clock.advance(8 * 24 * 3600);
    assert_eq!(browse(&home, &late, &[], None).await.status, 404);
    let form = "user=dan&password=correct+horse+battery";
    assert_eq!(browse(&home, &late, &from_here(), Some(form)).await.status, 404);
}

#[tokio::test]
async fn members_do_not_invite_and_nobody_asks_from_another_site() {
    let home = Home::new();
    home.by("alice", "POST", "/v1/threads/t/messages", Some(serde_json::json!({ "body": "hi" }))).await;
    let mut alice = home.session("alice", false);
    let form = "role=admin&days=7&uses=1";
    assert_eq!(browse(&home, "/s/home/invite", &alice, Some(form)).await.status, 403);
    assert_eq!(browse(&home, "/s/home/t/t", &alice, Some("text=hello")).await.status, 303);
    alice[1].1 = "cross-site".to_owned();
    assert_eq!(browse(&home, "/s/home/t/t", &alice, Some("text=hello")).await.status, 403);
    assert_eq!(browse(&home, "/s/home/t/t", &alice, None).await.status, 200, "reading is harmless");
    alice.truncate(1);
    assert_eq!(browse(&home, "/s/home/t/t", &alice, Some("text=hello")).await.status, 403, "who says nothing");
    alice.push(("origin", "http://node.example".to_owned()));
    assert_eq!(browse(&home, "/s/home/t/t", &alice, Some("text=hello")).await.status, 303);
    // The JSON API asks the same of a browser.
    let headers = [("cookie", alice[0].1.as_str()), ("sec-fetch-site", "cross-site")];
    let body = serde_json::json!({ "body": "x" });
    assert_eq!(home.send("POST", "/v1/threads/t/messages", &headers, Some(&body)).await.status, 403);
}

#[tokio::test]
async fn passwords_are_guessed_slowly_and_lead_only_to_this_node() {
    let home = Home::new();
    let link = invited(&home, 1).await;
    browse(&home, &link, &from_here(), Some("user=alice&password=correct+horse+battery")).await;
    let sign_in = async |password: &str, next: &str| {
        let form = format!("user=alice&password={password}&next={next}");
        browse(&home, "/in", &from_here(), Some(&form)).await
    };
    for (next, place) in [("/s/home", "/s/home"), ("//evil.example", "/"), ("https://evil.example", "/"), ("", "/")] {
        let signed = sign_in("correct+horse+battery", next).await;
        assert_eq!((signed.status, signed.header("location")), (StatusCode::SEE_OTHER, place), "{next}");
    }
    let mut statuses = Vec::new();
    for _ in 0..8 {
        statuses.push(sign_in("wrong+wrong+wrong", "/").await.status.as_u16());
    }
    assert_eq!((statuses[0], statuses[7]), (403, 429), "{statuses:?}");
}

#[tokio::test]
async fn browsers_are_told_to_fetch_nothing_elsewhere_and_what_is_written_shows_as_text() {
    let home = Home::new();
    let trick = "<script>alert(1)</script>";
    let body = serde_json::json!({ "body": trick });
    home.by("alice", "POST", "/v1/threads", Some(serde_json::json!({ "id": "t", "title": trick }))).await;
    home.by("alice", "POST", "/v1/threads/t/messages", Some(body)).await;
    let any = serde_json::json!({ "body": { "x": trick } });
    home.by("alice", "POST", "/v1/threads/t/messages", Some(any)).await;
    let operator = home.session("operator", true);
    for path in [
        "/",
        "/in",
        "/me",
        "/s/home",
        "/s/home/t/t",
        "/s/home/people",
        "/anteroom",
        "/inside",
        "/inside/keys",
        "/inside/audit",
        "/inside/jobs",
        "/inside/files",
        "/inside/settings",
        "/nowhere",
    ] {
        let page = browse(&home, path, &operator, None).await;
        assert!(page.status.as_u16() < 500, "{path}: {}", page.text);
        assert!(!page.text.contains(trick), "{path}: {}", page.text);
        if path != "/nowhere" {
            assert!(page.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
            assert_eq!(page.header("x-content-type-options"), "nosniff");
        }
        for word in ["http://", "https://", "//cdn", " style=\"", " onclick"] {
            assert!(!page.text.contains(word), "{path} has {word}: {}", page.text);
        }
    }
}

#[tokio::test]
async fn a_link_of_the_operator_is_good_once_and_shows_before_it_is_used() {
    let home = Home::new();
    let link = home.state.operator_link().expect("a link");
    assert_eq!(browse(&home, &link, &[], None).await.status, 200);
    assert_eq!(browse(&home, &link, &[], None).await.status, 200, "looking does not use it");
    let signed = browse(&home, &link, &from_here(), Some("")).await;
    assert_eq!(signed.status, 303);
    assert_eq!(browse(&home, &link, &from_here(), Some("")).await.status, 404);
    let cookie = signed.header("set-cookie").split(';').next().expect("a cookie").to_owned();
    let headers = [("cookie", cookie)];
    assert_eq!(browse(&home, "/inside", &headers, None).await.status, 200);
    let late = home.state.operator_link().expect("a link");
    home.clock.advance(25 * 3600);
    assert_eq!(browse(&home, &late, &from_here(), Some("")).await.status, 404);
}

/// A member who joined by a new invitation, signed in.
async fn joined(home: &Home, user: &str) -> Vec<(&'static str, String)> {
    let link = invited(home, 1).await;
    let form = format!("user={user}&password=correct+horse+battery");
    let signed = browse(home, &link, &from_here(), Some(&form)).await;
    assert_eq!(signed.status, 303, "{}", signed.text);
    let cookie = signed.header("set-cookie").split(';').next().expect("a cookie").to_owned();
    vec![("cookie", cookie), ("sec-fetch-site", "same-origin".to_owned())]
}

#[tokio::test]
async fn a_direct_conversation_is_between_two_whoever_comes_first() {
    let home = Home::new();
    let (alice, bob, mallory) =
        (joined(&home, "alice").await, joined(&home, "bob").await, joined(&home, "mallory").await);
    let first = browse(&home, "/s/home/people/bob/talk", &alice, Some("")).await;
    let second = browse(&home, "/s/home/people/alice/talk", &bob, Some("")).await;
    let place = first.header("location").to_owned();
    assert!(first.status == 303 && place.starts_with("/s/home/t/direct-"), "{}", first.text);
    assert_eq!(second.header("location"), place, "the same from both sides");
    assert_eq!(browse(&home, &place, &alice, Some("text=for+bob")).await.status, 303);
    assert!(browse(&home, &place, &bob, None).await.text.contains("for bob"));
    for path in [place.clone(), format!("{place}/part"), "/s/home".to_owned(), "/s/home/search?q=bob".to_owned()] {
        let page = browse(&home, &path, &mallory, None).await;
        assert!(!page.text.contains("for bob"), "{path}: {}", page.text);
    }
    let other = browse(&home, "/s/home/people/alice/talk", &mallory, Some("")).await;
    assert_ne!(other.header("location"), place);
}

#[tokio::test]
async fn removal_ends_the_account_its_sessions_and_its_invitations() {
    let home = Home::new();
    let operator = home.session("operator", true);
    let carol = joined(&home, "carol").await;
    let role = |form: &'static str| browse(&home, "/s/home/people/carol/role", &operator, Some(form));
    assert_eq!(role("role=admin").await.status, 303);
    let made = browse(&home, "/s/home/invite", &carol, Some("role=admin&days=7&uses=5")).await;
    let from = made.text.find("/join/").expect("a link");
    let link = made.text[from..].split('"').next().expect("a link").to_owned();
    // An admin neither removes the operator nor makes keys.
    let against = browse(&home, "/s/home/people/operator/role", &carol, Some("role=reader&remove=1")).await;
    assert_eq!(against.status, 403);
    assert_eq!(role("role=member&remove=1").await.status, 303);
    assert_eq!(browse(&home, "/s/home", &carol, None).await.status, 401);
    assert_eq!(browse(&home, &link, &[], None).await.status, 404);
    assert_eq!(role("role=member").await.status, 303, "she may come back");
    assert_eq!(browse(&home, "/s/home", &carol, None).await.status, 401, "but not with what she had");
    let form = "user=carol&password=correct+horse+battery";
    assert_eq!(browse(&home, "/in", &from_here(), Some(form)).await.status, 403);
}

#[tokio::test]
async fn names_do_not_look_like_others_and_the_operators_is_taken() {
    let home = Home::new();
    joined(&home, "bob").await;
    let link = invited(&home, 9).await;
    for (name, status) in
        [("BOB", 409), ("operator", 409), ("Operator", 409), ("%40bob", 422), ("b+ob", 422), (".bob", 422), ("", 422)]
    {
        let form = format!("user={name}&password=correct+horse+battery");
        assert_eq!(browse(&home, &link, &from_here(), Some(&form)).await.status.as_u16(), status, "{name}");
    }
    let body = serde_json::json!({ "body": "I run this" });
    let forged = home.by("operator", "POST", "/v1/threads/t/messages", Some(body)).await;
    assert_eq!(forged.status, 403, "{forged:?}");
}

#[tokio::test]
async fn the_operator_sees_what_is_unread_in_each_space() {
    let home = Home::new();
    let other = server::test_support::found(&home.state.node, "other", 5);
    let backend = server::test_support::make_key(&home.state.node, other, engine::access::KeyRole::Backend, 77);
    let operator = home.session("operator", true);
    let tab = async || {
        let page = browse(&home, "/s/home", &operator, None).await;
        let from = page.text.find("href=\"/s/other\"").expect("a tab");
        page.text[from..].split("</a>").next().expect("a tab").to_owned()
    };
    assert!(!tab().await.contains("unread"), "{}", tab().await);
    for body in ["one", "two"] {
        let headers = [("x-api-key", backend.as_str()), ("x-user-id", "alice")];
        let said = serde_json::json!({ "body": body });
        assert_eq!(home.send("POST", "/v1/threads/t/messages", &headers, Some(&said)).await.status, 201);
        // Whoever says something takes part from then on.
        assert_eq!(browse(&home, "/s/other/t/t", &operator, Some("text=hello")).await.status, 303);
    }
    assert!(tab().await.contains("2<span class=\"sr\"> unread"), "{}", tab().await);
}

#[tokio::test]
async fn what_was_typed_into_a_form_that_is_refused_is_shown_again_and_no_secret() {
    let home = Home::new();
    let operator = home.session("operator", true);
    let form = format!("title={}&text=%3Cb%3Ea+long+story&participants=", "x".repeat(300));
    let refused = browse(&home, "/s/home", &operator, Some(&form)).await;
    assert_eq!(refused.status, 422);
    assert!(
        refused.text.contains("What you entered") && refused.text.contains("&lt;b&gt;a long story"),
        "{}",
        refused.text
    );
    assert!(!refused.text.contains("Participants"), "{}", refused.text);
    let ended = browse(&home, "/s/home", &from_here(), Some("title=x&text=a+long+story")).await;
    assert!(
        ended.status == 401 && ended.text.contains("a long story") && ended.text.contains("Sign in"),
        "{}",
        ended.text
    );
    let refused = browse(&home, "/me/password", &operator, Some("after=short&before=hush-hush")).await;
    assert!(refused.status == 422 && !refused.text.contains("hush"), "{}", refused.text);
}

#[tokio::test]
async fn what_was_deleted_stays_deleted() {
    let home = Home::new();
    let said = home.by("alice", "POST", "/v1/threads/t/messages", Some(serde_json::json!({ "body": "abuse" }))).await;
    let id = said.body["id"].as_str().expect("an id").to_owned();
    let (operator, alice) = (home.session("operator", true), home.session("alice", false));
    assert_eq!(browse(&home, &format!("/s/home/m/{id}/delete"), &operator, Some("")).await.status, 303);
    let again = browse(&home, &format!("/s/home/m/{id}/edit"), &alice, Some("text=abuse+again")).await;
    assert!(again.status == 409 && again.text.contains("The message was deleted"), "{}", again.text);
    assert_eq!(browse(&home, &format!("/s/home/m/{id}/react"), &alice, Some("reaction=x")).await.status, 409);
    let body = serde_json::json!({ "body": "abuse again" });
    assert_eq!(home.by("alice", "PUT", &format!("/v1/messages/{id}"), Some(body)).await.status, 409);
    // Deleting it once more is no mistake.
    assert_eq!(browse(&home, &format!("/s/home/m/{id}/delete"), &alice, Some("")).await.status, 303);
    let threads = browse(&home, "/s/home", &alice, None).await;
    assert!(!threads.text.contains("abuse"), "{}", threads.text);
}

#[tokio::test]
async fn readers_are_told_so_and_long_texts_in_any_language_fit() {
    let home = Home::new();
    let hi = home.by("alice", "POST", "/v1/threads/t/messages", Some(serde_json::json!({ "body": "hi" }))).await;
    let (operator, alice) = (home.session("operator", true), home.session("alice", false));
    let long = format!("text={}", "%D0%B6".repeat(30_000));
    let said = browse(&home, "/s/home/t/t", &alice, Some(&long)).await;
    assert_eq!(said.status, 303, "{}", said.text);
    // A page that was gone back to, and somebody else in the same browser.
    for (form, status) in [
        ("text=one&id=w-1", 303),
        ("text=one&id=w-1", 303),
        ("text=two&id=w-1", 303),
        ("text=two&id=w-1", 303),
        ("text=x&as=bob", 409),
    ] {
        assert_eq!(browse(&home, "/s/home/t/t", &alice, Some(form)).await.status, status, "{form}");
    }
    let page = browse(&home, "/s/home/t/t", &alice, None).await;
    assert_eq!((page.text.matches("<p>one</p>").count(), page.text.matches("<p>two</p>").count()), (1, 1));
    let longer = browse(&home, "/s/home/t/t", &alice, Some(&format!("text={}", "x".repeat(70_000)))).await;
    assert_eq!(longer.status, 413, "{}", longer.text);
    browse(&home, "/s/home/people/alice/role", &operator, Some("role=reader")).await;
    let page = browse(&home, "/s/home/t/t", &alice, None).await;
    assert!(page.text.contains("You are a reader of this space"), "{}", page.text);
    let refused = browse(&home, "/s/home/t/t", &alice, Some("text=hello")).await;
    assert!(refused.status == 403 && refused.text.contains("Readers of a space read"), "{}", refused.text);
    let marker = serde_json::json!({ "message": hi.body["id"] });
    let marked = home.by("alice", "PUT", "/v1/threads/t/read", Some(marker)).await;
    assert!(marked.status.is_success(), "readers mark what they read: {}", marked.body);
    // Nobody is called what somebody else is.
    for (display, status) in [
        ("operator", 409),
        ("Oper%E2%80%8Bator", 409),
        ("%E2%80%8B%20oper%C2%ADator", 409),
        ("Alice", 303),
        ("Al", 303),
    ] {
        let form = format!("display={display}");
        assert_eq!(browse(&home, "/me/profile", &alice, Some(&form)).await.status, status, "{display}");
    }
}
